"""Writing and publishing in the editor, without scripts."""

import json
from urllib.parse import urlencode

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer
from publisher.trusted.publishers import Entered, TrustedPublishers
from publisher.web.pages.frame import PREVIEW_LIMIT
from publisher.write.moves import read_labels
from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.editor import (
    HOSTILE,
    MINE,
    NEW,
    fields_of,
    open_story,
    publish,
    send,
    set_variable,
    stored,
)
from tests.support.catalogues import write_version
from tests.support.servers import DEADLINE_SECONDS


def test_write_publish_and_correct(people: People, writer: Visitor) -> None:
    page = send(writer, "preview", name="story", content="Tell {{hero}} a story.\r\nEnd.")
    assert "will be published as the first version" in page.words
    changed = set_variable(writer, "hero", example="Ada", description="Who")
    page = send(writer, "preview", **changed)
    assert "Tell Ada a story." in page.words
    page = send(writer, "publish", title="A story", tags="Bed, time bed", license="CC0-1.0")
    assert "Check what will happen" in page.words, "the details changed after the preview"
    page = send(writer, "publish")
    assert page.path.endswith("/story/published") and "1.0.0 is published" in page.words
    record, text = stored(people, writer, "1.0.0")
    assert text == "Tell {{hero}} a story.\nEnd."
    assert (record.title, record.tags, record.license) == ("A story", ["bed", "time"], "CC0-1.0")
    (hero,) = record.variables
    assert (hero.description, hero.example, hero.required) == ("Who", "Ada", True)
    assert "A story" in people.server.get(f"/{writer.handle}/story/1.0.0").text

    open_story(writer)
    page = send(writer, "preview", content="Tell {{hero}} a long story.\r\nEnd.")
    assert "1.0.1 (patch) is proposed: " in page.words and "Publish 1.0.1" in page.html
    assert "<ins>" in page.html, "the difference is marked to the word"
    send(writer, "publish")
    assert stored(people, writer, "1.0.1")[0].variables == record.variables


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"title": "Reply To Customer"}, "reply-to-customer"),
        ({"name": "Reply To Customer", "title": "Other"}, "reply-to-customer"),
        ({"title": "  Ärger & Freude!  "}, "arger-freude"),
        ({"title": "回复客户"}, "huifukehu"),
        ({"title": "404"}, "404-prompt"),
        ({"title": "x" * 90}, "x" * 59),
        ({"content": "# A heading\n\nText."}, "a-heading"),
        ({"content": "---\ntitle: In front\n---\n# A heading"}, "in-front"),
        ({"content": "Say {{it}} in a friendly way to everyone."}, "say-it-in-a-friendly"),
    ],
)
def test_a_name_is_proposed(writer: Visitor, changed: dict[str, str], name: str) -> None:
    page = send(writer, "publish", **({"content": "Text."} | changed))
    assert "Check what will happen" in page.words
    assert f"{writer.handle}/{name} 1.0.0 will be published" in page.words
    assert send(writer, "publish").path.endswith(f"/{name}/published")


def test_a_proposed_name_is_free_and_follows_the_title(writer: Visitor) -> None:
    publish(writer, title="A reply", content="One.")
    writer.get(NEW)
    page = send(writer, "preview", title="A reply", content="Two.")
    assert "/a-reply-2 1.0.0 will be published" in page.words
    page = send(writer, "publish", title="Another")
    assert "Check what will happen" in page.words and "/another 1.0.0 will be" in page.words
    assert send(writer, "publish").path.endswith("/another/published")


def test_a_script_looks_at_texts_that_are_not_finished(writer: Visitor) -> None:
    page = send(writer, "look", title="A reply", content="")
    assert page.status == 200 and "Correct this" not in page.words
    page = send(writer, "look", content="Hi {{x}}", more="{")
    assert page.status == 200 and "cannot be published yet" in page.words
    page = send(writer, "look", more="")
    assert 'name="seal"' in page.html and "Publish 1.0.0" in page.html
    assert send(writer, "publish").path.endswith("/a-reply/published"), "one step after a look"


def test_a_fault_of_the_text_is_told_once_at_its_field(writer: Visitor) -> None:
    page = send(writer, "publish", title="A reply", content="---\ntags: [a, b\n---\nHi.")
    fault = "The front matter cannot be read"
    assert page.status == 422 and "Correct the text" in page.words
    assert "Correct the request" not in page.words and "content:" not in page.words
    told = page.html.count(fault)
    page = send(writer, "look")
    assert (told, page.html.count(fault)) == (2, 2), "the field, and what it sends on"
    assert 'cannot be published yet.</strong></p>\n<p><a href="#content">' in page.html


