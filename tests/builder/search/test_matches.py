"""The places where a result has the words of a query: fields, words, a line of the text."""

import json
import sys
from pathlib import Path

import pytest

from builder.model.answers import RepoSummary
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search import matches
from builder.search.plan import QueryPlan, Target
from builder.search.queries import ListQuery, Queries
from builder.text.words import words
from tests.support.catalogues import write_version

LONG = "word " * 200
NOTHING = {"words": [], "line": None, "kind": "prompt", "labels": [], "without": []}
MOMENT = "2026-01-01T00:00:00Z"


def match_of(
    settings: Settings, q: str, text: str, title: str = "Note", description: str = "", tags=()
) -> dict:
    """The match of the only prompt in a hub."""
    write_version(
        settings.content, "ann", "note", "1.0.0", text,
        title=title, description=description, tags=[*tags],
    )  # fmt: skip
    build(settings)
    queries = Queries(settings)
    answer = json.loads(queries.answer(ListQuery(q=q, explain=True)))
    queries.close()
    (found,) = answer["meta"]["matches"]
    assert len(answer["data"]) == 1
    return found


@pytest.mark.parametrize(
    ("q", "text", "words", "line"),
    [
        # Stems, and the beginning of the last word.
        ("reviews", "Now Reviewing it.", ["Reviewing"], "Now Reviewing it."),
        ("refun", "Name the refund.\nRefunds take a week.", ["refund"], "Name the refund."),
        # A corrected word, a synonym, accents, capitals and wide letters.
        ("reviwer", "The reviewer asks.", ["reviewer"], "The reviewer asks."),
        ("resume", "Read the CV twice.", ["CV"], "Read the CV twice."),
        ("cafe", "Un CAFÉ noir", ["CAFÉ"], "Un CAFÉ noir"),
        ("naïve", "A nai\u0308ve plan…", ["nai\u0308ve"], "A nai\u0308ve plan…"),
        ("wide", "Ｗｉｄｅ letters", ["Ｗｉｄｅ"], "Ｗｉｄｅ letters"),
        ("o'brien", "Ask O’Brien’s team", ["O’Brien’s"], "Ask O’Brien’s team"),
        # Signs, and scripts without spaces.
        ("c++", "In C or C++17", ["C++"], "In C or C++17"),
        ("c#", "In C\nIn C#", ["C#"], "In C#"),
        ("node.js", "Runs on Node.js", ["Node", "js"], "Runs on Node.js"),
        ("短视频", "资深卖货短视频脚本", ["短视频"], "资深卖货短视频脚本"),
        ("議事録", "今日の議事録を作る", ["議事録"], "今日の議事録を作る"),
        ("مراجعة", "هذه مراجعة النص", ["مراجعة"], "هذه مراجعة النص"),
        ("лист", "Напиши лист другу", ["лист"], "Напиши лист другу"),
        # The line with most of the words, without marks of Markdown.
        ("sql table", "A table.\n- An SQL table.", ["SQL", "table"], "An SQL table."),
        ("refund", "# Note\n\n## 1. A refund", ["refund"], "A refund"),
        ("crlf", "One\r\nTwo crlf\r\nThree", ["crlf"], "Two crlf"),
        ("refund", "> **Refund:** `now`, _not_ *ever*.", ["Refund"], "Refund: now, not ever."),
        ("refund", "A [refund](https://a.example) (**[b][1]**)", ["refund"], "A refund ([b][1])"),
        # Words that do not decide are not marked.
        ("write about the refund", "Write it.\nThe refund.", ["refund"], "The refund."),
        ("refund", "5 * 3 a_b {{c_d}} refund __ *", ["refund"], "5 * 3 a_b {{c_d}} refund __ *"),
    ],
)
def test_a_word_of_the_text(small_hub, q, text, words, line):
    found = match_of(small_hub, q, text)
    # What was found by a synonym lacks the word itself.
    without = ["resume"] if q == "resume" else []
    assert found == NOTHING | {"in": ["text"], "words": words, "line": line, "without": without}


@pytest.fixture
def small_hub(tmp_path: Path) -> Settings:
    settings = Settings(f"{tmp_path}/content", f"{tmp_path}/site", f"{tmp_path}/state")
    Path(settings.content).mkdir()
    return settings


