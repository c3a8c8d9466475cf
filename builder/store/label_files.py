"""Reads the files that move labels: ``content/{owner}/{name}/labels/{number}.json``."""

import contextlib
import re

import msgspec

from builder.model import names
from builder.model.errors import Fault
from builder.model.labels import FOLDER, event_file
from builder.model.records import LabelFile
from builder.store.plain_files import files_in, mark_of_files, read_record_file

EVENT_BYTES_MAX = 16 * 1024

event_name = re.compile(r"([1-9][0-9]{0,8})\.json")
_decode = msgspec.json.Decoder(LabelFile).decode


def list_events(root: str, repo: str, settled_ns: int, faults: list[Fault]) -> dict[int, str]:
    """The mark of each file (see ``mark_of_files``) of ``repo`` (``owner/name``) by its number, in
    order; opens none. Adds to ``faults`` as ``files_in``, and for too many files.
    """
    marks = {}
    for found, entry in files_in(root, f"{repo}/{FOLDER}", event_name.fullmatch, faults):
        with contextlib.suppress(FileNotFoundError):  # Removed by hand meanwhile.
            status = entry.stat(follow_symlinks=False)
            marks[int(found[1])] = mark_of_files((status,), settled_ns)
    if len(marks) > names.LABEL_EVENTS_PER_REPO_MAX:
        limit = names.LABEL_EVENTS_PER_REPO_MAX
        faults.append(Fault(f"{repo}/{FOLDER}", f"more than {limit:,} changes of labels"))
    return dict(sorted(marks.items()))


def read_event(root: str, repo: str, number: int) -> LabelFile:
    """One change of a label of ``repo`` (``owner/name``). Raises ContentError."""
    return read_record_file(root, f"{repo}/{event_file(number)}", _decode, EVENT_BYTES_MAX)
