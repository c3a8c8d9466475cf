"""Full-text search over the catalogue: the only importer of Whoosh.

One field holds all the words of a repo, weighted by where they stand, so that a query is one
conjunction: every word must be somewhere. The index follows the state (``State.indexed`` says
what it holds); it answers with ids, and knows neither tags nor orders.
"""

import hashlib
import inspect
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec
from whoosh import fields, formats, index, matching, query, scoring
from whoosh.util.text import utf8encode

from builder import content, words
from builder.errors import OperatorError, RequestError
from builder.names import Version
from builder.records import CatalogueLine
from builder.settings import Settings
from builder.state import State

# How much a word counts by where it stands. In the content a repeated word counts up to four
# times, or a long text that says everything would win every query.
NAME_WEIGHT = 12.0
TITLE_WEIGHT = 12.0
TAG_WEIGHT = 8.0
OWNER_WEIGHT = 4.0
DESCRIPTION_WEIGHT = 4.0
CONTENT_WEIGHT = 0.5
CONTENT_REPEATS_MAX = 4
# A high K1 keeps these weights apart; without B the length of a text does not matter.
SATURATION_K1 = 8.0
PREFIX_WEIGHT = 0.1
WRITER_MEGABYTES = 256

_decode_line = msgspec.json.Decoder(CatalogueLine).decode


class _WeightedWords(fields.FieldType):
    """A Whoosh field whose value is a mapping of words to weights, analysed already."""

    def __init__(self) -> None:
        super().__init__(formats.Existence(), analyzer=None, scorable=True)

    def index(self, value, **kwargs):
        return [(utf8encode(word)[0], 1, weight, b"") for word, weight in value.items()]


def _schema() -> fields.Schema:
    return fields.Schema(id=fields.ID(unique=True, stored=True), text=_WeightedWords())


def weighted_words(line: CatalogueLine, text: str) -> dict[str, float]:
    """The words by which a repo is found, each with the sum of its weights."""
    weights: Counter[str] = Counter()
    surfaces: set[str] = set()
    for part, weight in (
        (line.owner, OWNER_WEIGHT),
        (line.name, NAME_WEIGHT),
        (line.title, TITLE_WEIGHT),
        (" ".join(line.tags), TAG_WEIGHT),
        (line.description, DESCRIPTION_WEIGHT),
    ):
        for word in set(words.words(part)):
            weights[word.stem] += weight
            surfaces.add(word.surface)
    counts = Counter(words.words(text))
    stems: Counter[str] = Counter()
    for word, count in counts.items():
        stems[word.stem] += count
        surfaces.add(word.surface)
    for stem, count in stems.items():
        weights[stem] += min(count, CONTENT_REPEATS_MAX) * CONTENT_WEIGHT
    # What is written is indexed beside its stem for prefixes: "writi" begins "writing".
    for surface in surfaces - weights.keys():
        weights[surface] = CONTENT_WEIGHT
    return weights


def index_folder(settings: Settings) -> str:
    return f"{settings.state}/search"


def update(settings: Settings, state: State, progress: Callable[[str, int, int], None]) -> int:
    """Bring the index to what the state says; returns how many repos were taken in or dropped.

    Raises OperatorError.
    """
    folder = index_folder(settings)
    found = _open(folder)
    if found is None:
        state.forget_index()
        found = _create(folder)
    changed, gone = state.stale_in_index()
    if not changed and not gone:
        return 0
    writer = found.writer(limitmb=WRITER_MEGABYTES)
    try:
        is_empty = found.is_empty()
        for repo_id in gone:
            writer.delete_by_term("id", repo_id)
        for done, repo_id in enumerate(changed):
            progress("Indexing", done, len(changed))
            line = _decode_line(state.repo(repo_id).line)
            _, text = content.read_version(
                settings.content, line.owner, line.name, Version.parse(line.latest_version)
            )
            if not is_empty:
                writer.delete_by_term("id", repo_id)
            writer.add_document(id=repo_id, text=weighted_words(line, text))
        writer.commit()
    except BaseException:
        writer.cancel()
        raise
    state.put_indexed(changed, gone)
    return len(changed) + len(gone)


def _stamp() -> str:
    sources = inspect.getsource(words) + inspect.getsource(inspect.getmodule(_stamp))
    return hashlib.sha256(sources.encode()).hexdigest()


def _open(folder: str) -> index.Index | None:
    """The index, if there is one that this code made and that can be read."""
    try:
        with open(f"{folder}/stamp") as file:
            if file.read() != _stamp():
                return None
        return index.open_dir(folder)
    except (OSError, index.IndexError, EOFError, ValueError):
        return None


def _create(folder: str) -> index.Index:
    try:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        made = index.create_in(folder, _schema())
        with open(f"{folder}/stamp", "w") as file:
            file.write(_stamp())
        return made
    except OSError as error:
        raise OperatorError(f"Cannot write the search index {folder}: {error.strerror}.") from None


class Searcher:
    """Answers queries from the newest commit of the index. Not for several threads at once."""

    def __init__(self, settings: Settings) -> None:
        """Raises OperatorError where there is no index."""
        found = _open(index_folder(settings))
        if found is None:
            raise OperatorError("There is no search index yet; `hubctl build` makes it.")
        self._searcher = found.searcher(weighting=scoring.BM25F(B=0.0, K1=SATURATION_K1))
        # Segments never change, so the ids of their documents are read once.
        self._ids: dict[str, list[str]] = {}

    def close(self) -> None:
        self._searcher.close()

    def search(self, text: str, *, scored: bool = True) -> dict[str, float]:
        """The ids of all repos that have every word of ``text``, with their scores.

        The last word also matches as the beginning of a word. ``scored``: without, scores
        are 0, and come faster. Raises RequestError ``invalid_parameter`` where there is no word.
        """
        self._searcher = self._searcher.refresh()
        parsed = _parse(text)
        found: dict[str, float] = {}
        for leaf, _ in self._searcher.leaf_searchers():
            ids = self._segment_ids(leaf)
            matcher = parsed.matcher(
                leaf, leaf.boolean_context() if not scored else self._searcher.context()
            )
            for document, score in _matches(matcher, scored):
                found[ids[document]] = score
        return found

    def _segment_ids(self, leaf) -> list[str]:
        name = leaf.reader().segment().segment_id()
        if name not in self._ids:
            reader = leaf.reader()
            self._ids[name] = [
                reader.stored_fields(document)["id"] for document in range(reader.doc_count_all())
            ]
        return self._ids[name]


def _matches(matcher: matching.Matcher, scored: bool) -> Iterator[tuple[int, float]]:
    while matcher.is_active():
        yield matcher.id(), matcher.score() if scored else 0.0
        matcher.next()


def _parse(text: str) -> query.Query:
    *whole, last = words.query_words(text) or [None]
    if last is None:
        raise RequestError(
            "invalid_parameter", "q has no word in it; give at least one letter or digit."
        )
    parts: list[query.Query] = [query.Term("text", word.stem) for word in whole]
    parts.append(
        query.Or(
            [
                query.Term("text", last.stem),
                query.ConstantScoreQuery(query.Prefix("text", last.surface), PREFIX_WEIGHT),
            ]
        )
    )
    return query.And(parts)
