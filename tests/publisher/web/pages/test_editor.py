"""The editor and the list of prompts, without scripts."""

import json
import socket
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest
import requests

from builder.model.names import Version
from builder.model.records import CONTENT_BYTES_MAX, VersionFile
from builder.store import content
from builder.store.labels import read_labels
from publisher.accounts.database import Database
from publisher.accounts.saved_drafts import SavedDrafts
from publisher.accounts.tokens import Accounts
from publisher.web.pages.frame import CHANGE_LIMIT
from server.bodies import PUBLICATION_BYTES_MAX, VISITOR_BYTES_MAX
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.support.catalogues import settings_in
from tests.support.servers import DEADLINE_SECONDS, serving

MINE = "/account/prompts"
NEW = f"{MINE}/new"
HOSTILE = "<script>alert(1)</script>\N{RIGHT-TO-LEFT OVERRIDE}</textarea>\"'{{a}}"


@pytest.fixture
def owner(people: People) -> Visitor:
    """A signed-in user with the editor open."""
    visitor = people.guest()
    visitor.get(NEW)
    return visitor


def fields_of(visitor: Visitor, **changed: str | list[str] | None) -> list[tuple[str, str]]:
    """The fields that the editor's form would send, with some changed."""
    form = next(form for form in visitor.page.forms if "content" in form.names)
    sent = [(name, value) for name, value in form.fields if name not in changed]
    for name, value in changed.items():
        sent += [(name, one) for one in ([value] if isinstance(value, str) else value or [])]
    return sent


def send(visitor: Visitor, action: str, **changed: str | list[str] | None) -> Page:
    """Press a button of the editor."""
    form = next(form for form in visitor.page.forms if "content" in form.names)
    return visitor.post(form.action, [*fields_of(visitor, **changed), ("action", action)])


def set_variable(visitor: Visitor, name: str, **cells: str) -> dict[str, list[str]]:
    """The changed columns of the variables' forms on the page."""
    sent = fields_of(visitor)
    names = [value for field, value in sent if field == "variable-name"]
    columns = {}
    for cell, value in cells.items():
        column = [one for field, one in sent if field == f"variable-{cell}"]
        column[names.index(name)] = value
        columns[f"variable-{cell}"] = column
    return columns


def publish(visitor: Visitor, **changed: str | list[str] | None) -> Page:
    """Preview, then publish what it shows."""
    page = send(visitor, "preview", **changed)
    assert page.status == 200, page.words
    page = send(visitor, "publish")
    assert (page.status, page.path.rpartition("/")[2]) == (200, "published"), page.words
    return page


def open_story(visitor: Visitor) -> Page:
    return visitor.get(f"{MINE}/{visitor.handle}/story")


def stored(
    people: People, owner: Visitor, version: str, name: str = "story"
) -> tuple[VersionFile, str]:
    root = people.settings.content
    return content.read_version(root, owner.handle, name, Version.parse(version))


def token_of(people: People, owner: Visitor) -> str:
    with Database(people.settings.state) as database:
        return Accounts(database).create_token(owner.handle, "setup")[0]


def publish_elsewhere(people: People, owner: Visitor, text: str, **fields: object) -> None:
    """Publish the story over the API."""
    answer = people.server.request(
        "POST", f"/api/v1/repos/{owner.handle}/story/versions", json={"content": text} | fields,
        headers={"Authorization": f"Bearer {token_of(people, owner)}"},
    )  # fmt: skip
    assert answer.status_code == 201, answer.text


def test_write_publish_and_correct(people: People, owner: Visitor) -> None:
    page = send(owner, "preview", name="story", content="Tell {{hero}} a story.\r\nEnd.")
    assert "will be published as the first version" in page.words
    changed = set_variable(owner, "hero", example="Ada", description="Who")
    page = send(owner, "preview", **changed)
    assert "Tell Ada a story." in page.words
    page = send(owner, "publish", title="A story", tags=["Bed Time", ""], license="CC0-1.0")
    assert "Check what will happen" in page.words, "the details changed after the preview"
    page = send(owner, "publish")
    assert page.path.endswith("/story/published") and "1.0.0 is published" in page.words
    record, text = stored(people, owner, "1.0.0")
    assert text == "Tell {{hero}} a story.\nEnd."
    assert (record.title, record.tags, record.license) == ("A story", ["bed-time"], "CC0-1.0")
    (hero,) = record.variables
    assert (hero.description, hero.example, hero.required) == ("Who", "Ada", True)
    assert "A story" in people.server.get(f"/{owner.handle}/story/1.0.0").text

    open_story(owner)
    page = send(owner, "preview", content="Tell {{hero}} a long story.\r\nEnd.")
    assert "Patch is proposed" in page.words and "Publish 1.0.1" in page.html
    assert "<ins>" in page.html, "the difference is marked to the word"
    send(owner, "publish")
    assert stored(people, owner, "1.0.1")[0].variables == record.variables


