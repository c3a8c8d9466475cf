"""The activity of an owner, in words; other pages show one page of it."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from flask import request

from builder.model.errors import RequestError
from publisher.accounts.events import Event, Events, Kind

# {note} is the event's ``note``, as its module has written it.
_TEXTS: dict[Kind, str] = {
    "signed_up": "Account created.",
    "invited": "Invitation created. Its link can set a password.",
    "signed_in": "Signed in with {note}.",
    "sign_in_failed": "Wrong password entered.",
    "signed_out_everywhere": "Signed out everywhere.",
    "password_set": "Password set.",
    "password_changed": "Password changed.",
    "identity_added": "Sign-in with {note} added.",
    "identity_removed": "Sign-in with {note} removed.",
    "token_made": "Token created: {note}.",
    "token_new_address": "Token used from a new address: {note}.",
    "token_revoked": "Token revoked: {note}.",
    "publisher_added": "Trusted publisher added: {note}.",
    "publisher_changed": "Labels of a trusted publisher changed: {note}.",
    "publisher_removed": "Trusted publisher removed: {note}.",
    "publisher_used": "A job of a trusted publisher got a token: {note}.",
    "trusted_only_on": "{note} now accepts only trusted publishers.",
    "trusted_only_off": "{note} accepts tokens again.",
    "label_protected": "Label protected: {note}.",
    "label_unprotected": "Label no longer protected: {note}.",
    "published": "Published: {note}.",
    "label_moved": "Label moved: {note}.",
    "withdrawn": "Withdrawn: {note}.",
    "team_made": "Team created for {note}.",
    "team_link_made": "Link made with which one person joins as {note}.",
    "member_added": "Member added: {note}.",
    "member_joined": "Joined by a link: {note}.",
    "member_role": "Role changed: {note}.",
    "member_removed": "Member removed: {note}.",
    "locked": "Account locked.",
    "unlocked": "Account unlocked.",
    "access_ended": "All access ended: password, sign-ins, tokens and teams.",
    "operator_made": "Made an operator of this hub.",
    "operator_ended": "No longer an operator of this hub.",
    "restored": "The hub was restored from a backup of {note}. Everyone was signed out.",
}


def tell(event: Event, issuer_names: Mapping[str, str]) -> str:
    """Returns the event as a sentence; ``issuer_names`` has the names of issuers, by URL."""
    note = event.note
    if event.kind in ("identity_added", "identity_removed"):
        note = issuer_names.get(note, note)
    return _TEXTS[event.kind].format(note=note or "an unknown browser")


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
