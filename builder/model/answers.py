"""The API's answers: one definition of each gives JSON and the OpenAPI schema.

All keys are always present, in the order given here, except those with the default ``UNSET``. A
count that was never measured is null.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from builder.model import names
from builder.model.records import (
    ContentSha256,
    LabelName,
    Note,
    Ordinal,
    Owner,
    RepoName,
    Sha256,
    Source,
    StoredFile,
    TagName,
    Time,
    Variable,
    VersionName,
    WithdrawalReason,
)
from builder.model.search_records import Correction, Facets, SearchMatch

MessageRole = Literal["system", "user", "assistant", "tool"]


class Message(Struct):
    """One message of a conversation."""

    role: MessageRole
    content: str


Body = Annotated[str, Meta(description="the content after its front matter")]
Messages = Annotated[
    list[Message] | None,
    Meta(description="the messages between the role markers of `body`; null if it has none"),
]


class File(StoredFile):
    """A file of a version, with its address. `media_type` follows from its name. The file itself is
    served as plain text or as bytes.
    """

    url: str


class RepoSummary(Struct):
    """A repo in a list."""

    owner: Owner
    name: RepoName
    title: str
    description: str
    tags: list[TagName]
    latest_version: VersionName
    versions_count: int
    pulls: int | None
    created_at: Time
    updated_at: Time
    url: str


class Repo(RepoSummary):
    """A repo: its summary, with the content and metadata of the latest version. `labels` maps each
    label to its version; absent if the repo never had a label. `files` and `content_sha256` are
    those of the latest version.
    """

    content: str
    body: Body
    messages: Messages
    variables: list[Variable]
    parameters: dict[str, Any]
    license: str | None
    sha256: Sha256
    size: int
    changelog: str
    raw_url: str
    versions_url: str
    labels: dict[LabelName, VersionName] | UnsetType = UNSET
    files: list[File] | UnsetType = UNSET
    content_sha256: ContentSha256 | UnsetType = UNSET


class LabelMove(Struct, gc=False):
    """One change of a label, from the version `previous` to `version`. `version` is null if the
    label was removed, `previous` if it was new. `source`: null unless a trusted CI job moved it.
    """

    label: LabelName
    version: VersionName | None
    previous: VersionName | None
    moved_at: Time
    moved_by: Owner
    note: Note
    source: Source | None = None


class VersionEntry(Struct):
    """A version in the list of a repo's versions. `source`: null unless a trusted CI job published
    it.
    """

    version: VersionName
    previous: VersionName | None
    changelog: str
    publisher: Owner
    published_at: Time
    sha256: Sha256
    size: int
    raw_url: str
    diff_url: str | None
    ordinal: Ordinal
    source: Source | None


class Withdrawal(Struct):
    """The time and reason of a withdrawal."""

    at: Time
    reason: WithdrawalReason
    note: Note


class ListedVersion(VersionEntry):
    """A version in the list. `withdrawn`: only if it was; then its text cannot be read, its
    changelog is empty, and `raw_url` answers 410. `labels`: those that name it; absent if the repo
    never had a label.
    """

    withdrawn: Withdrawal | UnsetType = UNSET
    labels: list[LabelName] | UnsetType = UNSET


class Version(VersionEntry):
    """A version with its content, and the metadata that was published with it. `files` and
    `content_sha256` are absent if it has no files.
    """

    owner: Owner
    name: RepoName
    title: str
    description: str
    tags: list[TagName]
    content: str
    body: Body
    messages: Messages
    variables: list[Variable]
    parameters: dict[str, Any]
    license: str | None
    files: list[File] | UnsetType = UNSET
    content_sha256: ContentSha256 | UnsetType = UNSET


class LabelledVersion(Version, kw_only=True):
    """The version that a label names."""

    label: LabelName
    moved_at: Time


class Publication(Struct):
    """The result of a publication. `unchanged`: the latest version is identical, so no version was
    created. Lists show the version once `serial` in hub.json is at least this `serial`. `labels`:
    the labels of the request, which now name this version; absent if it had none. `files` and
    `content_sha256`: absent if the version has no files.
    """

    owner: Owner
    name: RepoName
    version: VersionName
    previous_version: VersionName | None
    changelog: str
    sha256: Sha256
    size: int
    publisher: Owner
    published_at: Time
    url: str
    raw_url: str
    unchanged: bool
    warnings: list[str]
    serial: int
    labels: list[LabelName] | UnsetType = UNSET
    files: list[StoredFile] | UnsetType = UNSET
    content_sha256: ContentSha256 | UnsetType = UNSET


class ChangedVariables(Struct):
    """The names of the variables that differ from the previous version's."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class Checked(Struct):
    """The result that a publication would have. `bump`: the bump that `auto` chooses, and `reasons`
    why. `labels`: those that would name the version. `diff` is as at `/diff`, with `diff_size`
    bytes; it is null if there is no version yet, or if the texts take too long to compare. `files`
    and `content_sha256`: absent if the version would have no files.
    """

    owner: Owner
    name: RepoName
    version: VersionName
    previous_version: VersionName | None
    unchanged: bool
    bump: Literal[names.BUMPS]
    reasons: list[str]
    variables: ChangedVariables
    labels: list[LabelName]
    warnings: list[str]
    diff_size: int
    diff: str | None
    files: list[StoredFile] | UnsetType = UNSET
    content_sha256: ContentSha256 | UnsetType = UNSET