def test_previews_of_a_script_have_a_limit_of_their_own(writer: Visitor) -> None:
    fields = [*fields_of(writer, content="Hi."), ("action", "look")]
    statuses = [writer.post(NEW, fields).status for _ in range(PREVIEW_LIMIT)]
    assert set(statuses) == {200}
    assert writer.post(NEW, fields).status == 429
    writer.get(NEW)
    assert send(writer, "preview", content="Hi.").status == 200


def test_what_a_browser_kept_comes_back(writer: Visitor) -> None:
    page = send(writer, "back", title="Kept", content="", more="{")
    assert page.status == 200 and "Your text is back" in page.words
    assert dict(fields_of(writer))["title"] == "Kept"


def test_after_publishing(people: People, writer: Visitor) -> None:
    page = publish(
        writer, title="Reply <b>to</b> a customer", content="Hi.", new_labels="production",
        changelog="The first.", name="reply",
    )  # fmt: skip
    for words in (
        "Reply <b>to</b> a customer", "1.0.0 is published. “The first.”",
        "production 1.0.0 this version",
        f"{people.url}/{writer.handle}/reply", f"hub pull {writer.handle}/reply@1.0.0",
    ):  # fmt: skip
        assert words in page.words
    assert "<title>Reply " in page.html and "<b>to" not in page.html
    writer.get(f"{MINE}/{writer.handle}/reply")
    page = publish(writer, content="Ho.", changelog="More.")
    assert "production 1.0.0 → 1.0.1" in page.words
    move = f"{MINE}/{writer.handle}/reply/labels/move?label=production&version=1.0.1"
    assert move.replace("&", "&amp;") in page.html and writer.get(move).status == 200


def test_what_will_happen(people: People, writer: Visitor) -> None:
    publish(writer, name="story", content="Tell {{hero}}.")
    open_story(writer)
    page = send(writer, "preview", content="Tell {{hero}} of {{place}}.")
    assert "place is a new required variable." in page.words
    assert "breaking_variables" not in page.words, "the proposed step warns callers by its number"
    assert "breaking_variables: " in send(writer, "preview", bump="minor").words
    page = send(writer, "preview", bump="major")
    assert "breaking_variables" not in page.words
    page = send(writer, "publish")
    assert page.status == 422 and "a major version needs a changelog" in page.words
    page = send(writer, "preview", **set_variable(writer, "place", default="Rome"))
    assert "place is a new optional variable." in page.words and "minor is proposed" in page.words
    page = send(writer, "publish", changelog="Places.", bump="major", new_labels="canary, beta")
    assert "2.0.0 is published" in page.words
    record, _ = stored(people, writer, "2.0.0")
    assert (record.changelog, record.labels) == ("Places.", ["canary", "beta"])
    page = open_story(writer)
    assert "canary names 2.0.0 now" in page.words
    assert "Nothing changed since 2.0.0" in send(writer, "preview").words
    assert "so nothing is published. Change the text" in send(writer, "publish").words
    open_story(writer)
    publish(writer, content="Hello.", labels=["canary"], changelog="Short.")
    labels = read_labels(people.settings.content, writer.handle, "story").versions()
    assert labels == {"beta": "2.0.0", "canary": "3.0.0"}


def test_a_version_that_nobody_changes_stays_as_it_is(people: People, writer: Visitor) -> None:
    text = "---\r\ntitle: Odd # note\r\nmine: 1\r\n---\r\n\r\nOne {{a}}\r\nTwo {{b}}\nThree {{c}}\r"
    variables = [
        {"name": "a", "default": "", "description": "x\r\ny"},
        {"name": "b", "type": "string", "default": 5, "required": True},
        {"name": "c", "type": "number", "enum": [1, "1", "x\ny", True, " p "], "example": '"q"'},
    ]
    people.publish_story(
        writer, text, variables=variables, parameters={"temperature": 1.0, "model": True}
    )
    open_story(writer)
    assert "Nothing changed since 1.0.0" in send(writer, "preview").words
    # A changed text has the line ends of its first line.
    changed = text.replace("Two {{b}}\nThree {{c}}\r", "Deux {{b}}\r\nThree {{c}}\r\n")
    send(writer, "preview", content=changed)
    send(writer, "publish")
    assert stored(people, writer, "1.0.1")[1] == changed


def test_front_matter_stays_the_author_s(people: People, writer: Visitor) -> None:
    text = "---\ntitle: Mine\n# a note\ntags: [one]\n---\nSay {{x}}."
    page = send(writer, "preview", name="story", content=text, title="Form", license="MIT")
    assert "Title from the front matter: Mine" in page.words
    send(writer, "publish")
    record, kept = stored(people, writer, "1.0.0")
    assert (kept, record.title, record.tags, record.license) == (text, "Mine", ["one"], "MIT")


