"""Takes changes that others merged into the content folder, by the same steps as a publication, if
they pass the rules of `hubctl check`.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping

from builder.model.errors import ContentError, Fault
from builder.model.names import Version
from builder.model.version_files import BYTES_MAX
from builder.model.withdrawn import withdrawn_file
from builder.store import content
from builder.store.check import check_repo
from operate.git import files
from operate.git.branch import Entries
from operate.git.commits import ContentChanged
from operate.git.files import (
    EXECUTABLE,
    HOME,
    PLAIN,
    Blob,
    Place,
    by_version,
    event_in,
    file_in,
    is_gone,
    version_in,
    withdrawn_in,
)
from publisher.write import synced_files
from publisher.write.durable import NewVersion
from publisher.write.store_protocol import Store

_THEN = "wait for the next attempt"


def take_in(
    store: Store,
    staging: str,
    place: Place,
    ours: Mapping[str, Blob],
    entries: Entries,
    read: Callable[[str], bytes],
) -> list[Fault]:
    """Put files of the branch into the content folder. If they would have faults there, returns
    these and changes nothing.

    ``ours``: the files of the place here. ``read``: as from ``Branch.reading``. ``staging``: a
    folder to try it in. Raises ContentChanged, RequestError ``storage_unavailable``, OSError.
    """
    sizes = Counter[str | None]()
    for path, entry in entries.items():
        # The record decides whether a file is executable.
        if entry.blob.mode != PLAIN and not (file_in(path) and entry.blob.mode == EXECUTABLE):
            return [Fault(path, "not a plain file")]
        if entry.size > files.bytes_max(path):
            return [Fault(path, f"larger than {files.bytes_max(path):,} bytes")]
        sizes[version_in(path)] += entry.size if file_in(path) else 0
        if sizes[version_in(path)] > BYTES_MAX:
            return [Fault(path, f"the files of the version have more than {BYTES_MAX:,} bytes")]
    came = {path: read(entry.blob.id) for path, entry in entries.items()}
    if faults := _faults(store.root, staging, place, ours, came):
        return faults
    for path in came:
        if file_in(path) and f"{place.path}/{version_in(path)}.json" not in came:
            return [Fault(path, "missing here, although its record exists: restore it")]
    if place.name:
        _put_repo(store, place, ours, came)
    else:
        _put_single(store, place, ours, came)
    return []


def _faults(
    root: str, staging: str, place: Place, ours: Mapping[str, Blob], came: Mapping[str, bytes]
) -> list[Fault]:
    """The faults that a place would have and does not have yet."""
    shutil.rmtree(staging, ignore_errors=True)
    gone = withdrawn_in([*ours, *came])
    for path in {*ours, *came}:
        if path not in came and is_gone(gone, path):
            continue
        os.makedirs(os.path.dirname(f"{staging}/{path}"), exist_ok=True)
        data = came[path] if path in came else files.read(root, path)
        synced_files.write_new(f"{staging}/{path}", data, sync=False)
    try:
        if place.name:
            merged = {*check_repo(staging, place.owner, place.name)}
            known = {*check_repo(root, place.owner, place.name)} if merged and ours else set()
            return sorted(fault for fault in merged - known if not fault.is_warning)
        if place == HOME:
            content.read_home(staging)
        else:
            content.read_owner(staging, place.owner)
    except ContentError as error:
        return error.faults
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return []


def _put_repo(
    store: Store, place: Place, ours: Mapping[str, Blob], came: Mapping[str, bytes]
) -> None:
    root, owner, name = store.root, place.owner, place.name
    whole = by_version(came)
    events = sorted((number, came[path]) for path in came if (number := event_in(path)))
    withdrawn = [
        (what, came[f"{place.path}/{withdrawn_file(what)}"]) for what in withdrawn_in(came).files
    ]

    def work() -> None:
        if files.modes_in(root, place).keys() != ours.keys():
            raise ContentChanged
        for version in sorted(whole, key=Version.parse):
            text, record = (came[f"{place.path}/{version}.{kind}"] for kind in ("md", "json"))
            found = {inside: came[path] for path in whole[version] if (inside := file_in(path))}
            store.write_version(owner, name, version, NewVersion(text, record, found))
        if events:
            store.write_events(owner, name, events)
        if withdrawn:
            store.write_withdrawal(owner, name, withdrawn)

    store.decide(owner, name, work)
    if not ours:
        with synced_files.telling(_THEN):
            synced_files.sync_folder(f"{root}/{owner}")
            synced_files.sync_folder(root)


def _put_single(
    store: Store, place: Place, ours: Mapping[str, Blob], came: Mapping[str, bytes]
) -> None:
    root = store.root
    ((path, data),) = came.items()

    def is_as_seen() -> bool:
        if files.blobs_in(root, place) != ours:
            raise ContentChanged
        return True

    if place != HOME:
        store.replace_profile(place.owner, data, is_as_seen)
    elif is_as_seen():
        temporary = f"{root}/.{path}.tmp"
        with synced_files.telling(_THEN):
            synced_files.unlink(temporary)
            synced_files.write_new(temporary, data)
            os.rename(temporary, f"{root}/{path}")
            synced_files.sync_folder(root)
