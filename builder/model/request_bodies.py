"""The bodies of requests, such as the draft of a publication."""

from base64 import b64decode
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from builder.model import names, version_files
from builder.model.records import (
    CONTENT_BYTES_MAX,
    END,
    Changelog,
    Description,
    FilePath,
    LabelName,
    License,
    Note,
    Tags,
    Title,
    Variables,
    VersionName,
    WithdrawalReason,
)

RepoPattern = Annotated[
    str,
    Meta(
        pattern=f"^(?=[^/]{{1,{names.OWNER_CHARS_MAX}}}/[^/]{{1,{names.REPO_CHARS_MAX}}}$)"
        f"{names.NAME_PATTERN}/(?:{names.NAME_PATTERN}|\\*){END}",
        description="`OWNER/NAME`, or `OWNER/*` for all",
        examples=["ada/code-review"],
    ),
]


_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
# For readers of the schema alone: Python would need 30 bytes of memory for each byte of a text.
Base64 = Annotated[str, Meta(extra_json_schema={"pattern": f"^{_BASE64}{END}"})]
_ONE_OF_BOTH = {"oneOf": [{"required": ["content"]}, {"required": ["base64"]}]}


# The longest body of a publication, from a program or from the editor's form: its text, and
# BYTES_MAX of files, as JSON with base64. The rest of a longer one is not read.
PUBLICATION_BYTES_MAX = 8 * 1024 * 1024


def publication_bytes_max(file_bytes: int) -> int:
    """The longest body of a publication on a hub with this limit of files."""
    return PUBLICATION_BYTES_MAX + max(0, file_bytes - version_files.BYTES_MAX) * 4 // 3


class DraftFile(Struct, forbid_unknown_fields=True, kw_only=True):
    """A file to publish: `content` is its text, or `base64` has its bytes."""

    path: FilePath
    content: str | UnsetType = UNSET
    base64: Base64 | UnsetType = UNSET
    executable: bool = False

    def __post_init__(self) -> None:
        if (self.content is UNSET) == (self.base64 is UNSET):
            raise ValueError("needs its text as `content`, or its bytes as `base64`: send one")
        try:
            _ = self.data
        except ValueError as error:
            raise ValueError(f"has no valid base64 ({error}): encode the bytes again") from None

    @property
    def data(self) -> bytes:
        """The bytes of the file. Raises ValueError if `base64` is not base64."""
        if self.base64 is UNSET:
            return self.content.encode() if self.content else b""
        return b64decode(self.base64, validate=True)


class Draft(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a request to publish. Fields that you leave out come from the front matter, or
    else from the previous version. A `license` of null removes the license. Without `files`, the
    version has those of the previous one; an empty list removes them.
    """

    content: Annotated[
        str, Meta(min_length=1, description=f"at most {CONTENT_BYTES_MAX} bytes as UTF-8")
    ]
    changelog: Changelog = ""
    bump: Literal[(*names.BUMPS, names.AUTO)] = "patch"
    title: Title | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    license: License | UnsetType | None = UNSET
    variables: Variables | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET
    base_version: VersionName | UnsetType = UNSET
    labels: Annotated[
        list[LabelName],
        Meta(
            max_length=names.LABELS_PER_REPO_MAX,
            description="move to this version, which is published with them or not at all",
        ),
    ] = []
    files: (
        Annotated[
            list[Annotated[DraftFile, Meta(extra_json_schema=_ONE_OF_BOTH)]],
            Meta(max_length=version_files.FILES_MAX),
        ]
        | UnsetType
    ) = UNSET


class WithdrawalDraft(Struct, forbid_unknown_fields=True, kw_only=True):
    """A request to withdraw something. `move_labels`: the version that its labels name instead."""

    reason: WithdrawalReason
    note: Note = ""
    move_labels: VersionName | UnsetType = UNSET


class LabelRemoval(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a request to remove a label; the body is optional. `expected` is the version that
    the label names now. If it names another version, it is not removed.
    """

    note: Note = ""
    expected: VersionName | UnsetType = UNSET

    @property
    def version(self) -> None:
        """The version that the label names from then on: none."""


class LabelDraft(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a request to move a label to a version. `expected` is the version that the label
    names now, null for a label that does not exist. If it names another version, it does not move.
    """

    version: VersionName
    note: Note = ""
    expected: VersionName | UnsetType | None = UNSET


class TrustedExchange(Struct, forbid_unknown_fields=True):
    """The body of a CI job's request for a token: for one repo, or for all repos of an owner that
    trust the job (`OWNER/*`).
    """

    token: Annotated[
        str, Meta(min_length=1, description="the ID token (a JWT) that the CI issued to this job")
    ]
    repo: RepoPattern
