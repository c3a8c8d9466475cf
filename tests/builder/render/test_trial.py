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


GOOD = "Write to {{who}} about {{what}}. " + "Be brief, and say what to do next. " * 5


@pytest.mark.parametrize(
    ("worse", "record"),
    [
        (GOOD.replace("{{what}}", "x"), {}),
        (GOOD.replace("{{what}}", "x") + "More of it.\n" * 30 + "About {{what}}.", {}),
        ("Be brief. " * 25 + GOOD, {}),
        (GOOD + "And so on. " * 100, {}),
        ("To {{who}}: {{what}}.", {}),
        (f'{{"task": "{GOOD}"}}', {}),
        (f"{GOOD}\n```\nls\n```\n", {}),
        (f"{GOOD} [INSERT DETAILS]", {}),
        (GOOD, {"variables": [{"name": one, "default": "x"} for one in ("who", "what")]}),
        (GOOD, {"title": "worse"}),
    ],
    ids=["one", "deep", "late", "long", "tiny", "json", "code", "brackets", "filled", "untitled"],
)
def test_a_text_of_better_shape_is_chosen(empty, worse, record):
    # Among equals, ann comes first.
    write_version(empty.content, "ann", "worse", "1.0.0", worse, **{"title": "Worse"} | record)
    write_version(empty.content, "bob", "good", "1.0.0", GOOD, title="Good")
    assert 'data-raw="/api/v1/repos/bob/' in build_files(empty)["index.html"].decode()


def test_among_equals_the_top_prompt_is_chosen(empty):
    write_version(empty.content, "ann", "old", "1.0.0", GOOD, published_at="2025-01-01T00:00:00Z")
    write_version(empty.content, "bob", "new", "1.0.0", GOOD, published_at="2026-01-01T00:00:00Z")
    assert 'data-raw="/api/v1/repos/bob/' in build_files(empty)["index.html"].decode()


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("No variable.", {}), ("{{a}} {{b}} {{c}} {{d}} {{e}}", {}),
        ("Say {{a}}. " + "x" * 3_000, {}), ("Hidden \u200b {{a}}", {}),
        ('{{role "user"}}\nSay {{a}}.', {}),
        ("Say {{a}}.", {"variables": [{"name": "a", "enum": ["b", "c"]}]}),
    ],
)  # fmt: skip
def test_a_text_that_does_not_suit_is_not_shown(empty, text, record):
    page = home(empty, text, **record)
    assert "data-variable" not in page and 'id="q"' in page
