"""Renders and writes the files of one repo's labels, and removes those of labels that are gone.

Only a repo that has had a label has any of these files.
"""

from collections.abc import Iterable

from builder.model.labels import Labels
from builder.model.records import LabelMove, Version
from builder.model.routes import BY_NAME
from builder.render import derive, envelopes
from builder.store.site import Site


def encode_current(labels: Labels) -> bytes:
    """The file that lists the labels."""
    return encode_history(labels.current.values())


def encode_history(moves: Iterable[LabelMove]) -> bytes:
    """The file that lists the moves of a label."""
    return envelopes.whole_list([*moves])


def write_label(
    site: Site, at: dict[str, str], label: str, moves: list[LabelMove], version: Version | None
) -> None:
    """Write the files of a label of the repo ``at`` (its owner and name), which names this version
    since the first of its moves.
    """
    history, record, raw, body = (
        BY_NAME[route].file_for(**at, label=label)
        for route in ("label_history", "label", "label_raw", "label_body")
    )
    site.write(history, encode_history(moves))
    if version is None:
        # At once: who has removed a label is not to find it.
        site.remove(record, raw, body)
        return
    # A label that is back may have been there in this very second, which the history tells.
    site.write(raw, version.content.encode(), not_before=history)
    site.write(body, version.body.encode(), not_before=history)
    labelled = derive.labelled_version(version, label, moves[0].moved_at)
    data = envelopes.single(envelopes.json_bytes(labelled))
    site.write(record, data, not_before=history)