def test_the_preview_names_the_place_of_invalid_front_matter(writer: Visitor) -> None:
    for action in ("preview", "publish"):
        page = send(writer, action, name="story", content="---\ntags: [a, b\nx: y\n---\nSay it.")
        assert page.status == 422
        assert "invalid YAML in line 2, column 7: nothing closes this bracket" in page.words
    assert (
        send(writer, "preview", name="story", content="---\nSo we say: a: b\n---\nIt.").status
        == 200
    )


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"name": "!?"}, 400, "Invalid prompt name"),
        ({"name": "index"}, 422, "plain web servers have a page"),
        ({"content": " "}, 422, "The prompt is empty"),
        ({"content": "x" * (CONTENT_BYTES_MAX + 1)}, 413, "262,144 is the limit"),
        ({"tags": ["é!"]}, 422, "a-z, 0-9"),
        ({"more": "{"}, 422, "Other parameters: This is not valid JSON"),
        ({"more": '{"model": 1}', "parameter-model": "m"}, 422, "only once"),
        ({"parameter-temperature": "warm"}, 422, "such as 0.7"),
        ({"new_labels": "latest"}, 422, "reserved"),
        ({"title": "x" * 201}, 422, "Is longer than 200 characters: shorten it."),
        ({"changelog": "x" * 9000}, 422, "8,192 bytes"),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    writer: Visitor, changed: dict[str, str], status: int, message: str
) -> None:
    given = {"name": "story", "content": "Hi {{a}}"} | changed
    page = send(writer, "publish", **given)
    assert page.status == status and message in page.words, page.words
    sent = dict(fields_of(writer))
    assert sent["content"] == given["content"], "the text is still there"


def test_values_of_variables_have_their_type(people: People, writer: Visitor) -> None:
    send(writer, "preview", name="story", content="{{count}} {{on}} {{list}} {{word}}")
    wrong = send(writer, "preview", **set_variable(writer, "count", type="integer", default="many"))
    assert wrong.status == 422 and "whole number" in wrong.words
    columns: dict[str, list[str]] = {
        "variable-type": ["integer", "boolean", "array", "string"],
        "variable-default": ["3", "true", '["a"]', '""'],
        "variable-enum": ["3\r\n4", "", "", ""],
        "variable-required": ["auto", "no", "yes", "auto"],
    }
    publish(writer, **columns)
    variables = {one.name: one for one in stored(people, writer, "1.0.0")[0].variables}
    assert [one.default for one in variables.values()] == [3, True, ["a"], ""]
    assert variables["count"].enum == [3, 4] and variables["list"].required is True


def test_new_variables_are_named_until_they_are_described(people: People, writer: Visitor) -> None:
    people.publish_story(writer, "Tell {{hero}} a story.")
    open_story(writer)
    assert "Not described yet" not in writer.page.words
    page = send(writer, "preview", content="Tell {{hero}} of {{foe}} and {{friend}}.")
    assert "Not described yet: foe, friend. Describe them below." in page.words
    page = send(writer, "preview", **set_variable(writer, "foe", type="integer"))
    assert "Not described yet: friend." in page.words
    page = send(writer, "look", content="---\nvariables: [a, hero]\n---\n{{hero}} {{foe}}")
    assert "Not described yet: foe. Describe it in the front matter." in page.words
    names = [f"v{number}" for number in range(11)]
    page = send(writer, "look", content=" ".join(f"{{{{{name}}}}}" for name in names))
    assert f"Not described yet: {', '.join(names[:10])}, …. Describe" in page.words
    assert f'data-names="{" ".join(names)}"' in page.html


def test_a_prompt_from_a_repository_is_published_here_only_on_purpose(
    people: People, writer: Visitor
) -> None:
    source = {
        "issuer": people.gitlab.url, "project": "acme/team/prompts", "ref": "refs/heads/main",
        "commit": "1f2e3d4c5b6a79880796a5b4c3d2e1f001234567", "run_url": None,
    }  # fmt: skip
    root = people.settings.content
    write_version(root, writer.handle, "story", "1.0.0", "Hi.", source=source)
    page = open_story(writer)
    project = f"{people.gitlab.url}/acme/team/prompts"
    assert f'<a href="{project}">acme/team/prompts</a>' in page.html
    assert f'<a href="{project}/-/tree/main/prompts/story.md">prompts/story.md</a>' in page.html
    assert "accepts only" not in page.words
    send(writer, "preview", content="Hi again.")
    page = send(writer, "publish")
    assert page.status == 422 and "Repository: Tick this first" in page.words
    page = send(writer, "preview", override="yes")
    assert 'name="override" value="yes" checked' in page.html
    assert "1.0.1 is published" in send(writer, "publish").words
    # The latest version is not of the repository any more, and nothing is asked.
    assert "comes from" not in open_story(writer).words


