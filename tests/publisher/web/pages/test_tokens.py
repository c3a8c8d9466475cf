"""The page of tokens: made, shown once, used, revoked."""

import copy
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from publisher.accounts.token import Token, find_token, make_token
from publisher.accounts.tokens import Accounts
from publisher.web.pages.repos import OFFERED_MAX
from publisher.web.pages.tokens import ACTIVE_MAX, ENDED_SHOWN, EXPIRES_DAYS
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.support.catalogues import build_files, write_version
from tests.support.hubs import MakeHub
from tests.support.servers import DEADLINE_SECONDS, clean_environment

TOKENS = "/account/tokens"


def tokens_of(people: People, owner: str) -> list[Token]:
    return Accounts(people.database).tokens(owner)


def create(visitor: Visitor, name: str, **fields: str | list[str]) -> Page:
    visitor.get(TOKENS)
    return visitor.submit(TOKENS, name=name, **fields)


def text_of(page: Page) -> str:
    """The token that a page shows."""
    assert page.status == 201, page.words
    found = find_token(page.words)
    assert found
    return found


def test_a_token_that_only_reads(people: People) -> None:
    visitor = people.guest()
    page = create(visitor, "app", rights="read", scope="some", more="story")
    assert page.status == 422 and "reads the whole hub" in page.words
    page = create(visitor, "app", rights="read")
    assert text_of(page) and "It reads this hub until" in page.words
    assert "hub push" not in page.words
    (token,) = tokens_of(people, visitor.handle)
    assert token.rights == ("read",)
    assert "nothing reads" in visitor.get(TOKENS).words


def test_the_whole_way_of_a_token(people: People) -> None:
    visitor = people.member()
    owner = visitor.handle
    assert "You have none yet" in visitor.get(TOKENS).words
    people.publish_story(visitor, "Tell it.")
    people.database.execute("DELETE FROM token WHERE owner = ?", (owner,))
    page = create(
        visitor, "ci", scope="some", repos=["story"], more=f"review, {owner}/new", expires="30"
    )
    text = text_of(page)
    assert page.words.count(text) == 1 and f'<pre class="snippet">\n{text}</pre>' in page.html
    assert "shown only once" in page.words
    assert page.response.headers["Cache-Control"] == "no-store"
    assert f"{owner}/story, {owner}/review, {owner}/new" in page.words
    (token,) = tokens_of(people, owner)
    assert token.expires_at - token.created_at == 30 * 86_400

    page = visitor.get(TOKENS)
    assert f"ci {owner}/story" in page.words and "never" in page.words
    assert people.publish(text, owner, "new").status_code == 201
    assert people.publish(text, owner, "other").status_code == 403
    page = visitor.get(TOKENS)
    assert "never" not in page.words
    used_at = datetime.fromtimestamp(tokens_of(people, owner)[0].last_used_at, UTC)
    assert used_at.strftime(">%-d %b %Y, %H:%M</time>") in page.html

    page = visitor.submit(f"/{token.id}/revoke")
    assert (page.status, page.path) == (200, TOKENS)
    assert "The token ci is revoked" in page.words
    assert people.publish(text, owner, "new").status_code == 401
    assert "Expired and revoked (1)" in page.words and not revoke_forms(page)
    assert text not in page.html + visitor.get("/account/security").html
    assert text not in people.server.process.text
    for path in Path(people.settings.state).glob("accounts*"):
        assert text.encode() not in path.read_bytes()


def revoke_forms(page: Page) -> list[str]:
    return [form.action for form in page.forms if form.action.endswith("/revoke")]


def test_a_form_that_is_sent_again_makes_no_second_token(people: People) -> None:
    visitor = people.guest()
    visitor.get(TOKENS)
    sent = [*visitor.form(TOKENS, "name").fields, ("name", "ci")]
    sent = [field for field in sent if field != ("name", "")]
    assert visitor.post(TOKENS, sent).status == 201
    page = visitor.post(TOKENS, sent)
    assert page.status == 422 and "already" in page.words
    assert find_token(page.html) is None
    assert len(tokens_of(people, visitor.handle)) == 1


def test_of_two_forms_at_once_one_makes_a_token(people: People) -> None:
    visitor = people.guest()
    visitor.get(TOKENS)
    sent = [field for field in visitor.form(TOKENS, "name").fields if field[0] != "name"]
    with ThreadPoolExecutor(6) as threads:
        answers = [
            threads.submit(copy.copy(visitor).post, TOKENS, [*sent, ("name", "ci")])
            for _ in range(6)
        ]
    assert sorted(answer.result().status for answer in answers) == [201] + 5 * [422]
    assert len(tokens_of(people, visitor.handle)) == 1


