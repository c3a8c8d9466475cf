"""The files of a version: their paths, limits and media types, and the version's hash. Pure.

A version is a text, or a folder: then ``SKILL.md`` or ``PROMPT.md`` is its text, and the others are
its files. Every file system, archive and URL accepts their paths unchanged, so no code escapes or
renames them.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from builder.model.names import DEVICE_NAMES

FILES_MAX = 200
# The limit for all files of a version together, unless the operator of a hub sets another. More
# bytes are refused: `content_too_large`.
BYTES_MAX = 5_000_000
# The most that an operator may set, and that every reader takes. Files are sent whole in a request
# and in an answer of MCP, as base64, which takes several times their bytes of memory.
BYTES_HARD_MAX = 20_000_000
PATH_CHARS_MAX = 200

# POSIX' portable characters, "+" and "@". No name begins with a dot, which hides it, or with a
# hyphen, which programs read as an option; none ends with a dot, which Windows removes.
_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9._+@-]*[A-Za-z0-9_+@-])?"
PATH_PATTERN = f"{_NAME}(?:/{_NAME})*"
# The file names of the text in a published folder. Some tools write `skill.md`. Many documents are
# called `prompt.md`.
TEXT_NAMES = ("SKILL.md", "skill.md", "PROMPT.md")


def _by_extension(kinds: dict[str, str]) -> dict[str, str]:
    """The media type of each extension; ``*`` in a type stands for the extension."""
    return {one: kind.replace("*", one) for kind, found in kinds.items() for one in found.split()}


# Extensions of files that are served as text, by the media type in the record.
_TEXT_MEDIA = _by_extension(
    {
        "application/*": "graphql json sql toml xml yaml",
        "application/x-ndjson": "jsonl",
        "application/xml": "xsd",
        "application/yaml": "yml",
        "image/svg+xml": "svg",
        "text/*": "css csv html",
        "text/html": "htm",
        "text/javascript": "cjs js jsx mjs",
        "text/markdown": "markdown md mdx",
        "text/plain": "bat cfg conf cs env ex hbs ini j2 jinja kt log proto ps1 r swift template"
        " tmpl txt vue",
        "text/tab-separated-values": "tsv",
        "text/x-*": "c go java lua php rst scss tex",
        "text/x-c": "h",
        "text/x-c++": "cpp",
        "text/x-perl": "pl",
        "text/x-python": "py",
        "text/x-ruby": "rb",
        "text/x-rust": "rs",
        "text/x-shellscript": "bash sh zsh",
        "text/x-typescript": "ts tsx",
    }
)
_OFFICE = "application/vnd.openxmlformats-officedocument"
# Extensions of files that are served as bytes, by the media type in the record.
_DATA_MEDIA = _by_extension(
    {
        "application/*": "pdf wasm zip",
        "application/gzip": "gz",
        f"{_OFFICE}.presentationml.presentation": "pptx",
        f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
        f"{_OFFICE}.wordprocessingml.document": "docx",
        "application/x-tar": "tar",
        "audio/*": "wav",
        "audio/mpeg": "mp3",
        "font/*": "otf ttf woff woff2",
        "image/*": "avif gif jpeg png webp",
        "image/jpeg": "jpg",
        "image/vnd.microsoft.icon": "ico",
        "video/*": "mp4",
    }
)
# Names without an extension that are served as text.
_TEXT_FILES = "AUTHORS CHANGELOG COPYING Dockerfile Justfile LICENSE Makefile NOTICE README VERSION"

# The paths of files that are served as text. The path alone decides, so any host can apply it.
TEXT_PATTERN = (
    rf"(?:{_NAME}/)*(?:[A-Za-z0-9_][A-Za-z0-9._+@-]*\.(?:{'|'.join(sorted(_TEXT_MEDIA))})"
    rf"|{'|'.join(_TEXT_FILES.split())})"
)
# The end of a file's name on the site. A host that knows only extensions serves it as plain text or
# as bytes, and never as a page or a script.
TEXT_SUFFIX, DATA_SUFFIX = ".txt", ".bin"

_path = re.compile(PATH_PATTERN)
_text_path = re.compile(TEXT_PATTERN)


class Named(Protocol):
    """The fields of a file that the version's hash covers."""

    path: str
    sha256: str
    executable: bool


def is_text(path: str) -> bool:
    """True if a file with this path is served as text."""
    return _text_path.fullmatch(path) is not None


def text_of(data: bytes) -> str | None:
    """The text of a file; None for one that is not UTF-8, or has a NUL character."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def media_type(path: str) -> str:
    """The media type of a path, from a fixed table, so it is the same on every machine."""
    extension = path.rpartition("/")[2].rpartition(".")[2]
    if is_text(path):
        return _TEXT_MEDIA.get(extension, "text/plain")
    return _DATA_MEDIA.get(extension, "application/octet-stream")


def content_sha256(text_sha256: str, files: Iterable[Named]) -> str:
    """The hash of a version with its files: SHA-256 over the lines that ``sha256sum`` prints for
    the text, named ``-``, and the files in the order of their paths' bytes. An executable has ``*``
    before its path instead of the second space.
    """
    lines = [f"{text_sha256}  -\n"] + [
        f"{one.sha256} {'*' if one.executable else ' '}{one.path}\n"
        for one in sorted(files, key=lambda one: one.path)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def find_faults(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The paths that cannot be files of one version together, each with the reason; an empty path
    if there are too many.
    """
    if len(paths) > FILES_MAX:
        yield "", f"has {len(paths):,} files, {FILES_MAX} at most: send fewer"
    short = [path for path in paths if len(path) <= PATH_CHARS_MAX]
    files = {name.lower() for path in short for name in (path, _site_name(path))}
    seen: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for path in paths:
        if fault := fault_of_path(path):
            yield path, fault
            continue
        folders = [*folders_of(path)]
        if (other := seen.get(path.lower())) == path:
            yield path, "is the path of two files: give each a path of its own"
        elif other is not None:
            yield path, "differs from another path in capitals only: rename one of the files"
        elif not files.isdisjoint(folder.lower() for folder in folders):
            yield path, "is in a folder that has the name of another file: rename one of them"
        elif any(spelled.setdefault(one.lower(), one) != one for one in folders):
            yield path, "is in a folder that another path has in other capitals: use the same ones"
        seen[path.lower()] = path


def fault_of_path(path: str) -> str:
    """The reason why no file can have this path; empty if a file can."""
    if len(path) > PATH_CHARS_MAX:
        return f"has {len(path):,} characters, {PATH_CHARS_MAX} at most: shorten the path"
    if not _path.fullmatch(path):
        return (
            "cannot be a path: use names of a-z, A-Z, 0-9 and . _ - + @ with / between them; "
            "no name begins with a dot or a hyphen, or ends with a dot"
        )
    if any(name.partition(".")[0].lower() in DEVICE_NAMES for name in path.split("/")):
        return "has a name that Windows reserves for devices: rename it"
    name, _, below = path.partition("/")
    if name.lower() not in {name.lower() for name in TEXT_NAMES}:
        return ""
    if below:
        return "is in a folder that has the name of the prompt's own text: rename the folder"
    return "is the prompt's own text: send that as `content`"


def folders_of(path: str) -> Iterator[str]:
    """The folders above a path, outermost first."""
    return (path[:at] for at, character in enumerate(path) if character == "/")


def _site_name(path: str) -> str:
    return path + (TEXT_SUFFIX if is_text(path) else DATA_SUFFIX)