def test_what_will_happen(people: People, owner: Visitor) -> None:
    publish(owner, name="story", content="Tell {{hero}}.")
    open_story(owner)
    page = send(owner, "preview", content="Tell {{hero}} of {{place}}.")
    assert "place is a new required variable." in page.words
    assert "breaking_variables" not in page.words, "the proposed step warns callers by its number"
    assert "breaking_variables: " in send(owner, "preview", bump="minor").words
    page = send(owner, "preview", bump="major")
    assert "breaking_variables" not in page.words
    page = send(owner, "publish")
    assert page.status == 422 and "a major version needs a changelog" in page.words
    page = send(owner, "preview", **set_variable(owner, "place", default="Rome"))
    assert "place is a new optional variable." in page.words and "1.1.0 (proposed)" in page.words
    page = send(owner, "publish", changelog="Places.", bump="major", new_labels="canary, beta")
    assert "2.0.0 is published" in page.words
    record, _ = stored(people, owner, "2.0.0")
    assert (record.changelog, record.labels) == ("Places.", ["canary", "beta"])
    page = open_story(owner)
    assert "canary names 2.0.0 now" in page.words
    assert "Nothing changed since 2.0.0" in send(owner, "preview").words
    assert "there is no new version" in send(owner, "publish").words
    open_story(owner)
    publish(owner, content="Hello.", labels=["canary"], changelog="Short.")
    labels = read_labels(people.settings.content, owner.handle, "story").versions()
    assert labels == {"beta": "2.0.0", "canary": "3.0.0"}


def test_a_version_that_nobody_changes_stays_as_it_is(people: People, owner: Visitor) -> None:
    text = "---\r\ntitle: Odd # note\r\nmine: 1\r\n---\r\n\r\nOne {{a}}\r\nTwo {{b}}\nThree {{c}}\r"
    variables = [
        {"name": "a", "default": "", "description": "x\r\ny"},
        {"name": "b", "type": "string", "default": 5, "required": True},
        {"name": "c", "type": "number", "enum": [1, "1", "x\ny", True, " p "], "example": '"q"'},
    ]
    publish_elsewhere(
        people, owner, text, variables=variables, parameters={"temperature": 1.0, "model": True}
    )
    open_story(owner)
    assert "Nothing changed since 1.0.0" in send(owner, "preview").words
    # A change of one line is one of that line alone.
    send(owner, "preview", content=text.replace("Two", "Deux"))
    send(owner, "publish")
    assert stored(people, owner, "1.0.1")[1] == text.replace("Two", "Deux")


def test_front_matter_stays_the_author_s(people: People, owner: Visitor) -> None:
    text = "---\ntitle: Mine\n# a note\ntags: [one]\n---\nSay {{x}}."
    page = send(owner, "preview", name="story", content=text, title="Form", license="MIT")
    assert "Title from the front matter: Mine" in page.words
    send(owner, "publish")
    record, kept = stored(people, owner, "1.0.0")
    assert (kept, record.title, record.tags, record.license) == (text, "Mine", ["one"], "MIT")
    # The fields move into the text, and back.
    open_story(owner)
    page = send(owner, "to_text")
    assert "license: MIT" in page.html and "# a note" in page.html and "variables:" in page.html
    page = send(owner, "to_form")
    assert page.status == 200 and ("content", "Say {{x}}.") in fields_of(owner)
    assert "front matter is in the form" in page.words
    page = send(owner, "to_form", content="---\nmine: 1\n---\nText")
    assert page.status == 422 and "mine" in page.words
    assert dict(fields_of(owner))["content"] == "---\nmine: 1\n---\nText"


