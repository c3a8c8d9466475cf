"""The files that a destination must have: the present ones of a site."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from builder.store.site import Mark, Site, mark_of


class File(NamedTuple):
    """A file of the site: the MD5 of its bytes in hexadecimal, and its time, size and inode."""

    md5: str
    mark: Mark


def wanted(site: str, names: Iterable[str] | None, known: Mapping[str, File]) -> dict[str, File]:
    """The files of a site by their paths: all, or those of ``names`` that exist. ``known``: files
    as they were; those with the same mark are not read. Raises OperatorError.
    """
    found = {}
    for name in Site(site).files() if names is None else names:
        with contextlib.suppress(FileNotFoundError):
            file = known.get(name)
            is_same = file and file.mark == mark_of(os.stat(f"{site}/{name}"))
            found[name] = file if is_same else read(site, name)[0]
    return found


def read(site: str, name: str) -> tuple[File, bytes]:
    """A file of the site as it is now, and its bytes. Raises OperatorError, and FileNotFoundError
    for a missing file.
    """
    path = f"{site}/{name}"
    with open(path, "rb") as file:
        data, mark = file.read(), mark_of(os.fstat(file.fileno()))
    return File(hashlib.md5(data, usedforsecurity=False).hexdigest(), mark), data
