"""GitHub Models: ``.prompt.yml`` files, whose past is in git.

Follows GitHub's page "Storing prompts in GitHub repositories": name, description, model,
modelParameters, messages, responseFormat and jsonSchema. Each commit that changes one of these is a
version, with its time and its subject. A file that differs from the last commit is the newest.

Not taken: testData and evaluators, authors of commits, git's tags, and files that HEAD does not
have any more.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.text.one_line import one_line
from moving.importers.chats import as_prompt
from moving.importers.files import TRIALS, read_front, read_message_file
from moving.importers.folders import MESSAGE_SUFFIXES
from moving.importers.git_history import Repository, State, find_repository
from moving.importers.items import Document, History, Rejection, Revision
from moving.importers.times import read_time
from moving.vendors.documents import TEXT_BYTES_MAX, ZIP_SUFFIX, place_of, read_documents
from publisher.outside.git_program import GitError

TITLE = "GitHub Models"

_SUBJECT_CHARS_MAX = 1000


def read_source(path: str) -> Iterator[Document | Rejection]:
    """The states of each file in order: those in git, then the file as it is now.

    The value of a state of git's is a dict: ``file`` (its place in the source), ``text``, ``at``
    (seconds since 1970) and ``subject``; instead of ``text``, it may have a ``fault``. Raises
    OperatorError where nothing can be read.
    """
    if not (Path(path).is_dir() or path.lower().endswith((ZIP_SUFFIX, *MESSAGE_SUFFIXES))):
        raise OperatorError(
            f"{path} is neither a folder nor a file that ends in {' or '.join(MESSAGE_SUFFIXES)}. "
            "Pass the folder of your repository."
        )
    files: dict[str, Document] = {}
    for one in read_documents(path, _kind_of):
        if isinstance(one, Rejection):
            yield one
        else:
            files[one.where] = one
    pasts, missing = _try_pasts(path)
    if missing:
        yield Rejection(".git", missing)
    for where in sorted({*pasts, *files}):
        past = pasts.get(where, [])
        yield from past
        if where in files and not (past and _is_same(past[-1], files[where])):
            yield files[where]


def _kind_of(path: str) -> str:
    return ".yml" if path.lower().endswith(MESSAGE_SUFFIXES) else ""


def _is_same(state: Document, file: Document) -> bool:
    """True if a file is as a commit left it, ignoring line ends, which git may change."""
    text = state.value.get("text")
    return text is not None and text.replace("\r\n", "\n") == file.value.replace("\r\n", "\n")


_Pasts = dict[str, list[Document]]


def _try_pasts(path: str) -> tuple[_Pasts, str]:
    """The history in git of a source's files, by their places in it, and what is missing of it."""
    if path.lower().endswith(ZIP_SUFFIX):
        return {}, ""
    try:
        found = find_repository(path)
        return _read_pasts(Path(path).resolve(), *found) if found else ({}, "")
    except (GitError, OSError) as error:
        shown = f"its commits cannot be read, so each file is one version: {error}"
        return {}, f"{shown.removesuffix('.')}. Try a new clone, with all commits and files"


def _read_pasts(source: Path, tree: Path, git_folder: Path) -> tuple[_Pasts, str]:
    # The part of a file's repository path before its place in the source.
    is_folder = source.is_dir()
    above = (source if is_folder else source.parent).relative_to(tree).as_posix()
    prefix = "" if above == "." else f"{above}/"
    with Repository(git_folder) as repository:
        past = repository.read_past(MESSAGE_SUFFIXES)
        files = {
            file.removeprefix(prefix): states
            for file, states in past.files.items()
            if file.startswith(prefix) and (is_folder or file == prefix + source.name)
        }
        blobs = repository.read_blobs(
            (state.blob for states in files.values() for state in states), TEXT_BYTES_MAX
        )
    pasts: _Pasts = {}
    for file, states in files.items():
        where = place_of(file)
        pasts[where] = [_open_state(where, one, blobs.get(one.blob)) for one in states]
    is_told = past.missing and files
    return pasts, f"older versions are missing: {past.missing}" if is_told else ""


def _open_state(file: str, state: State, raw: bytes | None) -> Document:
    """The document of a state. ``file``: its place in the source."""
    value = {"file": file, "at": state.at}
    value["subject"] = state.subject.encode(errors="surrogateescape").decode(errors="replace")
    try:
        if raw is None:
            value["fault"] = f"larger than {TEXT_BYTES_MAX:,} bytes, or not in the clone"
        else:
            value["text"] = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        value["fault"] = f"not UTF-8 at byte {error.start:,}"
    return Document(f"{file}, commit {state.commit[:10]}", value)


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """The files as prompts. A state that equals the one before it is no version. An unreadable
    state is only reported with the next one, since it cannot be corrected.
    """
    found: dict[str, list[Revision]] = {}
    broken: dict[str, list[Rejection]] = {}
    tried: dict[str, None] = {}
    for where, value in documents:
        state = value if isinstance(value, dict) else {"file": where, "text": value}
        file = state.get("file")
        if not isinstance(file, str) or not file.lower().endswith(MESSAGE_SUFFIXES):
            yield Rejection(where, "is no .prompt.yml file")
            continue
        try:
            revision, has_trials = _read_state(where, state)
        except ValueError as error:
            broken.setdefault(file, []).append(Rejection(where, str(error)))
            continue
        if has_trials:
            tried[file] = None
        revisions = found.setdefault(file, [])
        last = revisions[-1] if revisions else None
        if not last or (last.prompt, last.fields) != (revision.prompt, revision.fields):
            revisions.append(revision)
        passed = [f"Passed over {one.where}: {one.reason}." for one in broken.pop(file, ())]
        revisions[-1].warnings.extend(passed)
    for rejections in broken.values():
        yield from rejections
    if tried:  # reported once, since nearly every file has them
        shown = f"Left out {' and '.join(TRIALS)}: prompts have none here "
        found[next(iter(tried))][-1].warnings.append(f"{shown}({counted(len(tried), 'file')}).")
    for file, revisions in found.items():
        name = file.rpartition("/")[2]
        yield History(file, "", name[: name.lower().rfind(".prompt.")], revisions)


def _read_state(where: str, state: dict[str, Any]) -> tuple[Revision, bool]:
    """The version in a file, and True if it has test data. Raises ValueError."""
    if "fault" in state:
        raise ValueError(str(state["fault"]))
    text = state.get("text")
    messages, front, notes_of_messages = read_message_file(text if isinstance(text, str) else "")
    trials = [front.pop(key, None) for key in TRIALS]
    fields, _, notes = read_front(front)
    warnings = notes_of_messages + notes
    published_at = read_time(state.get("at"), warnings)
    revision = Revision(
        where=where,
        prompt=as_prompt(messages),
        fields=fields,
        warnings=warnings,
        convention="mustache",
        changelog=one_line(str(state.get("subject", "")), _SUBJECT_CHARS_MAX),
        published_at=published_at,
    )
    return revision, any(trials)