def test_front_matter_that_cannot_be_read_is_told_in_the_preview(owner: Visitor) -> None:
    for action in ("preview", "to_text", "publish"):
        page = send(owner, action, name="story", content="---\ntags: [a, b\nx: y\n---\nSay it.")
        assert page.status == 422
        assert "invalid YAML in line 3, column 2" in page.words
    assert (
        send(owner, "preview", name="story", content="---\nSo we say: a: b\n---\nIt.").status == 200
    )


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"name": "Story"}, 400, "lower case"),
        ({"name": ""}, 400, "Invalid prompt name"),
        ({"content": " "}, 422, "send the text of the prompt"),
        ({"content": "x" * (CONTENT_BYTES_MAX + 1)}, 413, "262,144 is the limit"),
        ({"tags": ["é!"]}, 422, "a-z, 0-9"),
        ({"more": "{"}, 422, "This is not JSON"),
        ({"more": '{"model": 1}', "parameter-model": "m"}, 422, "only once"),
        ({"parameter-temperature": "warm"}, 422, "such as 0.7"),
        ({"new_labels": "latest"}, 422, "reserved"),
        ({"title": "x" * 201}, 422, "length"),
        ({"changelog": "x" * 9000}, 422, "8,192 bytes"),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    owner: Visitor, changed: dict[str, str], status: int, message: str
) -> None:
    given = {"name": "story", "content": "Hi {{a}}"} | changed
    page = send(owner, "publish", **given)
    assert page.status == status and message in page.words, page.words
    sent = dict(fields_of(owner))
    assert sent["content"] == given["content"], "the text is still there"


def test_a_publication_too_many_keeps_its_text(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path), "--open-signup", "--publish-limit", "1") as server:
        owner = People(server).guest()
        for name in ("first", "second"):
            owner.get(NEW)
            send(owner, "preview", name=name, content=f"The {name}.")
            page = send(owner, "publish")
    assert page.status == 429 and 0 < int(page.response.headers["Retry-After"]) <= 60
    assert f"Too many publications of {owner.handle}. Nothing is lost" in page.words
    assert ("content", "The second.") in fields_of(owner)


def test_values_of_variables_have_their_type(people: People, owner: Visitor) -> None:
    send(owner, "preview", name="story", content="{{count}} {{on}} {{list}} {{word}}")
    wrong = send(owner, "preview", **set_variable(owner, "count", type="integer", default="many"))
    assert wrong.status == 422 and "whole number" in wrong.words
    columns: dict[str, list[str]] = {
        "variable-type": ["integer", "boolean", "array", "string"],
        "variable-default": ["3", "true", '["a"]', '""'],
        "variable-enum": ["3\r\n4", "", "", ""],
        "variable-required": ["auto", "no", "yes", "auto"],
    }
    publish(owner, **columns)
    variables = {one.name: one for one in stored(people, owner, "1.0.0")[0].variables}
    assert [one.default for one in variables.values()] == [3, True, ["a"], ""]
    assert variables["count"].enum == [3, 4] and variables["list"].required is True


def test_two_people_edit_the_same_version(people: People, owner: Visitor) -> None:
    publish(owner, name="story", content="One.\nTwo.\nThree.", title="Old")
    open_story(owner)
    send(owner, "preview", content="One.\nTwo.\nMine.")
    publish_elsewhere(people, owner, "Theirs.\nTwo.\nThree.", title="New", changelog="Better")
    page = send(owner, "publish")
    assert page.status == 412 and "has changed meanwhile" in page.words
    for words in ("Theirs: 1.0.1", "Mine", "Base: 1.0.0", "Better"):
        assert words in page.words
    assert page.html.count("<ins>") + page.html.count('class="added"') >= 2

    # A merge by hand: my text beside their change. Fields that only they changed keep their value.
    page = send(owner, "merge")
    sent = dict(fields_of(owner))
    assert (sent["content"], sent["title"]) == ("One.\nTwo.\nMine.", "New")
    assert sent["base_version"] == "1.0.1" and "What changed from 1.0.0 to 1.0.1" in page.words
    publish(owner, content="Theirs.\nTwo.\nMine.")
    record, text = stored(people, owner, "1.0.2")
    assert (text, record.title) == ("Theirs.\nTwo.\nMine.", "New")