@pytest.mark.parametrize(("trusts", "has_pages"), [(True, False), (True, True), (False, True)])
def test_a_prompt_for_trusted_publishers_alone_is_published_here_only_on_purpose(
    people: People, writer: Visitor, trusts: bool, has_pages: bool
) -> None:
    with Database(people.settings.state) as database:
        Accounts(database).set_trusted_only(writer.handle, "new-story", True)
        # The addresses of pages are known for github.com alone.
        issuer = DEFAULT_ISSUERS[0] if has_pages else Issuer("github", people.github.url)
        entered = Entered("octo/prompts", "x.yml", labels="a", publishes=trusts)
        TrustedPublishers(database).add(writer.handle, issuer, entered)
    page = send(writer, "preview", name="new-story", content="Hi.")
    said = "comes from octo/prompts, usually from its file prompts/new-story.md" in page.words
    assert said == trusts
    file = "https://github.com/octo/prompts/blob/HEAD/prompts/new-story.md"
    assert (f'<a href="{file}">' in page.html) == (trusts and has_pages)
    assert "accepts only trusted publishers, and people who sign in" in page.words
    assert "The draft is saved" in send(writer, "save").words
    assert send(writer, "publish").status == 422
    assert "1.0.0 is published" in send(writer, "publish", override="yes").words


def test_prompts_of_others_are_not_edited(people: People, writer: Visitor) -> None:
    publish(writer, name="story", content="Hi.")
    open_story(writer)
    fields = [*fields_of(writer), ("action", "save")]
    other = people.guest()
    for page in (
        other.post(f"{MINE}/{writer.handle}/story", fields),
        other.get(f"{MINE}/{writer.handle}/story/published?version=1.0.0"),
    ):
        assert page.status == 403 and f"belongs to {writer.handle}" in page.words
    page = other.get(f"{MINE}/{writer.handle}/story")
    assert f"This is the text of {writer.handle}/story 1.0.0." in page.words
    assert send(other, "publish").status == 200, "the plan is shown first"
    assert "1.0.0 is published" in send(other, "publish").words
    assert other.get(f"/{other.handle}/story").status == 200
    assert other.get(f"{MINE}/{other.handle}/nothing").status == 404
    assert other.get(f"{MINE}/..%2f/story").status in (400, 404)
    assert other.get(f"{MINE}/{other.handle}/A").status == 400


def test_hostile_texts_are_inert(people: People, writer: Visitor) -> None:
    pages = [
        send(
            writer, "preview", name="story", content=HOSTILE, title="<b>t</b>", description=HOSTILE,
            changelog=HOSTILE, more=json.dumps({"x": HOSTILE}),
        )
    ]  # fmt: skip
    pages.append(send(writer, "preview", **set_variable(writer, "a", example=HOSTILE)))
    send(writer, "publish")
    open_story(writer)
    before = [*fields_of(writer, content=HOSTILE + "mine"), ("action", "preview")]
    pages.append(send(writer, "preview", content=HOSTILE + "more"))
    people.publish_story(writer, HOSTILE + "theirs")
    pages += [writer.post(f"{MINE}/{writer.handle}/story", before), send(writer, "merge")]
    pages.append(writer.get(MINE))
    for page in pages:
        assert "<script>alert" not in page.html and "<b>t" not in page.html
        assert "no-store" in page.response.headers["Cache-Control"]
        assert "script-src 'self'" in page.response.headers["Content-Security-Policy"]


def test_large_texts(people: People, writer: Visitor) -> None:
    # Three bytes each on the way.
    text = "é\n" * (CONTENT_BYTES_MAX // 3 - 10)
    page = publish(writer, name="story", content=text)
    assert "1.0.0 is published" in page.words
    body = urlencode([("content", "x" * PUBLICATION_BYTES_MAX)])
    answer = writer.session.post(
        people.url + NEW, data=body, timeout=DEADLINE_SECONDS,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )  # fmt: skip
    assert answer.status_code == 413


def test_a_value_that_is_named_often_does_not_blow_up_the_page(writer: Visitor) -> None:
    send(writer, "preview", name="story", content="{{a}}" * 20_000)
    page = send(writer, "preview", **set_variable(writer, "a", example="long " * 1000))
    assert page.status == 200 and "would be too long to show" in page.words
    assert len(page.html) < 8 * 1024 * 1024


def test_a_chat_reads_as_messages(writer: Visitor) -> None:
    chat = '{{role "system"}}\nBe kind to {{name}}.\n{{role "user"}}\n{"a": {{b}}}\n'
    page = send(writer, "preview", content=chat)
    assert page.status == 200 and "System Be kind to {{name}}. User" in page.words
    assert page.html.count('aria-label="The text as it reads"') == 2
