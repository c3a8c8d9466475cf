"""The rules find what a version can do, and miss none of it for its size or an odd byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.records import CONTENT_BYTES_MAX
from builder.model.version_files import BYTES_MAX
from builder.text.abilities import (
    COMMANDS,
    CONNECTS,
    DELETES,
    HIDDEN,
    HOSTS,
    KEYS,
    NAME_CHARS_MAX,
    PLACES_MAX,
    RULES,
    RUNS,
    TOOLS,
    UNREAD,
    Rule,
    compare,
    examine,
    is_examined,
)
from tests.support.calls import few_steps


def names(rule: Rule, text: str, *files: tuple[str, bytes, bool]) -> list[str]:
    return [*examine(text, files)[rule]]


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("https://a.example/x?y", ["a.example"]),
        ("[a](http://A.Example:81), <ftp://b.example>.", ["a.example:81", "b.example"]),
        ("'wss://c.example'\"ssh://git@d.example/x\"", ["c.example", "d.example"]),
        ("https://good.example@evil.example/", ["evil.example"]),
        ("https://good.example:443@b@evil.example\\@x/", ["evil.example"]),
        ("HTTPS://e.example. See", ["e.example"]),
        ("https://{{host}}/ https://${HOST}:8/ https://$HOST", ["$HOST", "${HOST}:8", "{{host}}"]),
        ("http://[::1]:80/ http://127.0.0.1", ["127.0.0.1", "[::1]:80"]),
        ("https://bücher.example/ https://xn--bcher-kva.example",
         ["bücher.example", "xn--bcher-kva.example"]),
        ("https://\u202eelpmaxe.live/", ["\u202eelpmaxe.live"]),
        ("file:///etc/passwd https:// a//b https:/x", []),
    ],
)  # fmt: skip
def test_hosts(text, hosts):
    assert sorted(names(HOSTS, text)) == sorted(hosts)


@pytest.mark.parametrize(
    "text, found",
    [
        ("git log | grep -3 && jq . x; wget", ["git", "grep", "jq", "wget"]),
        ("sudo rm -r x\nexec curl y\nfind . | xargs sed 1", ["curl", "rm", "sed", "sudo", "xargs"]),
        ("x=$(aws s3 ls)\ny=`git log`\ncurl -s z|sh", ["aws", "curl", "git", "sh"]),
        ("Run `python3 scripts/run.py`, then 'git' it. Not a `curl`.", ["python3"]),
        ("curl -s x \\\n  | bash", ["bash", "curl"]),
        ("```console\n$ npx a\nsaid: npx\n```", ["npx"]),
        ('run(["ncat", "-l"])\nos.system("curl -s x")\nnode = "docker"\n', ["curl", "ncat"]),
        ("| git push | docker x |\n| `curl y` |\nA git log, made by docker: git = it.", []),
    ],
)
def test_commands(text, found):
    assert sorted(names(COMMANDS, text)) == found
    assert sorted(names(COMMANDS, "", ("x", text.encode(), False))) == found


@pytest.mark.parametrize(
    "value, tools",
    [
        ("Read, Bash(git log:*), Write", ["Bash(git log:*)", "Read", "Write"]),
        ("Read Grep", ["Grep", "Read"]), ("[Read, 'Bash(rm -rf, x)']", ["Bash(rm -rf, x)", "Read"]),
        ("", []), ("7", ["7"]),
    ],
)  # fmt: skip
def test_tools(value, tools):
    text = f"---\nname: x\nallowed-tools: {value}\n---\nBody\n"
    found = examine(text, ())[TOOLS]
    assert [*found] == tools
    assert all(one.places == [("SKILL.md", 3)] for one in found.values())
    assert names(TOOLS, "", ("sub/SKILL.md", text.encode(), False)) == tools


def test_hidden_characters_in_text_and_files():
    found = examine("a\u200bb\u200b\n\U000e0041", [("x/y.md", "\u202e\n\u200b".encode(), False)])
    assert {one.name: one.where for one in found[HIDDEN].values()} == {
        "U+200B ZERO WIDTH SPACE, 2 in SKILL.md": "SKILL.md:1",
        "U+E0041 TAG LATIN CAPITAL LETTER A, 1 in SKILL.md": "SKILL.md:2",
        "U+202E RIGHT-TO-LEFT OVERRIDE, 1 in x/y.md": "x/y.md:1",
        "U+200B ZERO WIDTH SPACE, 1 in x/y.md": "x/y.md:2",
    }


def test_an_odd_byte_hides_no_script():
    script = b"id\n\xff\0\ncurl -s https://x.example\n"
    for path, data in (("x.sh", script), ("tool", b"#!" + script)):
        found = examine("", [(path, data, False)])
        assert [*found[HOSTS]] == ["x.example"] and not found[UNREAD]
        assert found[HOSTS]["x.example"].places == [(path, 3)]
    found = examine("", [("tool", script, True), ("x.png", b"\0https://y.example", False)])
    assert [*found[RUNS]] == ["tool"] and [*found[UNREAD]] == ["tool", "x.png"]


@pytest.mark.parametrize(
    ("rule", "code", "found"),
    [
        (DELETES, "import shutil\nshutil.rmtree(x); p.unlink()", ["shutil.rmtree", ".unlink"]),
        (DELETES, "fs.rmSync(x); fs.promises.rm(y)", ["fs.rmSync", "fs.promises.rm"]),
        (DELETES, "find . -delete; rm  -rf x; drop\ttable t", ["-delete", "rm -rf", "drop table"]),
        (DELETES, "confirm -r; rm x; form.reset(); undelete", []),
        (CONNECTS, "s = socket.socket(); requests.post(u)", ["socket.socket", "requests.post"]),
        (CONNECTS, "await fetch(u); exec 3<>/dev/tcp/a/80", ["fetch", "/dev/tcp/"]),
        (CONNECTS, "prefetch(u); my.fetch(u); requests per second; the fetch", []),
        (KEYS, "open('~/.ssh/id_rsa')", ["~/.ssh", "id_rsa"]),
        (KEYS, "cat $HOME/.aws/credentials ~/.netrc", ["$HOME/.aws", ".netrc"]),
        (KEYS, "a.sshx .npmrcs grid_rsa logins.jsonl", []),
    ],
)
def test_what_code_calls_and_names(rule, code, found):
    assert sorted(names(rule, "", ("a.py", code.encode(), False))) == sorted(found)
    assert sorted(names(rule, code)) == sorted(found)


@pytest.mark.parametrize(
    ("path", "executable", "runs"),
    [
        ("post.py", False, True), ("a/B.EXE", False, True), ("run", True, True),
        ("run", False, False), ("py", False, False), ("notes.md", False, False),
    ],
)  # fmt: skip
def test_what_is_a_program(path, executable, runs):
    assert names(RUNS, "", (path, b"import os", executable)) == [path] * runs


def test_names_of_xml_are_no_hosts():
    svg = b"""<!DOCTYPE svg PUBLIC "-//W3C//DTD" "http://dtd.example/x">
    <svg xmlns="http://a.example/svg" xmlns:x = 'http://b.example'
      xsi:schemaLocation="http://c.example/ x.xsd"><a href="https://real.example/"/></svg>"""
    assert names(HOSTS, "", ("x.svg", svg, False)) == ["real.example"]
    assert len(names(HOSTS, "", ("x.py", svg, False))) == 5
    finding = examine("", [("x.svg", svg, False)])[HOSTS]["real.example"]
    assert finding.where == "x.svg:3"


def test_a_difference_has_what_is_new_and_gone():
    old = examine("https://a.example `git log`", [("x", b"1", False)])
    new = examine("\n\nhttps://b.example `git log`\u200b", [("x", b"1", True)])
    changes = {
        rule: ([one.name for one in added], [one.name for one in gone])
        for rule, added, gone in compare(old, new)
    }
    assert changes == {
        RUNS: (["x"], []),
        HOSTS: (["b.example"], ["a.example"]),
        HIDDEN: (["U+200B ZERO WIDTH SPACE, 1 in SKILL.md"], []),
    }
    more = examine("\n\nhttps://b.example `git log`\u200b\u200b", [("x", b"1", True)])
    assert [rule for rule, *_ in compare(new, more)] == [HIDDEN]
    assert [*compare(new, new)] == []


def test_only_skills_and_versions_with_files_are_examined():
    assert is_examined("---\nname: x\n---\n", ())
    assert is_examined("---\r\nallowed-tools : Read\r\n---\r\n", ())
    assert is_examined("", [object()])
    assert not is_examined("", ()) and not is_examined("---\ntitle: x\nnames: y\n---\n", ())


@given(st.text(st.sampled_from("a:/@{}$`'\"\\#<|;()=~- \n\r\0\u200bé")) | st.text())
def test_no_text_is_too_odd(text):
    data = text.encode(errors="replace")
    found = examine(text, [("a.sh", data, True), ("b.md", data, False), ("c.py", data, False)])
    for one in (one for rule in RULES for one in found[rule].values()):
        assert one.name and len(one.name) <= NAME_CHARS_MAX
        assert 1 <= len(one.places) <= min(PLACES_MAX, one.count)


def test_the_last_line_of_the_largest_version_is_read():
    last = "https://last.example\n"
    line = "https://h.example `git log` \u200b\n"
    text = line * ((CONTENT_BYTES_MAX - len(last)) // len(line.encode())) + last
    data = (line * ((BYTES_MAX - len(last)) // len(line.encode())) + last).encode()
    found = examine(text, [("x.sh", data, False)])[HOSTS]
    assert [*found] == ["h.example", "last.example"]
    assert found["last.example"].count == 2 and len(found["h.example"].places) == PLACES_MAX


# What a text repeats, which could take a pattern long.
UNITS = (
    'a://b ·a://·a://@·a://${{·://a{·\n· ·"\'·\'·"\\·$(a·"$(·a=b ·;a=·<<A\n·```sh\n·~·(·x)·do ·a·'
    "xargs -a ·`git ·\u200b·\u200b\u2060·#· #·\\\n·|·{ ·f()\n·git,'·\\·$'·$'\\'·'\\"
).split("·")


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_versions_take_few_steps(unit):
    text = unit * (CONTENT_BYTES_MAX // 2 // len(unit.encode()))
    files = [(path, text.encode(), False) for path in ("a.sh", "b.md")]
    with few_steps(30 * 3 * len(text)):
        examine(f"---\nallowed-tools: {text[:10_000]}\n---\n```sh\n{text}", files)
