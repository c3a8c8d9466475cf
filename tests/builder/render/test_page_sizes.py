"""No text makes a file of the site much larger than the text is."""

import re

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from tests.support.catalogues import build_files, write_version

# A page without a text; and what rows of changes and marks take at most.
PAGE_BYTES = 300_000
# A quotation mark has five bytes in HTML, a control character six in JSON. A record has the text
# twice. The page of a version has it as the prompt and in its changes. There each variable is
# marked, which takes ten times the bytes of the shortest one.
GROWTH_MAX = 13

UNITS = {
    "a run of controls": "\x01",
    "controls in turns": "\x01\x02",
    "controls between letters": "a\x01",
    "zero-width spaces": "\u200b",
    "zero-width spaces between letters": "a\u200b",
    "overrides in turns": "\u202e\u2066",
    "joiners": "a\u200d",
    "selectors": "\ufe0f\ufe01",
    "carriage returns": "\r",
    "lines of controls": "\x01\n",
    "long lines of controls": "\x01\x02" * 200 + "\n",
    "markup": '<"&',
    "variables": "{{a}}",
    "hidden variables": "\x01{{a}}",
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_hostile_text(empty, unit):
    text = unit * (CONTENT_BYTES_MAX // len(unit.encode()))
    front = f"---\na: '{(unit * 5_000).replace('---', '')}'\n---\n".encode()[: 16 * 1024]
    write_version(empty.content, "ann", "x", "1.0.0", "Say it.\n" * 400)
    write_version(empty.content, "ann", "x", "1.1.0", text, changelog=(unit * 8_000)[:8_000])
    other = text[: len(text) // 2] + "b" + text[len(text) // 2 + 2 :]
    write_version(empty.content, "ann", "x", "1.2.0", other, changelog=(unit * 8_000)[:8_000])
    write_version(
        empty.content, "ann", "y", "1.0.0", front.decode(errors="ignore"),
        front_matter_bytes=len(front.decode(errors="ignore").encode()),
        description=(unit * 2_000)[:2_000],
    )  # fmt: skip
    for file, data in build_files(empty).items():
        texts = 2 if file == "ann/x/1.2.0.html" else 1
        assert len(data) <= GROWTH_MAX * texts * CONTENT_BYTES_MAX + PAGE_BYTES, file
        if file.endswith(".html"):
            assert data.count(b'class="invisible"') <= 1_000


def test_a_page_that_shows_a_part_leads_to_all_of_it(empty):
    write_version(empty.content, "ann", "x", "1.0.0", "Say it.\n")
    write_version(empty.content, "ann", "x", "1.1.0", "a\x01" * 2_000)
    files = build_files(empty)
    for page in ("ann/x.html", "ann/x/1.1.0.html"):
        html = files[page].decode()
        assert "too many hidden characters" in html
        assert "1,999 more characters not shown" in html
        (notice,) = re.findall(r'<p class="told">.*</p>', html)
        assert 'href="/api/v1/repos/ann/x/versions/1.1.0.txt"' in notice
    assert "too many" not in files["ann/x/1.0.0.html"].decode()


def test_a_changelog_takes_no_marks_from_the_text(empty):
    write_version(
        empty.content, "ann", "x", "1.0.0", "Say\u200b it.\n", changelog="a\x01" * 2_000
    )  # fmt: skip
    files = build_files(empty)
    for page in ("ann/x.html", "ann/x/1.0.0.html"):
        html = files[page].decode()
        assert 'data-code="U+200B"' in html and "has 1 hidden character:" in html
    assert "more characters not shown" in html
