"""What an ID token says of the CI job that holds it, and whether to believe it.

A token is a JWT (RFC 7519) that an issuer has signed. All that is in it comes from outside: its
``iss`` before the signature is checked does no more than pick an issuer from the allow list.
Messages quote claims, never the token.
"""

import hashlib
import json
import math
import re
import string
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact

from builder.model.errors import RequestError
from builder.model.records import format_time
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer, Kind
from publisher.trusted.keys import ALGORITHMS, KeyRing

TOKEN_BYTES_MAX = 16 * 1024
# NIST SP 800-131A.
RSA_BITS_MIN = 2048
# How far clocks may be apart.
LEEWAY_SECONDS = 60
LIFE_SECONDS_MAX = 86_400
CLAIM_CHARS_MAX = 1000
BRANCH_PREFIX = "refs/heads/"

# They run code that anybody can propose, with the rights of the project. A child pipeline may be a
# merge request's, and then its branch is that of the fork: its token does not tell them apart.
_REFUSED_EVENTS: Mapping[Kind, tuple[str, ...]] = {
    "github": ("pull_request_target",),
    "gitlab": ("merge_request_event", "external_pull_request_event", "parent_pipeline"),
}
_GITLAB_PREFIXES = {"branch": BRANCH_PREFIX, "tag": "refs/tags/"}
_SHOWN_CHARS = 200

_digits = re.compile(r"[0-9]{1,20}")
# What follows the file is a branch or tag, or a commit; neither can be a part of a file's name.
_github_workflow = re.compile(
    r"(?P<project>[^/]+/[^/]+)/\.github/workflows/(?P<file>[^/]+?\.ya?ml)"
    r"@(?P<ref>refs/.+|[0-9a-f]{40}|[0-9a-f]{64})"
)
_gitlab_workflow = re.compile(r"(?P<project>.+?)//(?P<file>.+?)@(?P<ref>refs/.+)")


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class _Registry(JWSRegistry):
    """What a JWS may have in it. The length of a part is bounded by that of the token alone."""

    max_header_length = max_payload_length = max_signature_length = TOKEN_BYTES_MAX


_registry = _Registry(algorithms=ALGORITHMS, strict_check_header=False)


class Job(NamedTuple):
    """A CI job, as its issuer vouches for it.

    ``issuer`` is the issuer's URL. ``project`` (GROUP/NAME) is folded (see ``fold``), and
    ``environment`` at GitHub, which does not tell capitals; there may be none (empty).
    ``project_id`` stays when the project is renamed. ``workflow`` is the file that defines the job:
    at GitHub its name, at GitLab its path.

    ``ref`` is what the job runs on, in full: ``refs/heads/main`` for a branch, ``refs/tags/v1`` for
    a tag, empty if the issuer names neither. ``workflow_ref`` is where ``workflow`` was read,
    likewise, or a commit's hash. The two differ where a workflow calls another of its repository.

    ``run`` leads to the job's log, or is empty. ``token_hash`` is the same for the same ID token
    alone, which counts until ``expires_at``, in epoch seconds.
    """

    issuer: str
    kind: Kind
    project: str
    project_id: str
    workflow: str
    environment: str
    ref: str
    workflow_ref: str
    run: str
    token_hash: bytes
    expires_at: int

    @property
    def branch(self) -> str:
        """The branch that the job runs on and its file was read from; empty if that is not one and
        the same branch.
        """
        # Whoever may push elsewhere can start a file of this branch there, or change it there.
        is_one = self.ref == self.workflow_ref and self.ref.startswith(BRANCH_PREFIX)
        return self.ref.removeprefix(BRANCH_PREFIX) if is_one else ""

    def place(self) -> str:
        """What it runs on, for people, and where its file is from if that is elsewhere."""
        told = f"on {self.ref}" if self.ref else "on no branch or tag"
        is_one = self.ref == self.workflow_ref
        return told if is_one else f"{told} with the file of {self.workflow_ref}"


