"""The options that name the branch, checked."""

import os
import re
import shutil
from typing import NamedTuple

from builder.model.errors import OperatorError

_part = re.compile(r"[A-Za-z0-9._-]+")
_word = re.compile(r"[A-Za-z0-9_-]+")
# The rules of git-check-ref-format, slightly stricter.
_branch = re.compile(r"(?!.*(?:\.\.|//|/\.|\.lock$|\.$|/$|\.lock/))[A-Za-z0-9_][A-Za-z0-9._/-]*")


class GitOptions(NamedTuple):
    """``remote``: a URL or a path. ``folder``: of the content on the branch, without slashes at the
    ends; empty for the top.
    """

    remote: str
    branch: str
    folder: str


def parse_git_options(remote: str, branch: str, folder: str) -> GitOptions:
    """The options, checked. Raises OperatorError."""
    if not shutil.which("git"):
        raise OperatorError("The program git is missing. Install it, or leave out --git.")
    if remote.startswith("-") or (_word.fullmatch(remote) and not os.path.isdir(remote)):
        raise OperatorError(
            f"Invalid --git {remote!r}. Give the URL or the path of a git repository. In a clone, "
            "`git remote get-url origin` prints it."
        )
    if not _branch.fullmatch(branch):
        raise OperatorError(f"Invalid --git-branch {branch!r}. Give a name like main.")
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    if any(part in ("..", ".git") or not _part.fullmatch(part) for part in parts):
        raise OperatorError(
            f"Invalid --git-folder {folder!r}. Give a path of letters, digits, dots, underscores "
            "and hyphens, like content, or . for the top of the branch."
        )
    return GitOptions(remote, branch, "/".join(parts))
