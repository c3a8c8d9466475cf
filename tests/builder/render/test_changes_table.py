"""Tables of changes: HTML that says all of a readable difference."""

from html.parser import HTMLParser

from builder.render.changes_table import changes_table
from builder.text.hidden_chars import Marks
from builder.text.hunks import Row
from tests.builder.text.test_hunks import MOVED_SECTION, rows_of
from tests.support.catalogues import build_files, write_version


class Table(HTMLParser):
    """The rows of the table of changes: class, text of each cell, what is in del and ins. Folded
    lines are left out.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[tuple[str, list[str], list[str]]] = []
        self.stack: list[str] = []
        self.feed(html[html.index('<table class="changes">') : html.rindex("</table>")])

    def handle_starttag(self, tag, attrs):
        if tag == "li":  # its end tag is left out
            return
        self.stack.append(tag)
        if tag == "tr":
            self.rows.append((dict(attrs).get("class", ""), [], []))
        elif tag in ("td", "th"):
            self.rows[-1][1].append(dict(attrs).get("aria-label", "") if tag == "th" else "")
        elif tag in ("del", "ins"):
            self.rows[-1][2].append("")

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & {*self.stack} and "ol" not in self.stack:
            self.rows[-1][1][-1] += data
        if {"del", "ins"} & {*self.stack}:
            self.rows[-1][2][-1] += data


# A case for each page that shows changes.
HEADING, LONGER_HEADING = (
    f"Be kind.\n\n## Write it{more}\n\nShort.\n" for more in ("", " Quote the customer")
)
HEADING_ROW = (["3", "3", "±", "## Write it Quote the customer\n"], [" Quote the customer"])


def version_page(settings, old: str, new: str) -> str:
    write_version(settings.content, "ann", "x", "1.0.0", old)
    write_version(settings.content, "ann", "x", "1.1.0", new, description="Other.")
    return build_files(settings)["ann/x/1.1.0.html"].decode()


def test_the_page_of_a_version_says_what_changed(empty):
    old = "one\ntwo\nthree\nfour\nfive\nBe <b>kind</b> to {{name}}.\n"
    html = version_page(empty, old, old.replace("kind", "<i>very kind</i>").removesuffix("\n"))
    assert Table(html).rows == [
        ("", ["Old line", "New line", "Change", "Text"], []),
        ("gap", ["2 lines unchanged"], []),
        ("", ["3", "3", "", "three\n"], []),
        ("", ["4", "4", "", "four\n"], []),
        ("", ["5", "5", "", "five\n"], []),
        ("removed", ["6", "", "−", "Be <b>kind</b> to {{name}}.\n"], ["\n"]),
        ("added", ["", "6", "+",
                   "Be <b><i>very kind</i></b> to {{name}}. no line break at the end"],
         ["<i>very ", "</i>"]),
    ]  # fmt: skip
    assert "<script" not in html.split('<table class="changes">')[1]


def test_a_heading_that_gets_words_is_one_changed_line(empty):
    html = version_page(empty, HEADING, LONGER_HEADING)
    assert Table(html).rows[3][1:] == HEADING_ROW
    assert 'Changes since 1.0.0 <span class="soft">+1 −1</span>' in html
    assert '<h2>What changed <a href="#changes">+1 −1 lines since 1.0.0</a></h2>' in html


def test_a_page_without_changes_in_the_text_says_so(empty):
    html = version_page(empty, "Same.\n", "Same.\n")
    assert 'class="changes"' not in html
    assert "The text is unchanged. The metadata differs: description." in html


def test_a_page_of_too_many_changes_says_how_many_are_left_out(empty):
    html = version_page(empty, "a\n" * 3_000, "b\n" * 3_000)
    assert Table(html).rows[-1][:2] == (
        "gap", ["5,000 more lines changed, not shown here"]
    )  # fmt: skip


def test_a_table_without_room_for_lines_says_how_many_are_left_out():
    html = changes_table([Row("rest", left_out=1)], "<a>", "b", Marks())
    assert Table(html).rows == [
        ("", ["Old line", "New line", "Change", "Text"], []),
        ("gap", ["1 more line changed, not shown here"], []),
    ]
    assert '<caption class="unseen">Changes from &lt;a&gt; to b</caption>' in html
    assert html.count('<th scope="col"') == 4


def test_a_block_that_moved_is_shown_once_and_its_two_places_link_each_other():
    html = changes_table(rows_of(*MOVED_SECTION), "1", "2", Marks())
    assert '<tr class="gap"><td colspan="4"><a href="#L14">4 lines moved from line 14</a>' in html
    assert '<td colspan="4" id="L14"><a href="#R1">4 lines moved to line 1</a>' in html
    assert "<ins" not in html and "<del" not in html and html.count("Read the ticket first.") == 1


def test_unchanged_lines_open():
    lines = "".join(f"{number}\n" for number in range(1, 10))
    few = rows_of(f"{lines}old\n", f"{lines}new\n")[0]
    html = changes_table([few], "1", "2", Marks(), at="f1")
    assert f"<summary>{few.left_out} lines unchanged</summary>" in html
    assert '<ol class="changes" start="1"><li>1\n<li>2\n' in html
    rows = rows_of(f"a\nb\n{lines}old\n", f"a\n{lines}new\n")
    html = changes_table(rows, "1", "2", Marks())
    assert '<ol class="changes" start="5"><li data-old=6>4\n' in html


def test_the_middle_of_a_long_line_is_left_out():
    rows = rows_of("a" * 2_000 + "\u202e", "b" * 1_000 + "c" * 600 + "d" * 500)
    (_, old, _), (_, new, _) = Table(changes_table(rows, "1", "2", Marks())).rows[1:]
    assert old[-1].startswith("a" * 1_000 + " … 501 characters not shown … " + "a" * 499)
    shown = "b" * 1_000 + " … 600 characters not shown … " + "d" * 500
    assert new[-1].removesuffix(" no line break at the end") == shown


def test_characters_that_hide_are_shown_in_changes(empty):
    html = version_page(empty, "Say so at once.\r\n", "Say\u202e so at once.\n")
    assert 'data-code="U+202E"' in html
    assert 'data-code="U+000D"></span>' in html
