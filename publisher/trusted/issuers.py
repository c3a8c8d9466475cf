"""The issuers of ID tokens that a hub trusts, and the CI jobs that their claims describe."""

import re
import string
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from builder.model.errors import OperatorError, RequestError
from builder.model.records import CLAIM_CHARS_MAX, Source
from publisher.outside.private_way import is_private_way

Kind = Literal["github", "gitlab"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Issuer(NamedTuple):
    """An issuer. ``kind`` decides the names of its claims; ``url`` is its ``iss``, without a slash
    at its end.
    """

    kind: Kind
    url: str


DEFAULT_ISSUERS = (
    Issuer("github", "https://token.actions.githubusercontent.com"),
    Issuer("gitlab", "https://gitlab.com"),
)


def parse_issuers(texts: Iterable[str]) -> tuple[Issuer, ...]:
    """Reads each ``KIND=URL``. Raises OperatorError, also where two have the same URL."""
    issuers = tuple(map(parse_issuer, texts))
    urls = [issuer.url for issuer in issuers]
    for url in urls:
        if urls.count(url) > 1:
            raise OperatorError(f"The issuer {url} is listed twice. List it once.")
    return issuers


def parse_issuer(text: str) -> Issuer:
    """Reads ``KIND=URL``, as ``gitlab=https://gitlab.example.org``. Raises OperatorError."""
    kind, _, url = text.strip().partition("=")
    url = url.rstrip("/")
    is_url = is_private_way(url) and not {*"?#,"} & {*url}
    if kind not in KINDS or not is_url:
        raise OperatorError(
            f"{text!r} is not an issuer. Pass {' or '.join(KINDS)} and the issuer's https URL "
            "without query (http only on this machine), and spaces between several: "
            "gitlab=https://gitlab.example.org"
        )
    return Issuer(kind, url)


BRANCH_PREFIX = "refs/heads/"


class _Claims(NamedTuple):
    """The names of an issuer's claims, and the syntax of ``file``, which names the file that
    defines the job. ``file_is`` describes that.

    The ``refused`` events run code that anyone can propose, with the rights of the project. A child
    pipeline may belong to a merge request. Its branch is then one of the fork, and its token does
    not show that.
    """

    project: str
    project_id: str
    event: str
    refused: tuple[str, ...]
    file: str
    syntax: re.Pattern[str]
    file_is: str


# A ref or a commit follows the file. The name of a file cannot contain either.
_CLAIMS: Mapping[Kind, _Claims] = {
    "github": _Claims(
        "repository",
        "repository_id",
        "event_name",
        ("pull_request_target",),
        "job_workflow_ref",
        re.compile(
            r"(?P<project>[^/]+/[^/]+)/\.github/workflows/(?P<file>[^/]+?\.ya?ml)"
            r"@(?P<ref>refs/.+|[0-9a-f]{40}|[0-9a-f]{64})"
        ),
        "/.github/workflows/FILE.yml@REF",
    ),
    "gitlab": _Claims(
        "project_path",
        "project_id",
        "pipeline_source",
        ("merge_request_event", "external_pull_request_event", "parent_pipeline"),
        "ci_config_ref_uri",
        re.compile(r"(?P<project>.+?)//(?P<file>.+?)@(?P<ref>refs/.+)"),
        "//FILE@REF",
    ),
}
_GITLAB_PREFIXES = {"branch": BRANCH_PREFIX, "tag": "refs/tags/"}
_SHOWN_CHARS = 200

_digits = re.compile(r"[0-9]{1,20}")

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Job(NamedTuple):
    """A CI job, as its issuer vouches for it.

    ``issuer`` is the issuer's URL. ``project`` (GROUP/NAME) is folded (see ``fold``).
    ``environment`` is folded for GitHub, which ignores case, and may be empty. ``project_id`` stays
    when the project is renamed. ``workflow`` is the file that defines the job: for GitHub its name,
    for GitLab its path.

    ``ref`` is the ref that the job runs on, in full: ``refs/heads/main`` for a branch,
    ``refs/tags/v1`` for a tag, empty if the issuer names neither. ``workflow_ref`` is the ref from
    which ``workflow`` was read, likewise, or a commit's hash. The two differ where a workflow calls
    another of its repository.

    ``commit`` is the hash of the commit that it runs on, empty if the issuer does not name it.
    ``run`` is the URL of the job's log, or empty. ``token_hash`` identifies the ID token, which is
    good until ``expires_at``, in epoch seconds.
    """

    issuer: str
    kind: Kind
    project: str
    project_id: str
    workflow: str
    environment: str
    ref: str
    workflow_ref: str
    commit: str
    run: str
    token_hash: bytes
    expires_at: int

    @property
    def branch(self) -> str:
        """The branch that the job runs on and its file was read from; empty unless that is one and
        the same branch.
        """
        # A person who may push to another branch can start a file of this branch there, or change
        # the file there.
        is_one = self.ref == self.workflow_ref and self.ref.startswith(BRANCH_PREFIX)
        return self.ref.removeprefix(BRANCH_PREFIX) if is_one else ""

    def source(self) -> Source:
        """The facts about this job that the record of a version keeps."""
        is_url = self.run.startswith(("https://", "http://"))
        return Source(
            issuer=self.issuer,
            project=self.project,
            ref=self.ref or None,
            commit=self.commit or None,
            run_url=self.run if is_url else None,
        )

    def place(self) -> str:
        """Returns the ref that it runs on, for people, and the origin of its file if that is
        another.
        """
        place = f"on {self.ref}" if self.ref else "on no branch or tag"
        is_one = self.ref == self.workflow_ref
        return place if is_one else f"{place} with the file of {self.workflow_ref}"


def fold(text: str) -> str:
    """Returns ``text`` with ASCII capitals in lower case.

    Other capitals stay: str.lower() turns the Kelvin sign (U+212A) into a k, so another name would
    pass for docker.
    """
    return text.translate(_LOWER)


def read_job(issuer: Issuer, claims: Mapping[str, Any], token_hash: bytes, expires_at: int) -> Job:
    """Returns the job that the claims of a token describe; the issuer vouches for them.

    Raises RequestError ``invalid_token``.
    """
    names, is_github = _CLAIMS[issuer.kind], issuer.kind == "github"
    project, came = claimed_text(claims, names.project), claimed_text(claims, names.file)
    event = claimed_text(claims, names.event)
    if event in names.refused:
        raise refusal(
            f"The job was started by {event} ({names.event}), which can run code of strangers with "
            "the rights of the project. Publish after a change is merged: on a push, a tag or "
            "a release."
        )
    parts = urlsplit(issuer.url)
    here = project if is_github else f"{parts.netloc}{parts.path}/{project}"
    found = names.syntax.fullmatch(came)
    if not found:
        raise refusal(
            f"The ID token's {names.file} is {shown(came)}, but must be {here}{names.file_is}. "
            "Publish from a job that a file of the project defines."
        )
    if fold(found["project"]) != fold(here):
        raise refusal(
            f"The job belongs to {project}, but is defined elsewhere: {shown(came)}. Others could "
            f"change it. Publish from a job that a file of {project} itself defines."
        )
    environment = _optional_text(claims, "environment")
    return Job(
        issuer=issuer.url,
        kind=issuer.kind,
        project=fold(project),
        project_id=_number(claims, names.project_id),
        workflow=found["file"],
        # GitHub does not distinguish Prod from prod, GitLab does.
        environment=fold(environment) if is_github else environment,
        ref=_optional_text(claims, "ref") if is_github else _gitlab_ref(claims),
        workflow_ref=found["ref"],
        commit=_optional_text(claims, "sha"),
        run=_run(issuer, claims, project),
        token_hash=token_hash,
        expires_at=expires_at,
    )


def _run(issuer: Issuer, claims: Mapping[str, Any], project: str) -> str:
    """Returns the URL of a job's log, or the name of the run; empty where the token has neither."""
    number = _optional_text(claims, "run_id" if issuer.kind == "github" else "job_id")
    if not _digits.fullmatch(number):
        return ""
    if issuer.kind == "gitlab":
        return f"{issuer.url}/{project}/-/jobs/{number}"
    # Only for github.com: the tokens of other issuers do not say where their pages are.
    is_known = issuer == DEFAULT_ISSUERS[0]
    return f"https://github.com/{project}/actions/runs/{number}" if is_known else f"run {number}"


def _gitlab_ref(claims: Mapping[str, Any]) -> str:
    """Returns the ref that a job runs on, in full; empty if its token does not tell branches and
    tags apart.
    """
    path, name = _optional_text(claims, "ref_path"), _optional_text(claims, "ref")
    prefix = _GITLAB_PREFIXES.get(_optional_text(claims, "ref_type"))
    # Only newer releases of GitLab send the path.
    return path or (f"{prefix}{name}" if prefix and name else "")


def claimed_text(claims: Mapping[str, Any], name: str) -> str:
    """Returns a required claim: text that is not empty."""
    text = _optional_text(claims, name)
    if not text:
        raise refusal(
            f"The ID token's {name} is {shown(claims.get(name))}, but must be text. Get the "
            "token from the issuer of your CI."
        )
    return text


def _optional_text(claims: Mapping[str, Any], name: str) -> str:
    """Returns a claim that is text; empty if it is missing or null."""
    came = claims.get(name)
    if came is None:
        return ""
    if not isinstance(came, str) or len(came) > CLAIM_CHARS_MAX or not came.isprintable():
        raise refusal(
            f"The ID token's {name} is {shown(came)}, but must be one line of at most "
            f"{CLAIM_CHARS_MAX} characters. Get the token from the issuer of your CI."
        )
    return came


def _number(claims: Mapping[str, Any], name: str) -> str:
    """Returns a required claim: digits."""
    text = claimed_text(claims, name)
    if not _digits.fullmatch(text):
        raise refusal(
            f"The ID token's {name} is {shown(text)}, but must be digits. Get the token from "
            "the issuer of your CI."
        )
    return text


def shown(came: Any) -> str:
    """Returns a claim as a message quotes it."""
    if came is None:
        return "missing"
    parts = came if isinstance(came, list) else [came]
    if any(isinstance(part, list | dict) for part in parts):
        return "nested data"
    text = ascii(came)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def refusal(message: str) -> RequestError:
    return RequestError("invalid_token", message)
