"""The prompt of the home page to fill in: which one suits, and where its fields are."""

import pytest

from tests.support.catalogues import build_files, write_version


def home(empty, *texts: str, **record: object) -> str:
    for number, text in enumerate(texts):
        write_version(empty.content, "ann", f"p-{number}", "1.0.0", text, **record)
    return build_files(empty)["index.html"].decode()


def test_the_first_place_of_a_variable_is_a_field_and_others_follow_it(empty):
    page = home(empty, "---\ntitle: T\n---\nTell {{who}} <b>of</b> {{what}}, {{ who }}.\n")
    assert page.count('data-variable="who"') == page.count('data-variable="what"') == 1
    assert '<mark class="variable" data-name="who">{{ who }}</mark>' in page
    assert "&lt;b&gt;of&lt;/b&gt;" in page
    assert 'data-raw="/api/v1/repos/ann/p-0/versions/1.0.0.txt" data-skip="17"' in page


def test_one_that_asks_early_and_is_short_is_chosen(empty):
    page = home(empty, "Long. " * 100 + "{{a}}", "Say {{b}}, " + "please. " * 20, "Say {{c}}.")
    assert 'data-variable="c"' in page and 'data-variable="a"' not in page


@pytest.mark.parametrize(
    "text",
    [
        "No variable.", "{{a}} {{b}} {{c}} {{d}} {{e}}", "Say {{a}}. " + "x" * 3_000,
        "Hidden \u200b {{a}}", '{{role "user"}}\nSay {{a}}.',
    ],
)  # fmt: skip
def test_a_text_that_does_not_suit_is_not_shown(empty, text):
    page = home(empty, text)
    assert "data-variable" not in page and 'id="q"' in page


def test_a_variable_that_is_no_word_does_not_suit(empty):
    assert "data-variable" not in home(
        empty, "Say {{a}}.", variables=[{"name": "a", "enum": ["b", "c"]}]
    )


def test_a_hub_of_one_prompt_lists_it_once(empty):
    page = home(empty, "Say {{a}}.")
    assert page.count('<ol class="rows">') == 1
