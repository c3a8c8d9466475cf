"""Pages say what a version can do, and show how this and its files have changed."""

import hashlib
import re
from types import SimpleNamespace

from builder.model.records import StoredFile
from builder.model.settings import Settings
from builder.render.pages import pages_of
from builder.render.prompt_pages import Since, changes_since
from builder.text.file_diff import COMPARED_BYTES_MAX, compare_files
from builder.text.hidden_chars import Marks
from builder.text.hunks import NO_LINES
from tests.support.catalogues import build_files, write_version

SKILL = "---\nname: x\ndescription: y\n---\nSay it.\n"
# A tag that the templates write, in a name or text where it must be text.
TAG = "<ins>https://x.example/<b>"


def page_of(settings: Settings, *versions: tuple[str, dict[str, bytes]]) -> str:
    """The page of the last of some versions, from 1.0.0."""
    for number, (text, files) in enumerate(versions):
        write_version(settings.content, "ann", "x", f"1.{number}.0", text, files)
    return build_files(settings)[f"ann/x/1.{len(versions) - 1}.0.html"].decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def part(html: str, opening: str, tag: str) -> str:
    """The words of the first element of a page with this opening tag."""
    assert opening in html
    return words(html.partition(opening)[2].partition(f"</{tag}>")[0])


def test_a_text_alone_has_neither_list_nor_box(empty):
    html = page_of(empty, ("See https://a.example.\n", {}), ("Other.\n", {}))
    for absent in ('id="files"', 'class="panel can-do"', 'class="file"', 'href="#files"'):
        assert absent not in html


def test_a_skill_without_files_has_the_box(empty):
    html = page_of(empty, (f"{SKILL}{TAG} `git log`\u200b\n", {}))
    box = part(html, '<section id="can-do" class="panel can-do"', "section")
    assert "Commands git SKILL.md:6" in box
    assert "Names a host x.example SKILL.md:6" in box
    assert "Hidden characters U+200B ZERO WIDTH SPACE, 1 in SKILL.md SKILL.md:6" in box
    looked = "programs, allowed tools, deletion, calls to the network, places of secrets"
    assert f"Looked for without a match: {looked}. How we look" in box
    assert box.endswith("They miss disguised code, so this may do more.")


def test_a_hidden_character_in_a_finding_is_shown(empty):
    html = page_of(empty, (f"{SKILL}https://\u202eelpmaxe.live/ https://a{TAG}\n", {}))
    hosts = html.partition("<dt>Names a host</dt>")[2].partition("</ul>")[0]
    assert 'data-code="U+202E"' in hosts and TAG not in hosts


def test_the_box_says_how_many_findings_it_does_not_list(empty):
    hosts = "".join(f"https://{number}.example/\n" for number in range(130))
    box = part(page_of(empty, (SKILL + hosts, {})), '<section id="can-do"', "section")
    assert "122 more 8.example" in box and "30 more, not listed here" in box
    assert "99.example" in box and "100.example" not in box


def test_changed_files_are_shown(empty):
    old = {
        "a.png": b"\0one",
        "b.txt": b"one\ntwo\n",
        "c.sh": b"id\n",
        "gone.py": b"x\n",
        "same": b"",
    }
    old |= {"text": b"was", "then": b"\xff"}
    new = {
        "text": b"\xff",
        "then": b"is",
        "a.png": b"\0two",
        "b.txt": b"one\n<b>three\n",
        "c": b"id\n",
        "empty": b"",
        "same": b"",
    }
    html = page_of(empty, (SKILL, old), (SKILL, new))
    changes = html.partition('<section id="changes"')[2]
    assert "The text is unchanged." in changes and "metadata" not in changes
    shown = [words(one) for one in changes.split('<details class="file')[1:]]
    assert "a.png changed 1.0.0 4 bytes" in shown[0] and changes.count("<img ") == 2
    assert shown[0].count("SHA-256") == 2
    assert "three" in shown[1] and "<b>three" not in changes
    assert "c added" in shown[2] and "c.sh removed" in shown[3]
    assert "empty added The file is empty." in shown[4]
    assert "gone.py removed" in shown[5]
    assert "text changed Not text in 1.1.0, so there are no lines to compare. 1.0.0" in shown[6]
    assert "then changed Not text in 1.0.0, so there are no lines to compare." in shown[7]
    assert len(shown) == 8


def test_an_executable_bit_is_a_change(empty):
    def files(texts: str, bits: str) -> list[StoredFile]:
        hashes = [hashlib.sha256(one.encode()).hexdigest() for one in texts]
        rows = zip("abc", hashes, bits, strict=True)
        return [StoredFile(path, 1, sha256, "", bit == "x") for path, sha256, bit in rows]

    changes = compare_files(
        files("123", "-xx"), files("124", "x--"), lambda _: b"old", lambda _: b"new"
    )
    version = SimpleNamespace(owner="ann", name="x", previous="1.0.0", version="1.1.0")
    since = Since([], NO_LINES, changes, [])
    counts, shown = changes_since(pages_of(empty), since, version, Marks())
    assert counts == "+1 −1"
    first, second, third = (words(one) for one in shown.split('<details class="file')[1:])
    assert first.endswith("a executable bit · executable Only the executable bit has changed.")
    assert second.endswith("no longer executable Only the executable bit has changed.")
    assert "c changed · no longer executable +1 −1 Changes from" in third


def test_what_is_new_and_gone_is_shown(empty):
    old = ("See https://a.example.\n", {})
    new = (f"{SKILL}See https://b.example/{TAG}.\n", {"run.sh": b"curl x\n"})
    html = page_of(empty, old, new)
    news = part(html, '<h3 id="new-and-gone">', "section")
    assert "Runs run.sh new Commands curl new run.sh:1" in news
    assert "b.example new SKILL.md:6" in news and "a.example gone SKILL.md:1" in news
    assert "<del><code>a.example</code></del> gone" in html


def test_files_beyond_the_limit_are_not_compared(empty):
    old = {f"{number}.txt": b"a\n" * (COMPARED_BYTES_MAX // 5) for number in range(2)}
    new = {path: data.replace(b"a", b"b") for path, data in old.items()}
    html = page_of(empty, (SKILL, old), (SKILL, new))
    shown = html.split('<details class="file')[1:]
    assert "more lines changed, not shown here" in shown[0]
    assert "Not compared here" in shown[1] and "SHA-256" in shown[1]