def test_there_is_a_most_of_tokens(people: People) -> None:
    visitor = people.guest()
    with people.database.transaction():
        accounts = Accounts(people.database)
        for number in range(ENDED_SHOWN + 1):
            accounts.create_token(visitor.handle, f"old-{number}")
            accounts.revoke(visitor.handle, f"old-{number}")
        for number in range(ACTIVE_MAX):
            accounts.create_token(visitor.handle, f"new-{number}")
    page = create(visitor, "one-more")
    assert page.status == 422 and "You have 100 tokens, which is the limit" in page.words
    assert len(revoke_forms(page)) == ACTIVE_MAX
    assert "Expired and revoked (101)" in page.words and "the last 100" in page.words
    page = visitor.post(revoke_forms(page)[0], visitor.csrf())
    assert len(revoke_forms(page)) == ACTIVE_MAX - 1
    assert find_token(create(visitor, "one-more").words)


def test_a_name_is_free_again_when_its_token_is_over(people: People) -> None:
    visitor = people.guest()
    long_ago = datetime.now(UTC) - timedelta(days=8)
    Accounts(people.database).create_token(visitor.handle, "ci", expires_days=7, now=long_ago)
    page = visitor.get(TOKENS)
    assert "expired" in page.words and "You have none yet" in page.words
    assert people.publish(text_of(create(visitor, "ci")), visitor.handle, "any").status_code == 201
    visitor.get(TOKENS)
    visitor.submit("/revoke")
    assert people.publish(text_of(create(visitor, "ci")), visitor.handle, "any").status_code == 200
    assert "Expired and revoked (2)" in visitor.get(TOKENS).words


@pytest.mark.parametrize("days", EXPIRES_DAYS)
def test_each_expiry_is_offered(people: People, owner: Visitor, days: int) -> None:
    name = f"for {days} days"
    text_of(create(owner, name, expires=str(days)))
    tokens = tokens_of(people, owner.handle)
    token = next(token for token in tokens if token.name == name)
    assert token.expires_at - token.created_at == days * 86_400


def test_nobody_revokes_the_token_of_another(people: People, owner: Visitor) -> None:
    victim = people.guest()
    text = text_of(create(victim, "mine"))
    (token,) = tokens_of(people, victim.handle)
    owner.get(TOKENS)
    page = owner.post(f"{TOKENS}/{token.id}/revoke", owner.csrf())
    assert page.status == 404 and "You have no such token" in page.words
    assert people.publish(text, victim.handle, "safe").status_code == 201


@pytest.mark.parametrize(
    "given", ["0", "ci", "%00", "%ff", "a" * 3000, "..%2f", "' OR 1=1 --", "{x}"]
)
def test_rubbish_in_the_place_of_an_id(owner: Visitor, given: str) -> None:
    owner.get(TOKENS)
    # A name is no id, even if a token of that name exists.
    create(owner, "ci")
    page = owner.post(f"{TOKENS}/{given}/revoke", owner.csrf())
    assert page.status == 404 and '<nav class="account"' in page.html


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scope": "some"}, "Name at least one prompt"),
        ({"scope": "all", "more": "review"}, "you named prompts but chose all"),
        ({"scope": "some", "more": "Review"}, "use 'review'"),
        ({"scope": "some", "more": "bob/sql"}, "not a member of a team 'bob'"),
        ({"scope": "some", "more": "<b>x</b>"}, "'<b>x</b>' cannot be the name"),
        ({"scope": "some", "more": " ".join(map(str, range(OFFERED_MAX + 1)))}, "at most, not 101"),
        ({"scope": "none of these"}, "Not a valid choice"),
        ({"scope": None}, "Choose one"),
        ({"expires": "366"}, "Not a valid choice"),
        ({"expires": "soon"}, "Invalid Choice"),
        ({"name": None}, "Enter a name for the token"),
        ({"name": "x" * 65}, "64 characters"),
        ({"name": "ci\u202etoken"}, "printable characters only"),
        ({"name": f"ci {make_token()}"}, "This is a token"),
    ],
)
def test_what_a_form_is_refused_for(
    people: People, owner: Visitor, fields: dict[str, str | None], message: str
) -> None:
    before = tokens_of(people, owner.handle)
    owner.get(TOKENS)
    page = owner.submit(TOKENS, **{"name": "refused"} | fields)
    assert page.status == 422 and message.lower() in page.words.lower(), page.words
    assert 'class="wrong"' in page.html and "<b>x" not in page.html
    assert tokens_of(people, owner.handle) == before


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", '"><script>', "Büro 本番 🔑", "{{ 7*7 }}"]
)
def test_any_name_is_shown_as_text(people: People, owner: Visitor, name: str) -> None:
    text_of(create(owner, name))
    assert f"Token {name} " in owner.page.words
    for path in (TOKENS, "/account/security"):
        page = owner.get(path)
        assert page.status == 200 and name in page.words
        assert "<img src=x" not in page.html and '"><script>' not in page.html


