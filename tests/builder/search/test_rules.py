"""The rules as clients have them, and the client's search by them, beside the server's."""

import json
import re
from functools import cache
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, structs

from builder.model.answers import CatalogueLine
from builder.model.routes import QUERY_CHARS_MAX
from builder.render.clients import search_program
from builder.search.entries import entry_of
from builder.search.plan import RepoFilter, lacking, make_plan, parse_query, query_words
from builder.search.rules import search_rules
from builder.text import words
from tests.builder.search.model import Model
from tests.support.searches import CASES, LINES
from tests.support.servers import SAMPLE

LETTERS = "aeiouybclnstz"
SUFFIXES = sorted({suffix for step in json.loads(search_rules())["STEM_STEPS"] for suffix in step})
english = st.lists(
    st.one_of(st.text(LETTERS, min_size=1, max_size=5), st.sampled_from(SUFFIXES)), max_size=4
).map(lambda parts: "".join(parts).replace("~", ""))
# Parts of texts: words, parts of words, other scripts, and separators.
texts = st.lists(
    st.one_of(
        english,
        st.sampled_from([*"'’ -_.,/", " ", "'s ", "’s ", "İ", "ß", "ς", "é", "ﬁ", "Ａ", "한글",
                         "俳句", "を", "ไทย", "हिन्दी", "x" * 70,
                         "label:production", "Ｌabel：V2.beta_1"]),
        st.text(max_size=3),
    ),
    max_size=12,
).map("".join)  # fmt: skip


@cache
def client() -> ModuleType:
    """The client's search as it is released."""
    module = ModuleType("client_search")
    exec(compile(search_program(search_rules()), "search.py", "exec"), vars(module))
    return module


Found = tuple[list[str], str, object, str, list[str]]


def modelled(lines: list[CatalogueLine], q: str, tags: set[str]) -> Found:
    """Results of the server's rules without the texts; `words` count as part of the description."""
    model = Model(
        entry_of(structs.replace(line, description=f"{line.description}\n{line.words}"), "", "")
        for line in lines
    )
    labels, text = parse_query(q)
    plan = make_plan(text, model)
    found = model.best(plan, RepoFilter(tuple(tags), None, labels), 0, len(lines))
    without = [" ".join(words) for words in lacking(plan, found, model).values()]
    match = "all" if without[:1] == [""] else "some"
    return found, match, plan.corrected, ",".join(labels), without


def found_by_client(lines: list[CatalogueLine], q: str, tags: set[str]) -> tuple:
    catalogue = client().Catalogue([msgspec.to_builtins(line) for line in lines])
    repos, meta = catalogue.search(q, tags)
    corrected = [(one["from"], one["to"]) for one in meta["corrected"] or ()]
    ids = [f"{repo['owner']}/{repo['name']}" for repo in repos]
    return ids, meta["match"], corrected, meta.get("label", "")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table_is_the_server_s(case):
    tags = {one for one in case.tags.split(",") if one}
    found, match, corrected, label, without = modelled(LINES, case.q, tags)
    assert found_by_client(LINES, case.q, tags) == (found, match, corrected, label)
    assert case.without is None or without == [*case.without]
    assert found == case.found.split() and match == case.match
    assert dict(corrected) == (case.corrected or {})


@given(english)
def test_the_stemmer_is_the_server_s(word):
    for one in words.words(word):
        assert client().stem(one.surface) == one.stem
        assert one.surface.startswith(one.stem[:-2] or one.stem[0])


@given(texts)
def test_words_are_the_server_s(text):
    assert client().words(text) == words.words(text)
    assert client().query_words(text) == query_words(text)


def test_words_of_prompts_are_the_server_s():
    for path in SAMPLE.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert client().words(text) == words.words(text)


lines = st.lists(
    st.builds(
        CatalogueLine,
        st.sampled_from(["ann", "bob-b"]), st.sampled_from(["email", "a-b", "review-1"]),
        texts, texts,
        st.lists(st.sampled_from(["x", "email"]), unique=True), st.just("1.0.0"), st.just(""),
        texts, st.just(UNSET),
        st.lists(st.sampled_from(["production", "v2.beta_1"]), unique=True),
    ),
    max_size=6, unique_by=lambda line: (line.owner, line.name),
)  # fmt: skip


@given(lines, texts, st.sets(st.sampled_from(["x", "email"])))
def test_any_catalogue_is_searched_as_the_server_would(lines, q, tags):
    parts = " ".join(line.title[2:9] for line in lines)
    for query in (q[:QUERY_CHARS_MAX], parts[:QUERY_CHARS_MAX], f"{parts} {q}"[:QUERY_CHARS_MAX]):
        if query_words(query):
            assert found_by_client(lines, query, tags) == modelled(lines, query, tags)[:-1]


@pytest.mark.parametrize("q", ["photosyn", "photosynt"])
def test_the_beginning_of_a_long_word_counts_as_little_in_a_title(q):
    about = [("ann", "a", "Other", "Of photosynthesis."), ("bob", "b", "Photosynthesis", "")]
    lines = [CatalogueLine(*one, [], "1.0.0", "", "") for one in about]
    assert found_by_client(lines, q, set()) == modelled(lines, q, set())[:-1]


def test_it_is_text_for_scripts_in_any_encoding():
    assert search_rules().isascii()
    assert not re.search('"""|</|\nEOF', search_rules())
