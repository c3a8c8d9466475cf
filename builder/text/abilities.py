"""The abilities of a version, as far as fixed rules find them in its text and files. Pure.

Reviewers read the findings before an agent uses the version. The rules match words, so they miss
disguised code. A version without findings may still be unsafe.

The time is linear in the size of a version, which is limited. The rules therefore read all of it,
and code cannot hide beyond a limit.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from builder.model.plural import counted
from builder.model.version_files import is_text, text_of
from builder.text.hidden_chars import called, invisible
from builder.text.prompts import parse_document

# The name of the text among the files of a version.
TEXT = "SKILL.md"
# The most places that a finding lists; further ones are only counted.
PLACES_MAX = 3
# The longest name of a host (RFC 1035 §2.3.4); longer findings are cut.
NAME_CHARS_MAX = 253

# The path of a file, its bytes, and True if it is executable.
File = tuple[str, bytes, bool]


class Rule(NamedTuple):
    """``title`` is the heading of its findings, and ``words`` describe them. ``absent``: what pages
    say is not found, empty to say nothing.
    """

    title: str
    words: str
    absent: str = ""


RUNS = Rule(
    "Runs",
    "Marked executable, begins with “#!”, or has the ending of a program, such as .py or .exe.",
    "programs",
)
TOOLS = Rule(
    "Allowed tools",
    "“allowed-tools” in front matter: agents use them without asking.",
    "allowed tools",
)
COMMANDS = Rule(
    "Commands",
    "Well-known programs that begin a line, code or a quote, or follow a sign of the shell.",
    "commands",
)
DELETES = Rule(
    "Deletes", "Well-known calls and commands that remove files, tables or disks.", "deletion"
)
CONNECTS = Rule(
    "Connects", "Well-known calls that open sockets or send requests.", "calls to the network"
)
KEYS = Rule(
    "Names places of secrets",
    "Files and stores of keys and passwords, such as ~/.ssh and .netrc.",
    "places of secrets",
)
HOSTS = Rule(
    "Names a host",
    "“https://…” in the text or a file, except names of XML's vocabularies in an .svg or .xml.",
    "names of hosts",
)
HIDDEN = Rule(
    "Hidden characters",
    "No width, or they reorder others. Models read them.",
    "hidden characters",
)
UNREAD = Rule("Not read", "Not text, so the rules did not read it.")
RULES = (RUNS, TOOLS, COMMANDS, DELETES, CONNECTS, KEYS, HOSTS, HIDDEN, UNREAD)


@dataclass
class Finding:
    """``places``: the first PLACES_MAX places, each a path and a line from 1, or 0 for the whole
    file. ``count``: the number of all its places.
    """

    name: str
    places: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0

    @property
    def where(self) -> str:
        """``SKILL.md:3, scripts/run.sh:12 and 4 more lines``; empty for a whole file."""
        shown = ", ".join(f"{path}:{line}" for path, line in self.places if line)
        more = self.count - len(self.places)
        return f"{shown} and {counted(more, 'more line')}" if more else shown


# The findings of each rule, by their names.
Findings = dict[Rule, dict[str, Finding]]
# A rule, its findings that only the new version has, and those that only the old one has.
FindingChange = tuple[Rule, list[Finding], list[Finding]]

_has_key_of_skill = re.compile(r"^(?:name|allowed-tools)[ \t]*:", re.MULTILINE)
_tool = re.compile(r"[^\s,()]++(?:\([^()]*+\))?")
# An authority (RFC 3986 §3.2) without its user, up to a character that ends an address in prose.
_host = re.compile(
    r"(?<=[A-Za-z0-9]://)(?:[^\s/?#\\\"'<>`]*@)?"
    r"(\[[0-9A-Fa-f:.]++\](?::\d++)?|(?:\$?\{++[^{}\s/]*+\}++|[^\s/?#\\\"'<>`()\[\]{},;|*])++)"
)
_PROGRAM_FILES = tuple(
    f".{ending}"
    for ending in "app applescript bash bat cjs cmd com dll dylib exe fish jar js ksh lua mjs php "
    "pl ps1 psm1 py pyw rb scpt sh so tcl ts vbs wasm zsh".split()
)
# Namespaces (https://www.w3.org/TR/xml-names/), places of schemas and document types: names, which
# no reader of the file opens.
_XML_FILES = (".htm", ".html", ".svg", ".xhtml", ".xml", ".xsd", ".xsl")
_xml_name = re.compile(
    r"""\b(?:xmlns(?::[\w.-]+)?|xsi:\w*[sS]chemaLocation)\s*=\s*(?:"[^"<>]*+"|'[^'<>]*+')"""
    r"""|<!DOCTYPE\b[^<>\[]*+"""
)
_deletes = re.compile(
    r"(?<![\w.])((?:shutil\.rmtree|os\.(?:remove|removedirs|rmdir|unlink)|unlinkSync|rmSync"
    r"|fs\.(?:promises\.)?(?:rm|rmdir|unlink)(?:Sync)?|File(?:Utils)?\.(?:delete|rm_rf?)|rimraf"
    r"|Remove-Item)\b|(?i:drop[ \t]++(?:table|database|schema)|truncate[ \t]++table)\b"
    r"|rm[ \t]++-\w*[rRf]\w*|git[ \t]++clean[ \t]++-\w*f|mkfs(?:\.\w+)?|shred|wipefs)(?![\w-])"
    r"|(\.(?:rmtree|unlink|rmdir)(?=\())|([ \t]-delete\b)"
)
_connects = re.compile(
    r"(?<![\w.])((?:socket\.(?:socket|create_connection)|urllib\.request|urllib3|http\.client"
    r"|requests\.(?:delete|get|head|patch|post|put|request|Session)|httpx|aiohttp|websockets"
    r"|smtplib|ftplib|telnetlib|paramiko|XMLHttpRequest|WebSocket|EventSource|axios|sendBeacon"
    r"|net\.(?:connect|Socket|createConnection)|https?\.(?:request|get)|Net::HTTP|TCPSocket"
    r"|Invoke-(?:WebRequest|RestMethod)|fetch(?=\())(?![\w-])|/dev/(?:tcp|udp)/)"
)
_keys = re.compile(
    r"((?:~|\$HOME|\$\{HOME\})?/?(?<![\w-])"
    r"\.(?:ssh|aws|gnupg|kube|docker/config\.json|config/gcloud|azure)(?![\w.-])"
    r"|(?<![\w-])id_(?:rsa|dsa|ecdsa|ed25519)(?![\w-])"
    r"|(?<![\w-])\.(?:netrc|npmrc|pypirc|git-credentials|pgpass|vault-token|(?:ba|z)sh_history)"
    r"(?![\w-])|/etc/(?:shadow|sudoers)\b|\bfind-(?:generic|internet)-password\b|\bLogin Data\b"
    r"|\b(?:cookies\.sqlite|key[34]\.db|logins\.json|wallet\.dat)(?![\w-])"
    r"|\b169\.254\.169\.254\b)"  # where clouds give credentials to machines
)

