"""The page that compares two versions of a prompt, for readers.

The script of the site's own page puts this one in its place. Readers without scripts open it by
itself. It works on published files alone, in bounded time for any two versions.
"""

import re
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus

from flask import Response, request

from builder.model.answers import ListedVersion
from builder.model.content_tree import TEXT
from builder.model.names import LATEST
from builder.model.plural import counted
from builder.model.routes import TEXT as TEXT_TYPE
from builder.model.service_urls import COMPARE_URL
from builder.model.settings import Settings
from builder.render.changes_table import metadata_changes
from builder.text.file_diff import COMPARED_BYTES_MAX
from builder.text.interface import Change, changes_for_callers, interface_of
from publisher.web.pages.difference import (
    File,
    Side,
    VersionDifference,
    compare_versions,
    unified_diff,
)
from publisher.web.pages.frame import Frame
from publisher.web.published import Published, read_file, read_version, read_versions

# Comparisons for one address in a minute. Each may take a second.
COMPARISONS_PER_MINUTE = 60
# The rest of a longer version or label in the query is ignored.
REF_CHARS_MAX = 80
# The most versions listed from one side to the other.
STEPS_MAX = 8
ONLY_ONE = "This prompt has only one version that can be read, so there is nothing to compare."

_is_ref = re.compile(r"[A-Za-z0-9_.-]+").fullmatch


def add_to(frame: Frame) -> None:
    """Adds this page."""
    reason = "Too many versions were compared from your address"
    frame.add_for_readers(COMPARE_URL, compared, COMPARISONS_PER_MINUTE, "compare", reason)


def compared(frame: Frame, owner: str, name: str) -> Response:
    """Returns the comparison that the query asks for, or the reason why there is none."""
    versions = read_versions(frame.service.settings, owner, name)
    refs = _refs(versions)
    asked = _asked(versions, refs)
    shown = {"whose": owner, "name": name, "refs": refs, "asked": asked}
    has_choice = sum(not one.withdrawn for one in versions) > 1
    status, fault = _fault(refs, asked) if has_choice else (HTTPStatus.OK, ONLY_ONE)
    if fault:
        return frame.render("compared.html", status, **shown, fault=fault, has_choice=has_choice)
    low, high = sorted(versions.index(refs[ref]) for ref in asked)
    between = versions[low : high + 1]
    pair = [read_version(frame.service.settings, owner, name, refs[ref].version) for ref in asked]
    size = sum(file.size for one in pair for file in one.files or ())
    is_examined = size <= COMPARED_BYTES_MAX
    sides = [_side(frame.service.settings, one) for one in pair]
    if "diff" in request.args:
        names = (f"{owner}/{name}/{TEXT.file(one.version)}" for one in pair)
        return Response(unified_diff(*sides, *names), content_type=TEXT_TYPE)
    change = compare_versions(*sides, is_examined=is_examined)
    callers = changes_for_callers(*(interface_of(one, one.content) for one in pair))
    return frame.render(
        "compared.html",
        **shown,
        fault="",
        has_choice=True,
        pair=pair,
        callers=callers,
        change=change,
        summary=_summary(change, pair, callers),
        is_examined=is_examined,
        steps=[*between[: STEPS_MAX - 1], *between[STEPS_MAX - 1 :][-1:]],
        left=max(0, len(between) - STEPS_MAX),
    )


def _refs(versions: Sequence[ListedVersion]) -> dict[str, ListedVersion]:
    """The version that each label, version and ``latest`` names, in the order of the choices."""
    latest = [(LATEST, one) for one in versions if not one.withdrawn][:1]
    labels = sorted((label, one) for one in versions for label in one.labels or ())
    return dict([*latest, *labels, *((one.version, one) for one in versions)])


def _asked(versions: Sequence[ListedVersion], refs: dict[str, ListedVersion]) -> tuple[str, str]:
    """The refs in the query. By default, the latest version and the one before ``to``."""
    given = [request.args.get(side, "")[:REF_CHARS_MAX] for side in ("from", "to")]
    readable = [one.version for one in versions if not one.withdrawn]
    to = given[1] or readable[0]
    number = refs[to].version if to in refs else ""
    at = readable.index(number) + 1 if number in readable else 0
    return given[0] or [*readable[at:], readable[-1]][0], to


def _fault(refs: dict[str, ListedVersion], asked: tuple[str, str]) -> tuple[int, str]:
    """The status, and the reason why versions cannot be compared; empty if they can."""
    for ref in asked:
        if ref not in refs:
            named = f"version or label “{ref}”" if _is_ref(ref) else "such version or label"
            return 404, f"This prompt has no {named}. Choose one from the list."
        if refs[ref].withdrawn:
            gone = f"Version {refs[ref].version} has been withdrawn"
            return 410, f"{gone}, so its text cannot be compared. Choose another one."
    old, new = (refs[ref].version for ref in asked)
    return 200, "" if old != new else f"Both sides are {old}. Choose another version on one side."


def _side(settings: Settings, one: Published) -> Side:
    files = {
        file.path: File(file.path, read_file(settings, one, file), file.executable)
        for file in one.files or ()
    }
    return Side(one.version, one.content, one.front_matter_bytes, files)


def _summary(
    change: VersionDifference, pair: Sequence[Published], callers: Sequence[Change]
) -> str:
    """Sentences about the numbers of lines and files, or about what else differs."""
    text, kinds = change.text.shown, [file.kind for file, _ in change.files]
    lines = [f"{counted(text.removed, 'line')} removed", f"{counted(text.added, 'line')} added"]
    words = {"mode": "with another executable bit"}
    files = [f"{counted(n, 'file')} {words.get(kind, kind)}" for kind, n in Counter(kinds).items()]
    counts = [lines if text.rows else ["The text is unchanged"], files]
    said = [f"{', '.join(one)}." for one in counts if one]
    if not text.rows:
        said.append(metadata_changes(*pair))
    if not callers:
        said.append("Variables and parameters are as before.")
    return " ".join(filter(None, said))
