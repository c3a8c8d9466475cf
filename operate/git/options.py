"""What an operator says of the branch, checked."""

import os
import re
import shutil
import subprocess
from typing import NamedTuple

from builder.model.errors import OperatorError

DEFAULT_FOLDER = "content"
_LOCAL_SECONDS = 30

_part = re.compile(r"[A-Za-z0-9._-]+")
_remote_name = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
# git-check-ref-format, and a little less.
_branch = re.compile(r"(?!.*(?:\.\.|//|/\.|\.lock$|\.$|/$|\.lock/))[A-Za-z0-9_][A-Za-z0-9._/-]*")


class GitOptions(NamedTuple):
    """``remote``: a URL, a path, or the name of a remote of the clone that the content is in.
    ``folder``: where the content is on the branch, without slashes at its ends; empty for the top,
    None where nobody said it.
    """

    remote: str
    branch: str
    folder: str | None


def parse_git_options(remote: str, branch: str, folder: str | None) -> GitOptions:
    """Check them. Raises OperatorError."""
    if not shutil.which("git"):
        raise OperatorError("The program git is not there. Install it, or leave out --git.")
    if remote.startswith("-"):
        raise OperatorError(
            f"Invalid --git {remote!r}. Give the URL or the path of a git repository."
        )
    if not _branch.fullmatch(branch):
        raise OperatorError(f"Invalid --git-branch {branch!r}. Give a name like main.")
    if folder is None:
        return GitOptions(remote, branch, None)
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    if any(part in ("..", ".git") or not _part.fullmatch(part) for part in parts):
        raise OperatorError(
            f"Invalid --git-folder {folder!r}. Give a path of letters, digits, dots, underscores "
            "and hyphens, like content, or . for the top of the branch."
        )
    return GitOptions(remote, branch, "/".join(parts))


def resolve(options: GitOptions, content: str) -> GitOptions:
    """With the address for the name of a remote, and the folder. Raises OperatorError."""
    remote, branch, folder = options
    if not _remote_name.fullmatch(remote) or os.path.isdir(remote):
        return GitOptions(remote, branch, DEFAULT_FOLDER if folder is None else folder)
    address = _ask_clone(content, "remote", "get-url", remote)
    if not address:
        raise OperatorError(
            f"The folder {content} is in no git clone with a remote named {remote!r}. Give the URL "
            "or the path of a git repository."
        )
    if folder is None:
        folder = _ask_clone(content, "rev-parse", "--show-prefix").rstrip("/")
    return parse_git_options(address, branch, folder)


def _ask_clone(content: str, *command: str) -> str:
    asked = subprocess.run(
        ["git", "-C", content, *command], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, check=False, timeout=_LOCAL_SECONDS,
    )  # fmt: skip
    return asked.stdout.strip() if asked.returncode == 0 else ""
