"""Finds every fault of the content tree, including those that fail no build."""

import itertools
import os
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from builder.model import content_tree as tree
from builder.model import names
from builder.model.errors import ContentError, Fault
from builder.model.labels import Move, find_faults, move_of, moves_with
from builder.model.names import Version
from builder.model.ordinals import Counted, count_withdrawn
from builder.model.ordinals import find_faults as find_faults_of_ordinals
from builder.model.plural import counted
from builder.model.records import VersionFile
from builder.store import content
from builder.store.restored import read_restored
from builder.store.sqlite import folder_lock
from builder.store.withdrawn_files import NOTHING_WITHDRAWN, read_parts

# Clocks of nodes and clients differ by minutes, and time zones by a day.
AHEAD_DAYS_MIN = 1
# In the words for a version of the future.
AHEAD = "ahead of this machine's clock"


def check(root: str) -> Iterator[Fault]:
    """Every fault of the tree, in order of path, including those that a build ignores, and
    warnings.
    """
    yield from _faults_of(content.read_home, root)
    yield from _faults_of(read_restored, root)
    try:
        owners = content.list_owners(root)
    except ContentError as error:
        yield from error.faults
        owners = _named_folders(root, names.OWNER_CHARS_MAX)
    yield from _stray_texts_in(root, "")
    for owner in owners:
        yield from _reserved(owner, [("owner", owner)])
        yield from _faults_of(content.read_owner, root, owner)
        yield from _strays(root, owner)
        try:
            repos = content.list_repos(root, owner)
        except ContentError as error:
            yield from error.faults
            repos = _named_folders(f"{root}/{owner}", names.REPO_CHARS_MAX)
        for name in repos:
            yield from check_repo(root, owner, name)


def check_repo(root: str, owner: str, name: str) -> Iterator[Fault]:
    """As ``check``, for one repo's folder."""
    where = f"{owner}/{name}"
    try:
        listing, strays = _look(root, where)
        if strays or listing.left or not listing.versions:
            # A running publication or withdrawal holds this lock.
            with folder_lock(f"{root}/{where}"):
                listing, strays = _look(root, where)
    except ContentError as error:
        yield from error.faults
        return
    except FileNotFoundError:
        return  # A failed first publication has removed the folder.
    for folder in (tree.LABELS, tree.WITHDRAWN):
        if os.path.isdir(f"{root}/{where}/{folder}"):
            yield from _strays(root, f"{where}/{folder}")
    yield from strays
    for file in listing.left:
        yield Fault(f"{where}/{file}", "was withdrawn; remove it, or run `hubctl build`")
    if not listing.versions and listing.withdrawn == NOTHING_WITHDRAWN:
        yield Fault(where, "no versions")
    yield from _check_history(root, owner, name, listing)


def _check_history(
    root: str, owner: str, name: str, listing: content.RepoListing
) -> Iterator[Fault]:
    """The faults of a repo's versions, labels and withdrawals, read in order of time."""
    where = f"{owner}/{name}"
    versions, events, withdrawn, _ = listing
    before = ""
    tags: list[str] = []
    moves: list[Move] = []
    counted: list[Counted] = []
    for version in versions:
        try:
            record, text = content.read_version(root, owner, name, version)
            content.read_files(root, owner, name, version, record)
        except ContentError as error:
            # Otherwise it was withdrawn meanwhile.
            if version in content.list_versions(root, owner, name).versions:
                yield from error.faults
            continue
        moves += moves_with(str(version), record)
        file = tree.RECORD.file(version)
        counted.append(Counted(record.published_at, version, record.ordinal or None, file))
        yield from _check_version(where, version, record, text, before)
        yield from _strange_files(root, f"{where}/{tree.FILE.entry(version)}", record)
        if record.files and content.check_format(root) < content.FORMAT_NUMBER:
            then = f"write {content.FORMAT_NUMBER} to {root}/{tree.FORMAT_FILE}"
            yield Fault(f"{where}/{file}", f"older releases misread files; {then}", is_warning=True)
        before, tags = record.published_at, record.tags
    for number in events:
        try:
            moves.append(move_of(number, content.read_event(root, where, number)))
        except ContentError as error:
            yield from error.faults
    gone = set(withdrawn.versions)
    try:
        parts = read_parts(root, where, withdrawn)
    except ContentError as error:
        yield from error.faults
    else:
        moves += parts.moves
        gone |= parts.names
        counted += [count_withdrawn(one, withdrawn.versions) for one in parts.versions]
    labels = {move.label for move in moves}
    named = [("prompt", name), *(("tag", tag) for tag in tags)]
    yield from _reserved(where, [*named, *(("label", label) for label in sorted(labels))])
    yield from find_faults_of_ordinals(counted, f"{where}/")
    yield from find_faults(moves, {*map(str, versions)}, f"{where}/", gone)


def _look(root: str, where: str) -> tuple[content.RepoListing, list[Fault]]:
    """The listing of a repo's folder, and its unexpected files. Raises ContentError,
    FileNotFoundError.
    """
    # Before the versions, so that a version committed meanwhile is listed below.
    strays = [*_strays(root, where)]
    listing = content.list_versions(root, *where.split("/"))
    versions = itertools.product(tree.VERSION_KINDS, listing.versions)
    known = {*listing.left, *(kind.entry(version) for kind, version in versions)}
    return listing, [one for one in strays if one.path.rpartition("/")[2] not in known]


