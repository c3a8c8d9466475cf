"""Two editors of the same prompt: users, windows and clients of the API."""

import threading

import requests

from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.editor import MINE, NEW, fields_of, open_story, publish, send, stored
from tests.support.servers import DEADLINE_SECONDS


def test_two_people_edit_the_same_version(people: People, writer: Visitor) -> None:
    publish(writer, name="story", content="One.\nTwo.\nThree.", title="Old")
    open_story(writer)
    send(writer, "preview", content="One.\nTwo.\nMine.")
    people.publish_story(writer, "Theirs.\nTwo.\nThree.", title="New", changelog="Better")
    page = send(writer, "publish")
    assert page.status == 412 and "has changed meanwhile" in page.words
    for words in ("Theirs: 1.0.1", "Mine", "Base: 1.0.0", "Better"):
        assert words in page.words
    assert page.html.count("<ins>") + page.html.count('class="added') >= 2

    # A merge by hand: my text beside their change. Fields that only they changed keep their value.
    page = send(writer, "merge")
    sent = dict(fields_of(writer))
    assert (sent["content"], sent["title"]) == ("One.\nTwo.\nMine.", "New")
    assert sent["base_version"] == "1.0.1" and "What changed from 1.0.0 to 1.0.1" in page.words
    assert "Publish 1.0.2" in page.words and "Changes since 1.0.1" in page.words
    publish(writer, content="Theirs.\nTwo.\nMine.")
    record, text = stored(people, writer, "1.0.2")
    assert (text, record.title) == ("Theirs.\nTwo.\nMine.", "New")


def test_go_on_with_mine_or_theirs(people: People, writer: Visitor) -> None:
    publish(writer, name="story", content="Old.")
    open_story(writer)
    before = fields_of(writer, content="Mine.")
    people.publish_story(writer, "Theirs.")
    where = f"{MINE}/{writer.handle}/story"
    writer.post(where, [*before, ("action", "preview")])
    page = send(writer, "mine")
    assert "Publish 1.0.2" in page.words and "Changes since 1.0.1" in page.words
    # The page of the conflict again, and theirs: my text is a draft.
    writer.post(where, [*before, ("action", "publish")])
    page = send(writer, "theirs")
    assert dict(fields_of(writer))["content"] == "Theirs." and "saved as a draft" in page.words
    (link,) = {part for part in page.html.split('"') if "?draft=" in part}
    writer.get(link)
    assert dict(fields_of(writer))["content"] == "Mine."


def test_the_same_form_twice_is_one_version(people: People, writer: Visitor) -> None:
    send(writer, "preview", name="story", content="Hi.")
    again = [*fields_of(writer), ("action", "publish")]
    answers = [writer.post(NEW, again) for _ in range(2)]
    assert [page.path.rpartition("/")[2] for page in answers] == ["published"] * 2
    people.publish_story(writer, "Ho.")
    assert writer.post(NEW, again).response.url.endswith("version=1.0.0")
    writer.get(NEW)
    page = send(writer, "preview", name="story", content="Other.")
    assert page.status == 409 and "You have a prompt story already" in page.words


def test_two_windows_publish_at_once(people: People, writer: Visitor) -> None:
    publish(writer, name="story", content="Old.")
    open_story(writer)
    forms = []
    for text in ("A.", "B."):
        send(writer, "preview", content=text)
        forms.append([*fields_of(writer), ("action", "publish")])
    answers: list[requests.Response] = []

    def post(fields: list[tuple[str, str]]) -> None:
        session = requests.Session()
        session.cookies.update(writer.session.cookies)
        session.headers.update(writer.session.headers)
        answers.append(
            session.post(
                f"{people.url}{MINE}/{writer.handle}/story", data=fields,
                allow_redirects=False, timeout=DEADLINE_SECONDS,
            )
        )  # fmt: skip

    threads = [threading.Thread(target=post, args=[fields]) for fields in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [303, 412]
    _, text = stored(people, writer, "1.0.1")
    (lost,) = [answer for answer in answers if answer.status_code == 412]
    assert ("B." if text == "A." else "A.") in lost.text