_MARKDOWN_FILES = (".md", ".mdx", ".markdown")
# Well-known programs, except those whose names are also English words.
_KNOWN = (
    "apt|apt-get|awk|aws|az|base64|bash|brew|bunx?|cargo|chmod|chown|crontab|curl|dd|deno|docker|eval|"
    "ffmpeg|gcloud|gh|git|gpg|grep|helm|jq|kubectl|launchctl|mkdir|mysql|ncat?|npm|npx|openssl|"
    "osascript|pandoc|perl|php|pip3?|pnpm|podman|poetry|powershell|psql|pwsh|pytest|"
    "python[23]?(?:\\.\\d+)?|rclone|rm|rsync|ruby|scp|sed|sftp|sh|socat|sqlite3|ssh|sudo|systemctl|tar|"
    "tee|telnet|terraform|tsx|uvx?|wget|xargs|yarn|zsh"
)
# At the start of a line, after a prompt, in code or quotes, after signs of the shell and words that
# precede commands; not in the row of a table.
_command = re.compile(
    r"^[ \t]*+\|[^\n]*\|[ \t]*$|(?:^[ \t]*+(?:[$>][ \t]++)?|[`\"']|\$\(|[;|&][ \t]*+|(?<=\bsudo )"
    rf"|(?<=\bexec )|(?<=\bxargs ))({_KNOWN})(?=[ \t]++[^\s=:]|[\"'][ \t]*,|[ \t]*+(?:[;|&)]|$))",
    re.MULTILINE,
)


