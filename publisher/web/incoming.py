"""Reads a request to publish or to change a label from its headers and its body, and checks that it
is well-formed.

Looks at the request alone: does not know its sender or what is stored. Reads no more of a body than
its limit.
"""

import io
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from flask import Request
from msgspec import UNSET
from werkzeug.exceptions import HTTPException
from werkzeug.formparser import FormDataParser

from builder.model.errors import Detail, RequestError, bounded, cut, validation_failed
from builder.model.names import Version
from builder.model.request_bodies import Draft, LabelDraft, LabelRemoval, publication_bytes_max
from builder.model.routes import FORM, JSON
from publisher.write.drafts import parse_change, parse_draft, parse_folder
from server.bodies import VISITOR_BYTES_MAX

_PARTS_MAX = 10
_LESS_AT_ONCE = "publish less at once"
_LESS = "send only the version, a note and the version that you expect"

_key = re.compile(r"[\x20-\x7e]{1,255}")
_strong_tag = re.compile(r'"([^"]*)"')


class Incoming(NamedTuple):
    """A well-formed request to publish, or to change a label. ``body`` has its bytes as they were
    sent. ``left_out``: warnings about what its ZIP has beside the version.
    """

    draft: Draft | LabelDraft | LabelRemoval
    body: bytes
    key: str | None
    if_match: str | None = None
    left_out: Sequence[str] = ()

    def warn(self, warnings: list[str]) -> list[str]:
        """These warnings and those of the request."""
        return bounded([*self.left_out, *warnings])


def bearer_token(authorization: str | None) -> str | None:
    """Returns the token in an Authorization header, in any form; None without one."""
    scheme, _, text = (authorization or "").strip().partition(" ")
    return text.strip() or None if scheme.lower() == "bearer" else None


def read_publication(request: Request, file_bytes: int) -> bytes:
    """Returns the body of a request to publish, with at most ``file_bytes`` of files. Raises
    RequestError ``unsupported_media_type``, ``content_too_large``, ``invalid_json``.
    """
    bytes_max = publication_bytes_max(file_bytes)
    if request.mimetype == FORM:
        _check_encoding(request)
        return _read_body(request, bytes_max, _LESS_AT_ONCE)
    return read_json_body(request, bytes_max, _LESS_AT_ONCE)


def parse_publication(request: Request, body: bytes, file_bytes: int) -> Incoming:
    """Returns what a request to publish says. Raises RequestError as parse_draft does, which for
    headers is ``validation_failed`` too.
    """
    if request.mimetype == FORM:
        (draft, left_out), body = _parse_folder(request, body, file_bytes)
    else:
        draft, left_out = parse_draft(body, file_bytes), []
    key = _read_key(request)
    if_match = request.headers.get("If-Match")
    return Incoming(_with_condition(draft, if_match), body, key, if_match, left_out)


def _parse_folder(
    request: Request, body: bytes, file_bytes: int
) -> tuple[tuple[Draft, list[str]], bytes]:
    """The draft of a form with a ZIP as parse_folder, and the bytes that identify the request: a
    form that is sent again has another boundary.
    """
    parser = FormDataParser(
        lambda **_: io.BytesIO(),
        max_form_memory_size=len(body),
        max_form_parts=_PARTS_MAX,
        silent=False,
    )
    try:
        _, fields, files = parser.parse(
            io.BytesIO(body), request.mimetype, len(body), request.mimetype_params
        )
    except (ValueError, HTTPException):
        raise _wrong_form("cannot be read") from None
    parts = [name for found in (fields, files) for name, _ in found.items(multi=True)]
    if sorted({*parts} | {"draft"}) != ["draft", "files"] or len(parts) != len({*parts}):
        raise _wrong_form(f"has the parts {', '.join(sorted(parts)) or 'none'}")
    if "files" not in files:
        raise _wrong_form("has no file as `files`")
    draft = files["draft"].read() if "draft" in files else fields.get("draft", "").encode()
    packed = files["files"].read()
    return parse_folder(draft, packed, file_bytes), b"%d:" % len(draft) + draft + packed