def fold(text: str) -> str:
    """``text`` with ASCII capitals in lower case.

    Other capitals stay: str.lower() makes the Kelvin sign (U+212A) a k, so that another name would
    pass for docker.
    """
    return text.translate(_LOWER)


def verify(
    token: str,
    issuers: Iterable[Issuer],
    keys: KeyRing,
    audience: str,
    now: datetime | None = None,
) -> Job:
    """The job that an ID token was made for, if an issuer on the list made it for ``audience``,
    the hub's base URL, and it holds now.

    Raises RequestError ``invalid_token``, ``token_expired``; ``unavailable`` if the issuer's keys
    are.
    """
    jws, claims = _read(token)
    issuer = _issuer_of(claims, issuers)
    _check_signature(jws, issuer, keys)
    expires_at = _check_times(claims, (now or datetime.now(UTC)).timestamp())
    _check_audience(claims, audience)
    token_id = _text(claims, "jti")
    _text(claims, "sub")
    read = {"github": _read_github, "gitlab": _read_gitlab}[issuer.kind]
    digest = hashlib.sha256(f"{issuer.url}\n{token_id}".encode()).digest()
    return read(issuer, claims, {"token_hash": digest, "expires_at": expires_at})


def _read(token: str) -> tuple[CompactSignature, Mapping[str, Any]]:
    """A JWT and its claims, which nobody has vouched for yet."""
    if len(token) > TOKEN_BYTES_MAX:
        raise _refusal(
            f"An ID token has at most {TOKEN_BYTES_MAX:,} bytes, and this has {len(token):,}. "
            "Send the issuer's JWT alone."
        )
    not_a_jwt = _refusal(
        "That is no ID token: it is no signed JWT, three parts of base64 with dots between them. "
        "Send what the issuer gave, all of it, without quotes."
    )
    try:
        jws = extract_compact(token.encode(), registry=_registry)
        claims = json.loads(jws.payload)
    except (JoseError, ValueError, RecursionError):
        # Without its cause, which may quote the token.
        raise not_a_jwt from None
    header = jws.headers()
    # No extension that a header may call critical (crit) is known here, b64 (RFC 7797) neither.
    if not isinstance(header, dict) or not isinstance(claims, dict) or {"crit", "b64"} & {*header}:
        raise not_a_jwt
    return jws, claims


def _issuer_of(claims: Mapping[str, Any], issuers: Iterable[Issuer]) -> Issuer:
    known = {issuer.url: issuer for issuer in issuers}
    came = claims.get("iss")
    if not isinstance(came, str) or came not in known:
        raise _refusal(
            f"The ID token's issuer (iss) is {_shown(came)}, and this hub believes only "
            f"{' and '.join(known)}. Publish from there, or ask whoever runs this hub to add the "
            "issuer."
        )
    return known[came]


def _check_signature(jws: CompactSignature, issuer: Issuer, keys: KeyRing) -> None:
    algorithm, kid = jws.headers()["alg"], jws.headers().get("kid")
    if algorithm not in ALGORITHMS:
        raise _refusal(
            f"The ID token says that it is signed with {_shown(algorithm)}; expected is one of "
            f"{', '.join(ALGORITHMS)}. Send the token as its issuer gave it."
        )
    if not isinstance(kid, str):
        raise _refusal(
            "The ID token does not say which key it is signed with (kid). Send the token as its "
            "issuer gave it."
        )
    key = keys.key_for(issuer, kid)
    if algorithm != key.alg:
        raise _refusal(
            f"The ID token says that it is signed with {algorithm}; its key is for {key.alg}. "
            "Send the token as its issuer gave it."
        )
    is_weak = isinstance(key, RSAKey) and key.public_key.key_size < RSA_BITS_MIN
    try:
        is_signed = not is_weak and validate_compact(jws, key, registry=_registry)
    except JoseError:
        is_signed = False
    if not is_signed:
        raise _refusal(
            f"The ID token is not signed by {issuer.url}: it was changed, or somebody else made "
            "it. Send the token as its issuer gave it."
        )