class ChangedLabel(Struct):
    """The result of a change of a label. `version` is null if the label was removed, `previous` if
    it was new. `unchanged`: the label already named the version, so nothing was written. `bump` and
    `reasons`: the step from `previous` to `version` for callers, and why; as of a check.
    """

    owner: Owner
    name: RepoName
    label: LabelName
    version: VersionName | None
    previous: VersionName | None
    moved_at: Time
    moved_by: Owner
    note: Note
    unchanged: bool
    bump: Literal[names.BUMPS]
    reasons: list[str]


class TrustedToken(Struct):
    """A token for one CI job. It publishes to `repos`; an empty list means all repos of the
    owner.
    """

    token: Annotated[str, Meta(description="shown only once: `hub_` and 38 letters and digits")]
    owner: Owner
    repos: list[RepoName]
    expires_at: Time


class Tag(Struct):
    """A tag, with the number of repos that have it."""

    name: TagName
    count: int


class User(Struct):
    """An owner's profile; ``repos`` are sorted by update, the latest first."""

    handle: Owner
    name: str
    bio: str
    url: str | None
    joined_at: Time
    repos_count: int
    pulls: int | None
    kind: Literal["person", "team"]
    repos: list[RepoSummary]


class Paths(Struct):
    """The paths of the endpoints below the base URL. They work on any host, even on one that
    ignores queries.
    """

    list: str
    tag_list: str
    repo: str
    versions: str
    version: str
    raw: str
    version_raw: str
    body: str
    version_body: str
    diff: str
    tags: str
    user: str
    catalogue: str
    openapi: str
    skill: str = ""  # Sites of an older hub have no skills.
    skill_index: str = ""
    version_skill: str = ""
    version_skill_archive: str = ""
    label_skill: str = ""
    owner_skill_index: str = ""
    marketplace: str = ""


class Hub(Struct, omit_defaults=True):
    """This service. `queries`: true if it answers `q` and several tags at once. `search`: the
    search engine. `private`: only members read it, with a session or a token; absent from a public
    hub. `version`: the version of the software that built the site. `file_bytes`: the most bytes of
    the files of a version.
    """

    name: str
    base_url: str
    api_version: str
    publish_url: str
    queries: bool
    search: Literal["tantivy", "whoosh"]
    serial: int
    repos_count: int
    paths: Paths
    private: bool = False
    # Sites of an older hub have none of these.
    version: str = ""
    file_bytes: int | UnsetType = UNSET


class WithdrawnLine(Struct):
    """One line of ``withdrawn.jsonl``. `version`: null if the whole repo was withdrawn."""

    owner: Owner
    name: RepoName
    version: VersionName | None
    at: Time
    reason: WithdrawalReason
    note: Note


class CatalogueLine(Struct):
    """One line of ``catalogue.jsonl``.

    `words` are some words of the latest text, for searches of the catalogue and not for display;
    empty where the host answers `q`. A skill and a chat have their `kind`, and a repo with labels
    has `labels`, sorted.
    """

    owner: Owner
    name: RepoName
    title: str
    description: str
    tags: list[TagName]
    latest_version: VersionName
    sha256: Sha256
    words: str = ""
    kind: Literal["skill", "chat"] | UnsetType = UNSET
    labels: list[LabelName] | UnsetType = UNSET


class ListMeta(Struct):
    """The page of the list, and the filters that were applied (null: not applied).

    `owner` is absent if it was not given, and so is `label`, which has each NAME of `label:NAME` in
    `q`, separated by commas. With `q` only: `match` is `all` if the first result has
    every significant word of the query, otherwise `some`; `corrected` lists the corrected words
    (null: none). With `explain` also `matches`, with an entry for each repo of this page, in the
    same order, and `facets`.
    """

    page: int
    pages: int
    total: int
    page_size: int
    sort: Literal["top", "trending", "new"] | None
    tag: str | None
    q: str | None
    owner: Owner | UnsetType = UNSET
    label: str | UnsetType = UNSET
    match: Literal["all", "some"] | UnsetType = UNSET
    corrected: list[Correction] | UnsetType | None = UNSET
    matches: list[SearchMatch] | UnsetType = UNSET
    facets: Facets | UnsetType = UNSET


class ErrorDetail(Struct):
    """The fault of one field of the request."""

    field: str
    message: str


class ErrorBody(Struct, omit_defaults=True):
    """The error, and what to do next."""

    code: str
    message: str
    details: list[ErrorDetail] | None = None


class ErrorEnvelope(Struct):
    """The body of every API response with a status of 400 or higher."""

    error: ErrorBody