def test_so_many_repos_are_not_listed(make_hub: MakeHub) -> None:
    hub = make_hub("http://127.0.0.1:8000")
    client = hub.signed_in("ann")
    answer = client.get(TOKENS)
    assert answer.status_code == 200 and "cannot be listed right now" in answer.text
    for number in range(OFFERED_MAX + 1):
        write_version(hub.settings.content, "ann", f"repo-{number}", "1.0.0", "Hi.")
    write_version(hub.settings.content, "anna", "other", "1.0.0", "Hi.")
    build_files(hub.settings)
    assert "You have 101 prompts" in client.get(TOKENS).text
    assert "repo-7" not in client.get(TOKENS).text
    shutil.rmtree(f"{hub.settings.content}/ann/repo-7")
    build_files(hub.settings)
    assert "repo-8" in client.get(TOKENS).text


@pytest.mark.usefixtures("installed_tools")
def test_the_step_for_a_job_publishes(people: People, tmp_path: Path) -> None:
    visitor = people.guest()
    page = create(visitor, "ci", scope="some", more="review other")
    text = text_of(page)
    _, _, line, _, step = snippets_of(page)
    assert text not in step and "HUB_TOKEN=…" in line and f"{visitor.handle}/review" in line
    (step,) = yaml.safe_load(step)
    env = step["env"] | {"SINCE": "none"}
    assert env.pop("HUB_TOKEN") == "${{ secrets.HUB_TOKEN }}"
    run_in_clone(step["run"], tmp_path, {"review": "Review."}, HUB_TOKEN=text, **env)
    answer = people.server.get(f"/api/v1/repos/{visitor.handle}/review").json()["data"]
    assert (answer["content"], answer["changelog"]) == ("Review.", "A better text")


def snippets_of(page: Page) -> list[str]:
    """Snippets of a page as a browser would copy them."""
    found = re.findall(r'<pre class="snippet">\n(.*?)</pre>', page.html, re.DOTALL)
    entities = {"&#34;": '"', "&#39;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&"}
    return [re.sub("&[^;]+;", lambda entity: entities[entity[0]], text) for text in found]


def run_in_clone(script: str, folder: Path, prompts: dict[str, str], **environment: str) -> str:
    """Run a job's script in a git repository with these prompts; returns what it says."""
    (folder / "prompts").mkdir()
    for name, text in prompts.items():
        (folder / "prompts" / f"{name}.md").write_text(text, encoding="utf-8")
    for command in (
        ["init", "-q", "-b", "main"], ["remote", "add", "origin", str(folder)], ["add", "prompts"],
        ["-c", "user.name=A", "-c", "user.email=a@a.example", "commit", "-qm", "A better text"],
    ):  # fmt: skip
        subprocess.run(["git", *command], cwd=folder, check=True)
    return run_script(script, folder, **environment)


def run_script(script: str, folder: Path, **environment: str) -> str:
    """Run a job's script in a clone, as GitHub's runner does."""
    place = os.fspath(folder)
    variables = {"TMPDIR": place, "RUNNER_TEMP": place, "GITHUB_WORKSPACE": place, **environment}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=clean_environment(**variables),
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "path",
    [
        TOKENS, f"{TOKENS}/0/revoke", "/account/publishers", "/account/publishers/0/remove",
        "/account/publishers/only", "/account/profile", "/account/password",
        "/account/sign-out-everywhere",
    ],
)  # fmt: skip
def test_a_stranger_is_sent_to_sign_in(people: People, path: str) -> None:
    stranger = people.visitor()
    stranger.get("/account/login")
    sent = [("name", "stolen"), ("scope", "all"), ("repo", "x"), *stranger.csrf()]
    assert stranger.post(path, sent).path == "/account/login"
