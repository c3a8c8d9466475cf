"""Each file of a version has a page, which shows what its bytes are and runs none of them."""

import re
from html import unescape
from struct import pack

import pytest

from builder.model.settings import Settings
from builder.model.version_files import FILES_MAX
from builder.pipeline.build import build
from builder.render.file_pages import CHARS_MAX, LINES_MAX, LISTED_MAX
from tests.support.catalogues import build_files, read_tree, write_version, write_withdrawn

RAW = "/api/v1/repos/ann/x/versions/1.0.0.files"
PAGES = "/ann/x/1.0.0/files"


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + pack(">I4sII", 13, b"IHDR", width, height)


def site_of(settings: Settings, files: dict[str, bytes], text: str = "Say.\n") -> dict[str, str]:
    """The pages of a version with these files, and of its prompt, by their paths."""
    write_version(settings.content, "ann", "x", "1.0.0", text, files)
    built = build_files(settings)
    return {path[:-5]: data.decode() for path, data in built.items() if path.startswith("ann/")}


def main(html: str) -> str:
    return html.partition("<main")[2].partition("</main>")[0]


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def links(html: str) -> list[tuple[str, str]]:
    return re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>([^<]*)', html)


def told(html: str) -> str:
    return words(html.partition('class="told">')[2].partition("</p>")[0])


# The name, the bytes, what the page shows or says, and whether the file opens as text.
FILES = {
    "code": ("a.py", b"1\n\nif x < 2:\n", '<a href="#L3" tabindex="-1">3</a>if x &lt; 2:', True),
    "a line without end": ("a.py", b"1\n2", 'id="L2"><a href="#L2" tabindex="-1">2</a>2\n', True),
    "an unknown name": ("a.xyz", b"1", '<a href="#L1" tabindex="-1">1</a>1', False),
    "an empty file": ("a.txt", b"", "This file is empty. Open the whole file .", True),
    "html": ("a.html", b"<script>alert(1)</script>", "</a>&lt;script&gt;alert(1)", True),
    "svg": ("a.svg", b"<svg onload=alert(1)>", "</a>&lt;svg onload", True),
    "a picture": ("a.png", png(7, 5), f'<img src="{RAW}/a.png.bin" width="7" height="5"', False),
    "a large picture": ("a.png", png(20_000, 20_000), "This picture is too large to show", False),
    "a text named as a picture": ("a.png", b"<script>", "</a>&lt;script&gt;", False),
    "bytes named as a picture": ("a.png", b"\0" + png(7, 5), "are not text in UTF-8", False),
    "a picture named as a text": ("a.md", png(7, 5), "are not text in UTF-8", True),
    "a polyglot": ("a.gif", b"GIF89a/*\1\0*/=1;<script>", 'width="10799" height="1"', False),
    "text with NUL": ("a.py", b"print('\0')", "are not text in UTF-8", True),
    "invalid UTF-8": ("a.txt", b"caf\xe9", "are not text in UTF-8", True),
    "pdf": ("a.pdf", b"%PDF-1.4\n\xff", "are not text in UTF-8, so they are not shown", False),
    "order of characters": ("a.py", "a\u202eb".encode(), 'data-code="U+202E"', True),
    "one long line": ("a.txt", b"x" * 5_000_000, "first 200,000 of 5,000,000 characters.", True),
    "many lines": ("a.txt", b"x\n" * 80_000, "the first 10,000 of 160,000 characters.", True),
}  # fmt: skip


@pytest.mark.parametrize(("path", "data", "shown", "is_text"), FILES.values(), ids=FILES)
def test_a_file(empty, path, data, shown, is_text):
    html = site_of(empty, {path: data})[f"ann/x/1.0.0/files/{path}"]
    assert shown in main(html) or shown in told(html)
    assert len(html) < 2 * CHARS_MAX and html.count("<span id=") <= LINES_MAX
    assert not re.search(r"<(script(?! type=\"module\" src)|svg|iframe|object|embed)\b", html)
    assert all(src.startswith(RAW) for src in re.findall(r'<img src="([^"]*)', main(html)))
    raw = f"{RAW}/{path}.{'txt' if is_text else 'bin'}"
    assert f'<a href="{raw}" download="{path}">Download</a>' in html
    assert (f'<a href="{raw}">Raw</a>' in html) == is_text
    assert '<meta name="robots" content="noindex">' in html


def test_markdown_is_read_and_shown_as_it_is(empty):
    text = b"# A <b>\n[up](../b.sh) `c.md` `d/c.md` [out](../../b.sh) <img src=x onerror=f(1)>\n"
    html = site_of(empty, {"d/a.md": text, "d/c.md": b"", "b.sh": b""})["ann/x/1.0.0/files/d/a.md"]
    reading, _, source = main(html).partition('<pre class="prompt')[2].partition("<pre")
    to = [(f"{PAGES}/b.sh", "up"), (f"{PAGES}/d/c.md", "c.md"), (f"{PAGES}/d/c.md", "d/c.md")]
    assert links(reading) == to
    assert "<kbd><u>`</u><a" in reading and 'id="part-1"' in reading
    assert '<span id="L1"><a href="#L1" tabindex="-1">1</a># A &lt;b&gt;\n</span>' in source
    assert "<img" not in main(html)


