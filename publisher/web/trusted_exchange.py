"""The HTTP body of an exchange, and of its answer."""

import re

import msgspec
from flask import Request

from builder.model import names
from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.records import TrustedExchange, TrustedToken
from publisher.accounts.accounts import Token, format_time
from publisher.trusted.exchange import ALL
from publisher.web.incoming import read_json_body
from publisher.write.fields import suggest
from server.bodies import VISITOR_BYTES_MAX

_FIELD_SHOWN_CHARS = 100
_GRAMMAR = {
    "repo": "must be OWNER/NAME in lower case, or OWNER/* for all that trust the job: "
    "ada/code-review"
}

_decode = msgspec.json.Decoder(TrustedExchange).decode
_place = re.compile(r"(?P<told>.*) - at `\$\.(?P<field>\w+)`", re.DOTALL)
_missing = re.compile(r"Object missing required field `(?P<field>\w+)`")
_unknown = re.compile(r"Object contains unknown field `(?P<field>.*)`", re.DOTALL)


def read_exchange(request: Request) -> tuple[str, str]:
    """The ID token in a request, and what it asks for: ``owner/name``, or ``owner/*``.

    Raises RequestError ``unsupported_media_type``, ``content_too_large``, ``invalid_json``,
    ``validation_failed``; none quotes the ID token.
    """
    body = read_json_body(request, VISITOR_BYTES_MAX, "send only the ID token and the repo")
    try:
        sent = _decode(body)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    except (ValueError, RecursionError):
        raise _not_an_object() from None
    if not _is_scope(sent.repo):
        raise validation_failed(Detail("repo", _GRAMMAR["repo"]))
    return sent.token, sent.repo


def trusted_token(text: str, token: Token) -> TrustedToken:
    """What is answered: a token with its text."""
    return TrustedToken(text, token.owner, list(token.repos), format_time(token.expires_at))


def _wrong(message: str) -> RequestError:
    if found := _place.fullmatch(message):
        field = found["field"]
        told = _GRAMMAR.get(field, found["told"])
        return validation_failed(Detail(field, told))
    if found := _missing.fullmatch(message):
        field = found["field"]
        told = _GRAMMAR.get(field, "is missing: send the ID token that the CI created for this job")
        return validation_failed(Detail(field, told))
    if found := _unknown.fullmatch(message):
        known = TrustedExchange.__struct_fields__
        told = f"is not a known field{suggest(found['field'], known)}: send {', '.join(known)}"
        return validation_failed(Detail(found["field"][:_FIELD_SHOWN_CHARS], told))
    return _not_an_object()


def _is_scope(text: str) -> bool:
    # The record's pattern admits a final newline, and an owner that is too long.
    owner, _, name = text.partition("/")
    return names.is_name(owner, names.OWNER_CHARS_MAX) and (
        name == ALL or names.is_name(name, names.REPO_CHARS_MAX)
    )


def _not_an_object() -> RequestError:
    return RequestError(
        "invalid_json", 'Send a JSON object in UTF-8: {"token": "…", "repo": "ada/code-review"}.'
    )