def _check_times(claims: Mapping[str, Any], now: float) -> int:
    """Whether a token holds at ``now``; returns the second from which on it does not.

    joserfc's own check neither bounds how long a token holds nor tells the times it compares.
    """
    expires = _time(claims, "exp")
    if expires is None:
        raise _refusal(
            "The ID token never expires (it has no exp), and such a token is not taken. Get one "
            "from an issuer that says how long it holds."
        )
    if expires > now + LIFE_SECONDS_MAX + LEEWAY_SECONDS:
        raise _refusal(
            "The ID token holds for more than a day, and such a token is not taken. Have the "
            "issuer make one that expires (exp) with the job."
        )
    if now >= expires + LEEWAY_SECONDS:
        made = _time(claims, "iat")
        clock = "" if made is None else f"the CI's said {_moment(made)} when it was made (iat), "
        raise RequestError(
            "token_expired",
            f"The ID token expired (exp) at {_moment(expires)}. Get a new one right before it is "
            f"exchanged. If it is new, a clock is wrong: {clock}this hub's says {_moment(now)}.",
        )
    for name, told in (("nbf", "does not hold before"), ("iat", "was made at")):
        since = _time(claims, name)
        if since is not None and since > now + LEEWAY_SECONDS:
            raise _refusal(
                f"The ID token {told} ({name}) {_moment(since)}, and here it is {_moment(now)}. "
                "Set the clock of the machine that is wrong, and get a new one."
            )
    return math.ceil(expires) + LEEWAY_SECONDS


def _check_audience(claims: Mapping[str, Any], audience: str) -> None:
    came = claims.get("aud")
    if came not in (audience, [audience]):
        raise _refusal(
            f"The ID token is for (aud) {_shown(came)}, and this hub is {audience!r}. Ask the "
            "issuer for a token with exactly this audience, and no other beside it."
        )


def _read_github(issuer: Issuer, claims: Mapping[str, Any], token: Mapping[str, Any]) -> Job:
    project, came = _text(claims, "repository"), _text(claims, "job_workflow_ref")
    _check_event(issuer, _text(claims, "event_name"), "event_name")
    found = _github_workflow.fullmatch(came)
    if not found:
        raise _refusal(
            f"The ID token's job_workflow_ref is {_shown(came)}; expected is "
            f"{project}/.github/workflows/FILE.yml@REF. Publish from a workflow file."
        )
    if fold(found["project"]) != fold(project):
        raise _refusal(
            f"The job is of {project}, and its workflow of another repository: {_shown(came)}. "
            "A reusable workflow of another repository may change without this one; call the hub "
            f"from a job that a workflow file of {project} itself defines."
        )
    run_id = _optional_text(claims, "run_id")
    run = f"run {run_id}" if _digits.fullmatch(run_id) else ""
    if run and issuer == DEFAULT_ISSUERS[0]:
        # Where the pages of an issuer of somebody's own are, its tokens do not say.
        run = f"https://github.com/{project}/actions/runs/{run_id}"
    return Job(
        issuer=issuer.url,
        kind=issuer.kind,
        project=fold(project),
        project_id=_number(claims, "repository_id"),
        workflow=found["file"],
        # GitHub does not tell Prod from prod, GitLab does.
        environment=fold(_optional_text(claims, "environment")),
        ref=_optional_text(claims, "ref"),
        workflow_ref=found["ref"],
        run=run,
        **token,
    )


