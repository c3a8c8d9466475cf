"""Renders and writes the files of one repo's labels, and removes those of labels that are gone.

Only a repo that has had a label has any of these files.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from builder.model.errors import ContentError
from builder.model.labels import Labels, Move, find_faults, move_of
from builder.model.names import LATEST
from builder.model.records import LabelMove, Version
from builder.model.routes import BY_NAME
from builder.render import derive, envelopes
from builder.store.label_files import read_event
from builder.store.site import Site

# A move of a label, and the mark of the file of its own; empty where it has none.
Marked = tuple[str, Move]


class LabelNames(NamedTuple):
    """The labels of a repo that have files: those that name a version, and all that ever were."""

    current: list[str]
    history: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[LabelNames, msgspec.Raw]).decode
_decode_moves = msgspec.msgpack.Decoder(list[Marked]).decode


def encode_moves(labels: Labels, moves: list[Marked]) -> bytes:
    """As in ``RepoRow.labels``; ``labels`` is what the moves come to."""
    names = LabelNames([*labels.current], [*labels.history])
    return _encode((names, msgspec.Raw(_encode(moves)))) if moves else b""


def decode_moves(blob: bytes | None) -> list[Marked]:
    """The moves of ``RepoRow.labels``."""
    return _decode_moves(_decode(blob)[1]) if blob else []


def decode_names(blob: bytes) -> LabelNames:
    """The labels of ``RepoRow.labels``, at a cost that does not grow with the moves."""
    return _decode(blob)[0] if blob else LabelNames([], [])


def encode_current(labels: Labels) -> bytes:
    """The file that lists the labels."""
    return encode_history(labels.current.values())


def encode_history(moves: Iterable[LabelMove]) -> bytes:
    """The file that lists the moves of a label."""
    return envelopes.whole_list([*moves])


def read_events(
    root: str, repo: str, marks: dict[int, str], remembered: list[Marked]
) -> list[Marked]:
    """The moves of a repo (``owner/name``) in files of their own, by the marks of these files; only
    what is not as remembered is read. Raises ContentError.
    """
    known = {move.number: (mark, move) for mark, move in remembered if move.has_own_file}
    events, faults = [], []
    for number, mark in marks.items():
        old = known.get(number)
        if old and mark and old[0] == mark:
            events.append(old)
            continue
        try:
            events.append((mark, move_of(number, read_event(root, repo, number))))
        except ContentError as error:
            faults += error.faults
    if faults:
        raise ContentError(faults)
    return events


def check_moves(repo: str, moves: list[Move], versions: set[str], withdrawn: set[str]) -> None:
    """Raises ContentError where no site can show the moves of a repo (``owner/name``) that has
    some versions, and had others.
    """
    found = find_faults(moves, versions, f"{repo}/", withdrawn)
    faults = [one for one in found if not one.is_warning]
    if faults:
        raise ContentError(faults)


class Named(NamedTuple):
    """What a label names: the version on its own, with its text and the body in it."""

    version: Version
    text: bytes
    body: bytes


class LabelFiles:
    """The files of one repo's labels. ``named`` finds a version of the repo."""

    def __init__(self, site: Site, owner: str, name: str, named: Callable[[str], Named]) -> None:
        self._site = site
        self._at = {"owner": owner, "name": name}
        self._named = named

    def write(
        self, labels: Labels, latest: list[LabelMove], is_current: Callable[[str], bool]
    ) -> None:
        """Make the files say what ``labels`` and the moves of ``latest`` do. ``is_current`` tells
        of which labels they are known to do so already.
        """
        for label, moves in {**labels.history, LATEST: latest}.items():
            if not is_current(label):
                self._write_label(label, moves)
        self._site.write(self._file("labels"), encode_current(labels))

    def _write_label(self, label: str, moves: list[LabelMove]) -> None:
        history = self._file("label_history", label)
        raw, body = self._file("label_raw", label), self._file("label_body", label)
        record = self._file("label", label)
        self._site.write(history, encode_history(moves))
        version, moved_at = moves[0].version, moves[0].moved_at
        if version is None:
            # At once: who has removed a label is not to find it.
            for file in (record, raw, body):
                if not self._site.dry:
                    self._site.remove(file)
            return
        named = self._named(version)
        labelled = derive.labelled_version(named.version, label, moved_at)
        # A label that is back may have been there in this very second, which the history tells.
        self._site.write(raw, named.text, not_before=history)
        self._site.write(body, named.body, not_before=history)
        data = envelopes.single(envelopes.json_bytes(labelled))
        self._site.write(record, data, not_before=history)

    def _file(self, route: str, label: str = "") -> str:
        return BY_NAME[route].file_for(**self._at, label=label)