def test_a_tree_leads_to_the_files(empty):
    files = {"a/b/run.sh": b"#!/bin/sh\nrm x", "x.png": png(7, 5), "a/c.md": b""}
    text = "See [a](./a/c.md), `x.png` and [b](no.md).\n"
    site = site_of(empty, files, text)
    names = ["SKILL.md", "x.png", "c.md", "run.sh "]
    hrefs = ["/ann/x/1.0.0", f"{PAGES}/x.png", f"{PAGES}/a/c.md", f"{PAGES}/a/b/run.sh"]
    for page, current in (("", 0), ("/1.0.0", 0), ("/1.0.0/files/a/c.md", 2)):
        tree = site[f"ann/x{page}"].partition('aria-label="Files">')[2].partition("</nav>")[0]
        assert links(tree) == [*zip(hrefs, names, strict=True)]
        assert words(tree) == "SKILL.md x.png a/ c.md a/b/ run.sh executable"
        assert re.findall(r'aria-current="page" href="([^"]*)', tree) == [hrefs[current]]
    for page in ("ann/x", "ann/x/1.0.0"):
        shown = site[page].partition('id="prompt"')[2].partition("</pre>")[0]
        assert links(shown) == [(f"{PAGES}/a/c.md", "a"), (f"{PAGES}/x.png", "x.png")]
        assert f"{len(text) + 38} bytes, 4 files" in words(site[page])
        assert ', <a href="#files">4 files</a>' in site[page]
        assert f'<a href="{PAGES}/a/b/run.sh#L2">a/b/run.sh:2</a>' in site[page]
        assert '1.0.0.skill.zip" download="x.zip">Download folder (.zip, 4 files)</a>' in site[page]
        assert site[page].index(">Install</label>") < site[page].index(">Copy</label>")


def test_many_files_are_folded_and_a_page_lists_those_around_it(empty):
    site = site_of(empty, {f"{number:03}.txt": b"" for number in range(FILES_MAX)})
    assert '<details class="more"><summary><h2 id="files">' in site["ann/x"]
    for number in (0, 100, FILES_MAX - 1):
        tree = site[f"ann/x/1.0.0/files/{number:03}.txt"].partition('aria-label="Files">')[2]
        assert tree.count("<li>") == LISTED_MAX + 1 and tree.count("aria-current") == 1
        assert f'<a href="/ann/x/1.0.0#files">{FILES_MAX + 1 - LISTED_MAX} more</a>' in tree


def test_no_page_is_at_the_address_of_another(empty):
    files = {"a": b"1", "a.HTML": b"2", "b": b"3", "b.html/c": b"4", "d.html": b"5"}
    site = site_of(empty, files)
    pages = {path.partition("/files/")[2] for path in site if "/files/" in path}
    assert pages == {"a.HTML", "b.html/c", "d.html"}
    assert f'<a href="{RAW}/a.bin" download="a">a</a>' in site["ann/x"]


def test_a_withdrawn_version_loses_its_pages_and_others_keep_theirs(empty):
    write_version(empty.content, "ann", "x", "1.1.0", "Say it.\n", {"a.py": b"2"})
    assert {"ann/x/1.0.0/files/a.py", "ann/x/1.1.0/files/a.py"} <= {*site_of(empty, {"a.py": b"1"})}
    write_withdrawn(empty.content, "ann/x", "1.0.0")
    build(empty, index=False)
    left = {path for path in read_tree(empty.out) if "/files/" in path}
    assert left == {"ann/x/1.1.0/files/a.py.html"}


def test_commands_follow_production_or_else_the_label_moved_last(empty):
    def page(version: str, label: str) -> str:
        number = int(version[2])
        fields = {"labels": [label], "label_number": number + 1} if label else {}
        write_version(
            empty.content, "ann", "x", version, "Say.\n", {"a": version.encode()}, **fields
        )
        html = build_files(empty)["ann/x.html"].decode()
        return words(html.partition('<div class="use">')[2].partition("<article")[0])

    assert "npx skills add https://hub.example/ann/x An Agent Skill" in page("1.0.0", "")
    assert "skills add https://hub.example/ann/x/labels/beta " in page("1.1.0", "beta")
    assert "skills add https://hub.example/ann/x/labels/alpha " in page("1.2.0", "alpha")
    page("1.3.0", "production")
    use = page("1.4.0", "gamma")
    for command in (
        "npx skills add https://hub.example/ann/x/labels/production "
        "An Agent Skill that follows the label production , now 1.3.0.",
        "repos/ann/x/labels/production.txt ",
        "hub pull ann/x@production ",
        'hub.get("ann/x@production")',
    ):
        assert command in use
