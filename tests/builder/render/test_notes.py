"""The links in the notes of withdrawals, and the pages that have them."""

import pytest

from builder.render.notes import linked
from builder.text.hidden_chars import Marks
from tests.support.catalogues import build_files, write_version, write_withdrawn

OUTSIDE = '<a rel="nofollow ugc noopener" href="{0}">{0}</a>'


@pytest.mark.parametrize(("note", "html"), [
    ("Use ann/story.", 'Use <a href="/hub/ann/story">ann/story</a>.'),
    ("Replaced by b/c-1; see also d/e", 'Replaced by <a href="/hub/b/c-1">b/c-1</a>; see also '
     '<a href="/hub/d/e">d/e</a>'),
    ("wrong and/or <old>, or docs/api", "wrong and/or &lt;old&gt;, or docs/api"),
    ("See a/b/c, use A/b", "See a/b/c, use A/b"),
    ("Because: https://e.org/a?b=1&c.", f"Because: {OUTSIDE.format('https://e.org/a?b=1&amp;c')}."),
    ("https://e.org/use x", f"{OUTSIDE.format('https://e.org/use')} x"),
    ("", ""),
])  # fmt: skip
def test_a_note_links_addresses_and_prompts(note, html):
    assert linked(note, Marks(), "/hub") == html


@pytest.mark.parametrize("note", ["It was wrong.", "Use ann/story."])
def test_similar_prompts_stand_below_a_note_that_names_none(empty, note):
    write_version(empty.content, "ann", "old", "1.0.0", "Text.\n")
    write_withdrawn(empty.content, "ann/old", note=note)
    site = build_files(empty)
    (page,) = (site[path] for path in site if "old" in path and b"was withdrawn</h1>" in site[path])
    assert (b"Similar prompts" in page) == ("/" not in note)
    assert b'href="/search?q=old"' in page
