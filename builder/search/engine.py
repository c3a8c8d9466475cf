"""Full-text search over the catalogue: the only importer of Whoosh, but for its stemmer.

One field holds all the words of a repo, weighted by where they stand, so that a query is one
conjunction: every word must be somewhere. The index follows the state (its table ``indexed``
says what the index holds); it answers with ids, and knows neither tags nor orders.

Whoosh keeps the inverted index. Its matchers take some microseconds for each posting, so the
postings are read here a block at a time and added up, which takes a tenth of that.
"""

import contextlib
import hashlib
import inspect
import math
import os
import shutil
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec
from whoosh import fields, formats, index, reading, writing
from whoosh.codec.whoosh3 import W3Codec
from whoosh.matching import FilterMatcher, ListMatcher
from whoosh.util.text import utf8encode

from builder.model.errors import OperatorError, RequestError
from builder.model.names import Version
from builder.model.progress import Progress
from builder.model.records import CatalogueLine
from builder.model.settings import Settings
from builder.store import content
from builder.store.state import State
from builder.text import words
from builder.text.words import Word

# How much a word counts by where it stands. In the content a repeated word counts up to four
# times, or a long text that says everything would win every query.
NAME_WEIGHT = 12.0
TITLE_WEIGHT = 12.0
TAG_WEIGHT = 8.0
OWNER_WEIGHT = 4.0
DESCRIPTION_WEIGHT = 4.0
CONTENT_WEIGHT = 0.5
CONTENT_REPEATS_MAX = 4
# BM25 without the length of the text; a high K1 keeps the weights above apart.
SATURATION_K1 = 8.0
# What a word counts that is found only as the beginning of another.
PREFIX_SCORE = 0.1
POSTINGS_PER_BLOCK = 512
PREFIXES_REMEMBERED = 256
# While others wait, the smallest segments are merged when there are so many, up to so many repos.
MERGED_SEGMENTS_MIN = 8
MERGED_REPOS_MAX = 150

_decode_checksums = msgspec.json.Decoder(dict[str, int]).decode
_decode_line = msgspec.json.Decoder(CatalogueLine).decode


class _WeightedWords(fields.FieldType):
    """A Whoosh field whose value is a mapping of stems to weights, analysed already."""

    def __init__(self) -> None:
        super().__init__(formats.Existence(), analyzer=None, scorable=False)

    def index(self, value, **kwargs):
        return [(utf8encode(stem)[0], 1, weight, b"") for stem, weight in value.items()]


def _schema() -> fields.Schema:
    return fields.Schema(id=fields.ID(unique=True, stored=True), text=_WeightedWords())


def found_words(line: CatalogueLine, text: str) -> tuple[dict[str, float], set[Word]]:
    """The stems by which a repo is found, each with the sum of its weights; and its words."""
    weights: Counter[str] = Counter()
    counts = Counter(words.words(text))
    stems: Counter[str] = Counter()
    for word, count in counts.items():
        stems[word.stem] += count
    for stem, count in stems.items():
        weights[stem] = min(count, CONTENT_REPEATS_MAX) * CONTENT_WEIGHT
    found = set(counts)
    for part, weight in (
        (line.owner, OWNER_WEIGHT),
        (line.name, NAME_WEIGHT),
        (line.title, TITLE_WEIGHT),
        (" ".join(line.tags), TAG_WEIGHT),
        (line.description, DESCRIPTION_WEIGHT),
    ):
        part_words = set(words.words(part))
        found |= part_words
        for stem in {word.stem for word in part_words}:
            weights[stem] += weight
    return weights, found


def index_folder(settings: Settings) -> str:
    return f"{settings.state}/search"


def update(
    settings: Settings, state: State, progress: Progress, repos: Iterable[str] | None = None,
    *, is_hurried: bool = False,
) -> int:  # fmt: skip
    """Bring the index to what the state says; returns how many repos were taken in or dropped.

    ``repos``: ids of the only ones that can differ from it. ``is_hurried``: others may wait, so
    merge no more than small parts of the index. Raises OperatorError.
    """
    folder = index_folder(settings)
    found = _open(folder)
    # Of an index without its state, nobody knows what it holds.
    is_new = found is None or not (found.is_empty() or state.index.holds_any())
    if is_new:
        state.index.forget()
        found = _create(folder)
        repos = None
    changed, gone = state.index.stale(repos)
    if changed or gone:
        _write(found, settings, state, changed, gone, progress, is_hurried)
    if changed or gone or is_new:
        _put_checksums(folder)
    if is_new:
        # Last, so that an index whose making did not end is none, and is made anew.
        _put_stamp(folder)
    return len(changed) + len(gone)


