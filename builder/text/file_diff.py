"""Differences between the files of two versions, in bounded time for any files. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from builder.model.version_files import text_of
from builder.text.line_diff import STEPS_MAX, LineDiff, Steps

# The limit for the texts of all changed files of both versions. The lines of files beyond it are
# not compared.
COMPARED_BYTES_MAX = 512 * 1024


class Named(Protocol):
    """The fields of a version's file, as in its record."""

    path: str
    size: int
    sha256: str
    executable: bool


File = TypeVar("File", bound=Named)


class FileChange(NamedTuple, Generic[File]):
    """A file that differs between two versions; ``old`` or ``new`` is None if that version lacks
    it. ``lines``: the difference of its texts. ``reason``: why there is no such difference. "mode":
    only the executable bit has changed. "bytes": neither side is UTF-8 text; "old bytes", "new
    bytes": only that side is not. "long": the files before it used up the limit.
    """

    old: File | None
    new: File | None
    lines: LineDiff | None = None
    reason: Literal["", "mode", "bytes", "old bytes", "new bytes", "long"] = ""

    @property
    def path(self) -> str:
        """The path, which is the same in both versions."""
        return (self.old or self.new).path

    @property
    def kind(self) -> Literal["added", "removed", "changed", "mode"]:
        """The change; "mode" if only the executable bit has changed."""
        if not self.old or not self.new:
            return "removed" if self.old else "added"
        return "mode" if self.reason == "mode" else "changed"


def compare_files(
    old: Sequence[File],
    new: Sequence[File],
    read_old: Callable[[File], bytes],
    read_new: Callable[[File], bytes],
) -> list[FileChange[File]]:
    """The changes between the files of two versions, in the order of their paths. Reads only files
    whose bytes have changed.
    """
    if not old and not new:
        return []
    steps, bytes_left = Steps(STEPS_MAX), COMPARED_BYTES_MAX
    was, now = ({one.path: one for one in files} for files in (old, new))
    changes = []
    for path in sorted(was.keys() | now.keys()):
        before, after = was.get(path), now.get(path)
        if before and after and before.sha256 == after.sha256:
            if before.executable != after.executable:
                changes.append(FileChange(before, after, reason="mode"))
            continue
        texts = _text(before, read_old), _text(after, read_new)
        size = sum(one.size for one in (before, after) if one)
        if None in texts:
            changes.append(FileChange(before, after, reason=_no_text(before, after, texts)))
        elif size > bytes_left:
            changes.append(FileChange(before, after, reason="long"))
        else:
            bytes_left -= size
            changes.append(FileChange(before, after, LineDiff(*texts, steps)))
    return changes


def unified(changes: Sequence[FileChange]) -> str:
    """The changes as ``git diff`` prints them (https://git-scm.com/docs/diff-format), which ``git
    apply`` takes. For a file whose lines are not compared, one line says so.
    """
    return "".join(line for change in changes for line in _unified(change))


def _unified(change: FileChange) -> Iterator[str]:
    path, old, new = change.path, change.old, change.new
    yield f"diff --git a/{path} b/{path}\n"
    if old and new and old.executable != new.executable:
        yield f"old mode {_mode(old)}\nnew mode {_mode(new)}\n"
    elif not old:
        yield f"new file mode {_mode(new)}\n"
    elif not new:
        yield f"deleted file mode {_mode(old)}\n"
    names = f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null"
    if change.lines:
        yield change.lines.unified(*names)
    elif change.reason != "mode":
        kind = "Binary files" if change.reason.endswith("bytes") else "Files"
        yield f"{kind} {names[0]} and {names[1]} differ\n"


def _mode(file: Named) -> str:
    return "100755" if file.executable else "100644"


def _text(file: File | None, read: Callable[[File], bytes]) -> str | None:
    """The text of a file, empty if it does not exist; None if it is not text."""
    return text_of(read(file)) if file else ""


def _no_text(
    old: File | None, new: File | None, texts: tuple[str | None, str | None]
) -> Literal["bytes", "old bytes", "new bytes"]:
    if not old or not new or texts == (None, None):
        return "bytes"
    return "old bytes" if texts[0] is None else "new bytes"
