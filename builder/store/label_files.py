"""Reads the files that move labels."""

import contextlib

import msgspec

from builder.model import names
from builder.model.content_tree import LABEL, LABELS
from builder.model.errors import Fault
from builder.model.records import LabelFile
from builder.store.plain_files import files_in, mark_of_files, read_record_file

_decode = msgspec.json.Decoder(LabelFile).decode


def list_events(root: str, repo: str, settled_ns: int, faults: list[Fault]) -> dict[int, str]:
    """The mark of each file (see ``mark_of_files``) of ``repo`` (``owner/name``) by its number, in
    order; opens none. Adds to ``faults`` as ``files_in``, and for too many files.
    """
    marks = {}
    for _, number, entry in files_in(root, repo, LABELS, faults):
        with contextlib.suppress(FileNotFoundError):  # Removed by hand meanwhile.
            status = entry.stat(follow_symlinks=False)
            marks[int(number)] = mark_of_files((status,), settled_ns)
    if len(marks) > names.LABEL_EVENTS_PER_REPO_MAX:
        limit = names.LABEL_EVENTS_PER_REPO_MAX
        faults.append(Fault(f"{repo}/{LABELS}", f"more than {limit:,} changes of labels"))
    return dict(sorted(marks.items()))


def read_event(root: str, repo: str, number: int) -> LabelFile:
    """One change of a label of ``repo`` (``owner/name``). Raises ContentError."""
    return read_record_file(root, f"{repo}/{LABEL.file(number)}", _decode, LABEL.bytes_max)
