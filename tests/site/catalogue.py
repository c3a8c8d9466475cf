"""The content for tests of pages.

It has the sample catalogue, a list of many pages, and a second owner with prompts that could break
a page.
"""

from pathlib import Path

from builder.model.names import OWNER_CHARS_MAX, REPO_CHARS_MAX, TAG_CHARS_MAX
from builder.model.records import CONTENT_BYTES_MAX
from builder.model.routes import PAGE_SIZE
from builder.model.version_files import FILES_MAX
from tests.support.catalogues import write_label, write_owner, write_version, write_withdrawn

# Prompts of the sample catalogue.
SQL_REVIEW = "mara-okafor/sql-review"
MEETING_NOTES = "plainwords/meeting-notes"
# A version with some words other than those before.
CHANGED = "kestrel-lab/pairwise-judge/2.0.0"
# A chat prompt.
COMMIT_MESSAGE = "sam-ferreira/commit-message"
JAPANESE = "yuki-tanabe/gijiroku-seiri"

# So many prompts have the word "echo", two pages of them.
ECHOES = PAGE_SIZE + 10

MALLORY = "mallory-" + "m" * (OWNER_CHARS_MAX - len("mallory-"))
MARKUP = f"{MALLORY}/markup"
LONG_LINE = f"{MALLORY}/long-line"
WIDE = f"{MALLORY}/{'w' * REPO_CHARS_MAX}"
INVISIBLE = f"{MALLORY}/invisible"
RUNS = f"{MALLORY}/runs"
CUT = f"{MALLORY}/cut"
CHAT = f"{MALLORY}/chat"

# Four versions; "stable" and "tested" name the second and the third.
RELEASED = "many/released"
# A chat prompt whose second version breaks its callers in each way.
CALLED = "many/called"
# More versions and labels than the picture of them shows; some are withdrawn.
HISTORY = "many/history"
LEFT = "many/left"
WITHDRAWN = f"{MALLORY}/withdrawn"
GONE = f"{MALLORY}/gone"

# A skill whose second version adds, changes and removes files; one with as many as there may be;
# and one with what could break a page, or deceive its reader.
FOLDER = "folders/release-notes"
FULL = "folders/full"
HOSTILE_FILES = f"{MALLORY}/files"

KINDS = "bytes/kinds"
CRLF = "bytes/crlf"
BOM = "bytes/bom"
FRONT = "bytes/front"
LARGE = "bytes/large"
CHAT_CRLF = "bytes/chat"
# More messages than a page shows.
TALK = "bytes/talk"
TALK_TURNS = 150

HIDDEN_WORDS = ("a\x01b\x02 " * 200 + "\n") * 100
LONG_WORD_CHARS = 144 * 1024
ALERT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
BREAKOUT = f"\"'></pre></textarea></template></title></select>{ALERT}"
RTL_OVERRIDE, ZERO_WIDTH_SPACE, WORD_JOINER = "\u202e", "\u200b", "\u2060"

TEXTS = {
    CRLF: "Say {{what}}\r\nto {{whom}}.\r\n\r\nEnd\r",
    BOM: "\ufeffSay {{what}}.\n",
    FRONT: (
        "---\ntitle: Front matter\nmodel: some/model\n---\n"
        "\n  Say {{what}} \\{{and}} {{ what }}."
    ),
    CHAT_CRLF: (
        "---\r\ntitle: Chat\r\n---\r\n"
        'Say {{what}}\r\nto {{whom}}.\r\n\r\n{{role "user"}}\r\n\ttwo\r\nlines, \\{{what}}\r\n'
        '{{role "assistant"}}\r\n'
    ),
    TALK: '{{role "user"}}\nSay {{what}}.\n{{role "assistant"}}\nNo.\n' * TALK_TURNS,
    KINDS: (
        "Style {{style}}, number {{number}}, share {{share}}, loud {{loud}}, list {{list}}, "
        "free {{free}}, twice {{free}}, again {{ free }}, literal \\{{free}}, none {{ no such }}.\n"
    ),
}  # fmt: skip


