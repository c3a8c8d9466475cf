"""Who may write the folders, and who may read what is private."""

import os
import pwd
import stat
from collections.abc import Iterator

from builder.model.errors import OperatorError
from builder.model.settings import check_folders
from builder.stats.database import PULLS_FILE
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE

# How many levels are looked at: owners and prompts; databases and the index; what lies at the top
# of a site, of which there can be hundreds of thousands of files.
_LEVELS = {"--content": 2, "--state": 2, "--out": 1}
_SHOWN_MAX = 3


def places(subject: Subject) -> Iterator[Finding]:
    """The folders are there, apart from each other, and this user may write them."""
    try:
        check_folders(subject.settings)
    except OperatorError as error:
        yield problem(str(error))
    user = name_of(os.geteuid())
    fine = []
    for option, path in subject.folders.items():
        if not os.path.exists(path):
            yield _missing(option, path)
        elif not os.path.isdir(path):
            yield problem(
                f"{path} is no folder.", f"Move it away, or pass another folder with {option}."
            )
        elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            yield problem(
                f"{user} may not read and write {path}, which belongs to "
                f"{name_of(os.stat(path).st_uid)}.",
                f"Run as root: chown -R {user} {path}. Or run this command as the user who runs "
                "the hub.",
            )
        else:
            fine.append(path)
    if fine:
        yield ok(f"{user} may read and write {', '.join(fine)}")


def _missing(option: str, path: str) -> Finding:
    if option == "--content":
        return problem(
            f"No content folder {path}.",
            f"Run the command in a hub's folder, pass {option} DIR, or create a hub with "
            "`hubctl init DIR`.",
        )
    return warning(f"No folder {path} yet.", f"The first build makes it. Or pass {option} DIR.")


def owners(subject: Subject) -> Iterator[Finding]:
    """All that is in a folder belongs to the one user to whom the folder belongs."""
    fine = []
    for option, path in subject.existing.items():
        user = os.stat(path).st_uid
        if os.geteuid() not in (user, 0):
            continue  # `places` has told
        if os.geteuid() == 0 != user:
            yield warning(
                f"You are root, and {path} belongs to {name_of(user)}.",
                "Run hubctl as that user: the hub cannot write files that root creates.",
            )
        others = [entry for entry in _entries(path, _LEVELS[option]) if _owner(entry) != user]
        if others:
            shown = ", ".join(entry.path for entry in others[:_SHOWN_MAX])
            more = len(others) - _SHOWN_MAX
            yield problem(
                f"{path} belongs to {name_of(user)}, but not all that is in it: {shown}"
                f"{f' and {more:,} more' if more > 0 else ''}.",
                f"Stop the hub, and run as root: chown -R {name_of(user)} {path}",
            )
        else:
            fine.append(f"{path} to {name_of(user)}")
    if fine:
        yield ok(f"with all in it, {', '.join(fine)}")


def privacy(subject: Subject) -> Iterator[Finding]:
    """Nobody else may read the accounts and who pulled what, or write anything."""
    found = [
        problem(f"Every user of this machine may write to {path}.", f"Run: chmod o-w {path}")
        for path in subject.existing.values()
        if os.stat(path).st_mode & stat.S_IWOTH
    ]
    for name in (ACCOUNTS_FILE, PULLS_FILE):
        for suffix in ("", "-wal", "-shm"):
            path = f"{subject.settings.state}/{name}{suffix}"
            if os.path.exists(path) and os.stat(path).st_mode & 0o077:
                told = f"Other users of this machine may open {path}."
                found.append(problem(told, f"Run: chmod 600 {path}"))
    yield from found
    if not found:
        yield ok("accounts and pulls are private, and no folder can be written by everybody")


def _entries(path: str, levels: int) -> Iterator[os.DirEntry[str]]:
    """What is in a folder and, to so many levels, in the folders below. Skips what it may not
    read.
    """
    try:
        found = list(os.scandir(path))
    except OSError:
        return
    for entry in found:
        yield entry
        if levels > 1 and entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path, levels - 1)


def _owner(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_uid


def name_of(user: int) -> str:
    """The name of a user id; the number where it has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
