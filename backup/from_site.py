"""What a site shows that a backup does not have: versions, labels and withdrawals since then.

The site that readers had is often still there when the content is lost: deployed to a bucket or a
CDN, or left on the disk. A version's record there has all that the content had of it.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec
import requests
from msgspec import UNSET, Struct, UnsetType

from backup.staging import write_file
from builder.deploy.parallel import Work
from builder.model import names
from builder.model.errors import OperatorError, cut
from builder.model.labels import Labels, event_file, fold
from builder.model.names import Version
from builder.model.records import (
    LabelFile,
    LabelMove,
    OwnerFile,
    Remains,
    Variable,
    VersionFile,
    Withdrawal,
    WithdrawalFile,
    WithdrawnFile,
)
from builder.model.routes import BY_NAME
from builder.model.withdrawn import BECAUSE, NOTE_CHARS_MAX, WHOLE, withdrawn_file
from builder.store import content
from builder.store.content import OWNER_FILE
from builder.store.labels import read_moves
from builder.store.plain_files import read_file
from builder.store.withdrawn_files import read_parts
from publisher.write.rendering import render
from publisher.write.withdraw import remains_of

CATALOGUE_BYTES_MAX = 256 * 1024 * 1024
FILE_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_SECONDS = 30
ATTEMPTS = 5
# Of a site that limits reads: a prompt takes two or three, and hosts of hub allow 120 a minute.
WAITS_MAX = 200
_CONFLICTS_SHOWN = 10

Record = TypeVar("Record")


class SiteFolder:
    """A site on this machine. All methods may raise OperatorError."""

    def __init__(self, name: str) -> None:
        self.name = name
        if self.read(BY_NAME["hub"].file) is None:
            raise OperatorError(f"No site in {name}. Pass the folder of the site, or its URL.")

    def repos(self) -> Iterator[tuple[str, str]]:
        """Owner and name of each repo that it shows, or says that it is withdrawn."""
        # Also those that no list has yet, or no more.
        above = BY_NAME["repo"].file.partition("{")[0]
        for owner in _folders(f"{self.name}/{above}"):
            for name in _folders(f"{self.name}/{above}{owner}"):
                yield owner, name

    def past_labels(self, owner: str, name: str) -> list[str]:
        """Labels that a repo has or had, as far as the site tells."""
        above = BY_NAME["labels"].file_for(owner=owner, name=name).removesuffix(".json")
        return [*filter(names.is_label, _folders(f"{self.name}/{above}"))]

    def read(self, file: str, bytes_max: int = FILE_BYTES_MAX) -> bytes | None:
        """The bytes of a file; None where it is not there."""
        try:
            return read_file(f"{self.name}/{file}", bytes_max)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise OperatorError(
                f"Cannot read {self.name}/{file}: {error.strerror}. Let this user read the site."
            ) from error


class SiteUrl:
    """A site on a web server, in a bucket or on a CDN. As ``SiteFolder``."""

    def __init__(self, name: str) -> None:
        self.name = name.rstrip("/")
        if self.read(BY_NAME["hub"].file) is None:
            raise OperatorError(f"No hub at {name}. Pass the base URL of the site, or its folder.")

    def repos(self) -> Iterator[tuple[str, str]]:
        lines = self.read(BY_NAME["catalogue"].file, CATALOGUE_BYTES_MAX) or b""
        for line in lines.splitlines():
            row = _decode(_Line, line, f"{self.name}/{BY_NAME['catalogue'].file}")
            yield row.owner, row.name

    def past_labels(self, owner: str, name: str) -> list[str]:
        return []  # no file lists those that it has no more

    def read(self, file: str, bytes_max: int = FILE_BYTES_MAX) -> bytes | None:
        url = f"{self.name}/{file}"
        failures = waits = seconds = 0
        while failures < ATTEMPTS and waits < WAITS_MAX:
            time.sleep(seconds)
            try:
                with requests.get(
                    url, stream=True, timeout=TIMEOUT_SECONDS, allow_redirects=False,
                    headers={"Cache-Control": "no-cache"},
                ) as answer:  # fmt: skip
                    if answer.status_code in (404, 410):
                        return None
                    if answer.status_code == 200:
                        return _body(answer, url, bytes_max)
                reason = f"HTTP {answer.status_code}"
                if answer.status_code == 429:
                    told = answer.headers.get("Retry-After", "")
                    seconds, waits = min(int(told), 60) if told.isdecimal() else 1, waits + 1
                    continue
            except requests.RequestException as error:
                reason = type(error).__name__
            seconds, failures = 2**failures, failures + 1
        raise OperatorError(
            f"Cannot read {url}: {reason}. Restore again when the site answers; if it limits "
            "reads, let this machine read without limit, or pass a copy of the site's folder."
        )


Site = SiteFolder | SiteUrl


def open_site(name: str) -> Site:
    """The site that people mean by a folder's path or a URL. Raises OperatorError."""
    return SiteUrl(name) if name.startswith(("https://", "http://")) else SiteFolder(name)


