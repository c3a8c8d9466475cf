"""Versions: of Python, of libraries, of SQLite, and of the hub that built the site."""

import platform
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import metadata

from packaging.requirements import Requirement

from builder import DISTRIBUTION, installed_version
from builder.pipeline.build import stamp
from builder.store.site import read_hub
from builder.store.state import State
from operate.doctor.findings import Finding, Subject, ok, problem, warning

# The first that can drop a column, as a database of accounts needs when it is upgraded.
SQLITE_MIN = (3, 35, 0)
PYTHON_MIN = (3, 11)


def versions(subject: Subject) -> Iterator[Finding]:
    """Of the programs below."""
    yield ok(
        f"hub {installed_version()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}"
    )
    for name, found, least in (
        ("Python", sys.version_info[:2], PYTHON_MIN),
        ("SQLite", sqlite3.sqlite_version_info, SQLITE_MIN),
    ):
        if found < least:
            yield problem(
                f"{name} {_dotted(found)} is older than {_dotted(least)}.",
                f"Install a Python that has {name} {_dotted(least)} or later, and hub in it.",
            )


def libraries(subject: Subject) -> Iterator[Finding]:
    """Each that hub needs is installed, and no older than hub allows."""
    needed = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    needed = [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    wrong = []
    for one in needed:
        try:
            found = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{one.name} is missing")
            continue
        if not one.specifier.contains(found, prereleases=True):
            wrong.append(f"{one.name} {found} does not fit {one.specifier}")
    if wrong:
        yield problem(
            f"Libraries do not fit this release: {', '.join(wrong)}.",
            "Install them again: pip install --require-hashes -r requirements.lock",
        )
    else:
        yield ok(f"{len(needed)} libraries fit this release")


def site(subject: Subject) -> Iterator[Finding]:
    """This release built the site, for the address that readers use."""
    noted, settings = subject.noted, subject.settings
    if noted is None:
        yield warning(
            f"No build with the state folder {settings.state} has ended, so the next one writes "
            f"all of {settings.out}.",
            "Run `hubctl build` or `hubctl serve`, or name the folders of your hub with --out and "
            "--state.",
        )
        return
    with closing(State(settings.state, read_only=True)) as state:
        is_of_this_release = state.was_built_by(stamp(noted))
    if not is_of_this_release:
        yield warning(
            f"Another release of hub built {settings.out}, or its last build did not end.",
            "The next build makes all of it again. Run `hubctl build`, or start `hubctl serve`.",
        )
    if noted.base_url != settings.base_url:
        yield problem(
            f"The site in {settings.out} was built for {noted.base_url}, not for "
            f"{settings.base_url}, so its links lead elsewhere.",
            "Give the same --base-url (HUB_BASE_URL) to all commands, and build again.",
        )
    elif apart := _differences(subject):
        yield warning(
            f"The site in {settings.out} and the service that runs on it differ: {apart}.",
            "Run `hubctl build`, which takes the settings of the service.",
        )
    elif is_of_this_release:
        yield ok(f"built by this release for {noted.base_url}")


def _differences(subject: Subject) -> str:
    """The settings of the site that are not the service's; empty where none runs."""
    if not subject.service or not subject.noted:
        return ""
    shown = subject.noted._asdict()
    if hub := read_hub(subject.settings.out):  # which another state folder may have built
        shown |= {
            "site_name": hub.name,
            "base_url": hub.base_url,
            "queries": hub.queries,
            "search": hub.search,
            "private": hub.private,
        }
    return ", ".join(
        f"{field.replace('_', '-')} {shown[field]!r} and {value!r}"
        for field, value in subject.service._asdict().items()
        if shown[field] != value
    )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
