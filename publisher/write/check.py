"""Checks a draft: reports what its publication would do, with the code that publishes, up to the
write.
"""

from functools import partial

from builder.model.answers import ChangedVariables, Checked
from builder.model.content_tree import TEXT
from builder.model.request_bodies import Draft
from builder.store import content
from builder.text.file_diff import compare_files, unified
from builder.text.interface import interface_of
from builder.text.line_diff import LineDiff
from publisher.write.decision import Terms
from publisher.write.durable import FolderStore
from publisher.write.next_version import Step
from publisher.write.publish import Preview, preview, read_unlocked


def check(
    store: FolderStore, owner: str, name: str, draft: Draft, *, publisher: str, terms: Terms
) -> Checked:
    """Returns what ``publish`` would do now. Writes nothing. Raises as ``publish`` does."""
    store.catch_up(owner, name)

    def look() -> tuple[Preview, int, str | None]:
        found = preview(store.root, owner, name, draft, publisher=publisher, terms=terms)
        return (found, *_compare(store.root, found, draft.content))

    found, size, diff = read_unlocked(look)
    done = found.decision.answer
    used = interface_of(found.metadata, draft.content).variables
    step = found.step or Step("patch", [], [*used], [], [])
    return Checked(
        owner=owner,
        name=name,
        version=done.version,
        previous_version=done.previous_version,
        unchanged=done.unchanged,
        bump=step.bump,
        reasons=step.reasons,
        variables=ChangedVariables(step.added, step.removed, step.changed),
        labels=done.labels or [],
        warnings=done.warnings,
        diff_size=size,
        diff=diff,
        files=done.files,
        content_sha256=done.content_sha256,
    )


def _compare(root: str, found: Preview, text: str) -> tuple[int, str | None]:
    """Returns the bytes of the difference, and the difference itself. The latter is None where the
    search for the smallest one ran out of time. Raises ContentError.
    """
    if not found.previous:
        return 0, None
    done, folder = found.decision.answer, found.folder
    record, before = found.previous
    changes = LineDiff(before, text)
    repo, both = f"{done.owner}/{done.name}", (done.previous_version, done.version)
    names = (f"{repo}/{TEXT.file(one)}" for one in both)
    # If nothing changes, no file is read: the version before the latest may not exist.
    place = root, done.owner, done.name, done.previous_version
    files = compare_files(
        record.files or (),
        folder.stored,
        partial(content.read_version_file, *place),
        lambda one: folder.files[one.path],
    )
    diff = changes.unified(*names) + unified(files)
    is_coarse = changes.is_coarse or any(one.lines and one.lines.is_coarse for one in files)
    return len(diff.encode()), None if is_coarse else diff