def is_examined(front: str, files: Sequence[object]) -> bool:
    """True for a version with files, or with a key of skills in its front matter."""
    return bool(files) or _has_key_of_skill.search(front) is not None


def examine(text: str, files: Sequence[File]) -> Findings:
    """The findings of the rules in the text and the files of a version."""
    found: Findings = {rule: {} for rule in RULES}
    _examine_text(found, TEXT, text)
    for path, data, executable in files:
        is_script = data.startswith(b"#!")
        if executable or is_script or path.lower().endswith(_PROGRAM_FILES):
            _add(found[RUNS], path, path)
        # An invalid byte must not hide the rest of a script.
        if is_script or is_text(path) or text_of(data) is not None:
            _examine_text(found, path, data.decode(errors="replace"))
        else:
            _add(found[UNREAD], path, path)
    return found


def compare(old: Findings, new: Findings) -> Iterator[FindingChange]:
    """The new and the gone findings of each rule whose findings have changed."""
    for rule in RULES:
        added = [one for key, one in new[rule].items() if key not in old[rule]]
        gone = [one for key, one in old[rule].items() if key not in new[rule]]
        if added or gone:
            yield rule, added, gone


def _examine_text(found: Findings, path: str, text: str) -> None:
    if path.endswith(_MARKDOWN_FILES) and text.startswith("---"):
        _add_all(found[TOOLS], path, _tools(text))
    for rule, pattern in ((DELETES, _deletes), (CONNECTS, _connects), (KEYS, _keys)):
        named = ((line, " ".join(one[0].split())) for line, one in _find(pattern, text))
        _add_all(found[rule], path, named)
    linked = text
    if path.lower().endswith(_XML_FILES):
        linked = _xml_name.sub(lambda found: "\n" * found[0].count("\n"), text)
    _add_all(found[HOSTS], path, ((line, _host_of(one[1])) for line, one in _find(_host, linked)))
    commands = ((line, one[1]) for line, one in _find(_command, text) if one[1])
    _add_all(found[COMMANDS], path, commands)
    _add_all(found[HIDDEN], path, _hidden_characters(path, text))


def _find(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Each match of a pattern, with the number of its line."""
    line, at = 1, 0
    for match in pattern.finditer(text):
        place = match.start(match.lastindex or 0)
        line += text.count("\n", at, place)
        at = place
        yield line, match


def _add_all(found: dict[str, Finding], path: str, named: Iterable[tuple[int, str]]) -> None:
    """Add the findings in a file, each once per line."""
    for line, name in sorted({*named}):
        _add(found, name, path, line)


def _add(found: dict[str, Finding], name: str, path: str, line: int = 0) -> None:
    if len(name) > NAME_CHARS_MAX:
        name = name[: NAME_CHARS_MAX - 1] + "…"
    finding = found.setdefault(name, Finding(name))
    finding.count += 1
    if len(finding.places) < PLACES_MAX:
        finding.places.append((path, line))


def _host_of(authority: str) -> str:
    host = authority.rstrip(".:!_")
    return host if "$" in host or "{" in host else host.lower()


def _hidden_characters(path: str, text: str) -> Iterator[tuple[int, str]]:
    """The hidden characters, with their lines. Their names include the count in the file, so a
    comparison shows one more of them as new.
    """
    runs = [(line, one[0]) for line, one in _find(invisible, text)]
    counts = Counter("".join(run for _, run in runs))
    for line, (character, *_) in runs:
        yield line, f"{called(character)}, {counts[character]:,} in {path}"


def _tools(text: str) -> Iterator[tuple[int, str]]:
    tools = (parse_document(text).front or {}).get("allowed-tools") or []
    line = text.count("\n", 0, text.find("allowed-tools")) + 1
    names = map(str, tools) if isinstance(tools, list) else _tool.findall(str(tools))
    return ((line, name) for name in names)