def _write(
    found: index.Index, settings: Settings, state: State, changed: list[str], gone: list[str],
    progress: Progress, is_hurried: bool,
) -> None:  # fmt: skip
    """Take in the changed repos and drop those that are gone, in one commit."""
    writer = _writer(found)
    counts: Counter[tuple[str, str]] = Counter()
    # One for all deletions: Whoosh would open the index anew for each.
    searcher = None if found.is_empty() else writer.searcher()
    try:
        for repo_id in gone:
            writer.delete_by_term("id", repo_id, searcher)
            counts.subtract(state.index.words(repo_id))
            state.index.drop(repo_id)
        for done, repo_id in enumerate(changed):
            progress("Indexing", done, len(changed))
            line = _decode_line(state.repos.get(repo_id).line)
            _, text = content.read_version(
                settings.content, line.owner, line.name, Version.parse(line.latest_version)
            )
            if searcher:
                writer.delete_by_term("id", repo_id, searcher)
                counts.subtract(state.index.words(repo_id))
            weights, repo_words = found_words(line, text)
            writer.add_document(id=repo_id, text=weights)
            # "writi" begins "writing", but not its stem.
            differing = sorted(
                (word.surface, word.stem) for word in repo_words if word.surface != word.stem
            )
            counts.update(differing)
            state.index.put(repo_id, differing)
        writer.commit(mergetype=_merge_small if is_hurried else writing.MERGE_SMALL)
    except BaseException:
        writer.cancel()
        raise
    finally:
        if searcher:
            searcher.close()
    state.index.count_words(counts)


def _merge_small(writer: writing.SegmentWriter, segments: list) -> list:
    """Merge the smallest parts once there are some, in a time that does not grow with the index.

    Returns the parts that stay, as Whoosh asks for.
    """
    chosen, documents = [], 0
    for segment in sorted(segments, key=lambda one: one.doc_count_all()):
        documents += segment.doc_count_all()
        if documents > MERGED_REPOS_MAX:
            break
        chosen.append(segment)
    if len(chosen) < MERGED_SEGMENTS_MIN:
        return segments
    for segment in chosen:
        with contextlib.closing(
            reading.SegmentReader(writer.storage, writer.schema, segment)
        ) as reader:
            writer.add_reader(reader)
    return [segment for segment in segments if segment not in chosen]


def _writer(found: index.Index) -> writing.SegmentWriter:
    writer = found.writer(codec=W3Codec(POSTINGS_PER_BLOCK, compression=0))
    writer.pool = _Postings()
    # No field has a length, and Whoosh would ask the disk for it with each posting.
    add_postings = writer.fieldwriter.add_postings
    writer.fieldwriter.add_postings = lambda schema, lengths, items: add_postings(
        schema, None, items
    )
    return writer


class _Postings:
    """Takes a writer's postings and gives them back in order of term, as Whoosh's own pool does.

    That one sorts and pickles them one by one. Ours keeps two numbers for each, by term, which
    takes a third of the time and half of the memory; documents come in order already.
    """

    def __init__(self) -> None:
        self.fieldnames: set[str] = set()
        self._terms: dict[tuple[str, bytes], tuple[array, array]] = {}

    def add(self, posting: tuple[str, bytes, int, float, bytes]) -> None:
        field, term, document, weight, _ = posting
        found = self._terms.get((field, term))
        if found is None:
            self.fieldnames.add(field)
            found = self._terms[field, term] = (array("I"), array("f"))
        found[0].append(document)
        found[1].append(weight)

    def iter_postings(self) -> Iterator[tuple[str, bytes, int, float, bytes]]:
        for field, term in sorted(self._terms):
            for document, weight in zip(*self._terms[field, term], strict=True):
                yield field, term, document, weight, b""

    def cleanup(self) -> None:
        self._terms.clear()


def _stamp() -> str:
    sources = inspect.getsource(words) + inspect.getsource(inspect.getmodule(_stamp))
    return hashlib.sha256(sources.encode()).hexdigest()