def _wrong_form(fault: str) -> RequestError:
    shown = fault.encode("utf-8", "replace").decode()
    return validation_failed(
        Detail("files", f"the form {cut(shown, 200)}: send `files`, a ZIP, and `draft`, JSON")
    )


def read_label_change(request: Request) -> Incoming:
    """Reads and checks a request to move a label (PUT) or to remove it (DELETE, which needs no
    body).

    Raises RequestError as read_publication, with what the parsers of these bodies raise.
    """
    if request.method == "DELETE":
        body = _read_body(request, VISITOR_BYTES_MAX, _LESS)
        if body:
            _check_media_type(request)
    else:
        body = read_json_body(request, VISITOR_BYTES_MAX, _LESS)
    draft = parse_change(LabelRemoval if request.method == "DELETE" else LabelDraft, body)
    if "If-Match" in request.headers:
        message = "is for publications: send the version that you expect as `expected`, in the body"
        raise validation_failed(Detail("If-Match", message))
    return Incoming(draft, body, _read_key(request))


def _read_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _key.fullmatch(key):
        raise validation_failed(
            Detail("Idempotency-Key", "must have 1 to 255 printable ASCII characters")
        )
    return key


def read_json_body(request: Request, bytes_max: int, advice: str) -> bytes:
    """Returns the body of a request that must be JSON; does not parse it.

    ``advice`` says what to do about a body that is too large. Raises RequestError
    ``unsupported_media_type``, ``content_too_large``, ``invalid_json``.
    """
    _check_media_type(request)
    return _read_body(request, bytes_max, advice)


def _check_media_type(request: Request) -> None:
    charset = request.mimetype_params.get("charset", "utf-8")
    if request.mimetype != JSON or charset.lower() not in ("utf-8", "utf8"):
        raise RequestError(
            "unsupported_media_type", f"Send JSON in UTF-8, with the header Content-Type: {JSON}."
        )
    _check_encoding(request)


def _check_encoding(request: Request) -> None:
    if request.headers.get("Content-Encoding", "").strip().lower() not in ("identity", ""):
        raise RequestError(
            "unsupported_media_type", "The body is compressed. Send it without Content-Encoding."
        )


def _read_body(request: Request, bytes_max: int, advice: str) -> bytes:
    is_chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    # A server that accepts chunks ends the stream after the last one. Not every server announces
    # that, and without it, Flask would read no body at all.
    stream = request.environ["wsgi.input"] if is_chunked else request.stream
    body = bytearray()
    is_too_large = (request.content_length or 0) > bytes_max
    try:
        while not is_too_large:
            part = stream.read(bytes_max + 1 - len(body))
            if not part:
                return bytes(body)
            body += part
            is_too_large = len(body) > bytes_max
    except Exception as error:
        # Each server raises errors of its own for invalid chunks and closed connections.
        raise RequestError(
            "invalid_json", "The body arrived incomplete. Send the request again."
        ) from error
    raise RequestError(
        "content_too_large", f"The request is larger than {bytes_max:,} bytes: {advice}."
    )


def _with_condition(draft: Draft, if_match: str | None) -> Draft:
    """Returns the draft with the version of If-Match (RFC 9110 §13.1.1) as its base version."""
    if if_match is None:
        return draft
    found = _strong_tag.fullmatch(if_match.strip())
    try:
        base = str(Version.parse(found[1] if found else ""))
    except RequestError:
        message = 'must be one version in quotes: "1.2.0"'
        raise validation_failed(Detail("If-Match", message)) from None
    if draft.base_version not in (UNSET, base):
        message = f"is {base}, but base_version is {draft.base_version}: send only one of them"
        raise validation_failed(Detail("If-Match", message))
    return msgspec.structs.replace(draft, base_version=base)
