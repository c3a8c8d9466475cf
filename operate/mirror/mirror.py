"""A copy of another hub's prompts in a folder, with the hub's files at their own paths.

``.hub-mirror/`` in the folder has the URL, a lock, files that were fetched and not yet verified,
and ``noted``. ``noted`` has the state of each prompt whose files are whole, or "-" while they are
being replaced. The last line of a prompt counts.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from builder.model import names
from builder.model.errors import OperatorError, explained
from builder.model.matching import version_file
from builder.model.plural import counted
from builder.model.routes import BY_NAME
from builder.model.version_files import find_faults
from builder.store.locks import try_lock
from builder.store.plain_files import read_file
from builder.write.mirrored import digest_of_files, sha256_of
from operate.mirror.site_files import CATALOGUE_BYTES_MAX, FILE_BYTES_MAX, SiteFiles
from operate.parallel import Work
from publisher.outside.fetch import FetchError

PASSES = 3
_NOTES = ".hub-mirror"
_DIGESTED = ("versions", "version", "labels", "label_history")

Read = Callable[[str], bytes | None]
Kind = TypeVar("Kind")


class _Line(Struct):
    """A line of the catalogue."""

    owner: str
    name: str
    latest_version: str
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]

    @property
    def repo(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def state(self) -> str:
        """The digest with a mark. An older release noted only the digest, and copied no files."""
        return f"{self.digest}+files"

    @property
    def is_possible(self) -> bool:
        return (
            names.is_name(self.owner, names.OWNER_CHARS_MAX)
            and names.is_name(self.name, names.REPO_CHARS_MAX)
            and names.is_version(self.latest_version)
        )


class _Hub(Struct):
    api_version: str
    repos_count: int


class _Repo(Struct):
    latest_version: str
    sha256: str
    labels: dict[str, str] | None = None


class _Version(Struct):
    version: str
    sha256: str
    withdrawn: Any = None


class _File(Struct):
    path: str
    sha256: str


class _Record(Struct):
    files: list[_File] = []


class _Label(Struct):
    label: str
    version: str
    moved_at: str


class _Answer(Struct, Generic[Kind]):
    data: Kind


class _Differs(Exception):
    """The files of a prompt differ from those named in the catalogue."""


class Report(NamedTuple):
    """``wrong``: prompts that are missing or differ; ``gone``: those that the hub has removed."""

    prompts: int
    fetched: int
    removed: int
    wrong: list[str]
    gone: list[str]


def mirror(url: str, folder: str, token: str, work: Work) -> Report:
    """Bring a folder to the present state of the hub at ``url``. Raises OperatorError."""
    with _opened(url, folder, token) as run:
        fetched = 0
        for number in range(PASSES):
            time.sleep(2**number if number else 0)  # lists follow their prompts within seconds
            state = run.look()
            done, wrong = run.fetch(state, work, reuse=not number)
            fetched += done
            if not wrong and state.is_consistent:
                break
        else:
            if state.is_consistent:
                run.remove(state.gone)
                raise OperatorError(
                    f"{counted(len(wrong), 'prompt')} of {url} not as its catalogue says, such as "
                    f"{wrong[0]}. {folder} has the others. Run this again in a minute."
                )
            raise OperatorError(
                f"The lists of {url} contradict each other, so nothing was removed. Run this "
                "again in a minute."
            )
        run.publish(state)
        return Report(len(state.lines), fetched, len(state.gone), [], state.gone)


def check(url: str, folder: str, token: str, work: Work) -> Report:
    """Compare the files of a folder with those of the hub at ``url`` now. The next ``mirror``
    fetches differing prompts again. Raises OperatorError.
    """
    if not os.path.isdir(f"{folder}/{_NOTES}"):
        raise OperatorError(f"{folder} is no mirror. Create it without --check.")
    with _opened(url, folder, token) as run:
        state = run.look()

        def differs(line: _Line) -> str:
            with contextlib.suppress(_Differs):
                run.files_of(line, run.read)
                return ""
            return line.repo

        wrong = sorted(filter(None, work.each("Comparing prompts", differs, state.lines)))
        for repo in wrong:
            run.note(repo, "-")
        return Report(len(state.lines), 0, 0, wrong, state.gone)


class _State(NamedTuple):
    """The bytes of a hub's lists, and the prompts in them."""

    hub: bytes
    catalogue: bytes
    lines: list[_Line]
    gone: list[str]
    is_consistent: bool


