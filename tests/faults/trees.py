"""A folder's whole contents as a value, so that outcomes can be compared and made again."""

from pathlib import Path

# Paths relative to the folder, with a file's bytes, or None for a folder.
Tree = frozenset[tuple[str, bytes | None]]


def read(root: str) -> Tree:
    """Paths and contents of a folder."""
    return frozenset(
        (path.relative_to(root).as_posix(), path.read_bytes() if path.is_file() else None)
        for path in Path(root).rglob("*")
    )


def write(tree: Tree, root: str) -> None:
    """Make the folder and all that is in it."""
    Path(root).mkdir()
    for name, data in sorted(tree):  # a folder before what is in it
        if data is None:
            Path(root, name).mkdir()
        else:
            Path(root, name).write_bytes(data)