def _body(answer: requests.Response, url: str, bytes_max: int) -> bytes:
    data = bytearray()
    for part in answer.iter_content(64 * 1024):
        data += part
        if len(data) > bytes_max:
            raise OperatorError(f"{url} has more than {bytes_max:,} bytes, so it is no hub's.")
    return bytes(data)


def _folders(path: str) -> list[str]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


# What is used of the site's records; older and newer releases write others beside it.


class _Line(Struct):
    owner: str
    name: str


class _Listed(Struct):
    version: str
    publisher: str
    published_at: str
    sha256: str
    size: int
    ordinal: int | UnsetType = UNSET
    withdrawn: Withdrawal | UnsetType = UNSET


class _Published(_Listed, kw_only=True):
    title: str
    content: str
    body: str | UnsetType = UNSET
    changelog: str = ""
    description: str = ""
    tags: list[str] = []
    license: str | None = None
    variables: list[Variable] = []
    parameters: dict[str, Any] = {}


class _User(Struct):
    name: str
    joined_at: str
    bio: str = ""
    url: str | None = None


class _Said(Struct):
    message: str


class _Error(Struct):
    error: _Said


class _Envelope(Struct):
    data: msgspec.Raw


class Found(NamedTuple):
    """What a site had that the backup did not: ``versions`` published, versions ``withdrawn``,
    changes of ``labels``. ``has_unknown``: it also had numbers that cannot be known any more.
    ``conflicts``: what it says otherwise than the backup.
    """

    versions: int = 0
    withdrawn: int = 0
    labels: int = 0
    has_unknown: bool = False
    conflicts: tuple[str, ...] = ()


def recover(site: Site, root: str, work: Work) -> Found:
    """Bring a content folder, which nobody else uses, to what a site shows.

    Raises OperatorError, also where the two disagree about what was published.
    """
    repos = {
        (owner, name)
        for owner, name in site.repos()
        if names.is_name(owner, names.OWNER_CHARS_MAX) and names.is_name(name, names.REPO_CHARS_MAX)
    }
    repos |= {
        (owner, name) for owner in content.list_owners(root)
        for name in content.list_repos(root, owner)
    }  # fmt: skip
    total = Found()
    for one in work.each(
        "Reading the site", lambda repo: _recover_repo(site, root, *repo), sorted(repos)
    ):
        total = Found(*(left + right for left, right in zip(total, one, strict=True)))
    for owner in {owner for owner, _ in repos}:
        _recover_profile(site, root, owner)
    if total.conflicts:
        shown = "\n".join(f"  {line}" for line in sorted(total.conflicts)[:_CONFLICTS_SHOWN])
        more = len(total.conflicts) - _CONFLICTS_SHOWN
        raise OperatorError(
            f"{site.name} and the backup disagree:\n{shown}"
            f"{f'{chr(10)}  … and {more:,} more' if more > 0 else ''}\nNothing was put in place. "
            "Pass the site that this hub had, or restore without --site."
        )
    return total._replace(has_unknown=bool(total.has_unknown))


