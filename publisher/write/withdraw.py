"""Withdraws a version, or a whole repo: removes its text from the content, and publishes the
reason.

The commit point is the link of one file (``store/withdrawn_files``), which holds all that stays of
the records. Then texts and records are removed. A crash in between leaves files that readers
ignore: the next withdrawal, or the next build, removes them.

Knows nothing of HTTP or permissions. Does not build the site.
"""

import os
from collections.abc import Sequence
from datetime import datetime

from msgspec import UNSET, structs

from builder.model.content_tree import TEXT, WHOLE
from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.labels import Labels, fold
from builder.model.names import Version
from builder.model.records import Remains, WithdrawalFile, WithdrawnFile
from builder.model.request_bodies import WithdrawalDraft
from builder.model.withdrawn import WithdrawnParts
from builder.store import content
from builder.store.content import RepoListing
from builder.store.withdrawn_files import read_parts
from publisher.write import synced_files
from publisher.write.decision import (
    USUAL,
    Decision,
    Terms,
    check_names,
    check_repo,
    decide,
    no_repo,
)
from publisher.write.durable import FolderStore, render
from publisher.write.gone import check_label_target, no_version
from publisher.write.labels import time_of_next
from publisher.write.moves import read_moves

_THEN = "Check the owner and the name."


class Withdrawn(WithdrawalFile, kw_only=True):
    """The result of a withdrawal, or its preview: its file, with what it withdraws.

    ``version``: None for the whole repo. ``versions``: those that can no longer be read, in order.
    ``was_latest`` and ``latest``: the latest version before and after; None where the repo has
    none. ``unchanged``: it was withdrawn before, and the other fields say how.
    """

    owner: str
    name: str
    version: str | None
    versions: list[str]
    was_latest: str | None
    latest: str | None
    unchanged: bool

    @property
    def what(self) -> str:
        """The prompt or version that is withdrawn, for people: ``ann/story 1.2.0``."""
        return " ".join(filter(None, (f"{self.owner}/{self.name}", self.version)))

    @property
    def about_labels(self) -> str:
        """A sentence about the labels that named it; empty if there are none."""
        if not self.labels:
            return ""
        name = "label {} names" if len(self.labels) == 1 else "labels {} name"
        then = f"{self.move_labels} now" if self.move_labels else "no version any more"
        return f"The {name.format(', '.join(self.labels))} {then}."


def withdraw(
    store: FolderStore,
    owner: str,
    name: str,
    version: str | None,
    draft: WithdrawalDraft,
    *,
    by: str,
    terms: Terms = USUAL,
) -> Withdrawn:
    """Withdraws a version, or the whole repo (None); durable when this returns. A repeated call
    finds that there is nothing to do, and removes what a crash has left.

    Raises RequestError: ``invalid_name``, ``invalid_version``, ``repo_not_found``,
    ``version_not_found``, ``version_withdrawn``, ``validation_failed``, ``storage_unavailable``;
    and ContentError where a file of the repo is broken.
    """
    check_repo(store, owner, name, by, _THEN)

    def make() -> Decision[Withdrawn]:
        answer, file = _decide(store.root, owner, name, version, draft, by, terms.now)
        files = [(version or WHOLE, file)] if file else []

        def write(store: FolderStore, sync: bool) -> None:
            store.write_withdrawal(owner, name, files, sync=sync)

        return Decision(answer, None, write)

    return decide(store, owner, name, make, terms=terms)


def preview(
    content_root: str,
    owner: str,
    name: str,
    version: str | None,
    draft: WithdrawalDraft,
    *,
    by: str,
    now: datetime | None = None,
) -> Withdrawn:
    """Returns what ``withdraw`` would do at this moment; writes nothing. Raises as it does."""
    check_names(content_root, owner, name, by)
    return _decide(content_root, owner, name, version, draft, by, now)[0]


def _decide(
    root: str,
    owner: str,
    name: str,
    version: str | None,
    draft: WithdrawalDraft,
    by: str,
    now: datetime | None,
) -> tuple[Withdrawn, bytes | None]:
    """Returns the result of the withdrawal, and its file; None where there is nothing to write."""
    listing = content.list_versions(root, owner, name)
    wanted = Version.parse(version) if version is not None else None
    parts = read_parts(root, f"{owner}/{name}", listing.withdrawn)
    if not listing.versions and not parts.versions and not parts.whole:
        raise no_repo(owner, name, _THEN)

    def answer(
        stored: WithdrawalFile, gone: Sequence[Version], left: Sequence[Version], unchanged: bool
    ) -> Withdrawn:
        return Withdrawn(
            **structs.asdict(stored),
            owner=owner,
            name=name,
            version=version,
            versions=[str(one) for one in gone],
            was_latest=str(listing.versions[-1]) if listing.versions else None,
            latest=str(left[-1]) if left else None,
            unchanged=unchanged,
        )

    if done := _find_done(parts, wanted):
        gone = [one.version for one in parts.versions] if wanted is None else [wanted]
        return answer(done, gone, listing.versions, True), None
    if wanted is not None and wanted not in listing.versions:
        raise no_version(owner, name, listing, wanted)
    gone = [*listing.versions] if wanted is None else [wanted]
    if draft.move_labels:
        _check_target(root, owner, name, listing, Version.parse(draft.move_labels), gone)
    labels = fold(read_moves(root, owner, name, listing))
    stored = _withdrawal(labels, gone, draft, by, time_of_next(labels, now))
    remains = {str(one): _remains_of(root, owner, name, one) for one in gone}
    left = [one for one in listing.versions if one not in gone]
    return answer(stored, gone, left, False), render(WithdrawnFile(stored, remains))


def _check_target(
    root: str, owner: str, name: str, listing: RepoListing, target: Version, gone: list[Version]
) -> None:
    """Raises RequestError, at the field ``move_labels``, unless labels can name ``target``."""
    if target in gone:
        message = f"names {target}, which is withdrawn with it. Name a version that stays"
        raise validation_failed(Detail("move_labels", message))
    try:
        check_label_target(root, owner, name, listing, target)
    except RequestError as error:
        raise RequestError(error.code, str(error), [Detail("move_labels", str(error))]) from None


def _find_done(parts: WithdrawnParts, wanted: Version | None) -> WithdrawalFile | None:
    """Returns the earlier withdrawal of this version or repo; None if it is not withdrawn."""
    if wanted is None:
        return parts.whole
    return next((one.withdrawal for one in parts.versions if one.version == wanted), None)


def _withdrawal(
    labels: Labels, gone: Sequence[Version], draft: WithdrawalDraft, by: str, at: str
) -> WithdrawalFile:
    versions = {str(version) for version in gone}
    lost = [label for label, version in labels.versions().items() if version in versions]
    return WithdrawalFile(
        at=at,
        by=by,
        reason=draft.reason,
        note=draft.note,
        labels=lost or UNSET,
        label_number=labels.next_number if lost else UNSET,
        move_labels=draft.move_labels if lost else UNSET,
    )


def _remains_of(root: str, owner: str, name: str, version: Version) -> Remains:
    """Returns what is kept of a withdrawn version. Raises RequestError ``storage_unavailable``."""
    record = content.read_record(root, owner, name, version)
    with synced_files.telling("send the same request again"):
        size = os.stat(f"{content.repo_path(root, owner, name)}/{TEXT.file(version)}").st_size
    kept = {field: getattr(record, field) for field in Remains.__struct_fields__ if field != "size"}
    return Remains(size=size, **kept)
