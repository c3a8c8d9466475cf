"""The words that search knows."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.search.plan import query_words
from builder.text.words import QUERY_WORDS_MAX, WORD_CHARS_MAX, part_words, words


def stems(text: str) -> list[str]:
    return [word.stem for word in words(text)]


def surfaces(text: str) -> list[str]:
    return [word.surface for word in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Act as an interviewer!", ["act", "as", "an", "interviewer"]),
        ("code-review 2 v1.0", ["code", "review", "2", "v1", "0"]),
        ("{{name}} <b>x</b> a/b", ["name", "b", "x", "b", "a", "b"]),
        ("Ｆｕｌｌ　ｗｉｄｔｈ ﬁne", ["full", "width", "fine"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("naïve CAFÉ Ελλάς", ["naive", "cafe", "ελλασ"]), ("Привет мир", ["привет", "мир"]),
        ("", []), (" _-'’ 🎉 …", []),
    ],
)  # fmt: skip
def test_text_is_split_and_folded(text, expected):
    assert surfaces(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++17, C# or F# in C", ["c++", "17", "c#", "or", "f#", "in", "c"]),
        ("B#minor a#b issue#3 i++ notepad++",
         ["b", "minor", "a", "b", "issue", "3", "i++", "notepad"]),
        (".NET ASP.NET .network", ["asp.net", ".net", "asp", ".net", "network"]),
        ("Node.js in x.y, v1.0. End.", ["node.js", "node", "js", "in", "x", "y", "v1", "0", "end"]),
        ("@types/node a@b.org", ["@types", "types", "node", "a", "b", "org"]),
        ("{{user_name}} __init__ _x_", ["user_name", "user", "name", "init", "x"]),
        ("camelCase getURL", ["camelcase", "geturl"]),
        ("snake_case、Ｃ＋＋、語", ["snake_case", "snake", "case", "c++", "語"]),
    ],
)  # fmt: skip
def test_signs_that_carry_meaning_stay(text, expected):
    assert surfaces(text) == expected


def test_composed_and_decomposed_text_are_the_same():
    text = "naïve café été Ångström 한국어 が"
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("reviews", "reviewing"), ("interviewer", "interviewers"), ("writes", "writing"),
        ("author", "author's"), ("author’s", "author's"), ("james", "james’s"), ("don't", "don’t"),
    ],
)  # fmt: skip
def test_forms_of_an_english_word_share_a_stem(one, other):
    assert stems(one) == stems(other)


def test_only_plain_english_is_stemmed():
    assert stems("листы gpt4s") == ["листы", "gpt4s"]


def test_apostrophes_join_and_quotes_do_not():
    assert surfaces("don't 'quoted' l’été rock 'n' roll it's'") == [
        "dont", "quoted", "lete", "rock", "n", "roll", "its",
    ]  # fmt: skip


def test_cjk_text_is_cut_into_pairs_and_the_last_character():
    assert surfaces("你是律师") == ["你是", "是律", "律师", "师"]
    assert surfaces("字") == ["字"]
    assert surfaces("SQL查询writer") == ["sql", "查询", "询", "writer"]
    assert surfaces("ひらがなカタカナ")[:2] == ["ひら", "らが"]
    assert surfaces("한국어") == ["한국", "국어", "어"]


def test_a_query_leaves_out_the_last_character_of_a_run():
    assert [word.surface for word in query_words("你是律师")] == ["你是", "是律", "律师"]
    assert [word.surface for word in query_words("字")] == ["字"]
    assert [word.surface for word in query_words("律师 写作")] == ["律师", "写作"]
    assert [word.surface for word in query_words("ab b")] == ["ab", "b"]
    # A stem counts once, at its last place, where it may be a beginning.
    assert [word.surface for word in query_words("reviews sql review")] == ["sql", "review"]


@pytest.mark.parametrize("text", ["हिन्दी में लिखें", "العَرَبِيَّة", "தமிழ் மொழி", "עִבְרִית", "বাংলা"])
def test_marks_end_no_word(text):
    normal = unicodedata.normalize("NFKC", text)
    assert surfaces(text) == normal.split()


def test_thai_is_cut_like_cjk():
    assert len(words("ภาษาไทย")) > 1


MIXED = st.text("ab9'’+#._@é漢🙂\u0300")


@given(MIXED | st.text(), MIXED | st.text())
def test_a_word_ends_at_a_blank_whatever_stands_beside_it(one, other):
    assert part_words(f"{one} {other}") == part_words(one) + part_words(other)
    # Joined words come before all others.
    assert Counter(words(f"{one} {other}")) == Counter(words(one) + words(other))


@given(st.text())
def test_any_text_has_words_without_blanks_of_bounded_length(text):
    for word in words(text):
        assert word.surface and word.stem
        assert not any(char.isspace() for char in word.surface + word.stem)
        assert max(len(word.surface), len(word.stem)) <= WORD_CHARS_MAX


@given(st.text())
def test_a_query_finds_the_text_that_it_was_taken_from(text):
    assert set(query_words(text)) <= set(words(text))
    assert len(query_words(text)) <= QUERY_WORDS_MAX
    assert bool(query_words(text)) is bool(words(text))


@given(st.text(alphabet=st.characters(max_codepoint=0x24F)))
def test_case_does_not_matter(text):
    assert words(text.casefold()) == words(text)
    plain = "".join(char for char in text if char.isascii())
    assert words(plain.upper()) == words(plain.lower())


def test_a_long_word_is_cut_the_same_in_text_and_query():
    assert surfaces("x" * 100_000) == ["x" * WORD_CHARS_MAX]
    assert words("y" * 300) == query_words("y" * 300)


def test_large_texts_finish():
    for text in ("字" * 80_000, "a'" * 100_000, "a\u0301" * 80_000, "a b " * 60_000, "ﷺ" * 20_000):
        assert words(text)
