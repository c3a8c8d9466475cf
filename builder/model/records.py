"""The records of the content tree, and the fields that they share with requests and answers.

One definition of each gives validation, JSON and the OpenAPI schema. People may write records by
hand, so most of their fields have defaults. Times are strings in RFC 3339 UTC, to the second, with
``Z``. Sizes are bytes.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import astuple

from builder.model import names, version_files

CONTENT_BYTES_MAX = 256 * 1024
DAY_SECONDS = 86_400
FRONT_MATTER_BYTES_MAX = 16 * 1024
# JSON Schema counts characters, so schemas state these numbers as characters; publishing counts
# bytes.
NOTE_BYTES_MAX = 1024
CHANGELOG_BYTES_MAX = 8 * 1024

# The end of a pattern. A "$" alone admits a final newline (Python's re, ECMA-262 with "m").
END = r"$(?!\n)"
Time = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z" + END,
        description="RFC 3339, in UTC, to the second",
        examples=["2026-01-31T09:30:00Z"],
    ),
]
Owner = Annotated[
    str, Meta(pattern=f"^{names.NAME_PATTERN}{END}", min_length=1, max_length=names.OWNER_CHARS_MAX)
]
RepoName = Annotated[
    str, Meta(pattern=f"^{names.NAME_PATTERN}{END}", min_length=1, max_length=names.REPO_CHARS_MAX)
]
TagName = Annotated[
    str, Meta(pattern=f"^{names.NAME_PATTERN}{END}", min_length=1, max_length=names.TAG_CHARS_MAX)
]
VersionName = Annotated[str, Meta(pattern=f"^{names.VERSION_PATTERN}{END}", examples=["1.2.0"])]
LabelName = Annotated[
    str,
    Meta(
        pattern=f"^{names.LABEL_PATTERN}{END}",
        max_length=names.LABEL_CHARS_MAX,
        examples=["production"],
    ),
]
# Each repo counts its changes of labels; gaps have no meaning.
LabelNumber = Annotated[int, Meta(ge=1, le=names.LABEL_NUMBER_MAX)]
# Versions are numbered in order of publication, from 1; see ``ordinals``.
Ordinal = Annotated[
    int, Meta(ge=1, le=names.ORDINAL_MAX, description="the number of publication, from 1")
]
LabelNames = Annotated[list[LabelName], Meta(min_length=1, max_length=names.LABELS_PER_REPO_MAX)]
Note = Annotated[str, Meta(max_length=NOTE_BYTES_MAX)]
WithdrawalReason = Literal["error", "secret", "legal", "owner"]
Sha256 = Annotated[
    str, Meta(pattern=f"^[0-9a-f]{{64}}{END}", description="SHA-256 of the bytes of `content`")
]
ContentSha256 = Annotated[
    str,
    Meta(
        pattern=f"^[0-9a-f]{{64}}{END}",
        description="SHA-256 over the hashes and paths of the text and of all files, in the format "
        "of `sha256sum`",
    ),
]
FilePath = Annotated[
    str,
    Meta(
        pattern=f"^{version_files.PATH_PATTERN}{END}",
        min_length=1,
        max_length=version_files.PATH_CHARS_MAX,
        examples=["scripts/run.py"],
    ),
]
FileSize = Annotated[int, Meta(ge=0, le=version_files.BYTES_HARD_MAX)]
Tags = Annotated[list[TagName], Meta(max_length=names.TAGS_PER_REPO_MAX)]
Title = Annotated[str, Meta(min_length=1, max_length=200)]
DESCRIPTION_CHARS_MAX = 2000
Description = Annotated[str, Meta(max_length=DESCRIPTION_CHARS_MAX)]
Changelog = Annotated[str, Meta(max_length=CHANGELOG_BYTES_MAX)]
License = Annotated[str, Meta(min_length=1, max_length=100)]
WebUrl = Annotated[str, Meta(pattern="^https?://", max_length=500)]
CLAIM_CHARS_MAX = 1000
Claim = Annotated[str, Meta(min_length=1, max_length=CLAIM_CHARS_MAX)]
VariableName = Annotated[str, Meta(pattern=f"^[A-Za-z_][A-Za-z0-9_]{{0,63}}{END}")]
VariableType = Literal["string", "integer", "number", "boolean", "array", "object"]


class Variable(Struct, forbid_unknown_fields=True):
    """A ``{{name}}`` of a prompt. ``required`` defaults to true if there is no default."""

    name: VariableName
    description: Annotated[str, Meta(max_length=2000)] = ""
    type: VariableType = "string"
    required: bool | UnsetType = UNSET
    default: Any = None
    example: Any = None
    enum: list[Any] | None = None

    def __post_init__(self) -> None:
        check_nesting([self.default, self.example, self.enum])
        if self.required is UNSET:
            self.required = self.default is None


VARIABLES_MAX = 200
Variables = Annotated[list[Variable], Meta(max_length=VARIABLES_MAX)]


NESTING_MAX = 50


def check_nesting(value: Any, levels: int = NESTING_MAX) -> None:
    """Raises ValueError for data nested so deep that writing it as JSON could fail."""
    if isinstance(value, dict | list):
        if not levels:
            raise ValueError(f"lists and objects are nested deeper than {NESTING_MAX} levels")
        for item in value.values() if isinstance(value, dict) else value:
            check_nesting(item, levels - 1)


def check_time(text: str) -> str:
    """Return ``text`` if it is a real moment in the form of Time; raises ValueError."""
    if datetime.fromisoformat(text).isoformat() != text.removesuffix("Z") + "+00:00":
        raise ValueError(f"{text!r} is not a time; write it in UTC, like 2026-01-31T09:30:00Z")
    return text


def format_time(moment: datetime) -> str:
    """An aware moment in the form of Time."""
    # Not strftime, which writes the year 800 with three digits.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def time_of(seconds: int) -> str:
    """A time in epoch seconds in the form of Time."""
    return format_time(datetime.fromtimestamp(seconds, UTC))


class OwnerFile(Struct, forbid_unknown_fields=True):
    """``content/{owner}/owner.json``. ``kind`` is absent for a person."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    joined_at: Time
    bio: Annotated[str, Meta(max_length=2000)] = ""
    url: WebUrl | None = None
    kind: Literal["team"] | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_time(self.joined_at)


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """The CI job that published a version or moved a label, from the claims of its ID token, which
    its issuer signed: `issuer`, `project` (GROUP/NAME), `ref` in full (`refs/heads/main`),
    `commit`, and `run_url`, the job's log. Null: the token does not say it.
    """

    issuer: WebUrl
    project: Claim
    ref: Claim | None
    commit: Claim | None
    run_url: Annotated[str, Meta(pattern="^https?://", max_length=4 * CLAIM_CHARS_MAX)] | None

    def __post_init__(self) -> None:
        if not all(one is None or one.isprintable() for one in astuple(self)):
            raise ValueError("the source must be printable text")


