"""The page on which an owner withdraws a version, or a whole prompt."""

import pytest
import requests

from builder.model.request_bodies import LabelDraft
from builder.store import content
from builder.store.withdrawn_files import read_parts
from publisher.write.drafts import make_change
from publisher.write.durable import FolderStore
from publisher.write.labels import change_label
from publisher.write.moves import read_labels
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.support.events import latest
from tests.support.servers import DEADLINE_SECONDS


@pytest.fixture
def owner(people: People) -> Visitor:
    """A user who has published two versions of a story, the second with a label."""
    visitor = people.guest()
    people.publish_story(visitor, "One.", "Two <b>secret</b>.")
    change_label(
        FolderStore(people.settings.content), visitor.handle, "story", "production",
        make_change(LabelDraft, {"version": "1.0.1"}), by=visitor.handle,
    )  # fmt: skip
    return visitor


def path(owner: Visitor, name: str = "story") -> str:
    return f"/account/prompts/{owner.handle}/{name}/withdraw"


def ask(owner: Visitor, **fields: str) -> Page:
    owner.get(path(owner))
    given = {"version": "1.0.1", "reason": "secret", "note": ""} | fields
    return owner.submit("/withdraw", **given)


def alive(people: People, owner: Visitor) -> list[str]:
    listing = content.list_versions(people.settings.content, owner.handle, "story")
    return [*map(str, listing.versions)]


def test_a_version_is_withdrawn_in_two_steps(people: People, owner: Visitor) -> None:
    page = ask(owner, note="Use <1.0.0>.\r\nRevoked.")
    assert page.status == 200 and "because it contained a secret" in page.words
    for words in ("production", "The latest version will be 1.0.0 instead of 1.0.1", "<1.0.0>"):
        assert words in page.words
    assert alive(people, owner) == ["1.0.0", "1.0.1"]
    done = owner.submit("/confirm")
    message = "It is deleted and off the site. The label production names no version any more."
    assert f"{owner.handle}/story 1.0.1 is withdrawn. {message}" in done.words
    assert "What readers see now" in done.words and "Review withdrawal" not in done.words
    assert alive(people, owner) == ["1.0.0"]
    assert read_labels(people.settings.content, owner.handle, "story").versions() == {}
    listing = content.list_versions(people.settings.content, owner.handle, "story").withdrawn
    parts = read_parts(people.settings.content, f"{owner.handle}/story", listing)
    assert parts.versions[0].withdrawal.note == "Use <1.0.0>.\nRevoked."
    answer = requests.get(f"{owner.url}/{owner.handle}/story/1.0.1", timeout=DEADLINE_SECONDS)
    assert answer.status_code == 410 and "Use &lt;1.0.0&gt;." in answer.text
    history = f"{owner.url}/api/v1/repos/{owner.handle}/story/labels/production/history"
    (last, *_) = requests.get(history, timeout=DEADLINE_SECONDS).json()["data"]
    assert last["version"] is None and last["note"].startswith("Version 1.0.1 was withdrawn on ")
    events = [(one.kind, one.note) for one in latest(people.database, owner.handle, 10)]
    assert ("withdrawn", f"{owner.handle}/story 1.0.1 in the browser") in events


def test_its_labels_move_in_the_same_step(people: People, owner: Visitor) -> None:
    assert "production names 1.0.0 from then on" in ask(owner, move_labels="1.0.0").words
    assert "The label production names 1.0.0 now." in owner.submit("/confirm").words
    found = read_labels(people.settings.content, owner.handle, "story").versions()
    assert found == {"production": "1.0.0"}


def test_a_whole_prompt_is_withdrawn(people: People, owner: Visitor) -> None:
    page = ask(owner, version="all", reason="legal")
    assert "all 2 versions" in page.words and "nobody can publish under its name" in page.words
    done = owner.submit("/confirm")
    assert f"{owner.handle}/story is withdrawn." in done.words
    assert "all of it is withdrawn" in done.words and alive(people, owner) == []
    answer = requests.get(f"{owner.url}/{owner.handle}/story", timeout=DEADLINE_SECONDS)
    assert answer.status_code == 410


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": ""}, "Choose a version, or the whole prompt."),
        ({"version": "9.9.9"}, "no version 9.9.9"),
        ({"version": "<b>"}, "x.y.z"),
        ({"move_labels": "<b>"}, "x.y.z"),
        ({"note": "é" * 600}, "longer than 1,024 bytes"),
        ({"move_labels": "9.9.9"}, "no version 9.9.9"),
        ({"move_labels": "1.0.1"}, "withdrawn with it"),
        ({"reason": "boredom"}, "Not a valid choice"),
        ({"reason": ""}, "Choose a reason."),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    people: People, owner: Visitor, fields: dict[str, str], message: str
) -> None:
    page = ask(owner, **fields)
    assert page.status == 422 and message in page.words
    assert alive(people, owner) == ["1.0.0", "1.0.1"]


def test_what_has_changed_meanwhile_is_shown_again(people: People, owner: Visitor) -> None:
    ask(owner)
    change_label(
        FolderStore(people.settings.content), owner.handle, "story", "canary",
        make_change(LabelDraft, {"version": "1.0.1"}), by=owner.handle,
    )  # fmt: skip
    page = owner.submit("/confirm")
    assert "has changed since you were asked" in page.words and "canary" in page.words
    assert alive(people, owner) == ["1.0.0", "1.0.1"]
    assert "is withdrawn" in owner.submit("/confirm").words


def test_twice(people: People, owner: Visitor) -> None:
    ask(owner)
    owner.submit("/confirm")
    page = ask(owner, reason="error")
    assert "withdrawn before" in page.words and "contained a secret" in page.words


def test_only_ones_own_prompts(people: People, owner: Visitor) -> None:
    other = people.guest()
    page = other.get(path(owner))
    assert page.status == 403 and owner.handle in page.words
    assert other.get(path(other, "nothing")).status == 404
    assert other.get(path(other, "Bad")).status == 400


def test_a_version_can_come_with_the_link(owner: Visitor) -> None:
    owner.get(path(owner) + "?version=1.0.0")
    assert ("version", "1.0.0") in owner.form("/withdraw").fields
