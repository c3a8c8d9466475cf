"""The activity of an owner, in words; other pages show one page of it."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from flask import request

from builder.model.errors import RequestError
from publisher.accounts.events import TEXTS, Event, Events

# The first match counts: a browser also names those for which it wants to be taken.
_BROWSERS = (
    ("Edge", r"Edg(?:e|A|iOS)?/"),
    ("Opera", r"OPR/|Opera"),
    ("Firefox", r"Firefox/|FxiOS/"),
    ("Chrome", r"Chrom(?:e|ium)/|CriOS/"),
    ("Safari", r"Safari/"),
)
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iOS", "iPhone|iPad"),
    ("macOS", "Mac OS X"),
    ("Linux", "Linux|X11"),
)


def tell(event: Event, issuer_names: Mapping[str, str]) -> str:
    """Returns the event as a sentence; ``issuer_names`` has the names of issuers, by URL."""
    note = event.note
    if event.kind in ("identity_added", "identity_removed"):
        note = issuer_names.get(note, note)
    if event.kind == "signed_in":
        note = browser_name(note)
    return TEXTS[event.kind].format(note=note)


def browser_name(agent: str) -> str:
    """Returns the name in a User-Agent, such as ``Firefox on Linux``; of other programs theirs."""
    browser, system = (
        next((name for name, pattern in names if re.search(pattern, agent)), "")
        for names in (_BROWSERS, _SYSTEMS)
    )
    program = " ".join(agent.split()[:1]) or "an unknown browser"
    return " on ".join(filter(None, (browser, system))) if browser else program


EVENTS_SHOWN = 100

_event_id = re.compile(r"[0-9]{1,18}")


class Activity(NamedTuple):
    """Events with their words, each with the number of similar ones that follow. ``before``: the id
    of an event that the URL names, after the newest of these; ``older``: that of the next page.
    """

    lines: list[tuple[Event, str, int]]
    before: int | None
    older: int | None


def read_activity(events: Events, owner: str, issuer_names: Mapping[str, str]) -> Activity:
    """Returns the page of an owner's activity that the URL names; the newest by default.
    ``issuer_names``: the names of issuers, by URL. Raises RequestError ``invalid_parameter``.
    """
    given = request.args.get("before")
    if given is not None and not _event_id.fullmatch(given):
        raise RequestError(
            "invalid_parameter", "This part of the activity does not exist. Open the page again."
        )
    before = None if given is None else int(given)
    lines, older = events.page(owner, EVENTS_SHOWN, before)
    told = [(line.event, tell(line.event, issuer_names), line.more) for line in lines]
    return Activity(told, before, older)
