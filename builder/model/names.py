"""Grammar and limits of the names in the catalogue.

Defines the rules for owners, repo names, tags, versions and labels. Knows nothing of files, URLs or
HTTP.
"""

import re
from typing import NamedTuple, Self

from builder.model.errors import Detail, RequestError

OWNER_CHARS_MAX = 39
REPO_CHARS_MAX = 64
TAG_CHARS_MAX = 48
TAGS_PER_REPO_MAX = 10
VERSIONS_PER_REPO_MAX = 10_000
VERSION_PART_MAX = 999_999_999
ORDINAL_MAX = 999_999_999
LABEL_CHARS_MAX = 36
LABELS_PER_REPO_MAX = 20
LABEL_NUMBER_MAX = 999_999_999
# Files in a repo's `labels/`, each a change of one label.
LABEL_EVENTS_PER_REPO_MAX = 10_000

NAME_PATTERN = r"[a-z0-9]+(?:-[a-z0-9]+)*"
VERSION_PATTERN = r"(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){2}"
ORDINAL_PATTERN = r"[1-9][0-9]{0,8}"
LABEL_PATTERN = r"[a-z0-9](?:[a-z0-9._-]{0,34}?[a-z0-9])??"

# Can be read like a label; stands for the highest version.
LATEST = "latest"
BUMPS = ("major", "minor", "patch")
# The bump that the change itself requires.
AUTO = "auto"

# Every first path segment that the site has, or that its contract names. An owner with such a
# handle would hide a page of the site, or be hidden by it. A test compares this with the routes.
RESERVED_OWNERS = frozenset(
    """
    404 503 about account admin api assets cli clients connect docs feed healthz index langfuse log
    login logout mcp new readyz search settings static tags top trending users
    """.split()
)

# Windows opens devices under these names, whatever extension follows, so a checkout, export or lock
# file there cannot have such a name.
DEVICE_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
# A plain host serves the page of such a prompt for its owner's folder, or for a missing page.
RESERVED_REPOS = frozenset(["index", "404"])

_name = re.compile(NAME_PATTERN)
_version = re.compile(VERSION_PATTERN)
_label = re.compile(LABEL_PATTERN)
# Names that read as a version or a number, in `owner/name@ref` and to people; and names that would
# give two labels the same file, as `a.json` and `a`.
_reserved_label = re.compile(
    rf"{LATEST}|v?[0-9]+(?:\.[0-9]+)*|v?[0-9]+\.[0-9]+\.[0-9]+-.*|.*\.(?:body|json|txt)"
)


class Version(NamedTuple):
    """A version ``x.y.z``; compares in version order, prints in the string form."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``x.y.z``: three integers below 1,000,000,000 without leading zeros.

        Raises RequestError ``invalid_version``.
        """
        if not _version.fullmatch(text):
            raise RequestError(
                "invalid_version",
                "Invalid version. A version is x.y.z: three whole numbers without leading zeros, "
                "like 1.2.0.",
            )
        return cls(*map(int, text.split(".")))

    def bump(self, kind: str) -> "Version":
        """The next version after this one; ``kind`` is one of BUMPS.

        Raises RequestError ``version_conflict`` if a number would pass its limit.
        """
        successor = self._with(kind, self[BUMPS.index(kind)] + 1)
        if max(successor) > VERSION_PART_MAX:
            raise RequestError(
                "version_conflict",
                f"Cannot bump the {kind} number of {self}: the limit is {VERSION_PART_MAX:,}. Bump "
                "a higher number.",
            )
        return successor

    def lifted(self, kind: str, floor: int) -> "Version":
        """This new version if any of its parts is at least ``floor``. Otherwise the part that
        ``kind`` (of BUMPS) counts is raised to ``floor``.
        """
        return self if max(self) >= floor else self._with(kind, floor)

    def _with(self, kind: str, value: int) -> "Version":
        """The version with another value for ``kind``, and zeros after it."""
        place = BUMPS.index(kind)
        return Version(*self[:place], value, *[0] * (2 - place))


FIRST_VERSION = Version(1, 0, 0)


