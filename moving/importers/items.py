"""The items that every source is turned into, and how a table's columns become items."""

import codecs
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from builder.model.answers import Message
from builder.model.errors import HubError, OperatorError, RequestError
from builder.model.records import CONTENT_BYTES_MAX
from builder.text.prompts import parse_document
from builder.text.summary import clean_title
from moving.importers import chats
from moving.importers.beside import Beside
from moving.importers.foreign import translate
from moving.importers.naming import to_words
from publisher.write.fields import parse_loosely, split_tags

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# Metadata from the column of the same name.
COLUMN_FIELDS = {"description", "license", "variables", "parameters"}
# Columns in which chat front ends have a prompt's name.
NAME_COLUMNS = ("command",)
TITLE_COLUMNS = ("title", "name", "act")
PROMPT_COLUMNS = ("prompt", "content", "text", "messages")
TAGS_COLUMNS = ("tags",)
CONTRIBUTOR_COLUMNS = ("contributor", "author", "owner")


class Item(NamedTuple):
    """A prompt found in a source. ``where``: its row, line or file.

    ``name`` and ``owner`` are spelled as in the source; the repo's name and the owner's handle are
    derived from them. An empty owner means the default one. ``fields``: valid metadata, with that
    of the front matter. ``convention``: that of the body's placeholders; ``auto`` or ``markdown``
    if the kind of source has none. ``author``: as spelled in the source. ``beside``: the files of a
    prompt that is a folder; None for others. ``kind``: distinguishes prompts of one name.
    ``title``: of a new prompt whose ``fields`` have none.
    """

    where: str
    owner: str
    name: str
    text: str
    fields: dict[str, Any]
    warnings: list[str]
    convention: str = "auto"
    author: str = ""
    beside: Beside | None = None
    kind: str = ""
    title: str = ""


class Rejection(NamedTuple):
    """Something that is no item, and the reason."""

    where: str
    reason: str


def reason_of(error: HubError) -> str:
    """The reason for a Rejection. If fields are invalid, only that."""
    if isinstance(error, RequestError) and error.code == "validation_failed":
        return "; ".join(f"{field}: {message}" for field, message in error.details)
    return str(error).removesuffix(".")


class PassedOver(NamedTuple):
    """Something that is no item and no fault: it was not meant to be one, or it is a duplicate.
    ``paths``: each of several, which ``where`` counts or lists.
    """

    where: str
    reason: str
    paths: tuple[str, ...] = ()


class Revision(NamedTuple):
    """A version of a prompt with a history, as its source has it.

    ``prompt`` is a text, or the messages of a chat, with placeholders of ``convention``.
    ``fields``: valid metadata (``parse_loosely``). ``published_at``: a Time. ``labels``: spelled as
    in the source. ``number``: the source's own number of the version, which becomes the ordinal.
    """

    where: str
    prompt: str | list[Message]
    fields: dict[str, Any]
    warnings: list[str]
    convention: str = "none"
    changelog: str = ""
    published_at: str | None = None
    labels: tuple[str, ...] = ()
    number: int | None = None


class History(NamedTuple):
    """A prompt with all its versions, oldest first; ``owner`` and ``name`` as in Item."""

    where: str
    owner: str
    name: str
    revisions: list[Revision]


class Document(NamedTuple):
    """A part of a vendor's export. ``value``: JSON, or the text of a file that is none. ``where``:
    its file, and in the file its line, row or place in a list.
    """

    where: str
    value: Any


class Columns(NamedTuple):
    """The columns of each kind of data. None, and no tags: look for one of the usual names.

    An empty ``contributor``: ignore authors. ``name``: the column from which names are derived;
    empty: the titles.
    """

    title: str | None = None
    prompt: str | None = None
    tags: tuple[str, ...] = ()
    contributor: str | None = None
    name: str = ""

    def find(self, there: Iterable[str]) -> "Columns":
        """The columns as spelled in ``there``, ignoring case. Raises OperatorError."""
        spelled: dict[str, str] = {}
        for key in there:
            spelled.setdefault(key.strip().casefold(), key)
        tags = self.tags or [key for key in TAGS_COLUMNS if key in spelled]
        name = next((spelled[key] for key in NAME_COLUMNS if key in spelled), "")
        is_named = name and self.title is None and not spelled.keys() & {*TITLE_COLUMNS}
        return Columns(
            name if is_named else _find(spelled, self.title, TITLE_COLUMNS, "--title-column"),
            _find(spelled, self.prompt, PROMPT_COLUMNS, "--prompt-column"),
            tuple(_find(spelled, tag, (), "--tags-column") for tag in tags),
            "" if self.contributor == "" else self._find_contributor(spelled),
            name,
        )

    def _find_contributor(self, spelled: dict[str, str]) -> str:
        if self.contributor is None and not spelled.keys() & {*CONTRIBUTOR_COLUMNS}:
            return ""
        return _find(spelled, self.contributor, CONTRIBUTOR_COLUMNS, "--contributor-column")


def decode_text(raw: bytes) -> str:
    """UTF-8, or UTF-16 with a byte order mark, as text. Raises ValueError."""
    try:
        return raw.decode("utf-16" if raw.startswith(UTF_16_MARKS) else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}. Save it as UTF-8") from None


def make_item(where: str, row: Mapping[str, Any], columns: Columns) -> Item | Rejection:
    """The prompt in a row, with ``columns`` as found in it."""
    title, text = row.get(columns.title), row.get(columns.prompt)
    notes: list[str] = []
    if isinstance(text, list):
        try:
            text, notes = chats.from_list(text)
        except ValueError as error:
            return Rejection(where, str(error))
    contributor = (columns.contributor and row.get(columns.contributor)) or ""
    for column, value in (
        (columns.title, title),
        (columns.prompt, text),
        (columns.contributor, contributor),
    ):
        if not isinstance(value, str):
            return Rejection(where, f"its {column!r} is not text")
    if len(text) > CONTENT_BYTES_MAX:  # as bytes, it has at least as many
        return Rejection(
            where, f"its {columns.prompt!r} is larger than {CONTENT_BYTES_MAX:,} bytes"
        )
    name = clean_title(str((columns.name and row.get(columns.name)) or "")).lstrip("/ ")
    title = to_words(name) if columns.title == columns.name else clean_title(title)
    if not title:
        return Rejection(where, f"its {columns.title!r} is empty. Give each prompt a title")
    metadata = {
        key.strip().casefold(): value
        for key, value in row.items()
        if key.strip().casefold() in COLUMN_FIELDS and value not in ("", None)
    }
    tags = _list_tags(row.get(column) for column in columns.tags)
    metadata |= {"title": title} | ({"tags": tags} if tags else {})
    front = parse_document(text)
    ours, _ = translate(front.front or {})
    fields, warnings = parse_loosely(ours | metadata)
    return Item(where, contributor, name or title, text, fields, notes + front.warnings + warnings)


def _find(spelled: dict[str, str], wanted: str | None, usual: tuple[str, ...], option: str) -> str:
    for column in usual if wanted is None else [wanted.strip().casefold()]:
        if column in spelled:
            return spelled[column]
    looked_for = " or ".join(map(repr, usual if wanted is None else [wanted]))
    there_are = ", ".join(spelled.values()) or "none"
    raise OperatorError(
        f"No column {looked_for}. The columns are: {there_are}. Choose one with {option}."
    )


def _list_tags(cells: Iterable[Any]) -> list[Any]:
    tags: list[Any] = []
    for cell in cells:
        tags += (
            split_tags(cell) if isinstance(cell, str) else cell if isinstance(cell, list) else []
        )
    return tags