def _recover_profile(site: Site, root: str, owner: str) -> None:
    path = f"{root}/{owner}/{OWNER_FILE}"
    if os.path.lexists(path) or not os.path.isdir(f"{root}/{owner}"):
        return
    user = _get(site, _User, "user", owner=owner)
    if user:
        profile = OwnerFile(user.name, user.joined_at, user.bio, user.url)
        write_file(path, [_checked(profile)])


def _recover_repo(site: Site, root: str, owner: str, name: str) -> Found:
    try:
        return _bring_up(site, root, owner, name)
    except ValueError as error:  # of a record that cannot be
        raise OperatorError(
            f"{site.name} says of {owner}/{name} what no content can have: {error}. Pass the site "
            "that this hub had, or restore without --site."
        ) from error


def _bring_up(site: Site, root: str, owner: str, name: str) -> Found:
    repo = f"{owner}/{name}"
    listed = _get(site, list[_Listed], "versions", owner=owner, name=name)
    listing = content.list_versions(root, owner, name)
    if listing.withdrawn.is_whole:
        return Found()
    if listed is None:
        said = _get(site, _Error, "withdrawn_repo", envelope=False, owner=owner, name=name)
        return _take_back(root, owner, name, listing, said.error.message) if said else Found()
    parts = read_parts(root, repo, listing.withdrawn)
    gone = {one.version for one in parts.versions}
    before = fold(read_moves(root, owner, name, listing))
    missing, conflicts = _missing_moves(site, owner, name, before)
    versions = withdrawn = 0
    for entry in listed:
        version = Version.parse(entry.version)
        if entry.withdrawn is not UNSET and version not in gone:
            _withdraw(root, owner, name, entry, is_there=version in listing.versions)
            withdrawn += 1
        elif entry.withdrawn is UNSET and version in listing.versions:
            stored = content.read_record(root, owner, name, version)
            if stored.sha256 != entry.sha256:
                conflicts.append(f"{repo} {version} has another text")
        elif entry.withdrawn is UNSET and version not in gone:
            _publish(root, owner, name, _published(site, owner, name, entry))
            versions += 1
    for number, move in enumerate(missing, before.next_number):
        event = LabelFile(move.label, move.version, move.moved_at, move.moved_by, move.note)
        write_file(f"{root}/{repo}/{event_file(number)}", [_checked(event)])
    return Found(versions, withdrawn, len(missing), False, tuple(conflicts))


def _published(site: Site, owner: str, name: str, entry: _Listed) -> _Published:
    """The record of a version, with the text that the list of versions says."""
    at = {"owner": owner, "name": name, "version": entry.version}
    found = _get(site, _Published, "version", **at)
    if not found or hashlib.sha256(found.content.encode()).hexdigest() != entry.sha256:
        raise OperatorError(
            f"{site.name} lists {owner}/{name} {entry.version}, but its record "
            f"{'has another text' if found else 'is missing'}. If the site was being deployed, "
            "deploy the rest, and restore again. Or restore without --site."
        )
    return found


def _publish(root: str, owner: str, name: str, found: _Published) -> None:
    text = found.content.encode()
    shared = {*VersionFile.__struct_fields__} & {*_Published.__struct_fields__}
    record = VersionFile(**{field: getattr(found, field) for field in shared})
    if found.body is not UNSET:
        record.front_matter_bytes = len(text) - len(found.body.encode())
    stem = f"{content.repo_path(root, owner, name)}/{found.version}"
    data = _checked(record)
    write_file(f"{stem}.md", [text])
    write_file(f"{stem}.json", [data])


def _withdraw(root: str, owner: str, name: str, entry: _Listed, *, is_there: bool) -> None:
    version = Version.parse(entry.version)
    remains = Remains(entry.publisher, entry.published_at, entry.sha256, entry.size, entry.ordinal)
    if is_there:  # what a publication did to labels stays, though its text goes
        record = content.read_record(root, owner, name, version)
        remains.labels, remains.label_number = record.labels, record.label_number
    told = entry.withdrawn
    withdrawal = WithdrawalFile(told.at, owner, told.reason, told.note)
    _write_withdrawal(root, owner, name, str(version), withdrawal, {str(version): remains})