def test_fields_front_matter_and_kind(small_hub):
    found = match_of(
        small_hub, "story", "Nothing here.", title="Stories", description="Tells a story.",
        tags=["story-club", "other"],
    )  # fmt: skip
    places = ["title", "tags", "description"]
    assert found == NOTHING | {"in": places, "words": ["Stories", "story"]}
    assert match_of(small_hub, "ann/note", "x", title="Other")["in"] == ["name", "owner"]
    found = match_of(small_hub, "mit", "---\nlicense: MIT\n---\nBody.")
    assert found == NOTHING | {"in": ["text"]}
    assert match_of(small_hub, "review", '{{role "user"}}\nReview it.')["kind"] == "chat"


@pytest.mark.parametrize("heading", ["# Refund", "Refunds of a customer", "> the customer: REFUND"])
def test_a_line_that_only_repeats_the_title_is_not_shown(small_hub, heading):
    title = "Refund of the customer's money"
    found = match_of(small_hub, "refund", f"{heading}\n\nNothing else.", title=title)
    assert (found["in"], found["line"]) == (["title"], None)


@pytest.mark.parametrize(
    ("q", "line"),
    [
        ("review", "Read, then review each endpoint."),
        ("design", "A plan of the design"),  # a heading, which is better than no line
        ("design review", "Plan the design, then review it."),
    ],
)
def test_a_line_says_more_than_the_title(small_hub, q, line):
    text = """# API design review

    ## A review in other words
    Read, then review each endpoint.
    ## A plan of the design
    """.replace("    ", "")
    text += "Plan the design, then review it.\n" if q == "design review" else ""
    assert match_of(small_hub, q, text, title="HTTP API design review")["line"] == line


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (f"{LONG}\n{LONG}refund {LONG}", "…", "…"),
        (f"refund {LONG}", "refund word", "…"),
        (f"{LONG}refund", "…word", " refund"),
        ("x" * 500 + " refund " + "y" * 500, "…", "…"),
    ],
)
def test_a_long_line_is_cut_around_the_match(small_hub, text, start, end):
    line = match_of(small_hub, "refund", text)["line"]
    assert line.startswith(start)
    assert line.endswith(end)
    assert "refund" in line
    assert len(line) <= matches.LINE_CHARS_MAX + 2


def test_only_the_beginning_of_a_text_is_read(small_hub):
    text = "far\n" * (matches.TEXT_BYTES_MAX // 4)
    assert match_of(small_hub, "refund", text + "refund")["line"] is None
    text = "é" * (matches.TEXT_BYTES_MAX // 2) + " é"  # cut inside a character
    assert match_of(small_hub, "note", text, title="Note")["line"] is None


def test_no_words_of_a_large_result_beyond_the_limit(small_hub):
    title = " ".join(f"st{number}" for number in range(30))
    assert len(match_of(small_hub, "st", "x", title=title)["words"]) == matches.WORDS_MAX


def test_every_form_of_a_word_begins_with_its_head():
    forms = "dying ties eyes tried relational operators hopping agreed happily skis".split()
    for form in forms:
        (word,) = words(form)
        assert any(form.startswith(head) for head in matches._heads(Target((word.stem,))))


# Each makes the search look closely at many pieces, or at long ones.
HOSTILE = [
    "revi ", "revi\n", "review", "r", "'", "revie\u0301 ", "\n", "> ", "- ", "ﷺ", "短", " ", "1. ",
    "*", "_", "[", "revi [*", "revi *_",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_the_work_grows_with_the_length(text):
    """Counts the lines of Python that run for a text, and for one of twice its length."""
    plan = QueryPlan((Target(("review", "短视"), "revie"),), 1, "", [], [])
    text = (text * matches.TEXT_BYTES_MAX)[: matches.TEXT_BYTES_MAX]

    def steps(part: str) -> int:
        count = 0

        def trace(*_: object) -> object:
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)
        try:
            matches.Matcher(plan, {}, {}, "")._best_piece(part, "Title")
        finally:
            sys.settrace(None)
        return count

    half, whole = steps(text[: len(text) // 2]), steps(text)
    assert whole <= 2.2 * half + 1_000
    pieces = text.count("\n") + len(text) // matches.PIECE_CHARS + 1
    assert whole <= 12 * pieces + 8 * matches.PIECES_MAX * matches.PIECE_CHARS


def test_a_prompt_that_has_just_been_withdrawn_is_still_an_answer(empty: Settings):
    """A build may end between two reads of the state."""
    plan = QueryPlan((Target(("note",)),), 1, "", [], [])
    note = ["ann", "note", "Note", "", [], "1.0.0", 1, None, MOMENT, MOMENT, ""]
    found = matches.Matcher(plan, {}, {}, empty.out).match(RepoSummary(*note))
    assert (found.places, found.kind) == (["title", "name"], "prompt")
