"""The table of what the service answers beside files, for the API document."""

from typing import NamedTuple

from msgspec import Struct

from builder.model.answers import ChangedLabel, Checked, Publication, TrustedToken
from builder.model.request_bodies import Draft, LabelDraft, LabelRemoval, TrustedExchange
from builder.model.routes import FORM
from builder.model.service_urls import CHECK_URL, LABEL_URL, PUBLISH_URL, TRUSTED_URL

_TOKEN: tuple[dict[str, list[str]], ...] = ({"token": []},)
_KEY, _VERSION = "Idempotency-Key", "If-Match"


class Operation(NamedTuple):
    """A row of the table. ``sends``: headers of the request."""

    name: str
    method: str
    url: str
    body: type[Struct]
    answer: type[Struct]
    sends: tuple[str, ...] = (_KEY,)
    security: tuple[dict[str, list[str]], ...] = _TOKEN

    @property
    def words(self) -> tuple[str, str, dict[str, str]]:
        """The summary, the description, and what each status says."""
        return _WORDS[self.name]


OPERATIONS = (
    Operation("publish", "post", PUBLISH_URL, Draft, Publication, (_KEY, _VERSION)),
    Operation("check", "post", CHECK_URL, Draft, Checked, (_VERSION,), ({}, *_TOKEN)),
    Operation("move_label", "put", LABEL_URL, LabelDraft, ChangedLabel),
    Operation("remove_label", "delete", LABEL_URL, LabelRemoval, ChangedLabel),
    Operation("trusted_publishing", "post", TRUSTED_URL, TrustedExchange, TrustedToken, (), ()),
)
_WORDS = {
    "publish": (
        "Publish a new version of a repo",
        "The first publication creates the repo, as version 1.0.0. The answer is sent when the "
        "version is stored and readers can get it. Text, files and metadata identical to the "
        "latest version create no new version. The body is JSON, or a form with a ZIP of the "
        f"version's folder (`{FORM}`).",
        {"201": "Published", "200": "Identical to the latest version; nothing published"},
    ),
    "check": (
        "Check what a publication would do",
        "Takes the body of a publication, and answers with the version that it would create, or "
        "with the error that it would get. Writes nothing. Needs no token where reading needs "
        "none; the rights of a token that you send are checked as well.",
        {"200": "What would happen"},
    ),
    "move_label": (
        "Let a label name a version",
        "Creates the label or moves it. The answer is sent when the move is stored and readers "
        "can get it. With `expected`, two clients cannot overwrite each other's move.",
        {"201": "A new label", "200": "Moved, or named the version already"},
    ),
    "remove_label": ("Remove a label; its history stays", "", {"200": "Removed"}),
    "trusted_publishing": (
        "Get a token for a CI job",
        "For a GitHub Actions or GitLab job that an owner has added as a trusted publisher in the "
        "account settings. No secret is stored. The job sends the ID token that its CI issued, "
        "with the hub's base URL as audience (`aud`). Each ID token can be exchanged once. The "
        "token that you get expires after 15 minutes. For `OWNER/*`, it publishes to all repos of "
        "the owner that trust the job.",
        {"200": "A token, shown only once"},
    ),
}
