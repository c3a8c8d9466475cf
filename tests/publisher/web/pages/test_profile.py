"""The page of the profile."""

import json
from pathlib import Path

import pytest

from builder.model.content_tree import OWNER_FILE
from builder.store.content import read_owner
from operate.content_check import check
from publisher.accounts.token import make_token
from publisher.write.profile import chars_max
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.support.catalogues import moment, write_owner

PROFILE = "/account/profile"


def store(visitor: Visitor, **fields: str | None) -> Page:
    visitor.get(PROFILE)
    return visitor.submit(PROFILE, **fields)


def file_of(people: People, visitor: Visitor) -> Path:
    return Path(people.settings.content, visitor.handle, OWNER_FILE)


def test_a_profile_is_public_at_once(people: People, owner: Visitor) -> None:
    page = owner.get(PROFILE)
    assert "Your profile is for all readers" in page.words and "once you save it" in page.words
    assert dict(owner.form(PROFILE).fields)["name"] == owner.handle
    page = store(
        owner, name="  Åsa   Öberg ", bio="Writes.\r\n\r\n<b>Prompts</b> & 本 🔑\r\n",
        url="https://asa.example/?a=1&b='2'",
    )  # fmt: skip
    assert (page.status, page.path) == (200, PROFILE)
    assert "Your profile is saved, and readers see it." in page.words
    user = people.server.get(f"/api/v1/users/{owner.handle}").json()["data"]
    assert user["name"] == "Åsa Öberg" and user["bio"] == "Writes.\n\n<b>Prompts</b> & 本 🔑"
    assert user["url"] == "https://asa.example/?a=1&b='2'"
    began_at = owner.get("/account/security").html.rpartition('<time datetime="')[2][:20]
    assert user["joined_at"] == began_at
    public = people.server.get(f"/{owner.handle}").text
    assert "Åsa Öberg" in public and "&lt;b&gt;Prompts" in public and "<b>Prompts" not in public
    page = owner.get(PROFILE)
    assert f'href="/{owner.handle}"' in page.html and "<b>Prompts" not in page.html
    # The same form, sent again, changes nothing.
    before = file_of(people, owner).read_bytes()
    assert "is saved" in store(owner).words
    assert file_of(people, owner).read_bytes() == before
    assert before.endswith(b'",\n  "url": "https://asa.example/?a=1&b=\'2\'"\n}\n')
    assert not list(check(people.settings.content))


def test_what_is_there_is_kept(people: People, owner: Visitor) -> None:
    write_owner(people.settings.content, owner.handle, bio="Old.", joined_at=moment(3))
    assert "Old." in owner.get(PROFILE).words
    store(owner, name=None, bio="New.", url="")
    stored = json.loads(file_of(people, owner).read_text(encoding="utf-8"))
    assert stored == {
        "name": owner.handle.capitalize(), "joined_at": moment(3), "bio": "New.", "url": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "Enter a name"),
        ({"name": " \t "}, "Enter a name"),
        ({"name": "x" * (chars_max("name") + 1)}, "200 characters"),
        ({"name": "Ann\u202ekcaH"}, "U+202E"),
        ({"name": "a\0b"}, "U+0000"),
        ({"bio": "a\x1b[31m\u2066"}, "U+001B"),
        ({"bio": "x" * (chars_max("bio") + 1)}, "2000 characters"),
        ({"bio": f"Use {make_token()} for it."}, "Has a token of this hub"),
        ({"name": make_token()}, "Has a token of this hub"),
        ({"url": f"https://a.example/{make_token()}"}, "Has a token of this hub"),
        ({"url": "example.org"}, "Starts with https://"),
        ({"url": "javascript:alert(1)"}, "Starts with https://"),
        ({"url": "HTTPS://a.example"}, "Starts with https://"),
        ({"url": "https://"}, "Starts with https://"),
        ({"url": "https://[a"}, "Starts with https://"),
        ({"url": "https://a b.example"}, "Starts with https://"),
        ({"url": "https://a.example/" + "x" * 500}, "500 characters"),
    ],
)
def test_what_a_form_is_refused_for(
    people: People, owner: Visitor, fields: dict[str, str | None], message: str
) -> None:
    page = store(owner, **fields)
    assert page.status == 422 and message in page.words, page.words
    assert not file_of(people, owner).exists()


def test_the_longest_there_can_be(people: People, owner: Visitor) -> None:
    given = {
        "name": "名" * 200,
        "bio": "a\r\n" * 999 + "🔑",
        "url": "https://a.example/" + "x" * 482,
    }
    assert "is saved" in store(owner, **given).words
    profile = read_owner(people.settings.content, owner.handle)
    assert (profile.name, profile.bio) == (given["name"], given["bio"].replace("\r", ""))
    assert store(owner, **given | {"bio": "a\n" * 999 + "🔑🔑🔑"}).status == 422


@pytest.mark.parametrize("text", ["{", '{"name": 1}', '{"name": "A", "joined_at": "soon"}', "link"])
def test_a_file_with_a_fault_is_left_as_it_is(people: People, owner: Visitor, text: str) -> None:
    owner.get(PROFILE)
    form = owner.form(PROFILE)
    path = file_of(people, owner)
    path.parent.mkdir()
    path.symlink_to("/etc/passwd") if text == "link" else path.write_text(text, encoding="utf-8")
    try:
        for page in (owner.post(PROFILE, form.fields), owner.get(PROFILE)):
            assert page.status == 503 and "has an error and was not changed" in page.words
            assert f"{owner.handle}/{OWNER_FILE}" in page.words
            assert "to fix or remove it" in page.words
            assert people.settings.content not in page.html and "root:" not in page.html
        assert path.is_symlink() if text == "link" else path.read_text(encoding="utf-8") == text
    finally:
        path.unlink()
        path.parent.rmdir()


def test_a_content_folder_that_is_lost(people: People, owner: Visitor) -> None:
    content = Path(people.settings.content)
    owner.get(PROFILE)
    content.rename(content.with_name("elsewhere"))
    try:
        page = owner.submit(PROFILE, bio="Hello.")
    finally:
        content.with_name("elsewhere").rename(content)
    assert page.status == 503 and "Create the content folder" in page.words
    assert "is saved" in store(owner, bio="Hello.").words


def test_a_site_that_cannot_be_built(people: People, owner: Visitor) -> None:
    obstacle = Path(people.settings.out, f"{owner.handle}.html", "file")
    obstacle.parent.mkdir()
    obstacle.touch()
    try:
        page = store(owner, bio="Hello.")
        assert (page.status, page.path) == (200, PROFILE)
        assert "Your profile is saved. It is not on the site yet" in page.words
        assert read_owner(people.settings.content, owner.handle).bio == "Hello."
    finally:
        obstacle.unlink()
        obstacle.parent.rmdir()
    assert "and readers see it" in store(owner, bio="Hello again.").words
    assert "Hello again." in people.server.get(f"/{owner.handle}").text
