"""The words of a prompt's text in its line of the catalogue."""

from hypothesis import given
from hypothesis import strategies as st

from builder.model.answers import Repo
from builder.model.links import Links
from builder.model.names import Version
from builder.model.records import CONTENT_BYTES_MAX, VersionFile
from builder.render import derive
from builder.search.language import FREQUENT_STEMS, STOP_STEMS
from builder.search.telling_words import BYTES_MAX, WORDS_MAX, rarities, telling_words
from builder.text.words import part_words
from tests.support.catalogues import moment


def repo_of(text: str, **fields: object) -> Repo:
    given = {"publisher": "ann", "published_at": moment(0), "sha256": "0" * 64, "title": "Title"}
    record = VersionFile(**given | fields)
    latest = derive.Stored("ann", "n", Version(1, 0, 0), record, text, text)
    return derive.repo_record(latest, 1, record.published_at, None, Links("https://hub.example"))


def words_of(text: str, **fields: object) -> list[str]:
    return telling_words(repo_of(text, **fields)).split()


def test_words_that_stand_elsewhere_or_say_nothing_are_left_out():
    text = (
        "You write me the better commit messages for Kubernetes operators in C++ and .NET.\n"
        "{{operator_name}} https://example.org/zebra a 12 2024 123456 a1b2c3d4 reviewing"
    )
    assert words_of(text, title="Messages", tags=["review"]) == sorted(
        [".net", "2024", "c++", "commit", "kubernetes", "operators"]
    )


def test_a_word_is_written_as_the_text_mostly_does():
    assert words_of("Tokenizers tokenizer TOKENIZERS") == ["tokenizers"]
    assert words_of("tokenizers tokenizer") == ["tokenizer"]  # of two, the shorter one


def test_rare_words_and_repeated_ones_come_first():
    common = sorted(rarities(), key=lambda stem: (rarities()[stem], stem))[:WORDS_MAX]
    rare = [f"xq{letter}zz" for letter in "abcdefghij"]
    found = words_of(" ".join([*common, *rare]))
    assert set(rare) <= set(found) and len(found) == WORDS_MAX
    repeated = words_of(" ".join([*common, *rare, *[common[0]] * 7]))
    assert set(repeated) >= {*rare}


def test_a_placeholder_begins_at_its_last_braces():
    assert words_of("{{quokka {{ wombat {{ name }} wallaby {{ x") == ["quokka", "wallaby", "wombat"]
    assert words_of("{{" * (CONTENT_BYTES_MAX // 2)) == []  # as soon as any other text


def test_markers_of_messages_are_no_words():
    assert words_of('{{role "system"}}\nquokka\n{{role "user"}}\nwombat') == ["quokka", "wombat"]


@given(st.text(max_size=2_000) | st.lists(st.text(min_size=1, max_size=40)).map(" ".join))
def test_any_text_has_few_words(text):
    joined = telling_words(repo_of(text))
    found = joined.split()
    assert found == sorted(set(found)) and len(found) <= WORDS_MAX
    assert len(joined.encode()) <= BYTES_MAX
    for word in found:
        assert not {one.stem for one in part_words(word)} & (STOP_STEMS | FREQUENT_STEMS)


def test_the_table_is_small_and_has_rarities():
    assert len(rarities()) == 3_000
    assert {type(one) for one in rarities().values()} == {float}
    assert min(rarities().values()) > 0 and max(rarities().values()) <= 8
    assert not rarities().keys() & (STOP_STEMS | FREQUENT_STEMS)
