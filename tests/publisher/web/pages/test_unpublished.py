"""Texts that are not published yet: drafts, and forms that the hub refuses."""

import re
import socket
from pathlib import Path

from publisher.accounts.saved_drafts import SavedDrafts
from publisher.web.pages.frame import CHANGE_LIMIT
from server.bodies import VISITOR_BYTES_MAX
from tests.publisher.web.pages.conftest import People, Visitor, people_in
from tests.publisher.web.pages.editor import HOSTILE, MINE, NEW, fields_of, publish, send
from tests.support.catalogues import settings_in
from tests.support.servers import DEADLINE_SECONDS, serving


def test_a_publication_too_many_keeps_its_text(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path), "--open-signup", "--publish-limit", "1") as server:
        people = People(server)
        writer = people.guest()
        people.database.close()
        for name in ("first", "second"):
            writer.get(NEW)
            send(writer, "preview", name=name, content=f"The {name}.")
            page = send(writer, "publish")
    assert page.status == 429 and 0 < int(page.response.headers["Retry-After"]) <= 60
    assert f"Too many publications of {writer.handle}. Nothing is lost" in page.words
    assert ("content", "The second.") in fields_of(writer)


def test_a_hub_that_cannot_store_says_so_to_writers(tmp_path: Path) -> None:
    with people_in(tmp_path, "--open-signup") as people:
        writer = people.guest()
        writer.get(NEW)
        send(writer, "preview", title="Kind", content="Be kind.")
        Path(people.settings.content).rename(f"{people.settings.content}-elsewhere")
        page = send(writer, "publish")
        assert page.status == 503 and ("content", "Be kind.") in fields_of(writer)
        assert "Your text is kept on this page" in page.words
        assert "For the operator" in page.words and "Cannot write to the" in page.words
        writer.get("/account/profile")
        page = writer.submit(name="Mara")
        assert page.status == 503 and "Nothing is saved" in page.words
        assert "Cannot write to the" in page.words and "Try again" not in page.words


def test_drafts(people: People, writer: Visitor) -> None:
    page = send(writer, "save", content="Half a th", title=HOSTILE)
    assert "The draft is saved." in page.words and "?draft=" in page.response.url
    first = page.response.url.removeprefix(people.url)
    assert dict(fields_of(writer))["content"] == "Half a th"
    other = fields_of(writer, content="Other window")
    send(writer, "save", content="Half a thought")
    assert "in another window" in writer.post(first, [*other, ("action", "save")]).words
    page = writer.get(MINE)
    assert len({part for part in page.html.split('"') if "?draft=" in part}) == 2
    assert "<script>alert" not in page.html
    writer.get(first)
    assert dict(fields_of(writer))["content"] == "Half a thought"
    # Other users cannot see the draft, and publishing deletes it.
    assert "not there any more" in people.guest().get(first).words
    writer.get(first)
    publish(writer, name="story", title="Story")
    page = writer.get(first)
    assert page.path == MINE and "not there any more: it was published" in page.words
    discard = next(form for form in writer.page.forms if form.action.endswith("/discard"))
    assert "The draft is discarded." in writer.post(discard.action, discard.fields).words
    assert SavedDrafts(people.database).of(writer.handle) == []


def test_the_form_of_one_who_is_signed_out_is_not_lost(people: People, writer: Visitor) -> None:
    fields = [*fields_of(writer, name="story", content="Long\nwork."), ("action", "publish")]
    writer.session.cookies.clear()
    page = writer.post(NEW, fields)
    assert page.status == 401 and "You are signed out" in page.words
    assert f"/account/login?next={NEW.removeprefix('/account')}" in page.html
    kept = next(form for form in page.forms if "content" in form.names)
    # Signed in again, in another tab.
    again = people.guest()
    page = again.post(kept.action, [*kept.fields, ("action", "publish")])
    assert page.status == 400 and "you have signed in again" in page.words
    assert dict(fields_of(again))["content"] == "Long\nwork."
    assert "will be published" in send(again, "preview").words

    hidden = "Be \N{RIGHT-TO-LEFT OVERRIDE}kind.\r\nmine"
    page = writer.post(NEW, [("content", hidden), ("action", "save")])
    shown = re.search("<pre.*?</pre>", page.html, re.DOTALL)
    assert shown and 'data-code="U+202E"' in shown[0], "the text is in the order of its letters"
    (kept,) = [form for form in page.forms if "content" in form.names]
    assert dict(kept.fields)["content"].splitlines() == hidden.splitlines()

    large = [("content", "x" * VISITOR_BYTES_MAX), ("action", "save")]
    writer.session.cookies.clear()
    page = writer.post(NEW, large)
    assert page.status == 401 and "too large for this page to keep" in page.words


def test_the_body_of_a_stranger_is_not_waited_for(people: People) -> None:
    host, port = people.url.removeprefix("http://").split(":")
    head = (
        f"POST {NEW} HTTP/1.1\r\nHost: {host}:{port}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {VISITOR_BYTES_MAX + 1}\r\n\r\ncontent="
    )
    with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as client:
        client.sendall(head.encode())
        assert client.recv(12) == b"HTTP/1.1 401"


def test_after_signing_in_the_editor_is_open_again(people: People) -> None:
    member = people.member()
    there = send(member, "save", content="Hi.").response.url
    member.session.cookies.clear()
    page = member.get(there.removeprefix(people.url))
    assert page.path == "/account/login"
    page = member.submit(handle=member.handle, password=member.password)
    assert page.response.url == there


def test_too_many_changes_lose_nothing(people: People, writer: Visitor) -> None:
    fields = [*fields_of(writer, name="story", content="Hi."), ("action", "preview")]
    statuses = [writer.post(NEW, fields).status for _ in range(CHANGE_LIMIT)]
    assert set(statuses) == {200}
    page = writer.post(NEW, fields)
    assert page.status == 429 and int(page.response.headers["Retry-After"]) > 0
    assert "Nothing is lost" in page.words and dict(fields_of(writer))["content"] == "Hi."
