"""The rules of relevance, on small catalogues of entries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.answers import CatalogueLine
from builder.model.routes import QUERY_CHARS_MAX
from builder.search.entries import ADDED_VALUES, LONG_TEXT_CHARS, TEXT_VALUE, entry_of
from builder.search.plan import (
    CORRECTED_MAX,
    FREQUENT_TARGETS_MAX,
    TARGETS_MAX,
    WHOLE_SCORE,
    QueryPlan,
    RepoFilter,
    make_plan,
    parse_query,
    query_words,
)
from tests.builder.search.model import Model


def model_of(*texts: str, **titles: str) -> Model:
    """Repos r0, r1, … with a text each, and others with a title each."""
    lines = [(f"r{number}", "A prompt", text) for number, text in enumerate(texts)]
    lines += [(name, title, "") for name, title in titles.items()]
    return Model(
        entry_of(CatalogueLine("ann", name, title, "", [], "1.0.0", "", ""), text, "")
        for name, title, text in lines
    )


def found(model: Model, q: str) -> list[str]:
    plan = make_plan(q, model)
    return [one.removeprefix("ann/") for one in model.best(plan, RepoFilter(), 0, 100)]


def weights(plan: QueryPlan) -> dict[str, int]:
    return {target.stems[0]: target.weight for target in plan.targets}


def test_words_with_half_of_the_weight_are_enough():
    model = model_of("tide wind sail", "tide wind", "tide rope", "rope", *["far away"] * 60)
    assert found(model, "tide sail rope wind") == ["r0", "r1", "r2"]
    # One rare word outweighs a word that most have.
    assert found(model, "far sail") == ["r0"]
    assert "r60" in found(model, "sail far far") or found(model, "far sail") == ["r0"]


def test_stop_words_count_where_there_is_nothing_else():
    model = model_of("write to me", "write a tide", "the tide")
    assert found(model, "write me the tide please") == ["r1", "r2"]
    assert found(model, "write to me") == ["r0"]
    assert found(model, "the") == ["r2"]


def test_frequent_words_rank_but_do_not_find():
    model = model_of("tide", "improve tide", "improve", "improve the prompt")
    assert weights(make_plan("improve tide", model)) == {"tide": 1, "improv": 0}
    assert found(model, "improve tide") == ["r1", "r0"]
    assert set(found(model, "improve")) == {"r1", "r2", "r3"}


def test_the_best_place_counts_and_long_texts_have_no_advantage():
    model = model_of(
        "tide", "tide" + " far" * LONG_TEXT_CHARS, b0="Tide", b1="Tide over four more words here"
    )
    assert found(model, "tide") == ["b0", "b1", "r0", "r1"]
    assert max(ADDED_VALUES.values()) > TEXT_VALUE


def test_a_whole_title_or_name_comes_first():
    model = model_of(a="Code review of code, a code review", b="Code review", code="Reviews")
    assert found(model, "code review")[0] == "b"
    assert found(model, "ann/code")[0] == "code"
    plan = make_plan("code review", model)
    assert model.scores(plan, RepoFilter())["ann/b"] > WHOLE_SCORE


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reviwer", "reviewer"), ("reveiwer", "reviewer"), ("reviewer", None),
        ("eviewer", "reviewer"), ("erviewer", "reviewer"), ("interveiwr", "interviewer"),
        ("interviwr", "interviewer"), ("tied", "tide"), ("tidde", "tide"), ("tyde", "tide"),
        ("tde", None), ("tydde", None), ("zzzz", None), ("x2y4", None), ("脚体", None),
    ],
)  # fmt: skip
def test_a_word_that_nothing_has_is_corrected(typed, meant):
    model = model_of("reviewer", "interviewer interviewed", "tide", "tight", "脚本")
    plan = make_plan(typed, model)
    assert plan.corrected == ([(typed, meant)] if meant else [])
    if meant:
        assert found(model, typed) == found(model, meant)
        assert not plan.unknown


def test_the_nearest_word_is_the_one_that_most_have():
    model = model_of("tide tide tide", "tile", "tile")
    assert make_plan("tixe", model).corrected == [("tixe", "tile")]
    # The nearer one, although fewer have it.
    assert make_plan("tiide", model).corrected == [("tiide", "tide")]


def test_the_beginning_of_a_word_and_synonyms_are_not_corrected():
    model = model_of("interviewer", "estate")
    assert make_plan("intervi", model).corrected == []
    assert make_plan("realtor", model).corrected == []
    assert found(model, "realtor") == ["r1"]


def test_the_work_of_a_query_is_bounded():
    known = [f"w{number}" for number in range(30)]
    model = model_of(" ".join(known), "improve better answers long ideas")
    plan = make_plan(" ".join([*known[:20], "improve better answer long idea"])[:100], model)
    assert len(plan.targets) <= TARGETS_MAX + FREQUENT_TARGETS_MAX
    unknown = make_plan("tibe wimd rqpe sxil tiyde windd", model_of("tide wind rope sail"))
    assert len(unknown.corrected) == CORRECTED_MAX


_odd = st.sampled_from(["a", "the", "議", "議事", "é", "'", "*", "\0", "\u0301", "x" * 70, " "])


@given(st.one_of(st.text(max_size=QUERY_CHARS_MAX), st.lists(_odd).map(" ".join)))
def test_any_text_has_a_plan(q):
    model = model_of("the story of a 議事録 é x y z", q)
    assert parse_query(q) == ((), q if query_words(q) else "")
    # A text finds itself, where it is not longer than what is searched, and one without words all.
    assert found(model, q)
