"""The places where a repo has the words of a query, for people who choose among results.

It looks for the same words as the engine: stems, synonyms, corrected words, and the beginning of
the last one. The work for a text grows with its length, up to TEXT_BYTES_MAX, and it takes apart at
most PIECES_MAX pieces of PIECE_CHARS.
"""

import re
from typing import NamedTuple

from builder.model.answers import CatalogueLine, RepoSummary
from builder.model.kinds import PROMPT
from builder.model.routes import BY_NAME
from builder.model.search_records import SearchMatch
from builder.search.language import STOP_STEMS
from builder.search.plan import QueryPlan, Target
from builder.text.messages import without_markers
from builder.text.words import Word, distinct_words, folded, placed_words

# Matches beyond these limits are not shown: bytes of a text, pieces that are taken apart, words.
TEXT_BYTES_MAX = 32 * 1024
PIECES_MAX = 20
WORDS_MAX = 24
# Longer lines, such as those of JSON, are cut into pieces.
PIECE_CHARS = 400
LINE_CHARS_MAX = 160
BEFORE_CHARS = 32

_pieces = re.compile(rf"[^\n]{{1,{PIECE_CHARS}}}(?!\w)|[^\n]{{1,{PIECE_CHARS}}}").finditer
# Marks of Markdown, of which only a link's text stays: at the beginning of a line, around words.
MARKS = (
    r"^\s*(?:(?:[#>*+-]+|\d+\.)\s+)*|`+|\*\*+|\[([^\][]*)\]\([^()\s]*\)"
    r"|(?<![^\s(\"'])[*_]+(?=[^\s*_])|(?<=[^\s*_])[*_]+(?![^\s.,:;!?)\"'])"
)
_marks = re.compile(MARKS)


class _Piece(NamedTuple):
    """A part of a line; ``spans``: its matches. ``weight``: of the targets that it has. ``stems``:
    of all its words.
    """

    text: str
    spans: list[tuple[int, int]]
    weight: int
    stems: set[str]

    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]


class Matcher:
    """Finds the words of a plan in repos. ``lines``: those of the catalogue, by id, without repos
    that have just been withdrawn; ``without``: the words that each lacks; ``out``: the site's
    folder, which has the texts.
    """

    def __init__(
        self,
        plan: QueryPlan,
        lines: dict[str, CatalogueLine],
        without: dict[str, list[str]],
        out: str,
    ) -> None:
        self._lines, self._without, self._out = lines, without, out
        # Words without weight do not decide what is found.
        self._targets = [target for target in plan.targets if target.weight]
        self._weight = sum(target.weight for target in self._targets)
        self._heads = {head for target in self._targets for head in _heads(target)}
        self._stems = {stem for target in self._targets for stem in target.stems}
        self._prefixes = tuple(target.prefix for target in self._targets if target.prefix)

    def match(self, repo: RepoSummary) -> SearchMatch:
        """The fields of a repo with words of the query, these words, and the best line of its
        text.
        """
        repo_id = f"{repo.owner}/{repo.name}"
        line = self._lines.get(repo_id)
        labels = [one for one in (line and line.labels) or () if self._look(one).spans]
        fields = {
            "title": repo.title,
            "name": repo.name,
            "owner": repo.owner,
            "tags": " ".join(repo.tags),
            "labels": " ".join(labels),
            "description": repo.description,
        }
        places: list[str] = []
        words: dict[str, None] = {}
        for field, text in fields.items():
            piece = self._look(text) if self._may_match(text) else None
            if piece and piece.spans:
                places.append(field)
                words.update(dict.fromkeys(piece.words()))
        body = _read_body(repo, self._out) if self._targets else ""
        best = self._best_piece(body, repo.title)
        if best:
            words.update(dict.fromkeys(best.words()))
        if best or (self._targets and not places):
            places.append("text")
        return SearchMatch(
            places,
            [*words][:WORDS_MAX],
            _shortened(best) if best else None,
            (line and line.kind) or PROMPT.key[1:],
            labels,
            self._without.get(repo_id, []),
        )

    def _may_match(self, text: str) -> bool:
        """True if a text has the beginning of a searched word; quick."""
        plain = folded(text).replace("'", "").replace("’", "")
        return any(head in plain for head in self._heads)

    def _look(self, text: str) -> _Piece:
        words: set[Word] = set()
        stems: set[str] = set()
        spans: list[tuple[int, int]] = []
        for start, end, word in placed_words(text):
            stems.add(word.stem)
            if word.stem in self._stems or word.surface.startswith(self._prefixes):
                words.add(word)
                # Pairs of a script without spaces overlap.
                if spans and start < spans[-1][1]:
                    start = spans.pop()[0]
                spans.append((start, end))
        weights = [
            one.weight for one in self._targets if any(_is_meant(word, one) for word in words)
        ]
        return _Piece(text, spans, sum(weights), stems)

    def _best_piece(self, text: str, title: str) -> _Piece | None:
        """The first piece with the most weight; a heading only if no other piece has as much. It
        has words that the title, which is beside it, has not.
        """
        best: _Piece | None = None
        most = 0
        left = PIECES_MAX
        text = without_markers(text)
        known = distinct_words(title)[0] | STOP_STEMS
        for found in _pieces(text):
            if not self._may_match(found[0]):
                continue
            piece = self._look(_whole_or_cut(text, *found.span()))
            left -= 1
            # Headings mostly repeat the title in other words.
            value = 2 * piece.weight - found[0].startswith("#") if piece.weight else 0
            if value > most and not piece.stems <= known:
                best, most = piece, value
            if not left or most == 2 * self._weight:
                break
        return best


def _read_body(repo: RepoSummary, out: str) -> str:
    """The beginning of a repo's text; empty if it has just been withdrawn."""
    file = BY_NAME["version_body"].file_for(
        owner=repo.owner, name=repo.name, version=repo.latest_version
    )
    try:
        with open(f"{out}/{file}", "rb", buffering=0) as opened:
            return opened.read(TEXT_BYTES_MAX).decode(errors="ignore")
    except FileNotFoundError:
        return ""


def _heads(target: Target) -> list[str]:
    """The beginnings of all words that match. Only English words are stemmed; they differ from
    their stem at most in its last two letters, and not in its first two.
    """
    heads = [
        stem[: max(2, len(stem) - 2)] if stem.isascii() and stem.isalpha() else stem
        for stem in target.stems
    ]
    return [*heads, target.prefix] if target.prefix else heads


def _is_meant(word: Word, target: Target) -> bool:
    is_longer = target.prefix and word.surface.startswith(target.prefix)
    return word.stem in target.stems or bool(is_longer)


def _whole_or_cut(text: str, start: int, end: int) -> str:
    """A line, or a part of one with ellipses, without Markdown's marks."""
    before, after = text[start - 1 : start].strip("\n"), text[end : end + 1].strip("\n")
    return _marks.sub(r"\1", f"{'…' if before else ''}{text[start:end]}{'…' if after else ''}")


def _shortened(piece: _Piece) -> str:
    """About LINE_CHARS_MAX characters around the first match, on one line."""
    text, first = piece.text, piece.spans[0][0]
    start, end = max(0, first - BEFORE_CHARS), len(text)
    start = start if end > LINE_CHARS_MAX else 0
    if start:
        # From a whole word on, if one begins there.
        space = text.find(" ", start, first)
        start = space + 1 if space >= 0 else start
    if end - start > LINE_CHARS_MAX:
        end = start + LINE_CHARS_MAX
        space = text.rfind(" ", piece.spans[0][1], end)
        end = space if space >= 0 else end
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"