def test_go_on_with_mine_or_theirs(people: People, owner: Visitor) -> None:
    publish(owner, name="story", content="Old.")
    open_story(owner)
    before = fields_of(owner, content="Mine.")
    publish_elsewhere(people, owner, "Theirs.")
    where = f"{MINE}/{owner.handle}/story"
    owner.post(where, [*before, ("action", "preview")])
    page = send(owner, "mine")
    assert "Publish 1.0.2" in page.words and "Changes since 1.0.1" in page.words
    # The page of the conflict again, and theirs: my text is a draft.
    owner.post(where, [*before, ("action", "publish")])
    page = send(owner, "theirs")
    assert dict(fields_of(owner))["content"] == "Theirs." and "saved as a draft" in page.words
    (link,) = {part for part in page.html.split('"') if "?draft=" in part}
    owner.get(link)
    assert dict(fields_of(owner))["content"] == "Mine."


def test_the_same_form_twice_is_one_version(people: People, owner: Visitor) -> None:
    send(owner, "preview", name="story", content="Hi.")
    again = [*fields_of(owner), ("action", "publish")]
    answers = [owner.post(NEW, again) for _ in range(2)]
    assert [page.path.rpartition("/")[2] for page in answers] == ["published"] * 2
    publish_elsewhere(people, owner, "Ho.")
    assert owner.post(NEW, again).response.url.endswith("version=1.0.0")
    owner.get(NEW)
    page = send(owner, "preview", name="story", content="Other.")
    assert page.status == 409 and "You have a prompt story already" in page.words


def test_drafts(people: People, owner: Visitor) -> None:
    page = send(owner, "save", content="Half a th", title=HOSTILE)
    assert "The draft is saved." in page.words and "?draft=" in page.response.url
    first = page.response.url.removeprefix(people.url)
    assert dict(fields_of(owner))["content"] == "Half a th"
    other = fields_of(owner, content="Other window")
    send(owner, "save", content="Half a thought")
    assert "in another window" in owner.post(first, [*other, ("action", "save")]).words
    page = owner.get(MINE)
    assert len({part for part in page.html.split('"') if "?draft=" in part}) == 2
    assert "<script>alert" not in page.html
    owner.get(first)
    assert dict(fields_of(owner))["content"] == "Half a thought"
    # Other users cannot see the draft, and publishing deletes it.
    assert people.guest().get(first).status == 404
    owner.get(first)
    publish(owner, name="story", title="Story")
    assert owner.get(first).status == 404
    owner.get(MINE)
    discard = next(form for form in owner.page.forms if form.action.endswith("/discard"))
    assert "The draft is discarded." in owner.post(discard.action, discard.fields).words
    with Database(people.settings.state) as database:
        assert SavedDrafts(database).of(owner.handle) == []


def test_the_form_of_one_who_is_signed_out_is_not_lost(people: People, owner: Visitor) -> None:
    fields = [*fields_of(owner, name="story", content="Long\nwork."), ("action", "publish")]
    owner.session.cookies.clear()
    page = owner.post(NEW, fields)
    assert page.status == 401 and "You are signed out" in page.words
    assert f"/account/login?next={NEW.removeprefix('/account')}" in page.html
    kept = next(form for form in page.forms if "content" in form.names)
    # Signed in again, in another tab.
    again = people.guest()
    page = again.post(kept.action, [*kept.fields, ("action", "publish")])
    assert page.status == 400 and "you have signed in again" in page.words
    assert dict(fields_of(again))["content"] == "Long\nwork."
    assert "will be published" in send(again, "preview").words

    large = [("content", "x" * VISITOR_BYTES_MAX), ("action", "save")]
    owner.session.cookies.clear()
    page = owner.post(NEW, large)
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
    member.get("/account/security")
    member.session.cookies.clear()
    there = f"{NEW}?draft=0123456789abcdef"
    page = member.get(there)
    assert page.path == "/account/login"
    page = member.submit(handle=member.handle, password=member.password)
    assert page.response.url == people.url + there


def test_prompts_of_others_are_not_edited(people: People, owner: Visitor) -> None:
    publish(owner, name="story", content="Hi.")
    open_story(owner)
    fields = [*fields_of(owner), ("action", "save")]
    other = people.guest()
    for page in (
        other.get(f"{MINE}/{owner.handle}/story"),
        other.post(f"{MINE}/{owner.handle}/story", fields),
        other.get(f"{MINE}/{owner.handle}/story/published?version=1.0.0"),
    ):
        assert page.status == 403 and f"belongs to {owner.handle}" in page.words
    assert other.get(f"{MINE}/{other.handle}/nothing").status == 404
    assert other.get(f"{MINE}/{other.handle}/A").status == 400