def is_name(text: str, chars_max: int) -> bool:
    """True if ``text`` is lower-case letters and digits in runs joined by single hyphens, with at
    most ``chars_max`` characters.
    """
    return len(text) <= chars_max and _name.fullmatch(text) is not None


def is_version(text: str) -> bool:
    """True if ``text`` is x.y.z in the form of Version."""
    return _version.fullmatch(text) is not None


def check_owner(text: str) -> str:
    """Return ``text`` if it can be an owner's handle; raises RequestError ``invalid_name``."""
    return _check(text, "owner", OWNER_CHARS_MAX)


def check_repo(text: str) -> str:
    """Return ``text`` if it can be a repo's name; raises RequestError ``invalid_name``."""
    return _check(text, "prompt name", REPO_CHARS_MAX)


def check_label(text: str) -> str:
    """Return ``text`` if it can name a label or ``latest``; raises RequestError
    ``invalid_label``.
    """
    if _label.fullmatch(text):
        return text
    lowered = text.lower()
    hint = f" Use {lowered!r}." if _label.fullmatch(lowered) else ""
    raise RequestError(
        "invalid_label",
        f"Invalid label. A label has 1 to {LABEL_CHARS_MAX} characters: a-z and 0-9, and between "
        f"them also dots, underscores and hyphens, like production.{hint}",
    )


def check_new_label(text: str) -> str:
    """As ``check_label``, and not reserved: raises RequestError ``name_reserved``."""
    if is_reserved_label(check_label(text)):
        raise RequestError(
            "name_reserved",
            f"The label {text!r} is reserved: {LATEST!r}, versions, numbers, and names that end in "
            ".body, .json or .txt. Choose another name, like production.",
        )
    return text


def is_read_label(text: str) -> bool:
    """True if ``text`` can name a label or ``latest`` in a read request."""
    return text == LATEST or is_label(text)


def is_label(text: str) -> bool:
    """True if a version can have this label: it matches the grammar and is not reserved."""
    return _label.fullmatch(text) is not None and not is_reserved_label(text)


def is_reserved_label(text: str) -> bool:
    """True if this name is reserved, so no label can have it. ``text`` matches the grammar."""
    return _reserved_label.fullmatch(text) is not None


def check_possible_owner(text: str) -> str:
    """As ``check_owner``, and not an address of the site: raises RequestError ``name_reserved``."""
    if check_owner(text) in RESERVED_OWNERS:
        raise RequestError(
            "name_reserved",
            f"The owner name {text!r} is reserved: /{text} is an address of the site. Choose "
            f"another, such as {text}-team.",
        )
    return text


def check_new_owner(text: str) -> str:
    """As ``check_possible_owner``, and not reserved for new owners."""
    return check_new("owner", check_possible_owner(text), "handle")


def check_new(kind: str, text: str, field: str) -> str:
    """Return ``text``, which matches the grammar, if a new ``kind`` may have that name. ``field``
    is the name's field in the request. Raises RequestError ``name_reserved``.
    """
    if why := why_reserved(kind, text):
        message = f"The {kind} name {text!r} is reserved: {why}. Choose another name."
        raise RequestError("name_reserved", message, [Detail(field, f"is reserved: {why}")])
    return text


def why_reserved(kind: str, text: str) -> str:
    """The reason why no new ``kind`` (owner, prompt, tag or label) may have that name; empty if it
    may.
    """
    if text.partition(".")[0] in DEVICE_NAMES:
        return "Windows has no files of that name"
    if kind == "prompt" and text in RESERVED_REPOS:
        return "plain web servers have a page of their own there"
    return ""


def _check(text: str, what: str, chars_max: int) -> str:
    if is_name(text, chars_max):
        return text
    lowered = text.lower()
    if is_name(lowered, chars_max):
        raise RequestError(
            "invalid_name", f"Invalid {what}: names are lower case. Use {lowered!r}."
        )
    # The message does not repeat the text: a language model that reads the error could take it for
    # instructions.
    raise RequestError(
        "invalid_name",
        f"Invalid {what}. Use 1 to {chars_max} characters: a-z, 0-9 and single hyphens between "
        "them.",
    )