def large_text() -> str:
    """A text of the largest allowed size, with characters of two and four bytes, and with
    variables.
    """
    line = "Ünïcödé 🙂 with {{what}} in each line, and {{whom}} too.\n"
    lines = line * (CONTENT_BYTES_MAX // len(line.encode()))
    return lines + "x" * (CONTENT_BYTES_MAX - len(lines.encode()))


def write_more(root: str | Path) -> None:
    """Add to a copy of the sample catalogue what the tests of pages want."""
    for number in range(ECHOES):
        write_version(
            root, "many", f"echo-{number:02}", "1.0.0", "Say {{what}} again.\n",
            title=f"Echo {number:02}", description="Says it again.", tags=["again"],
        )  # fmt: skip
    _write_released(root)
    _write_bytes(root)
    _write_hostile(root)
    _write_folders(root)


def _write_released(root: str | Path) -> None:
    lines = [f"Line {number} stays.\n" for number in range(20)]
    texts = ["Be kind to {{whom}}.\n", "Be very kind to {{whom}}.\n", "Be brief.\n"]
    for version, text in zip(("1.0.0", "1.1.0", "2.0.0"), texts, strict=True):
        write_version(
            root, *RELEASED.split("/"), version, "".join([*lines, text]), changelog=f"Now {text}"
        )
    # The same text again, with another title.
    write_version(root, *RELEASED.split("/"), "2.0.1", "".join([*lines, text]), title="Released")
    write_label(root, RELEASED, 1, "stable", "1.0.0")
    write_label(root, RELEASED, 2, "tested", "2.0.0")
    write_label(root, RELEASED, 3, "stable", "1.1.0")
    _write_called(root)
    _write_history(root)


def _write_called(root: str | Path) -> None:
    write_version(
        root, *CALLED.split("/"), "1.2.0",
        "Write release notes for {{audience}} from the commits since {{since}}, at most {{limit}} "
        "of them.\n\nSort them into features, fixes and other.\nTone: {{tone}}.\n",
        title="Release notes people read", parameters={"model": "small-1", "temperature": 0.7},
        variables=[
            {"name": "audience", "enum": ["users", "operators", "all"], "default": "users"},
            {"name": "since"}, {"name": "limit", "type": "integer", "default": 20},
            {"name": "tone", "required": False}, {"name": "unused"},
        ],
    )  # fmt: skip
    write_version(
        root, *CALLED.split("/"), "1.3.0",
        '{{role "system"}}\nWrite release notes for {{audience}} from the commits in {{range}}, at '
        "most {{limit}} of them.\n\nSort them into “you can now” and “you must act”.\n"
        'Tone: {{tone}}. {{note}}\n{{role "user"}}\nGo on.\n',
        title="Release notes people read", parameters={"model": "small-2", "top_p": 0.9},
        changelog="One range of commits instead of a date.",
        variables=[
            {"name": "audience", "enum": ["users", "operators"], "default": "users"},
            {"name": "range"}, {"name": "limit", "type": "string", "default": "12"},
            {"name": "tone"}, {"name": "note", "required": False},
        ],
    )  # fmt: skip


def _write_history(root: str | Path) -> None:
    numbers = [f"1.{number}.0" for number in range(34)]
    for number in numbers:
        write_version(root, *HISTORY.split("/"), number, f"Version {number} of {{{{it}}}}.\n")
    moves = [("production", numbers[at]) for at in (3, 9, 8, 20, 28)]
    moves += [("staging", numbers[at]) for at in (5, 12, 21, 33)]
    moves += [(f"team-{letter}", numbers[10 + at]) for at, letter in enumerate("abcdefgh")]
    for at, (label, number) in enumerate(moves, 1):
        write_label(root, HISTORY, at, label, number)
    write_withdrawn(root, HISTORY, numbers[6], note="A rule was wrong.")
    write_withdrawn(root, HISTORY, numbers[24], reason="secret")
    for number in ("1.0.0", "1.0.1"):
        write_version(root, *LEFT.split("/"), number, "Say {{it}}.\n", changelog="Say it.")
    write_withdrawn(root, LEFT, "1.0.1", reason="owner")


def _write_bytes(root: str | Path) -> None:
    for repo in (CRLF, BOM, FRONT, CHAT_CRLF, TALK):
        write_version(root, *repo.split("/"), "1.0.0", TEXTS[repo])
    write_version(root, *LARGE.split("/"), "1.0.0", large_text())
    write_version(
        root, *KINDS.split("/"), "1.0.0", TEXTS[KINDS],
        variables=[
            {"name": "style", "enum": ["terse", "rich", "<b>"], "default": "rich"},
            {"name": "number", "type": "integer", "default": 7},
            {"name": "share", "type": "number", "description": "From 0 to 1", "example": 0.5},
            {"name": "loud", "type": "boolean", "default": False},
            {"name": "list", "type": "array", "default": ["a", "b"]},
            {"name": "free", "description": "Whatever you like"},
        ],
    )  # fmt: skip


def _write_hostile(root: str | Path) -> None:
    write_owner(
        root, MALLORY, name=BREAKOUT, bio=f"{BREAKOUT} {RTL_OVERRIDE}bio",
        url=f"https://example.org/{'u' * 300}?\"><script>alert(3)</script>",
    )  # fmt: skip
    write_version(root, *MARKUP.split("/"), "1.0.0", "Tame.\n", title="Tame")
    write_version(
        root, *MARKUP.split("/"), "1.1.0",
        f"---\nnote: {BREAKOUT!r}\n---\n{BREAKOUT}\n[x](javascript:alert(4)) {{{{name}}}} "
        f"{{{{constructor}}}} {{{{__proto__}}}} &amp; <!-- \u2028 ]]>\n",
        title=BREAKOUT, description=f"{BREAKOUT} javascript:alert(5)", changelog=BREAKOUT,
        license=BREAKOUT[:100], tags=["markup"],
        variables=[
            {"name": "name", "description": BREAKOUT, "default": BREAKOUT, "example": BREAKOUT},
            {"name": "constructor", "enum": [BREAKOUT, "&lt;"]},
            {"name": "__proto__", "type": "object", "default": {BREAKOUT: [BREAKOUT]}},
        ],
        parameters={BREAKOUT: BREAKOUT, "stop": [BREAKOUT]},
    )  # fmt: skip
    word = "x" * LONG_WORD_CHARS
    write_version(root, *LONG_LINE.split("/"), "1.0.0", word)
    write_version(
        root, *LONG_LINE.split("/"), "1.1.0", f"{word}y {'many words ' * (LONG_WORD_CHARS // 16)}",
        changelog="c" * 8000, description="d" * 2000, title="t" * 200,
    )  # fmt: skip
    cells = "|".join(f" column {number} " for number in range(60))
    write_version(
        root, *WIDE.split("/"), "1.0.0", f"|{cells}|\n" * 30 + "{{" + "v" * 64 + "}}",
        tags=[letter * TAG_CHARS_MAX for letter in "abcdefghij"],
        variables=[{"name": "v" * 64, "default": "d" * 3000, "enum": ["e" * 3000, "d" * 3000]}],
        parameters={"k" * 300: {"a": ["b" * 3000]}},
    )  # fmt: skip
    hidden = (
        f"safe{ZERO_WIDTH_SPACE}{WORD_JOINER} {RTL_OVERRIDE}desrever\u2066 \ufeffend {{{{x}}}}\n"
    )
    write_version(root, *INVISIBLE.split("/"), "1.0.0", "safe end {{x}}\n", title="Seen")
    write_version(
        root, *INVISIBLE.split("/"), "1.1.0", hidden, title="Unseen",
        description=f"{RTL_OVERRIDE}desrever {ZERO_WIDTH_SPACE}",
        changelog=f"{RTL_OVERRIDE}desrever {ZERO_WIDTH_SPACE}",
        variables=[{"name": "x", "default": f"{RTL_OVERRIDE}x", "description": ZERO_WIDTH_SPACE}],
    )  # fmt: skip
    runs = f"safe{ZERO_WIDTH_SPACE * 12_000} {RTL_OVERRIDE * 3}desrever {{{{x}}}}\x01\x02\x01 end\n"
    write_version(root, *RUNS.split("/"), "1.0.0", "safe end {{x}}\n", title="Runs")
    write_version(root, *RUNS.split("/"), "1.1.0", runs, title="Runs", changelog="\x1b" * 8_000)
    write_version(root, *CUT.split("/"), "1.0.0", "safe end {{x}}\n", title="Cut")
    write_version(
        root, *CUT.split("/"), "1.1.0", f"Say {{{{x}}}}:\n{HIDDEN_WORDS}", title="Cut",
        changelog=f"safe{ZERO_WIDTH_SPACE}",
    )  # fmt: skip
    turns = [BREAKOUT, f"{RTL_OVERRIDE}desrever {{{{x}}}}", word, "\x01" * 300, '{{role "tool"}}']
    roles = ["system", "user", "assistant", "tool", "user"]
    write_version(
        root, *CHAT.split("/"), "1.0.0",
        "".join(f'{{{{role "{one}"}}}}\n{turn}\n' for one, turn in zip(roles, turns, strict=True)),
        title="Chat", variables=[{"name": "x", "default": BREAKOUT}],
    )  # fmt: skip
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        write_version(root, *WITHDRAWN.split("/"), version, f"Version {version}.\n")
    note = f"{BREAKOUT} {RTL_OVERRIDE}desrever {'n' * 700}"
    write_withdrawn(root, WITHDRAWN, "1.1.0", note=note)
    write_version(root, *GONE.split("/"), "1.0.0", "Gone.\n")
    write_withdrawn(root, GONE, reason="legal", note=note)


def _write_folders(root: str | Path) -> None:
    skill = (
        "---\nname: release-notes\ndescription: Notes people read.\n"
        "allowed-tools: Read, Bash(git log:*)\n---\n"
        "Read the commits since {{since}}, then [sort them](references/kinds.md).\n"
    )
    files = {
        "assets/mark.png": b"\x89PNG\r\n\x1a\n\0one",
        "references/kinds.md": b"# Kinds\n\nFeatures, fixes and others.\n",
        "scripts/old.sh": b"#!/bin/sh\nwget -q https://old.example/x\n",
        "scripts/commits": b"echo none\n",
    }
    write_version(root, *FOLDER.split("/"), "1.0.0", skill, files, title="Release notes")
    changed = {
        "assets/mark.png": b"\x89PNG\r\n\x1a\n\0two",
        "references/kinds.md": b"# Kinds\n\nFeatures, fixes and breaks.\n",
        "scripts/commits": files["scripts/commits"],
        "scripts/commits.sh": b"#!/bin/sh\nset -eu\ncurl -s https://api.tracker.example/v1 | jq\n",
    }
    skill += "\n```sh\ngit log --oneline\n```\n"
    write_version(root, *FOLDER.split("/"), "1.1.0", skill, changed, title="Release notes")
    many = {f"d{number % 7}/file-{number:03}.txt": b"x\n" * number for number in range(FILES_MAX)}
    write_version(root, *FULL.split("/"), "1.0.0", "Look at the files.\n", many)
    hidden = f"# {BREAKOUT}\nx{ZERO_WIDTH_SPACE}y {RTL_OVERRIDE}z\U000e0041\n"
    files = {
        "a.md": hidden.encode(),
        f"{'d' * 99}/{'n' * 95}.html": BREAKOUT.encode(),
        "hosts.py": "".join(f"https://h{number}.example/\n" for number in range(300)).encode(),
        "run.sh": b"curl\xff -s https://x.example\n$(\0rm -rf x)\n",
    }
    text = (
        f"---\nname: files\nallowed-tools: ['{ALERT}']\n---\nSee https://{'h' * 300}.example/ "
        f"and https://good.example@{RTL_OVERRIDE}evil.example/.\n"
    )
    write_version(root, *HOSTILE_FILES.split("/"), "1.0.0", text, files)


# One of each kind of page, and what it may break on, by the path below the base URL.
PAGES = {
    "home": "/",
    "list": "/top",
    "next page": "/new/2",
    "tags": "/tags",
    "tag": "/tags/sql",
    "tag in an order": "/tags/sql/new",
    "owner": "/mara-okafor",
    "repo": f"/{SQL_REVIEW}",
    "version": f"/{SQL_REVIEW}/1.1.0",
    "first version": f"/{SQL_REVIEW}/1.0.0",
    "changed version": f"/{CHANGED}",
    "versions": f"/{SQL_REVIEW}/versions",
    "compare": f"/{SQL_REVIEW}/compare",
    "labels": f"/{RELEASED}",
    "versions with labels": f"/{RELEASED}/versions",
    "labels compared": f"/{RELEASED}/compare?from=stable&to=tested",
    "callers, changed": f"/{CALLED}/1.3.0",
    "callers, compared": f"/{CALLED}/compare",
    "callers, compared beside": f"/{CALLED}/compare#beside",
    "history": f"/{HISTORY}/versions",
    "history compared": f"/{HISTORY}/compare?from=production&to=latest",
    "one version left": f"/{LEFT}/versions",
    "withdrawn versions": f"/{WITHDRAWN}/versions",
    "same version twice": f"/{RELEASED}/compare?from=stable&to=1.1.0",
    "nothing to compare": f"/{RELEASED}/compare?from=9.9.9&to=latest",
    "search": "/search?q=review",
    "connect": "/connect",
    "api": "/docs",
    "not found": "/no-such-owner",
    "kinds": f"/{KINDS}",
    "chat": f"/{COMMIT_MESSAGE}",
    "chat version": f"/{COMMIT_MESSAGE}/2.1.0",
    "talk": f"/{TALK}",
    "Japanese": f"/{JAPANESE}",
    "hostile owner": f"/{MALLORY}",
    "hostile markup": f"/{MARKUP}",
    "hostile markup, changed": f"/{MARKUP}/1.1.0",
    "long line": f"/{LONG_LINE}",
    "long line, changed": f"/{LONG_LINE}/1.1.0",
    "wide": f"/{WIDE}",
    "invisible characters": f"/{INVISIBLE}",
    "invisible characters, changed": f"/{INVISIBLE}/1.1.0",
    "runs": f"/{RUNS}",
    "runs, changed": f"/{RUNS}/1.1.0",
    "cut": f"/{CUT}",
    "cut, changed": f"/{CUT}/1.1.0",
    "hostile chat": f"/{CHAT}",
    "hostile markup, versions": f"/{MARKUP}/versions",
    "hostile markup, compared": f"/{MARKUP}/compare",
    "long line, versions": f"/{LONG_LINE}/versions",
    "long line, compared": f"/{LONG_LINE}/compare",
    "invisible characters, compared": f"/{INVISIBLE}/compare",
    "cut, compared": f"/{CUT}/compare",
    "partly withdrawn": f"/{WITHDRAWN}",
    "withdrawn version": f"/{WITHDRAWN}/1.1.0",
    "withdrawn prompt": f"/{GONE}",
    "folder": f"/{FOLDER}",
    "folder, changed": f"/{FOLDER}/1.1.0",
    "folder, compared": f"/{FOLDER}/compare",
    "full folder": f"/{FULL}",
    "hostile folder": f"/{HOSTILE_FILES}",
}
# They have the markup of other kinds, around another text.
_ALIKE = {
    "next page", "tag in an order", "first version", "chat version", "Japanese", "hostile owner",
    "hostile markup", "hostile markup, versions", "hostile markup, compared", "long line",
    "long line, versions", "long line, compared", "invisible characters",
    "invisible characters, compared", "runs", "cut", "cut, compared",
}  # fmt: skip
UNLIKE = [kind for kind in PAGES if kind not in _ALIKE]
HOSTILE = [kind for kind, path in PAGES.items() if MALLORY in path]