def test_hostile_texts_are_inert(people: People, owner: Visitor) -> None:
    pages = [
        send(
            owner, "preview", name="story", content=HOSTILE, title="<b>t</b>", description=HOSTILE,
            changelog=HOSTILE, more=json.dumps({"x": HOSTILE}),
        )
    ]  # fmt: skip
    pages.append(send(owner, "preview", **set_variable(owner, "a", example=HOSTILE)))
    send(owner, "publish")
    open_story(owner)
    before = [*fields_of(owner, content=HOSTILE + "mine"), ("action", "preview")]
    pages.append(send(owner, "preview", content=HOSTILE + "more"))
    publish_elsewhere(people, owner, HOSTILE + "theirs")
    pages += [owner.post(f"{MINE}/{owner.handle}/story", before), send(owner, "merge")]
    pages.append(owner.get(MINE))
    for page in pages:
        assert "<script>alert" not in page.html and "<b>t" not in page.html
        assert "no-store" in page.response.headers["Cache-Control"]
        assert "script-src 'self'" in page.response.headers["Content-Security-Policy"]


def test_large_texts(people: People, owner: Visitor) -> None:
    # Three bytes each on the way.
    text = "é\n" * (CONTENT_BYTES_MAX // 3 - 10)
    page = publish(owner, name="story", content=text)
    assert "1.0.0 is published" in page.words
    body = urlencode([("content", "x" * PUBLICATION_BYTES_MAX)])
    answer = owner.session.post(
        people.url + NEW, data=body, timeout=DEADLINE_SECONDS,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )  # fmt: skip
    assert answer.status_code == 413


def test_a_value_that_is_named_often_does_not_blow_up_the_page(owner: Visitor) -> None:
    send(owner, "preview", name="story", content="{{a}}" * 20_000)
    page = send(owner, "preview", **set_variable(owner, "a", example="long " * 1000))
    assert page.status == 200 and "would be too long to show" in page.words
    assert len(page.html) < 8 * 1024 * 1024


def test_too_many_changes_lose_nothing(people: People, owner: Visitor) -> None:
    fields = [*fields_of(owner, name="story", content="Hi."), ("action", "preview")]
    statuses = [owner.post(NEW, fields).status for _ in range(CHANGE_LIMIT)]
    assert set(statuses) == {200}
    page = owner.post(NEW, fields)
    assert page.status == 429 and int(page.response.headers["Retry-After"]) > 0
    assert "Nothing is lost" in page.words and dict(fields_of(owner))["content"] == "Hi."


def test_the_list_of_prompts(people: People, owner: Visitor) -> None:
    page = owner.get(MINE)
    assert "You have not published a prompt yet." in page.words
    for name, title in (("tea", "Brew tea"), ("cafe", "Café crème"), ("water", "Boil water")):
        owner.get(NEW)
        publish(owner, name=name, title=title, content=f"Make {name}.", new_labels="production")
    page = owner.get(MINE)
    assert "3 prompts" in page.words and "production 1.0.0" in page.words
    assert f"/account/prompts/{owner.handle}/tea/labels" in page.html
    page = owner.get(f"{MINE}?q=cafe+CREME")
    assert "1 prompt found" in page.words and "Café crème" in page.words
    assert "None of your prompts" in owner.get(f"{MINE}?q=nothing").words
    for odd in ("?page=99", "?page=x", "?page=0", "?q=" + "x" * 5000):
        assert owner.get(MINE + odd).status == 200


def test_two_windows_publish_at_once(people: People, owner: Visitor) -> None:
    publish(owner, name="story", content="Old.")
    open_story(owner)
    forms = []
    for text in ("A.", "B."):
        send(owner, "preview", content=text)
        forms.append([*fields_of(owner), ("action", "publish")])
    answers: list[requests.Response] = []

    def post(fields: list[tuple[str, str]]) -> None:
        session = requests.Session()
        session.cookies.update(owner.session.cookies)
        session.headers.update(owner.session.headers)
        answers.append(
            session.post(
                f"{people.url}{MINE}/{owner.handle}/story", data=fields,
                allow_redirects=False, timeout=DEADLINE_SECONDS,
            )
        )  # fmt: skip

    threads = [threading.Thread(target=post, args=[fields]) for fields in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [303, 412]
    _, text = stored(people, owner, "1.0.1")
    (lost,) = [answer for answer in answers if answer.status_code == 412]
    assert ("B." if text == "A." else "A.") in lost.text
