"""Answers lists by query. The only place that parses a list's parameters.

Queries that a file can answer are rows of the table of routes. The others (``q``, several tags at
once, one owner's repos, suggestions for a wrong name) are answered here from the state and the
search index.
"""

import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET

from builder.model import names
from builder.model.answers import CatalogueLine, RepoSummary
from builder.model.envelopes import envelope, list_meta, page_count
from builder.model.errors import FIELD_CHARS_MAX, OperatorError, RequestError, cut
from builder.model.matching import Match, list_api
from builder.model.routes import PAGE_SIZE, PARAMETERS, PARAMETERS_MAX, QUERY_CHARS_MAX, SORTS
from builder.model.search_records import Correction, Facets, SearchMatch
from builder.model.settings import Settings
from builder.search.index import OpenIndex
from builder.search.matches import Matcher
from builder.search.plan import RepoFilter, lacking, make_plan, parse_query, query_words
from builder.store.state import State
from builder.text import words
from builder.text.likeness import COMPARED_MAX, alike

PAGE_MAX = 999_999_999
# A name at least this similar counts as a misspelling.
MISSPELLED_LIKENESS = 0.8
# The work of a page grows with its position among the results. A search that starts at or beyond
# this is refused.
REACHED_MAX = 10_000

log = logging.getLogger("hub.queries")

_decode_line = msgspec.json.Decoder(CatalogueLine).decode
_decode_summary = msgspec.json.Decoder(RepoSummary).decode


class ListQuery(NamedTuple):
    """The parameters of a list. ``sort`` None: not given. ``tags``: repos must have all of them.
    ``owner``: only this owner's repos. ``explain``: a search says why it found each repo.
    """

    page: int = 1
    sort: str | None = None
    tags: tuple[str, ...] = ()
    q: str | None = None
    owner: str | None = None
    explain: bool = False

    def match(self) -> Match | None:
        """The row of the table that answers this; None if no file does."""
        if self.q is not None or self.owner is not None or len(self.tags) > 1:
            return None
        return list_api(self.tags[0] if self.tags else None, self.sort or SORTS[0], self.page)


class ListPart(NamedTuple):
    """A part of a list: summaries as JSON, the number of repos in the whole list, and its order
    (None: by relevance). With ``q`` also its labels, ``match`` and ``corrected``, and with
    ``explain`` also ``matches`` and ``facets``, as in ``answers.ListMeta``.
    """

    rows: list[bytes]
    total: int
    sort: str | None = None
    labels: tuple[str, ...] = ()
    match: Literal["all", "some"] | None = None
    corrected: list[Correction] | None = None
    matches: list[SearchMatch] | None = None
    facets: Facets | None = None


