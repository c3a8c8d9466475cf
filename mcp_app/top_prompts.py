"""The top of the catalogue, for clients that read a whole list before anything else."""

from typing import Any

from builder.model.answers import RepoSummary
from builder.model.routes import PAGE_SIZE
from builder.search.queries import ListQuery
from mcp_app.cursors import Offset, make_cursor, read_cursor
from mcp_app.reader import Reader

TOP_MAX = 200


async def list_top(
    reader: Reader, cursor: str | None, count: int = TOP_MAX
) -> tuple[list[RepoSummary], dict[str, Any]]:
    """A page of the ``count`` most read repos, and ``nextCursor`` if another follows.

    Raises RequestError ``invalid_parameter`` for a cursor of another list.
    """
    list_key = ("top", count)
    start = read_cursor(cursor, Offset, *list_key) if cursor is not None else 0
    rows, total, *_ = await reader.find(ListQuery(), start, PAGE_SIZE)
    end = start + len(rows)
    if rows and end < min(total, count):
        return rows, {"nextCursor": make_cursor(end, *list_key)}
    return rows, {}
