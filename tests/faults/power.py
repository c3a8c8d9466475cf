"""A disk whose power may fail at any call. Replays traced system calls, and lists possible results.

After the power has failed,

- a file has the bytes of its last fsync, or some or all of those written since;
- a folder has the entries of its last fsync, and the first few of the changes made since.

Each folder is independent of the others. File systems with a journal keep to this. POSIX does not
require it: on a disk that is not ``ordered``, any of the changes may have been written.
"""

import ast
import itertools
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tests.faults.strace import MEMORY_CALLS, Call
from tests.faults.trees import Tree

# They change nothing on the disk. A call that is neither here nor in ``play`` is an error.
_HARMLESS = {
    "access", "close", "fcntl", "flock", "fstat", "getdents64", "ioctl", "lseek", "newfstatat",
    "read", "sendto", *MEMORY_CALLS,
}  # fmt: skip
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(eq=False)
class _File:
    written: bytes = b""
    synced: bytes = b""

    def sync(self) -> None:
        self.synced = self.written

    def outcomes(self, ordered: bool) -> set[Tree]:
        contents = {self.synced}
        if self.written != self.synced:
            contents |= {b"", self.written[: len(self.written) // 2], self.written}
        return {frozenset({("", data)}) for data in contents}


@dataclass(eq=False)
class _Folder:
    entries: dict[str, "_File | _Folder"] = field(default_factory=dict)
    synced: dict[str, "_File | _Folder"] = field(default_factory=dict)
    changes: list[tuple[str, "_File | _Folder | None"]] = field(default_factory=list)

    def put(self, name: str, node: "_File | _Folder") -> None:
        self.entries[name] = node
        self.changes.append((name, node))

    def remove(self, name: str) -> None:
        del self.entries[name]
        self.changes.append((name, None))

    def sync(self) -> None:
        self.synced = dict(self.entries)
        self.changes = []

    def outcomes(self, ordered: bool) -> set[Tree]:
        return {
            frozenset({("", None)}).union(*chosen)
            for entries in self._entries_left(ordered)
            for chosen in itertools.product(
                *(_below(name, node.outcomes(ordered)) for name, node in entries)
            )
        }

    def _entries_left(self, ordered: bool) -> set[frozenset[tuple[str, "_File | _Folder"]]]:
        made = self.changes
        if ordered:
            kept = [made[:count] for count in range(len(made) + 1)]
        else:
            counts = range(len(made) + 1)
            kept = itertools.chain.from_iterable(itertools.combinations(made, n) for n in counts)
        left = [self.synced | dict(changes) for changes in kept]
        return {frozenset(item for item in some.items() if item[1]) for some in left}


def _below(name: str, outcomes: set[Tree]) -> list[Tree]:
    return [
        frozenset((f"{name}/{path}".rstrip("/"), data) for path, data in tree) for tree in outcomes
    ]


class Disk:
    """The disk below a content folder, on which everything in ``tree`` is safe."""

    def __init__(self, root: str, tree: Tree, *, ordered: bool = True) -> None:
        self._root = PurePosixPath(root)
        self._ordered = ordered
        self._top = _Folder()
        self._opened: dict[int, _File | _Folder] = {}
        folders = [self._top]
        for path, data in sorted(tree):
            folder, name = self._place(str(self._root / path))
            node = _Folder() if data is None else _File(data, data)
            folder.put(name, node)
            if isinstance(node, _Folder):
                folders.append(node)
        for folder in folders:
            folder.sync()

    def outcomes(self) -> set[Tree]:
        """Possible contents of the disk if the power fails now."""
        return {tree - {("", None)} for tree in self._top.outcomes(self._ordered)}

    def play(self, call: Call) -> None:
        """Do what a call did. Raises NotImplementedError for one that the model does not know."""
        if call.name in _HARMLESS or call.result is None or call.result < 0:
            return
        strings = [ast.literal_eval(f"b{quoted}") for quoted in _QUOTED.findall(call.args)]
        match call.name, strings:
            case "openat", [path]:
                self._open(path.decode(), call)
            case "write", [data]:
                self._of(call).written += data[: call.result]
            case "fsync" | "fdatasync", []:
                self._of(call).sync()
            case "mkdir" | "mkdirat", [path]:
                folder, name = self._place(path.decode())
                folder.put(name, _Folder())
            case "link" | "linkat", [old, new]:
                (there, old_name), (folder, name) = map(self._place, (old.decode(), new.decode()))
                folder.put(name, there.entries[old_name])
            case "rename" | "renameat" | "renameat2", [old, new]:
                (there, old_name), (folder, name) = map(self._place, (old.decode(), new.decode()))
                folder.put(name, there.entries[old_name])
                there.remove(old_name)
            case "unlink" | "unlinkat" | "rmdir", [path]:
                folder, name = self._place(path.decode())
                folder.remove(name)
            case _:
                raise NotImplementedError(f"The model of the disk does not know {call}.")

    def _open(self, path: str, call: Call) -> None:
        if PurePosixPath(path) == self._root:
            self._opened[call.result] = self._top
            return
        folder, name = self._place(path)
        if "O_CREAT" in call.args and name not in folder.entries:
            folder.put(name, _File())
        node = folder.entries[name]
        if "O_WRONLY" in call.args or "O_RDWR" in call.args:
            if "O_EXCL" not in call.args and "O_TRUNC" not in call.args:
                raise NotImplementedError(f"The model writes whole files only: {call}.")
            node.written = b""
        self._opened[call.result] = node

    def _of(self, call: Call) -> "_File | _Folder":
        return self._opened[int(re.match(r"\d+", call.args)[0])]

    def _place(self, path: str) -> tuple[_Folder, str]:
        *above, name = PurePosixPath(path).relative_to(self._root).parts
        folder = self._top
        for part in above:
            folder = folder.entries[part]
        return folder, name
