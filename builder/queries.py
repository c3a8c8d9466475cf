"""Answers lists by query: parses ``page``, ``sort``, ``tag`` and ``q``, the one place that does.

What files can answer is a row of the table of routes. The rest (``q``, several tags at once)
is answered here from the state and the search index.
"""

import logging
import os
import sqlite3
from typing import NamedTuple
from urllib.parse import parse_qsl

from builder import names
from builder.errors import OperatorError, RequestError
from builder.render import envelope, list_meta, page_count
from builder.routes import PAGE_SIZE, QUERY_CHARS_MAX, SORTS, Match, list_api
from builder.search import Searcher, parse_query
from builder.settings import Settings
from builder.state import State

PARAMETERS_MAX = 50
PAGE_MAX = 999_999_999

log = logging.getLogger("hub.queries")


class ListQuery(NamedTuple):
    """What a reader asks of a list. ``sort`` None: not given. ``tags``: all of them."""

    page: int = 1
    sort: str | None = None
    tags: tuple[str, ...] = ()
    q: str | None = None

    def match(self) -> Match | None:
        """The row of the table that answers this; None where no file does."""
        if self.q is not None or len(self.tags) > 1:
            return None
        return list_api(self.tags[0] if self.tags else None, self.sort or SORTS[0], self.page)


def parse_parameters(query: bytes) -> dict[str, str]:
    """The parameters of a URL's query. Raises RequestError ``invalid_parameter``."""
    try:
        pairs = parse_qsl(
            query.decode(), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except UnicodeDecodeError:
        raise _invalid("The query is not UTF-8.") from None
    except ValueError:
        raise _invalid(f"A query has at most {PARAMETERS_MAX} parameters.") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
        if twice in ListQuery._fields or twice in ("tag", "version"):
            raise _invalid(f"{twice} is given more than once.")
    return parameters


def parse_list_query(query: bytes) -> ListQuery:
    """Read a list's query; parameters of other names are none of ours.

    Raises RequestError ``invalid_parameter``.
    """
    parameters = parse_parameters(query)
    return ListQuery(
        page=_parse_page(parameters["page"]) if "page" in parameters else 1,
        sort=_parse_sort(parameters["sort"]) if "sort" in parameters else None,
        tags=_parse_tags(parameters["tag"]) if "tag" in parameters else (),
        q=_parse_q(parameters["q"]) if "q" in parameters else None,
    )


def _parse_page(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or text.startswith("0") or len(text) > 9:
        raise _invalid(f"page is a whole number from 1 to {PAGE_MAX}, without leading zeros.")
    return int(text)


def _parse_sort(text: str) -> str:
    if text not in SORTS:
        raise _invalid(f"sort is one of {', '.join(SORTS)}.")
    return text


def _parse_tags(text: str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(text.split(",")))
    if len(tags) > names.TAGS_PER_REPO_MAX or not all(
        names.is_name(tag, names.TAG_CHARS_MAX) for tag in tags
    ):
        raise _invalid(
            f"tag is up to {names.TAGS_PER_REPO_MAX} tags with commas between them; a tag is "
            "lower case: a-z, 0-9 and single hyphens between them."
        )
    return tags


def _parse_q(text: str) -> str:
    if len(text) > QUERY_CHARS_MAX:
        raise _invalid(f"q has at most {QUERY_CHARS_MAX} characters.")
    return text


def _invalid(message: str) -> RequestError:
    return RequestError("invalid_parameter", message)


class Queries:
    """Answers what no file does. Not for several threads at once.

    Sees each build as soon as it has ended.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._state: State | None = None
        self._searcher: Searcher | None = None
        self._positions: dict[str | None, dict[str, int]] = {}
        self._data_version = -1
        self._state_inode: int | None = None

    def close(self) -> None:
        for part in (self._searcher, self._state):
            if part:
                part.close()
        self._searcher = self._state = None
        self._data_version = -1

    def answer(self, query: ListQuery) -> bytes:
        """The page of summaries that was asked for, in its envelope.

        Raises RequestError ``invalid_parameter``, ``tag_not_found``, ``page_not_found``, or
        ``unavailable`` before the first build has ended.
        """
        try:
            state = self._open_state()
            for tag in query.tags:
                if not state.has_tag(tag):
                    raise RequestError("tag_not_found", f"No repo has the tag {tag!r}.")
            ids = self._find(query, state)
            start = (query.page - 1) * PAGE_SIZE
            if query.page > page_count(len(ids)):
                raise RequestError(
                    "page_not_found", f"The last page of this list is {page_count(len(ids))}."
                )
            rows = state.summaries(ids[start : start + PAGE_SIZE])
        except (sqlite3.DatabaseError, OperatorError) as error:
            # Not built yet, or damaged: the next build makes it anew.
            log.warning("no searches: %s", error)
            self.close()
            raise RequestError(
                "unavailable", "The catalogue is being built; try again in a moment."
            ) from None
        sort = query.sort or (None if query.q is not None else SORTS[0])
        meta = list_meta(query.page, len(ids), sort, ",".join(query.tags) or None, query.q)
        return envelope(rows, meta)

    def _find(self, query: ListQuery, state: State) -> list[str]:
        """The ids of all repos that fit, in the order asked for."""
        if query.q is None:
            scores = dict.fromkeys(state.ids_with_tags(query.tags), 0.0)
        else:
            found = parse_query(query.q)
            beginnings = state.stems_of_words_beginning(found[-1].surface)
            scores = self._open_searcher().search(found, beginnings)
            if query.tags:
                tagged = state.ids_with_tags(query.tags)
                scores = {one: score for one, score in scores.items() if one in tagged}
        sort = query.sort or (SORTS[0] if query.q is None else None)
        positions = self._positions_by(sort, state)
        # The index may be a moment ahead of the state, or behind it.
        known = [one for one in scores if one in positions]
        if sort:
            return sorted(known, key=positions.__getitem__)
        return sorted(known, key=lambda one: (-scores[one], positions[one]))

    def _positions_by(self, sort: str | None, state: State) -> dict[str, int]:
        """Each repo's place in an order; by owner/name where ``sort`` is None."""
        version = state.data_version()
        if version != self._data_version:
            self._positions = {}
            self._data_version = version
        if sort not in self._positions:
            ids = state.ordered_ids(sort)
            self._positions[sort] = {one: position for position, one in enumerate(ids)}
        return self._positions[sort]

    def _open_state(self) -> State:
        inode = _inode(State.path_in(self._settings.state))
        if inode != self._state_inode and inode is not None:
            # Thrown away and made anew, as a cache may be.
            self.close()
        if self._state is None:
            self._state = State(self._settings.state, read_only=True)
            self._state_inode = inode
        return self._state

    def _open_searcher(self) -> Searcher:
        if self._searcher is None:
            self._searcher = Searcher(self._settings)
        return self._searcher


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
