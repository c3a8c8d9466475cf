"""Checks a draft: reports what its publication would do, with the code that publishes, up to the
write.
"""

from builder.model.records import ChangedVariables, Checked, Draft
from builder.text.line_diff import LineDiff
from publisher.write.decision import Terms
from publisher.write.next_version import Step, interface_of
from publisher.write.publish import Preview, preview
from publisher.write.store_protocol import Store


def check(
    store: Store, owner: str, name: str, draft: Draft, *, publisher: str, terms: Terms
) -> Checked:
    """Returns what ``publish`` would do now. Writes nothing. Raises as ``publish`` does."""
    store.catch_up(owner, name)
    found = preview(store.root, owner, name, draft, publisher=publisher, terms=terms)
    done = found.decision.answer
    used = interface_of(found.metadata, draft.content).variables
    step = found.step or Step("patch", [], [*used], [], [])
    size, diff = _compare(found, draft.content)
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
    )


def _compare(found: Preview, text: str) -> tuple[int, str | None]:
    """Returns the bytes of the difference, and the difference itself. The latter is None where the
    search for the smallest one ran out of time.
    """
    if not found.previous:
        return 0, None
    done = found.decision.answer
    changes = LineDiff(found.previous[1], text)
    files = (f"{done.owner}/{done.name}/{one}.md" for one in (done.previous_version, done.version))
    diff = changes.unified(*files)
    return len(diff.encode()), None if changes.is_coarse else diff
