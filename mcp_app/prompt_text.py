"""Finds the version of a prompt that a client names, and fills in its variables."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from msgspec import structs

from builder.model import names
from builder.model.answers import Message, Repo, Withdrawal
from builder.model.answers import Version as VersionRecord
from builder.model.errors import RequestError
from builder.model.names import Version
from builder.model.routes import BY_NAME
from builder.model.withdrawn import tell
from builder.text.likeness import alike
from builder.text.prompts import fill, filled_chars
from mcp_app.filling import FILLED_CHARS_MAX, fit, known_names
from mcp_app.reader import Reader, not_whole
from mcp_app.unknown import did_you_mean, listed, unknown_argument
from server.missing import WITHDRAWN


class PromptId(NamedTuple):
    """``owner/name``, ``owner/name@x.y.z``, or ``owner/name@label``. Without version and label, it
    means the latest version.
    """

    owner: str
    name: str
    version: Version | None
    label: str | None = None

    @classmethod
    def checked(cls, owner: str, name: str, version: str | None) -> Self:
        """The id of these texts of a client. Raises RequestError ``invalid_name`` or
        ``invalid_version``.
        """
        return cls(
            names.check_owner(owner),
            names.check_repo(name),
            None if version is None else Version.parse(version),
        )

    @property
    def repo_id(self) -> str:
        return f"{self.owner}/{self.name}"

    def at(self, ref: str) -> Self:
        """The id with this ref: a version, a label or ``latest``.

        Raises RequestError ``invalid_version``.
        """
        if ref == names.LATEST:
            return self
        if names.is_label(ref):
            return self._replace(label=ref)
        if names.is_version(ref):
            return self._replace(version=Version.parse(ref))
        raise RequestError(
            "invalid_version",
            "After @ comes a version x.y.z, like 1.2.0, or a label, like production.",
        )


class Prompt(NamedTuple):
    """One version of a prompt, in its repo. ``record`` has the version's texts and metadata."""

    repo: Repo
    record: Repo | VersionRecord
    version: str
    published_at: str


def parse_id(text: str) -> PromptId:
    """Read an id. Raises RequestError ``invalid_parameter``, ``invalid_name`` or
    ``invalid_version``.
    """
    repo_id, at, ref = text.strip().partition("@")
    owner, slash, name = repo_id.partition("/")
    if not slash:
        raise RequestError(
            "invalid_parameter",
            "An id is owner/name, or owner/name@1.2.0 for one version, or owner/name@production "
            "for a label. Call search_prompts to find ids.",
        )
    latest = PromptId.checked(owner, name, None)
    return latest.at(ref) if at else latest


async def find_repo(reader: Reader, owner: str, name: str) -> Repo:
    """The repo. Raises RequestError ``repo_not_found``, which names the nearest ids, or
    ``withdrawn``.
    """
    repo = await reader.repo(owner, name)
    if repo is None:
        if reader.is_withdrawn(owner, name):
            page = reader.settings.base_url + BY_NAME["repo_page"].url_for(owner=owner, name=name)
            raise RequestError(
                WITHDRAWN, f"The prompt `{owner}/{name}` was withdrawn. {page} says why."
            )
        similar = await reader.similar(f"{owner}/{name}")
        advice = did_you_mean(similar) or "Call search_prompts to find ids."
        raise RequestError("repo_not_found", f"No prompt `{owner}/{name}` here. {advice}")
    return repo


async def find_prompt(reader: Reader, wanted: PromptId) -> Prompt:
    """The version in ``wanted``, or the latest.

    Raises RequestError ``repo_not_found``; ``version_not_found`` or ``label_not_found``, which list
    those that exist; or ``withdrawn``.
    """
    repo = await find_repo(reader, wanted.owner, wanted.name)
    if wanted.label:
        labelled = await _find_labelled(reader, wanted, wanted.label)
        return Prompt(repo, labelled, labelled.version, labelled.published_at)
    if wanted.version is None or str(wanted.version) == repo.latest_version:
        return Prompt(repo, repo, repo.latest_version, repo.updated_at)
    version = await reader.version(wanted.owner, wanted.name, wanted.version)
    if version is None:
        entries = await reader.versions(wanted.owner, wanted.name)
        for entry in entries:
            if entry.version == str(wanted.version):
                raise _withdrawn(wanted, entry.withdrawn) if entry.withdrawn else not_whole()
        newest = [entry.version for entry in entries if not entry.withdrawn]
        raise RequestError(
            "version_not_found",
            f"No version {wanted.version} of {wanted.repo_id}. Its newest are {listed(newest)}. "
            "Call list_versions for all.",
        )
    return Prompt(repo, version, version.version, version.published_at)


def _withdrawn(wanted: PromptId, withdrawal: Withdrawal) -> RequestError:
    # The note is a contributor's text, so it must not appear in an error.
    message = tell(f"{wanted.repo_id} {wanted.version}", structs.replace(withdrawal, note=""))
    return RequestError(WITHDRAWN, f"{message} Call list_versions for those that can be read.")


async def _find_labelled(reader: Reader, wanted: PromptId, label: str) -> VersionRecord:
    version = await reader.labelled(wanted.owner, wanted.name, label)
    if version is not None:
        return version
    known = await reader.labels(wanted.owner, wanted.name)
    if label in known:
        raise not_whole()
    there = f"Its labels are {listed(known)}." if known else "It has no labels."
    advice = did_you_mean(alike(label, known)) or there
    raise RequestError("label_not_found", f"No label `{label}` of {wanted.repo_id}. {advice}")


class Filled(NamedTuple):
    """A text, its messages (None if it is no chat prompt), and the names of required variables
    without a value.
    """

    text: str
    messages: list[Message] | None
    missing: list[str]


def fill_in(record: Repo | VersionRecord, arguments: Mapping[str, Any] | None) -> Filled:
    """The text with the arguments in the place of its variables, and defaults for the others. A
    value never becomes a message.

    A required variable without argument and default stays as it is. If ``arguments`` is None, all
    variables stay. Raises RequestError ``invalid_parameter`` for an argument that the prompt does
    not have.
    """
    known = known_names(record.body, record.variables)
    if arguments and not arguments.keys() <= {*known}:
        raise unknown_argument("prompt", arguments, known)
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    values, missing, wrong = fit(record.body, record.variables, given)
    if wrong:
        raise _does_not_fit(*next(iter(wrong.items())))
    if arguments is None:
        return Filled(record.body, record.messages, missing)
    if filled_chars(record.body, values) > FILLED_CHARS_MAX:
        raise RequestError(
            "invalid_parameter",
            f"The filled-in text would have more than {FILLED_CHARS_MAX:,} characters. Pass "
            "shorter arguments.",
        )
    messages = record.messages and [
        Message(one.role, fill(one.content, values)) for one in record.messages
    ]
    return Filled(fill(record.body, values), messages, missing)


def _does_not_fit(name: str, reason: str) -> RequestError:
    if reason != "enum":
        return RequestError("invalid_parameter", f"`{name}` must be of type {reason}.")
    # The values are a contributor's text, so they must not appear in an error.
    return RequestError(
        "invalid_parameter",
        f"`{name}` must be one of the values in its enum. Call get_prompt without arguments to see "
        "them in variables.",
    )