class StoredFile(Struct, forbid_unknown_fields=True):
    """A file of a version, beside its text."""

    path: FilePath
    size: FileSize
    sha256: Sha256
    media_type: str
    executable: bool


StoredFiles = Annotated[list[StoredFile], Meta(min_length=1, max_length=version_files.FILES_MAX)]


class VersionFile(Struct, forbid_unknown_fields=True):
    """``content/{owner}/{name}/{x.y.z}.json``: the metadata as resolved at publication.

    ``front_matter_bytes``: how many bytes of the text are front matter; 0 if it has none.
    Absent in records older than this field. ``labels``: the labels that this
    publication moved to its version, as the repo's change of labels ``label_number``; both are
    absent if it moved none. ``ordinal``: absent in records older than this field, and in records
    made by hand. ``source``: absent unless a trusted CI job published the version. ``files``: those
    in the folder ``{x.y.z}.files``; ``content_sha256``: the digest of text and files, see
    ``version_files.content_sha256``. Both are absent if the version has no files.
    """

    publisher: Owner
    published_at: Time
    sha256: Sha256
    title: Title
    ordinal: Ordinal | UnsetType = UNSET
    source: Source | UnsetType = UNSET
    front_matter_bytes: Annotated[int, Meta(ge=0, le=FRONT_MATTER_BYTES_MAX)] | UnsetType = UNSET
    changelog: Changelog = ""
    description: Description = ""
    tags: Tags = []
    license: License | None = None
    variables: Variables = []
    parameters: dict[str, Any] = {}
    labels: LabelNames | UnsetType = UNSET
    label_number: LabelNumber | UnsetType = UNSET
    files: StoredFiles | UnsetType = UNSET
    content_sha256: ContentSha256 | UnsetType = UNSET

    @property
    def whole_sha256(self) -> str:
        """The hash of the whole version: `content_sha256`, or that of the text without files."""
        return self.content_sha256 or self.sha256

    def __post_init__(self) -> None:
        check_time(self.published_at)
        for field in METADATA:
            check_metadata(field, getattr(self, field))
        check_labels(self.labels, self.label_number)
        check_files(self.sha256, self.files, self.content_sha256)


