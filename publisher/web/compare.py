"""The page that compares two versions of a prompt, for readers.

The script of the site's own page puts this one in its place. Readers without scripts open it by
itself. It works on published files alone, in bounded time for any two versions.
"""

import re
from typing import NamedTuple

from flask import Response, request

from builder.model.answers import ListedVersion
from builder.model.errors import RequestError
from builder.model.names import LATEST
from builder.model.plural import counted
from builder.model.service_urls import ACCOUNT_URL, COMPARE_URL
from builder.model.settings import Settings
from builder.text.file_diff import COMPARED_BYTES_MAX
from builder.text.interface import changes_for_callers, interface_of
from builder.text.sources import built_from
from publisher.web.pages.difference import (
    File,
    Side,
    VersionDifference,
    beside,
    compare_versions,
)
from publisher.web.pages.frame import Frame
from publisher.web.published import Published, read_file, read_version, read_versions

# Comparisons for one address in a minute. Each may take a second.
COMPARISONS_PER_MINUTE = 60
# The rest of a longer version or label in the query is ignored.
REF_CHARS_MAX = 80
# The most versions listed from one side to the other.
STEPS_MAX = 8

_is_ref = re.compile(r"[A-Za-z0-9_.-]+").fullmatch


class _Listing(NamedTuple):
    """The versions of a prompt, newest first, and those that each version, label and ``latest``
    names.
    """

    versions: list[ListedVersion]
    refs: dict[str, ListedVersion]

    def asked(self) -> tuple[str, str]:
        """The refs in the query. By default, the latest version and the one before ``to``."""
        given = [request.args.get(side, "")[:REF_CHARS_MAX] for side in ("from", "to")]
        latest = self.refs.get(LATEST)
        to = given[1] or (latest.version if latest else "")
        readable = [one.version for one in self.versions if not one.withdrawn]
        named = self.refs.get(to)
        at = readable.index(named.version) + 1 if named and not named.withdrawn else 0
        before = readable[at : at + 1] or readable[-1:]
        return given[0] or "".join(before), to

    def find(self, ref: str) -> ListedVersion:
        """The version that a ref names. Raises RequestError."""
        if not ref:
            raise RequestError("version_not_found", "This prompt has no version to compare.")
        if ref not in self.refs:
            named = f"version or label “{ref}”" if _is_ref(ref) else "such version or label"
            raise RequestError(
                "version_not_found", f"This prompt has no {named}. Choose one from the list."
            )
        one = self.refs[ref]
        if one.withdrawn:
            raise RequestError(
                "withdrawn",
                f"Version {one.version} has been withdrawn, so its text cannot be compared. "
                "Choose another one.",
            )
        return one

    def steps(self, *pair: ListedVersion) -> list[ListedVersion]:
        """The versions from one to the other, newest first, without some of many."""
        low, high = sorted(map(self.versions.index, pair))
        between = self.versions[low : high + 1]
        return [*between[: min(len(between), STEPS_MAX) - 1], between[-1]]


def add_to(frame: Frame) -> None:
    """Adds this page."""
    path = COMPARE_URL.removeprefix(ACCOUNT_URL).replace("{", "<").replace("}", ">")
    told = "Too many versions were compared from your address"
    frame.add_for_readers(path, compared, COMPARISONS_PER_MINUTE, "compare", told)


def compared(frame: Frame, owner: str, name: str) -> Response:
    """Returns the comparison that the query asks for, or the reason why there is none."""
    listing = _list(frame.settings, owner, name)
    asked = listing.asked()
    shown = {"whose": owner, "name": name, "listing": listing, "asked": asked}
    try:
        old, new = map(listing.find, asked)
    except RequestError as error:
        return frame.render("compared.html", error.status, **shown, fault=str(error))
    if old is new:
        both = f"{asked[0]} and {asked[1]} are the same version, {old.version}"
        fault = f"Both sides are {asked[0]}" if asked[0] == asked[1] else both
        fault += ". Choose another version on one side."
        return frame.render("compared.html", **shown, fault=fault)
    records = [read_version(frame.settings, owner, name, one.version) for one in (old, new)]
    size = sum(file.size for one in records for file in one.files or ())
    is_examined = size <= COMPARED_BYTES_MAX
    sides = (_side(frame.settings, one) for one in records)
    change = compare_versions(*sides, is_examined=is_examined)
    return frame.render(
        "compared.html",
        **shown,
        fault="",
        pair=records,
        callers=changes_for_callers(*(interface_of(one, one.content) for one in records)),
        change=change,
        summary=_summary(change),
        is_examined=is_examined,
        steps=listing.steps(old, new),
        built_from=built_from,
        beside=beside,
    )


def _list(settings: Settings, owner: str, name: str) -> _Listing:
    versions = read_versions(settings, owner, name)
    labels = {label: one for one in versions for label in one.labels or ()}
    latest = [(LATEST, one) for one in versions if not one.withdrawn][:1]
    numbers = [(one.version, one) for one in versions]
    return _Listing(versions, dict([*latest, *sorted(labels.items()), *numbers]))


def _side(settings: Settings, one: Published) -> Side:
    files = {
        file.path: File(file.path, read_file(settings, one, file), file.executable)
        for file in one.files or ()
    }
    return Side(one.version, one.content, one.front_matter_bytes, files)


def _summary(change: VersionDifference) -> str:
    """Sentences about the numbers of lines and files."""
    text, kinds = change.text, [file.kind for file, _ in change.files]
    lines = f"{counted(text.removed, 'line')} removed, {counted(text.added, 'line')} added."
    same = "The text is unchanged" + ("." if kinds else "; only its metadata differs.")
    files = ", ".join(
        counted(kinds.count(kind), "file") + words
        for kind, words in (
            ("changed", " changed"),
            ("added", " added"),
            ("removed", " removed"),
            ("mode", " with another executable bit"),
        )
        if kind in kinds
    )
    return f"{lines if text.rows else same}{' ' if files else ''}{files}{'.' if files else ''}"