def _is_ours(folder: str) -> bool:
    """Whether there is a complete index that this code made."""
    try:
        with open(f"{folder}/stamp", "rb") as file:
            return file.read() == _stamp().encode()
    except OSError:
        return False


def _open(folder: str) -> index.Index | None:
    """The index, if there is one that this code made and that can be read."""
    if not _is_ours(folder):
        return None
    try:
        found = index.open_dir(folder)
        # The index names its segments; a reader opens each of them.
        found.reader().close()
        return found
    except Exception:
        # Whoosh believes what its files say, so damage shows as an error of any kind.
        return None


def _create(folder: str) -> index.Index:
    try:
        if os.path.lexists(folder) and not os.path.isdir(folder):
            os.unlink(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        return index.create_in(folder, _schema())
    except OSError as error:
        raise OperatorError(f"Cannot write the search index {folder}: {error.strerror}.") from None


def _put_stamp(folder: str) -> None:
    try:
        with open(f"{folder}/stamp", "w") as file:
            file.write(_stamp())
    except OSError as error:
        raise OperatorError(f"Cannot write the search index {folder}: {error.strerror}.") from None


def _put_checksums(folder: str) -> None:
    """Write down the checksum of each of the index's files, none of which ever changes."""
    known = _read_checksums(folder) or {}
    try:
        kept = {
            name: known.get(name) or _file_checksum(f"{folder}/{name}")
            for name in sorted(os.listdir(folder))
            if name.endswith((".seg", ".toc"))
        }
        with open(f"{folder}/checksums.tmp", "wb") as file:
            file.write(msgspec.json.encode(kept))
        os.replace(f"{folder}/checksums.tmp", f"{folder}/checksums")
    except OSError as error:
        raise OperatorError(f"Cannot write the search index {folder}: {error.strerror}.") from None


def _read_checksums(folder: str) -> dict[str, int] | None:
    """By the file's name; None where they cannot be read."""
    try:
        with open(f"{folder}/checksums", "rb") as file:
            return _decode_checksums(file.read())
    except (OSError, ValueError):
        return None


def _file_checksum(path: str) -> int:
    value = 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value


def find_damage(settings: Settings) -> str | None:
    """What shows that the index is damaged; None for one that is sound or not there.

    Reads all of it. Files that a killed build left without a checksum count as sound, and so do
    those that are missing: `update` makes an index that cannot be opened anew. Raises
    OperatorError.
    """
    folder = index_folder(settings)
    if not _is_ours(folder):
        return None
    known = _read_checksums(folder)
    if known is None:
        return f"{folder}/checksums cannot be read"
    try:
        for name in sorted(known.keys() & os.listdir(folder)):
            if _file_checksum(f"{folder}/{name}") != known[name]:
                return f"{folder}/{name} is not what was written"
    except OSError as error:
        raise OperatorError(f"Cannot read the search index {folder}: {error.strerror}.") from None
    return None


def forget(settings: Settings) -> None:
    """Have the next build make the index anew. Readers that have it open go on with it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{index_folder(settings)}/stamp")


def _mark(folder: str) -> tuple[int, int] | None:
    """Differs when the index is not the one that it was; None where none is complete."""
    try:
        status = os.stat(f"{folder}/stamp")
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


class Searcher:
    """Answers queries from the newest commit of the index. Not for several threads at once."""

    def __init__(self, settings: Settings) -> None:
        """Raises OperatorError where there is no index."""
        self._folder = index_folder(settings)
        self._segments: dict[str, _Segment] = {}
        self._open()

    def _open(self) -> None:
        self._mark = _mark(self._folder)
        self._index = _open(self._folder)
        if self._index is None:
            raise OperatorError("There is no search index yet; `hubctl build` makes it.")
        self._reader = self._index.reader()

    def close(self) -> None:
        self._reader.close()

    def search(self, query: list[Word], beginnings: Iterable[str] = ()) -> dict[str, float]:
        """The ids of all repos that have every word of ``query``, with their scores.

        The last word is found as the beginning of a word, too; ``beginnings`` are the stems of
        words that begin with it, but whose stems do not. Raises OperatorError, after which only
        a new Searcher can go on.
        """
        self._refresh()
        *whole, last = query
        values = {word.stem: self._values(word.stem) for word in query}
        found: dict[str, float] = {}
        for segment in self._segments.values():
            parts = [segment.scores(word.stem, values[word.stem]) for word in whole]
            ending = dict.fromkeys(segment.beginning(last.surface), PREFIX_SCORE)
            for stem in beginnings:
                ending.update(dict.fromkeys(segment.documents(stem), PREFIX_SCORE))
            ending.update(segment.scores(last.stem, values[last.stem]))
            first, *others = sorted([*parts, ending], key=len)
            for document, score in first.items():
                try:
                    for other in others:
                        score += other[document]
                except KeyError:
                    continue
                if document not in segment.deleted:
                    found[segment.ids[document]] = score
        return found

    def _refresh(self) -> None:
        """Follow the newest commit. Segments never change, so what is known of one stays true.

        While an index is made anew, the old one goes on.
        """
        mark = _mark(self._folder)
        if self._segments and mark is None:
            return
        try:
            if mark != self._mark:
                old = self._reader
                self._open()  # may fail, and a reader is to be closed once
                old.close()
            elif self._segments and self._reader.generation() == self._index.latest_generation():
                return
            # First the new one: if it cannot be opened, the old one is still there to be closed.
            old, self._reader = self._reader, self._index.reader()
            old.close()
            known, self._segments = self._segments, {}
            for leaf, _ in self._reader.leaf_readers():
                if leaf.doc_count_all():
                    name = leaf.segment().segment_id()
                    segment = known.get(name) or _Segment(leaf)
                    segment.follow(leaf)
                    self._segments[name] = segment
        except OperatorError:
            raise
        except Exception as error:
            # As in _open.
            raise OperatorError(f"The search index is damaged ({error!r}).") from error

    def _values(self, stem: str) -> "_Values":
        count = self._reader.doc_count_all()
        return _Values(math.log(1 + count / (self._reader.doc_frequency("text", stem) + 1)))


class _Values(dict[float, float]):
    """The score of each weight that a word can have, computed once."""

    def __init__(self, rarity: float) -> None:
        super().__init__()
        self._rarity = rarity

    def __missing__(self, weight: float) -> float:
        score = self._rarity * weight * (SATURATION_K1 + 1) / (weight + SATURATION_K1)
        self[weight] = score
        return score


class _Segment:
    """A part of the index. Documents are numbers; ``ids`` has their ids."""

    def __init__(self, reader: reading.SegmentReader) -> None:
        self.ids = [
            reader.stored_fields(document)["id"] for document in range(reader.doc_count_all())
        ]
        self.beginning = lru_cache(PREFIXES_REMEMBERED)(self._beginning)

    def follow(self, reader: reading.SegmentReader) -> None:
        """Read from this reader from now on. Only what is deleted can differ."""
        self._reader = reader
        self.deleted = frozenset(
            document for document in range(len(self.ids)) if reader.is_deleted(document)
        )

    def documents(self, stem: str) -> Iterator[int]:
        """The documents with a stem; deleted ones may be among them."""
        for documents, _ in self._blocks(stem):
            yield from documents

    def scores(self, stem: str, values: _Values) -> dict[int, float]:
        """The documents with a stem, with its score in each; deleted ones may be among them."""
        found: dict[int, float] = {}
        for documents, weights in self._blocks(stem):
            found.update(zip(documents, map(values.__getitem__, weights), strict=True))
        return found

    def _beginning(self, prefix: str) -> array:
        """The documents with a stem that begins so; deleted ones may be among them."""
        found: set[int] = set()
        for stem in self._reader.expand_prefix("text", prefix):
            found.update(self.documents(stem))
        return array("I", found)

    def _blocks(self, stem: str | bytes) -> Iterator[tuple[Iterable[int], Iterable[float]]]:
        """The postings of a stem, a block at a time. Uses what Whoosh keeps to itself."""
        if ("text", stem) not in self._reader:
            return
        matcher = self._reader.postings("text", stem)
        if isinstance(matcher, FilterMatcher):
            matcher = matcher.child
        if isinstance(matcher, ListMatcher):
            yield matcher.all_ids(), matcher._weights
            return
        while matcher.is_active():
            matcher.id(), matcher.weight()  # these load the block
            yield matcher._ids, matcher._weights
            matcher._next_block()


def parse_query(text: str) -> list[Word]:
    """The words to look for, at least one. Raises RequestError ``invalid_parameter``."""
    found = words.query_words(text)
    if not found:
        raise RequestError(
            "invalid_parameter", "q has no word in it; give at least one letter or digit."
        )
    return found
