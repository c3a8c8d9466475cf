"""Teams in the browser: three people with three roles, and who tries to get around them."""

import json
from typing import NamedTuple

import pytest
import requests

from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.teams import Teams
from publisher.accounts.token import Grant
from publisher.accounts.tokens import Accounts
from tests.publisher.web.pages.conftest import PASSWORD, Page, People, Visitor
from tests.publisher.web.pages.editor import NEW, fields_of, publish, send

TEXT = "Sort this ticket: {{ticket}}"


class Team(NamedTuple):
    """A team with a prompt, of a maintainer and a writer."""

    people: People
    handle: str
    ann: Visitor
    bob: Visitor

    def put(self, whom: Visitor, role: str) -> None:
        Teams(self.people.database).put(self.handle, whom.handle, role)

    def remove(self, whom: Visitor) -> None:
        Teams(self.people.database).remove(self.handle, whom.handle)

    def protect(self, label: str) -> None:
        ProtectedLabels(self.people.database).set(self.handle, "", label, True)

    def token(self, whom: Visitor, *repos: str) -> str:
        return Accounts(self.people.database).create_token(whom.handle, "ci", Grant(repos))[0]

    def call(self, token: str, method: str, path: str, **body: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return self.people.server.request(method, path, json=body, headers=headers)

    def publishers(self, name: str = "triage") -> list[str]:
        found = self.people.server.get(f"/api/v1/repos/{self.handle}/{name}/versions").json()
        return [one["publisher"] for one in found["data"]]

    def path(self, name: str = "triage", more: str = "") -> str:
        return f"/account/prompts/{self.handle}/{name}{more}"

    def page(self) -> str:
        return f"/account/teams/{self.handle}"

    def change(self, visitor: Visitor, action: str = "", **fields: str) -> Page:
        """Send a form of the team's page."""
        visitor.get(self.page())
        return visitor.post(self.page() + action, [*visitor.csrf(), *fields.items()])


@pytest.fixture
def team(people: People) -> Team:
    ann, bob = people.guest(), people.guest()
    made = Team(people, f"crew-{ann.handle.partition('-')[2]}", ann, bob)
    ann.get("/account/teams")
    page = ann.submit("/teams", handle=made.handle)
    assert page.path == made.page() and "You are a maintainer" in page.words, page.words
    assert made.change(ann, person=bob.handle, role="writer").status == 200
    ann.get(f"{NEW}?owner={made.handle}")
    publish(ann, name="triage", content=TEXT)
    return made


def members(team: Team) -> dict[str, str]:
    found = Teams(team.people.database).members(team.handle)
    return {one.person: one.role for one in found}


def move(visitor: Visitor, team: Team, label: str, version: str) -> Page:
    visitor.get(team.path(more=f"/labels/move?label={label}&version={version}"))
    return visitor.submit("/labels/move") if visitor.page.status == 200 else visitor.page


def test_a_team_is_public_and_its_members_are_not(team: Team) -> None:
    user = team.people.server.get(f"/api/v1/users/{team.handle}")
    assert user.json()["data"]["kind"] == "team"
    assert team.bob.handle not in user.text
    mine = team.people.server.get("/api/v1/users/ada")
    assert mine.status_code == 404 or mine.json()["data"]["kind"] == "person"


def test_a_writer_publishes_under_their_own_name(team: Team) -> None:
    page = team.bob.get(NEW)
    assert "Owner" in page.words
    publish(team.bob, owner=team.handle, name="greeting", content="Hello.")
    assert team.publishers("greeting") == [team.bob.handle]
    page = team.bob.get(f"/{team.handle}/greeting")
    assert f"by {team.bob.handle}" in page.words
    page = team.bob.get("/account/prompts")
    assert f"{team.handle}/triage" in page.words and f"{team.handle}/greeting" in page.words
    assert "triage none" in team.bob.get("/account/labels").words, "they have no prompt themselves"
    team.bob.get(team.path())
    publish(team.bob, content=f"{TEXT}!")
    assert team.publishers() == [team.bob.handle, team.ann.handle]
    page = team.ann.get(team.page())
    assert f"Published: {team.handle}/triage 1.0.1 in the browser." in page.words


def test_a_writers_work_is_approved_on_the_board(team: Team) -> None:
    team.protect("production")
    assert move(team.ann, team, "production", "1.0.0").path.endswith("/labels")
    team.bob.get(team.path())
    publish(team.bob, content=f"{TEXT}!")
    assert "staging now names 1.0.1." in move(team.bob, team, "staging", "1.0.1").words
    waiting = f"staging has 1.0.1 by {team.bob.handle}, production 1.0.0: compare, "
    page = team.bob.get(team.path(more="/labels"))
    assert f"{waiting}then ask a maintainer to move production" in page.words
    assert f"Only maintainers move it: {team.ann.handle}." in page.words
    labels = f"/account/labels?owner={team.handle}"
    assert f"triage: {waiting}then ask a maintainer to move" in team.bob.get(labels).words
    assert f"triage: {waiting}move production" in team.ann.get(labels).words
    page = move(team.bob, team, "production", "1.0.1")
    assert page.status == 422 and "is a writer of" in page.words
    assert f"{waiting}move production" in team.ann.get(team.path(more="/labels")).words
    assert "production now names 1.0.1." in move(team.ann, team, "production", "1.0.1").words
    assert "staging has" not in team.ann.page.words + team.ann.get(labels).words
    history = team.people.server.get(
        f"/api/v1/repos/{team.handle}/triage/labels/production/history"
    ).json()["data"]
    assert [one["moved_by"] for one in history] == [team.ann.handle] * 2
    words = team.bob.get(team.page()).words
    assert f"{team.ann.handle} Label moved: {team.handle}/triage production to 1.0.1" in words


def test_a_writers_pages_offer_nothing_that_only_maintainers_do(team: Team) -> None:
    team.protect("production")
    move(team.ann, team, "production", "1.0.0")
    team.bob.get(team.path())
    publish(team.bob, content=f"{TEXT}!")
    labels = f"/account/labels?owner={team.handle}"
    for what, path, offered in (
        ("move it", f"{team.path(more='/published')}?version=1.0.1", "label=production"),
        ("withdraw", team.path(more="/labels"), "/withdraw"),
        ("move protected labels", team.path(), "/withdraw"),
        ("protect labels, and move protected ones", labels, "label=production"),
        ("change members", team.page(), "Add member"),
    ):
        page = team.bob.get(path)
        assert f"Only maintainers {what}: {team.ann.handle}." in page.words
        assert offered not in page.html and offered in team.ann.get(path).html, what


@pytest.mark.parametrize(
    "path",
    ["{prompt}/withdraw", "/account/publishers?owner={team}", "/account/profile?owner={team}"],
)
def test_what_a_writer_may_not_do_names_who_may(team: Team, path: str) -> None:
    at = path.format(prompt=team.path(), team=team.handle)
    page = team.bob.get(at)
    assert page.status == 403 and f"Ask a maintainer: {team.ann.handle}." in page.words
    assert team.ann.get(at).status == 200
    assert ("About the team" in team.ann.page.words) == ("profile" in path)
    stranger = team.people.guest()
    page = stranger.get(at)
    assert page.status == 403 and "belongs to" in page.words and team.ann.handle not in page.words


def test_what_a_writer_sees_of_members_and_log(team: Team) -> None:
    words, html = team.bob.get(team.page()).words, team.bob.page.html
    assert f"Only maintainers do the rest: {team.ann.handle}." in words
    assert f"{team.bob.handle} you writer" in words and "Leave" in words
    assert "Add a member" not in words and " maintainer role" not in words
    assert f"{team.ann.handle} Member added: {team.bob.handle} as writer." in words
    team.protect("production")
    assert "operator’s shell Label protected: production of" in team.bob.get(team.page()).words
    assert team.ann.address not in html and team.ann.address in team.ann.get(team.page()).html
    assert (
        "Only maintainers protect labels"
        in team.bob.get(f"/account/labels?owner={team.handle}").words
    )
    stranger = team.people.guest().get(team.page())
    assert stranger.status == 403 and team.bob.handle not in stranger.html


@pytest.mark.parametrize("is_new", [True, False])
def test_a_member_removed_between_form_and_send_keeps_the_text(team: Team, is_new: bool) -> None:
    team.bob.get(f"{NEW}?owner={team.handle}" if is_new else team.path())
    fields = {"name": "late", "owner": team.handle} if is_new else {}
    send(team.bob, "preview", content="Written late.", **fields)
    sent = [*fields_of(team.bob), ("action", "publish")]
    where = NEW if is_new else team.path()
    team.remove(team.bob)
    page = team.bob.post(where, sent)
    assert page.status == 403 and "Here is your text" in page.words
    assert "Written late." in page.html and "Nothing was saved or published." in page.words
    assert team.publishers() == [team.ann.handle]
    assert team.people.server.get(f"/api/v1/repos/{team.handle}/late").status_code == 404
    # The same page publishes it as a prompt of their own.
    publish(team.bob, name="late")
    assert team.people.server.get(f"/api/v1/repos/{team.bob.handle}/late").status_code == 200


def test_a_role_lowered_before_a_publication_moves_no_protected_label(team: Team) -> None:
    team.protect("production")
    team.put(team.bob, "maintainer")
    team.bob.get(team.path())
    send(team.bob, "preview", content=f"{TEXT} Soon.", new_labels="production")
    sent = [*fields_of(team.bob), ("action", "publish")]
    team.put(team.bob, "writer")
    page = team.bob.post(team.path(), sent)
    assert page.status == 403 and "move production, which is protected" in page.words
    assert "Soon." in page.html and team.publishers() == [team.ann.handle]


def test_two_tabs_act_for_two_teams(team: Team) -> None:
    Teams(team.people.database).create(f"{team.handle}-2", team.bob.handle)
    tabs = {}
    for owner in (team.handle, f"{team.handle}-2"):
        team.bob.get(f"{NEW}?owner={owner}")
        send(team.bob, "preview", owner=owner, name="tab", content=f"For {owner}.")
        tabs[owner] = [*fields_of(team.bob), ("action", "publish")]
    for owner, sent in reversed(tabs.items()):
        assert team.bob.post(NEW, sent).path == f"/account/prompts/{owner}/tab/published"
        raw = team.people.server.get(f"/api/v1/repos/{owner}/tab/raw").text
        assert raw == f"For {owner}."


def test_drafts_are_their_authors(team: Team) -> None:
    team.bob.get(team.path())
    page = send(team.bob, "save", content="A draft.")
    assert "Only you can see it." in page.words
    draft = team.bob.page.response.url
    assert "A draft." not in team.ann.get(team.path()).html
    page = team.ann.get(draft.removeprefix(team.people.url))
    assert "This draft is not there any more" in page.words and "A draft." not in page.html
    team.remove(team.bob)
    page = team.bob.get(draft.removeprefix(team.people.url))
    assert "Publish it as a prompt of your own." in page.words and "A draft." not in page.html
    assert "Drafts" not in team.bob.get("/account/prompts").words


def test_few_owners_are_tabs_and_many_are_a_choice(team: Team) -> None:
    mine = "/account/labels"
    page = team.ann.get(f"{mine}?owner={team.handle}")
    assert f'?owner={team.handle}" aria-current="true"' in page.html
    for number in range(5):
        Teams(team.people.database).create(f"{team.handle}-{number}", team.ann.handle)
    html = team.ann.get(mine).html
    assert html.count("<option>") == 6 and f"<option selected>{team.handle}<" in html


def test_a_link_is_used_once(team: Team) -> None:
    page = team.change(team.ann, "/link", role="writer")
    assert page.status == 201 and "shown only once" in page.words
    code = page.html.partition("/account/join#")[2][:32]
    visitor = team.people.visitor()
    assert "Sign in to join" in visitor.get("/account/join").words
    eve, zoe = team.people.guest(), team.people.guest()
    for who, status in ((eve, 200), (eve, 422), (zoe, 422)):
        who.get("/account/join")
        page = who.submit(code=f"{team.people.url}/account/join#{code}")
        assert page.status == status
    assert members(team)[eve.handle] == "writer" and zoe.handle not in members(team)
    assert f"Joined by a link: {eve.handle} as writer." in team.ann.get(team.page()).words


def test_roles_and_leaving(team: Team) -> None:
    ann, bob = team.ann, team.bob
    assert "the only maintainer" in ann.get(team.page()).words
    page = team.change(ann, person=ann.handle, role="writer")
    assert page.status == 422 and "would have no maintainer" in page.words
    page = team.change(ann, "/remove", person=ann.handle)
    assert page.status == 409 and "would have no maintainer" in page.words
    for person in ("nobody", team.handle):
        page = team.change(ann, person=person, role="writer")
        assert page.status == 422 and "No account named" in page.words
    assert "End maintainer role" in team.change(ann, person=bob.handle, role="maintainer").words
    assert team.change(bob, "/remove", person=ann.handle).status == 200
    assert members(team) == {bob.handle: "maintainer"}
    assert ann.get(team.page()).status == 403


@pytest.mark.parametrize("action", ["", "/remove", "/link"])
def test_only_our_own_pages_and_members_change_a_team(team: Team, action: str) -> None:
    fields = [("person", team.bob.handle), ("role", "maintainer")]
    assert team.ann.post(team.page() + action, fields).status == 400
    stranger = team.people.guest()
    stranger.get("/account/teams")
    page = stranger.post(team.page() + action, [*stranger.csrf(), *fields])
    assert page.status in (403, 422) and team.ann.handle not in page.words
    assert members(team) == {team.ann.handle: "maintainer", team.bob.handle: "writer"}


@pytest.mark.parametrize(
    ("handle", "words"),
    [("{ann}", "is taken"), ("{ann}1", ""), ("wr1ter-{rest}", "looks too much like"),
     ("docs", "such as docs-team"), ("", "Choose a handle")],
)  # fmt: skip
def test_handles_of_teams(team: Team, handle: str, words: str) -> None:
    given = handle.format(ann=team.ann.handle, rest=team.ann.handle.partition("-")[2])
    team.ann.get("/account/teams")
    page = team.ann.submit("/teams", handle=given)
    assert words in page.words and (page.status == 200) == (not words)


def test_tokens_of_a_person_reach_their_teams(team: Team) -> None:
    team.bob.get("/account/tokens")
    page = team.bob.submit("/account/tokens", name="ci", scope="some", more=f"{team.handle}/*")
    assert page.status == 201 and f"publishes to {team.handle}/*" in page.words
    token = page.html.partition("hub_")[2][:38]
    url = f"/api/v1/repos/{team.handle}/triage/versions"
    assert team.call(f"hub_{token}", "POST", url, content="By token.").status_code == 201
    assert team.publishers()[0] == team.bob.handle
    team.remove(team.bob)
    refused = team.call(f"hub_{token}", "POST", url, content="Too late.")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")
    assert team.handle in refused.json()["error"]["message"]
    team.bob.get("/account/tokens")
    page = team.bob.submit("/account/tokens", name="x", scope="some", more=f"{team.handle}/*")
    assert page.status == 422 and "not a member of a team" in page.words


def test_two_members_send_one_key(team: Team) -> None:
    url = f"/api/v1/repos/{team.handle}/triage/versions"
    for number, who in enumerate((team.ann, team.bob)):
        token = team.token(who, f"{team.handle}/*")
        answer = team.people.server.request(
            "POST",
            url,
            json={"content": f"Version {number}."},
            headers={"Authorization": f"Bearer {token}", "Idempotency-Key": "deploy"},
        )
        assert answer.status_code == 201, answer.text
    assert team.publishers()[:2] == [team.bob.handle, team.ann.handle]


def test_the_log_names_the_person_and_what_changed(team: Team) -> None:
    move(team.bob, team, "staging", "1.0.0")
    text = team.people.server.process.text
    logged = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    lines = [line for line in logged if line.get("owner") == team.handle]
    events = [(line["event"], line.get("by"), line.get("how")) for line in lines]
    assert ("publish", team.ann.handle, "in the browser") in events
    assert ("label", team.bob.handle, "in the browser") in events
    assert ("member", team.ann.handle, None) in events
    assert ("/account/teams/<team>", team.ann.handle) in {
        (line["route"], line["account"]) for line in lines if line["event"] == "member"
    }
    assert PASSWORD not in str(lines)