@contextlib.contextmanager
def _opened(url: str, folder: str, token: str) -> Iterator["_Run"]:
    """A run with exclusive use of the folder. Raises OperatorError."""
    notes = f"{folder}/{_NOTES}"
    with explained("write", folder, "Fix that and run this again.", is_inside=True):
        if not os.path.isdir(notes):
            if os.path.isdir(folder) and os.listdir(folder):
                raise OperatorError(f"{folder} is not empty, and no mirror. Name a new folder.")
            os.makedirs(notes)
        with open(f"{notes}/lock", "a") as lock:
            if not try_lock(lock):
                raise OperatorError(f"Another process writes to {folder}. Wait for it.")
            run = _Run(SiteFiles(url, token), folder)
            if run.url not in ("", url):
                raise OperatorError(f"{folder} mirrors {run.url}. Name another folder for {url}.")
            try:
                yield run
            finally:
                shutil.rmtree(run.stage, ignore_errors=True)


class _Run:
    def __init__(self, site: SiteFiles, folder: str) -> None:
        self.site = site
        self.folder = folder
        self.notes = f"{folder}/{_NOTES}"
        self.stage = f"{self.notes}/run"
        self.url = (_read(f"{self.notes}/url") or b"").decode(errors="replace").strip()
        shutil.rmtree(self.stage, ignore_errors=True)  # from a killed run

    def read(self, file: str) -> bytes | None:
        return _read(f"{self.folder}/{file}")

    def note(self, repo: str, state: str) -> None:
        with open(f"{self.notes}/noted", "a") as file:
            file.write(f"{repo} {state}\n")

    def noted(self) -> dict[str, str]:
        lines = (_read(f"{self.notes}/noted") or b"").decode(errors="replace").splitlines()
        # A line that a kill has cut short does not match.
        found = [line.split() for line in lines if re.fullmatch("[a-z0-9-]+/[a-z0-9-]+ .+", line)]
        return {words[0]: words[1] for words in found if len(words) == 2}

    def look(self) -> _State:
        """Read the lists of the hub. Raises OperatorError."""
        url = self.site.url
        hub = self._fetch(BY_NAME["hub"].file)
        catalogue = self._fetch(BY_NAME["catalogue"].file, CATALOGUE_BYTES_MAX)
        if hub is None or catalogue is None:
            raise OperatorError(f"No hub at {url}. Check the address.")
        try:
            count = _data(hub, _Hub).repos_count
            lines = [msgspec.json.decode(line, type=_Line) for line in catalogue.splitlines()]
        except (_Differs, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise OperatorError(
                f"The answer of {url} is not from a hub of this release. Check URL."
            ) from error
        repos = {line.repo for line in lines}
        if len(repos) < len(lines) or not all(line.is_possible for line in lines):
            raise OperatorError(
                f"The catalogue of {url} has names that no hub has, or one twice. Nothing was "
                "changed."
            )
        if not self.url:
            self.url = url
            _replace(f"{self.notes}/url", f"{url}\n".encode())
        gone = sorted(set(self.noted()) - repos)
        return _State(hub, catalogue, lines, gone, count == len(lines))

    def _fetch(self, file: str, bytes_max: int = FILE_BYTES_MAX) -> bytes | None:
        try:
            return self.site.read(file, bytes_max)
        except FetchError as error:
            raise OperatorError(f"Cannot read {self.site.url}/{file}: {error}.") from error

    def fetch(self, state: _State, work: Work, *, reuse: bool) -> tuple[int, list[str]]:
        """Fetch the prompts that differ from the noted ones; returns their number, and those that
        differ from the catalogue. With ``reuse``, takes versions from the folder: the digest proves
        that they are the same.
        """
        noted = self.noted()
        todo = [line for line in state.lines if noted.get(line.repo) != line.state]
        done, wrong = 0, []

        def bring(line: _Line) -> tuple[_Line, list[str] | None]:
            def read(file: str) -> bytes | None:
                data = self.read(file) if reuse and "/versions/" in file else None
                if data is None and (data := self._fetch(file)) is not None:
                    _replace(f"{self.stage}/{file}", data)
                return data

            try:
                return line, self.files_of(line, read)
            except _Differs:
                return line, None

        for line, files in work.each("Fetching prompts", bring, todo):
            if files is None:
                wrong.append(line.repo)
            else:
                self._install(line, files)
                done += 1
        return done, sorted(wrong)

    def files_of(self, line: _Line, read: Read) -> list[str]:
        """The files of a prompt, each after the files that it names. Raises _Differs if they
        contradict the catalogue or each other.
        """
        files: list[str] = []
        sums: dict[str, str] = {}
        at = {"owner": line.owner, "name": line.name}

        def take(route: str, **more: str) -> bytes:
            file = BY_NAME[route].file_for(**at | more)
            data = read(file)
            if data is None:
                raise _Differs
            files.append(file)
            if route in _DIGESTED:
                sums[file] = sha256_of(data)
            return data

        repo = _data(take("repo"), _Repo)
        listed = _data(take("versions"), list[_Version])
        kept = {one.version: one.sha256 for one in listed if one.withdrawn is None}
        latest = line.latest_version, line.sha256
        if (
            (repo.latest_version, repo.sha256) != latest
            or latest not in kept.items()
            or not all(map(names.is_version, kept))
            or len(listed) > names.VERSIONS_PER_REPO_MAX
        ):
            raise _Differs
        if repo.labels is not None:
            labels = _data(take("labels"), list[_Label])
            for label in labels:
                if not names.is_label(label.label):
                    raise _Differs
                if _data(take("label", label=label.label), _Label) != label:
                    raise _Differs
                take("label_history", label=label.label)
        for version, sha256 in kept.items():
            record = _data(take("version", version=version), _Record)
            if sha256_of(take("version_raw", version=version)) != sha256:
                raise _Differs
            if any(find_faults([one.path for one in record.files])):
                raise _Differs
            for one in record.files:
                match = version_file(**at, version=version, path=one.path)
                if sha256_of(take(match.route.name, **match.params)) != one.sha256:
                    raise _Differs
        if line.digest != digest_of_files(sums):
            raise _Differs
        return files[::-1]

    def _install(self, line: _Line, files: list[str]) -> None:
        """Move the files of a prompt to the readers' paths, and remove its other files. After a
        kill, it stays noted as not whole.
        """
        self.note(line.repo, "-")
        for file in files:
            if os.path.exists(f"{self.stage}/{file}"):
                target = f"{self.folder}/{file}"
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(f"{self.stage}/{file}", target)
        kept = {*files}
        above = BY_NAME["repo"].file_for(owner=line.owner, name=line.name).removesuffix(".json")
        for folder, _, found in os.walk(f"{self.folder}/{above}"):
            for name in found:
                path = f"{folder}/{name}"
                if path.removeprefix(f"{self.folder}/") not in kept:
                    os.unlink(path)
        self.note(line.repo, line.state)

    def publish(self, state: _State) -> None:
        """Put the lists in place, after all of their prompts."""
        _replace(f"{self.folder}/{BY_NAME['catalogue'].file}", state.catalogue)
        _replace(f"{self.folder}/{BY_NAME['hub'].file}", state.hub)
        self.remove(state.gone)
        lines = "".join(f"{line.repo} {line.state}\n" for line in state.lines)
        _replace(f"{self.notes}/noted", lines.encode())

    def remove(self, repos: list[str]) -> None:
        """Remove prompts that the hub no longer has."""
        for repo in repos:
            owner, name = repo.split("/")
            file = f"{self.folder}/{BY_NAME['repo'].file_for(owner=owner, name=name)}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)
            shutil.rmtree(file.removesuffix(".json"), ignore_errors=True)
            with contextlib.suppress(OSError):  # the owner has other prompts
                os.rmdir(os.path.dirname(file))


def _data(answer: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(answer, type=_Answer[kind]).data
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Differs from error


def _read(path: str) -> bytes | None:
    try:
        return read_file(path, CATALOGUE_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.tmp", "wb") as file:
        file.write(data)
    os.replace(f"{path}.tmp", path)