def _check_version(
    where: str, version: Version, record: VersionFile, text: str, before: str
) -> Iterator[Fault]:
    """The faults of a readable version; ``before`` is the time of the previous one."""
    file, text_file = f"{where}/{tree.RECORD.file(version)}", f"{where}/{tree.TEXT.file(version)}"
    if record.published_at < before:
        yield Fault(file, "published_at is earlier than that of the version before")
    ahead = (datetime.fromisoformat(record.published_at) - datetime.now(UTC)).days
    if ahead >= AHEAD_DAYS_MIN:
        reason = (
            f"published_at is {counted(ahead, 'day')} {AHEAD}; one of the clocks "
            "is or was wrong, and the next versions of this prompt get no earlier time"
        )
        yield Fault(file, reason, is_warning=True)
    if not text.strip():
        yield Fault(text_file, "no text")
    if "\0" in text:
        yield Fault(text_file, "contains a NUL character")
    # `hubctl build` uses this module, too, and would wait for the import of YAML.
    from builder.text.prompts import parse_document, variable_names

    fault = parse_document(text).fault
    if fault and not record.front_matter_bytes:
        reason = f"the front matter cannot be read, so the site shows it as text: {fault}"
        yield Fault(text_file, reason, is_warning=True)
    declared = {variable.name for variable in record.variables}
    missing = [found for found in variable_names(text) if found not in declared]
    if missing:
        yield Fault(file, f"undeclared variables of the text: {', '.join(missing)}")


def _strange_files(root: str, folder: str, record: VersionFile) -> Iterator[Fault]:
    """Faults for entries in the folder of a version's files that its record does not list."""
    known = {one.path for one in record.files or ()}
    for path, folders, files in os.walk(f"{root}/{folder}"):
        links = [one for one in folders if os.path.islink(f"{path}/{one}")]
        for one in sorted(files + links):
            below = os.path.relpath(f"{path}/{one}", f"{root}/{folder}")
            if below not in known and not one.startswith("."):
                yield Fault(f"{folder}/{below}", "not in the record; move it out of the content")
    if not known and os.path.isdir(f"{root}/{folder}"):
        yield Fault(folder, "the record has no files; move the folder out of the content")


def _reserved(where: str, named: Iterable[tuple[str, str]]) -> Iterator[Fault]:
    """Warnings for names, each with its kind, that only older releases accepted."""
    for kind, text in named:
        if why := names.why_reserved(kind, text):
            reason = f"the {kind} name {text!r} is reserved today: {why}; use another one"
            yield Fault(where, reason, is_warning=True)


def _faults_of(read, *args: str) -> Iterable[Fault]:
    try:
        read(*args)
    except ContentError as error:
        return error.faults
    return ()


def _named_folders(path: str, chars_max: int) -> list[str]:
    """The folders in ``path`` whose names can be an owner's or a repo's, sorted; other entries are
    ignored. Raises OSError.
    """
    with os.scandir(path) as entries:
        return sorted(
            entry.name
            for entry in entries
            if names.is_name(entry.name, chars_max) and entry.is_dir(follow_symlinks=False)
        )


def stray_texts(root: str) -> Iterator[Fault]:
    """A warning for each text that is not a version, so no build shows it; cheaper than
    ``check``.
    """
    yield from _stray_texts_in(root, "")
    for owner in _named_folders(root, names.OWNER_CHARS_MAX):
        yield from _stray_texts_in(root, owner)
        for name in _named_folders(f"{root}/{owner}", names.REPO_CHARS_MAX):
            yield from _stray_texts_in(root, f"{owner}/{name}")


def _stray_texts_in(root: str, where: str) -> Iterator[Fault]:
    with os.scandir(os.path.join(root, where)) as entries:
        strays = [entry.name for entry in entries if _is_stray_text(entry, where)]
    for name in sorted(strays):
        yield _stray_text(root, where, name, is_warning=True)


def _is_stray_text(entry: os.DirEntry[str], where: str) -> bool:
    name = entry.name
    if not name.lower().endswith(".md") or name.startswith(".") or tree.in_repo(name):
        return False
    is_known = not where and name.lower() in (tree.HOME_FILE, "readme.md")
    return not is_known and entry.is_file(follow_symlinks=False)


def _stray_text(root: str, where: str, name: str, *, is_warning: bool = False) -> Fault:
    stem = name[: -len(".md")]
    new = stem if names.is_name(stem, names.REPO_CHARS_MAX) else "NAME"
    prompt = where if "/" in where else f"{where or 'OWNER'}/{new}"
    path = os.path.join(where, name)
    reason = (
        "not a published prompt, so no site shows it; run `hubctl publish "
        f"{prompt} {shlex.quote(os.path.join(root, path))}`, then remove the file"
    )
    return Fault(path, reason, is_warning)


def _strays(root: str, where: str) -> Iterator[Fault]:
    """The unexpected entries of the folder of an owner, of a repo, or of its labels or withdrawals,
    and texts and files of versions that have no record there.
    """
    inside = "".join(f"{one}/" for one in where.split("/")[2:])
    known = (tree.LABELS, tree.WITHDRAWN) if "/" in where else (tree.OWNER_FILE,)
    with os.scandir(f"{root}/{where}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path, is_folder = f"{where}/{entry.name}", entry.is_dir(follow_symlinks=False)
            kind, value = tree.in_repo(inside + entry.name) or (None, "")
            if entry.name.startswith(".") or (kind if inside else entry.name in known):
                continue
            if kind in (tree.TEXT, tree.FILE):
                what = f"{'text' if kind is tree.TEXT else 'files'} without record"
                then = "so not a version; publish it again, or remove it"
                yield Fault(path, f"{what} {tree.RECORD.file(value)}, {then}")
            elif not inside and _is_stray_text(entry, where):
                yield _stray_text(root, where, entry.name)
            elif not is_folder or "/" in where:
                yield Fault(path, f"unexpected {'folder' if is_folder else 'file'}; move it away")
