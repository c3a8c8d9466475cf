"""Records as JSON, and the envelopes around them. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from builder.model import answers
from builder.model.errors import LANGFUSE_STATUS
from builder.model.langfuse_records import LangfuseListMeta
from builder.model.routes import PAGE_SIZE

_encode = msgspec.json.Encoder().encode


def json_bytes(value: Any) -> bytes:
    """Compact JSON in UTF-8, keys in the record's order."""
    return _encode(value)


def single(record: Any) -> bytes:
    """The envelope of one object."""
    return _encode({"data": record})


def envelope(rows: list[bytes], meta: answers.ListMeta | LangfuseListMeta) -> bytes:
    """The envelope of a list, around its rows' JSON."""
    return b'{"data":[' + b",".join(rows) + b'],"meta":' + _encode(meta) + b"}"


def has_rows(enveloped: bytes) -> bool:
    """True if a list has rows, by the bytes of its envelope."""
    return not enveloped.startswith(b'{"data":[]')


def whole_list(rows: Sequence[Any]) -> bytes:
    """The envelope of a list of records that are all on one page."""
    meta = answers.ListMeta(
        page=1, pages=1, total=len(rows), page_size=len(rows), sort=None, tag=None, q=None
    )
    return b'{"data":' + _encode(rows) + b',"meta":' + _encode(meta) + b"}"


def error_envelope(error: answers.ErrorBody) -> bytes:
    """The body of an error; in Langfuse's format for Langfuse's codes."""
    if error.code in LANGFUSE_STATUS:
        return _encode({"message": error.message, "error": error.code})
    return _encode(answers.ErrorEnvelope(error))


def list_meta(
    page: int, total: int, sort: str | None, tag: str | None = None, q: str | None = None
) -> answers.ListMeta:
    """The meta of a paged list; an empty list has one empty page."""
    return answers.ListMeta(
        page=page,
        pages=page_count(total),
        total=total,
        page_size=PAGE_SIZE,
        sort=sort,
        tag=tag,
        q=q,
    )


def page_count(total: int) -> int:
    return max(1, -(-total // PAGE_SIZE))