def _write_withdrawal(
    root: str, owner: str, name: str, what: str, withdrawal: WithdrawalFile,
    remains: dict[str, Remains],
) -> None:  # fmt: skip
    folder = content.repo_path(root, owner, name)
    data = _checked(WithdrawnFile(withdrawal, remains))
    write_file(f"{folder}/{withdrawn_file(what)}", [data])
    for version in remains:
        for suffix in ("md", "json"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/{version}.{suffix}")


def _take_back(root: str, owner: str, name: str, listing: content.RepoListing, told: str) -> Found:
    """Withdraw all of a repo, as a site says that has nothing of it left to read."""
    # The site has no other record of it than this sentence.
    reason = next((reason for reason, because in BECAUSE.items() if because in told), "owner")
    when, _, _ = told.partition(" was withdrawn on ")[2].partition(" ")
    note = told.partition(f"{BECAUSE[reason]}.")[2].strip()
    is_whole = told.startswith(f"{owner}/{name} was withdrawn")
    labels = fold(read_moves(root, owner, name, listing))
    withdrawal = WithdrawalFile(f"{when}T00:00:00Z", owner, reason, cut(note, NOTE_CHARS_MAX))
    remains = {str(one): remains_of(root, owner, name, one) for one in listing.versions}
    lost = [label for label, version in labels.versions().items() if version in remains]
    if is_whole:
        if lost:
            withdrawal.labels, withdrawal.label_number = lost, labels.next_number
        _write_withdrawal(root, owner, name, WHOLE, withdrawal, remains)
        return Found(withdrawn=len(remains))
    # Each version on its own, so the name is open, and had numbers that nothing tells any more.
    for number, label in enumerate(lost, labels.next_number):
        event = LabelFile(label, None, withdrawal.at, owner)
        write_file(f"{root}/{owner}/{name}/{event_file(number)}", [_checked(event)])
    for version, one in remains.items():
        _write_withdrawal(root, owner, name, version, withdrawal, {version: one})
    return Found(withdrawn=len(remains), has_unknown=True)


def _missing_moves(
    site: Site, owner: str, name: str, before: Labels
) -> tuple[list[LabelMove], list[str]]:
    """The changes of labels that a site has and ``before`` has not, oldest first, and what the two
    tell differently.
    """
    at = {"owner": owner, "name": name}
    there = _get(site, list[LabelMove], "labels", **at)
    if there is None:
        return [], []
    now = {move.label: move for move in there}
    missing: list[LabelMove] = []
    conflicts = []
    for label in sorted({*now, *before.history, *site.past_labels(owner, name)}):
        names.check_new_label(label)
        if label in now and now[label] == before.current.get(label):
            continue
        past = _get(site, list[LabelMove], "label_history", label=label, **at) or []
        known = before.history.get(label, [])
        if past[len(past) - len(known) :] == known and len(past) >= len(known):
            missing += past[: len(past) - len(known)]
        elif known[len(known) - len(past) :] != past:
            conflicts.append(f"{owner}/{name}: the label {label} has another history")
    # Newest first within a label, and stable, so reversed the oldest is first in each second, too.
    return sorted(reversed(missing), key=lambda move: move.moved_at), conflicts


def _get(
    site: Site, kind: type[Record], route: str, *, envelope: bool = True, **params: str
) -> Record | None:
    """The record in a file of the site; None where there is none. Raises OperatorError."""
    file = BY_NAME[route].file_for(**params)
    data = site.read(file)
    if data is None:
        return None
    where = f"{site.name}/{file}"
    return _decode(kind, _decode(_Envelope, data, where).data if envelope else data, where)


def _decode(kind: type[Record], data: bytes, where: str) -> Record:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OperatorError(
            f"{where} is no record of a hub ({error}). Pass the site that this hub had."
        ) from error


def _checked(record: Struct) -> bytes:
    """The bytes of a record. Raises ValueError where they could not be read again."""
    data = render(record)
    try:
        msgspec.json.decode(data, type=type(record))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return data