def _read_gitlab(issuer: Issuer, claims: Mapping[str, Any], token: Mapping[str, Any]) -> Job:
    project, came = _text(claims, "project_path"), _text(claims, "ci_config_ref_uri")
    _check_event(issuer, _text(claims, "pipeline_source"), "pipeline_source")
    parts = urlsplit(issuer.url)
    here = f"{parts.netloc}{parts.path}/{project}"
    found = _gitlab_workflow.fullmatch(came)
    if not found:
        raise _refusal(
            f"The ID token's ci_config_ref_uri is {_shown(came)}; expected is {here}//FILE@REF. "
            "Publish from a pipeline that a file of the project defines."
        )
    if fold(found["project"]) != fold(here):
        raise _refusal(
            f"The job is of {project}, and its pipeline is defined elsewhere: {_shown(came)}. "
            "That may change without the project; call the hub from a pipeline that a file of "
            f"{project} itself defines."
        )
    job_id = _optional_text(claims, "job_id")
    is_number = _digits.fullmatch(job_id)
    return Job(
        issuer=issuer.url,
        kind=issuer.kind,
        project=fold(project),
        project_id=_number(claims, "project_id"),
        workflow=found["file"],
        environment=_optional_text(claims, "environment"),
        ref=_gitlab_ref(claims),
        workflow_ref=found["ref"],
        run=f"{issuer.url}/{project}/-/jobs/{job_id}" if is_number else "",
        **token,
    )


def _gitlab_ref(claims: Mapping[str, Any]) -> str:
    """What a job runs on, in full; empty if its token does not tell branches and tags apart."""
    path, name = _optional_text(claims, "ref_path"), _optional_text(claims, "ref")
    prefix = _GITLAB_PREFIXES.get(_optional_text(claims, "ref_type"))
    # Only newer releases of GitLab tell the path.
    return path or (f"{prefix}{name}" if prefix and name else "")


def _check_event(issuer: Issuer, event: str, name: str) -> None:
    if event in _REFUSED_EVENTS[issuer.kind]:
        raise _refusal(
            f"The job was started by {event} ({name}), which runs code that a stranger may have "
            "written with the rights of the project. Publish when a change has been merged: on a "
            "push, a tag or a release."
        )


def _text(claims: Mapping[str, Any], name: str) -> str:
    """A claim that must be there: text that is not empty."""
    text = _optional_text(claims, name)
    if not text:
        raise _refusal(
            f"The ID token's {name} is {_shown(claims.get(name))}; expected is some text. Get the "
            "token from the issuer of the CI that runs the job."
        )
    return text


def _optional_text(claims: Mapping[str, Any], name: str) -> str:
    """A claim that is text; empty if it is missing or null."""
    came = claims.get(name)
    if came is None:
        return ""
    if not isinstance(came, str) or len(came) > CLAIM_CHARS_MAX or not came.isprintable():
        raise _refusal(
            f"The ID token's {name} is {_shown(came)}; expected is one line of text with at most "
            f"{CLAIM_CHARS_MAX} characters. Get the token from the issuer of the CI that runs the "
            "job."
        )
    return came


def _number(claims: Mapping[str, Any], name: str) -> str:
    """A claim that must be there: digits."""
    text = _text(claims, name)
    if not _digits.fullmatch(text):
        raise _refusal(
            f"The ID token's {name} is {_shown(text)}; expected are digits. Get the token from "
            "the issuer of the CI that runs the job."
        )
    return text


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is epoch seconds; None if it is missing."""
    if name not in claims:
        return None
    came = claims[name]
    is_number = isinstance(came, int | float) and not isinstance(came, bool)
    # Python's JSON has infinity and no number that is too large.
    if not is_number or not 0 <= came < 1e12:
        raise _refusal(
            f"The ID token's {name} is {_shown(came)}; expected are seconds since 1970. Get the "
            "token from the issuer of the CI that runs the job."
        )
    return came


def _moment(seconds: float) -> str:
    # Within what a date can be; nobody needs the right one beyond.
    return format_time(datetime.fromtimestamp(min(seconds, 253_402_300_799), UTC))


def _shown(came: Any) -> str:
    if came is None:
        return "missing"
    parts = came if isinstance(came, list) else [came]
    if any(isinstance(part, list | dict) for part in parts):
        return "nested data"
    text = ascii(came)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _refusal(message: str) -> RequestError:
    return RequestError("invalid_token", message)