def parse_parameters(query: bytes) -> dict[str, str]:
    """The parameters of a URL's query. Raises RequestError ``invalid_parameter``, also if one of
    PARAMETERS is given twice.
    """
    try:
        pairs = parse_qsl(
            query.decode(), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except UnicodeDecodeError:
        raise _invalid("The query is not UTF-8. Percent-encode its values as UTF-8.") from None
    except ValueError:
        raise _invalid(f"Too many parameters. Give at most {PARAMETERS_MAX}.") from None
    keys = [key for key, _ in pairs]
    for key in PARAMETERS:
        if keys.count(key) > 1:
            raise _invalid(f"{key} appears more than once. Give it once.")
    return dict(pairs)


def parse_list_query(query: bytes) -> ListQuery:
    """Read a list's query; unknown parameters are ignored.

    Raises RequestError ``invalid_parameter``.
    """
    parameters = parse_parameters(query)
    return ListQuery(
        page=_parse_page(parameters["page"]) if "page" in parameters else 1,
        sort=_parse_sort(parameters["sort"]) if "sort" in parameters else None,
        tags=_parse_tags(parameters["tag"]) if "tag" in parameters else (),
        q=_parse_q(parameters["q"]) if "q" in parameters else None,
        owner=_parse_owner(parameters["owner"]) if "owner" in parameters else None,
        explain=_parse_explain(parameters["explain"]) if "explain" in parameters else False,
    )


def _parse_page(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or text.startswith("0") or len(text) > 9:
        raise _invalid(
            f"Invalid page {_shown(text)}. Give a whole number from 1 to {PAGE_MAX}, without "
            "leading zeros."
        )
    return int(text)


def _parse_sort(text: str) -> str:
    if text not in SORTS:
        raise _invalid(f"Invalid sort {_shown(text)}. Use {', '.join(SORTS[:-1])} or {SORTS[-1]}.")
    return text


def _parse_tags(text: str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(text.split(",")))
    if len(tags) > names.TAGS_PER_REPO_MAX or not all(
        names.is_name(tag, names.TAG_CHARS_MAX) for tag in tags
    ):
        raise _invalid(
            f"Invalid tag. Give at most {names.TAGS_PER_REPO_MAX} tags, separated by "
            "commas. A tag has only a-z, 0-9 and single hyphens between them."
        )
    return tags


def _parse_owner(text: str) -> str:
    if not names.is_name(text, names.OWNER_CHARS_MAX):
        raise _invalid(
            f"Invalid owner {_shown(text)}. An owner has only a-z, 0-9 and single hyphens between "
            "them."
        )
    return text


def _parse_explain(text: str) -> bool:
    if text != "true":
        raise _invalid(f"Invalid explain {_shown(text)}. Give explain=true, or leave it out.")
    return True


def _parse_q(text: str) -> str:
    if len(text) > QUERY_CHARS_MAX:
        raise _invalid(
            f"q has {len(text):,} characters; the limit is {QUERY_CHARS_MAX}. Shorten it."
        )
    return text


def _shown(value: str) -> str:
    return repr(cut(value, FIELD_CHARS_MAX))


def _invalid(message: str) -> RequestError:
    return RequestError("invalid_parameter", message)


class Queries:
    """Answers queries that no file answers. Not thread-safe.

    Sees each build as soon as it has ended.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._state: State | None = None
        self._index: OpenIndex | None = None
        self._state_inode: int | None = None

    def close(self) -> None:
        parts = self._index, self._state
        self._index = self._state = None
        for part in parts:
            if part:
                part.close()

    def answer(self, query: ListQuery) -> bytes:
        """The requested page of summaries, in its envelope.

        Raises RequestError ``page_not_found``, ``user_not_found``, or as ``find``.
        """
        if query.owner is not None:
            with self._reading() as state:
                if state.owners.mark(query.owner) is None:
                    raise RequestError("user_not_found", f"No user {query.owner!r}.")
        found = self.find(query, (query.page - 1) * PAGE_SIZE, PAGE_SIZE)
        pages = page_count(found.total)
        if query.page > pages:
            raise RequestError(
                "page_not_found", f"No page {query.page}. The last page of this list is {pages}."
            )
        tags = ",".join(query.tags) or None
        meta = list_meta(query.page, found.total, found.sort, tags, query.q)
        meta.owner = query.owner or UNSET
        meta.label = ",".join(found.labels) or UNSET
        if found.match:
            meta.match, meta.corrected = found.match, found.corrected
        if found.facets:
            meta.matches, meta.facets = found.matches, found.facets
        return envelope(found.rows, meta)

    def find(self, query: ListQuery, start: int, count: int) -> ListPart:
        """``count`` rows of a list, at most PAGE_SIZE, from position ``start``, counted from 0.

        Ignores the query's own page. Raises RequestError ``invalid_parameter``, also for a search
        from REACHED_MAX on; ``tag_not_found``, or ``unavailable`` before the first build has ended.
        """
        with self._reading() as state:
            for tag in query.tags:
                if not (_can_be_name(tag) and state.tags.has(tag)):
                    raise RequestError("tag_not_found", f"No prompt has the tag {tag!r}.")
            if query.q is not None:
                return self._search(query, start, count, state)
            sort = query.sort or SORTS[0]
            if query.owner is not None and not _can_be_name(query.owner):
                return ListPart([], 0, sort)
            ids, total = state.ids.fitting(query.tags, query.owner, sort, count, start)
            return ListPart(state.repos.summaries(ids), total, sort)

    def owners_beginning(self, prefix: str, count: int) -> list[str]:
        """The first ``count`` handles with this prefix, in order.

        Raises RequestError ``unavailable`` before the first build has ended.
        """
        with self._reading() as state:
            return state.owners.beginning(prefix, count) if _can_be_name(prefix) else []

    def similar(self, name: str, count: int) -> list[str]:
        """Ids of repos that an unknown owner/name or name may mean, best first.

        For "did you mean", so it raises no error: parts that cannot be read give no ids.
        """
        found: dict[str, None] = {}
        # Not built yet, or incomplete: _reading has logged the reason.
        with contextlib.suppress(RequestError), self._reading() as state:
            for ids in self._nearest(name, count, state):
                found.update(dict.fromkeys(ids))
                if len(found) >= count:
                    break
        return list(found)[:count]

    def _nearest(self, name: str, count: int, state: State) -> Iterator[Iterable[str]]:
        """Groups of ids that the name may mean, best first; later groups are computed only if
        needed.
        """
        owner, repo = name.split("/", 1) if "/" in name else ("", name)
        handle, slug = _as_name(owner), _as_name(repo)
        prefix = f"{handle}/"
        if handle:
            near = state.ids.around(prefix, slug, COMPARED_MAX)
            # Compared without their owner, which would make all of them similar.
            close = alike(slug, [one.removeprefix(prefix) for one in near])
            yield [prefix + one for one in close if close[one] >= MISSPELLED_LIKENESS]
        if slug:
            yield state.ids.named(slug, count)
        if handle:
            yield state.ids.beginning(prefix + slug, count)
            yield [prefix + one for one in close]
        if query_words(repo):
            with self._open_index().reading() as reader:
                plan = make_plan(repo[:QUERY_CHARS_MAX], reader)
                ids = reader.find(plan._replace(needed=1), RepoFilter(), 0, PAGE_SIZE).ids
            meant = " ".join([repo, *(nearest for _, nearest in plan.corrected)])
            yield _named_by(meant, state.repos.summaries(ids))

    def _search(self, query: ListQuery, start: int, count: int, state: State) -> ListPart:
        labels, text = parse_query(query.q)
        if not (labels or text):
            raise _invalid("q has no word. Give at least one letter or digit.")
        scope = RepoFilter(query.tags, query.owner, labels)
        sort = query.sort or (None if text else SORTS[0])
        with self._open_index().reading() as reader:
            plan = make_plan(text, reader)
            is_far = start >= REACHED_MAX
            ids, total = reader.find(plan, scope, *((0, 1) if is_far else (start, count)), sort)
            if is_far and start < total:
                raise _invalid(
                    f"A search lists only the first {REACHED_MAX:,} results. Add words or a tag."
                )
            ids = [] if is_far else ids
            is_elsewhere = text and (start or sort)
            best = reader.find(plan, scope, 0, 1).ids if is_elsewhere or not ids else ids
            without = lacking(plan, [*best[:1], *(ids if query.explain else ())], reader)
            facets = reader.facets(plan, scope) if query.explain else None
        rows = state.repos.summaries(ids)
        match = "all" if best and not without[best[0]] else "some"
        corrected = [Correction(*one) for one in plan.corrected] or None
        matches = None
        if query.explain:
            lines = {one: _decode_line(line) for one, line in state.repos.lines(ids).items()}
            matcher = Matcher(plan, lines, without, self._settings.out)
            matches = [matcher.match(_decode_summary(row)) for row in rows]
        return ListPart(rows, total, sort, labels, match, corrected, matches, facets)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[State]:
        """The state of the last build. Raises RequestError ``unavailable`` if the state or the
        index cannot be read.
        """
        try:
            yield self._open_state()
        except RequestError:
            raise
        except Exception as error:
            # Not built yet, or damaged, which can raise an error of any kind. A build rebuilds it.
            is_known = isinstance(error, sqlite3.DatabaseError | OperatorError)
            log.warning("Searches are unavailable: %s", error, exc_info=not is_known)
            self.close()
            raise RequestError(
                "unavailable", "The search index is being built. Try again in a moment."
            ) from None

    def _open_state(self) -> State:
        inode = _inode(State.path_in(self._settings.state))
        if inode != self._state_inode and inode is not None:
            # Deleted and rebuilt, as a cache may be.
            self.close()
        if self._state is None:
            self._state = State(self._settings.state, read_only=True)
            self._state_inode = inode
        return self._state

    def _open_index(self) -> OpenIndex:
        if self._index is None:
            self._index = OpenIndex(self._settings)
        return self._index


def _named_by(text: str, summaries: Iterable[bytes]) -> list[str]:
    """The ids of repos with a word of ``text`` in owner, name, title or tags. A word in the
    prompt's text alone does not make names similar.
    """
    wanted, _ = words.distinct_words(text)
    repos = [_decode_summary(summary) for summary in summaries]
    return [
        f"{repo.owner}/{repo.name}"
        for repo in repos
        if wanted
        & words.distinct_words(" ".join([repo.owner, repo.name, repo.title, *repo.tags]))[0]
    ]


def _can_be_name(*texts: str) -> bool:
    """True if these may be names or prefixes of names. SQLite does not accept every text that JSON
    does.
    """
    return all(map(str.isascii, texts))


def _as_name(text: str) -> str:
    """The nearest text in the grammar of names; may be empty."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[: names.REPO_CHARS_MAX]


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