# The fields that a publication can set, front matter included.
METADATA = ("title", "description", "tags", "license", "variables", "parameters")


def check_metadata(field: str, value: Any) -> None:
    """Raises ValueError if a field of METADATA, of the right type, breaks a further rule."""
    if field == "parameters":
        check_nesting(value)
    elif field == "tags" and len(set(value)) < len(value):
        raise ValueError("a tag appears twice")
    elif field == "variables" and len({one.name for one in value}) < len(value):
        raise ValueError("a variable name appears twice")
    elif field == "title" and not (value.isprintable() and value.strip()):
        raise ValueError("the title must be one line of printable text")


class LabelFile(Struct, forbid_unknown_fields=True):
    """``content/{owner}/{name}/labels/{number}.json``: one change of one label.

    ``version``: the version that the label names from then on; null removes the label. ``by``: the
    owner who made the change. ``source``: absent unless a trusted CI job made it.
    """

    label: LabelName
    version: VersionName | None
    at: Time
    by: Owner
    note: Note = ""
    source: Source | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_label(self.label)
        check_time(self.at)


class WithdrawalFile(Struct, forbid_unknown_fields=True):
    """The time, owner and reason of a withdrawal. ``labels``: those that named the version until
    then, and name the version ``move_labels`` or none from then on, as the repo's change of labels
    ``label_number``. These fields are absent if no label named it.
    """

    at: Time
    by: Owner
    reason: WithdrawalReason
    note: Note = ""
    labels: LabelNames | UnsetType = UNSET
    label_number: LabelNumber | UnsetType = UNSET
    move_labels: VersionName | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_time(self.at)
        check_labels(self.labels, self.label_number)


class Remains(Struct, forbid_unknown_fields=True):
    """The part of a withdrawn version's record that is kept: no text that its author wrote."""

    publisher: Owner
    published_at: Time
    sha256: Sha256
    size: Annotated[int, Meta(ge=1, le=CONTENT_BYTES_MAX)]
    ordinal: Ordinal | UnsetType = UNSET
    labels: LabelNames | UnsetType = UNSET
    label_number: LabelNumber | UnsetType = UNSET
    content_sha256: ContentSha256 | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_time(self.published_at)
        check_labels(self.labels, self.label_number)


class WithdrawnFile(Struct, forbid_unknown_fields=True):
    """``content/{owner}/{name}/withdrawn/{x.y.z}.json`` for one version, ``all.json`` for a whole
    repo: the withdrawal, and the remains of each version that it removes.
    """

    withdrawn: WithdrawalFile
    versions: dict[VersionName, Remains]


def check_labels(labels: list[str] | UnsetType, number: int | UnsetType) -> None:
    """Raises ValueError for labels that a stored record cannot move."""
    if (labels is UNSET) != (number is UNSET):
        raise ValueError("`labels` and `label_number` need each other")
    for label in labels or ():
        check_label(label)
    if len(set(labels or ())) < len(labels or ()):
        raise ValueError("a label appears twice")


def check_files(
    sha256: str, listed: list[StoredFile] | UnsetType, content_sha256: str | UnsetType
) -> None:
    """Raises ValueError if the files of a stored record break a rule or miss their hash."""
    if listed is UNSET and content_sha256 is UNSET:
        return
    if not listed or content_sha256 != version_files.content_sha256(sha256, listed):
        raise ValueError("`content_sha256` is not that of the text and `files`")
    for path, fault in version_files.find_faults([one.path for one in listed]):
        raise ValueError(f"`files`: {path} {fault}")
    if sum(one.size for one in listed) > version_files.BYTES_HARD_MAX:
        raise ValueError(f"`files` have more than {version_files.BYTES_HARD_MAX:,} bytes together")


def check_label(text: str) -> None:
    """Raises ValueError if a stored label is reserved or does not match the grammar."""
    if not names.is_label(text):
        raise ValueError(f"{text!r} cannot be a label: it is reserved, or has other characters")
