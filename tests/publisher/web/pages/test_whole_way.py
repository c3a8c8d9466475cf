"""The way from an invitation to a publication and back, in a real browser and with the real client.

No secret that came up on the way is anywhere on the disk.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Page, expect

from builder.model.routes import BY_NAME
from publisher.accounts.people.invitations import Invitations
from tests.publisher.web.pages.conftest import People
from tests.support.catalogues import settings_in, write_small_catalogue
from tests.support.issuer import RUNTIME_SECRET, issuer
from tests.support.servers import DEADLINE_SECONDS, HUBCTL, Server, clean_environment, serving

PASSWORD = "seven quiet herons over Bergen"
NEW_PASSWORD = "nine brisk otters beyond Tromsø"
PROMPT = "Review {{diff}} as a careful colleague would.\n"


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    context = browser.new_context(java_script_enabled=request.param)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


def push(hub: Server, folder: Path, name: str, *options: str, **env: str):
    """`hub push`, with the client that the hub itself hands out."""
    client = folder / "hub"
    client.write_bytes(hub.get(BY_NAME["client"].url).content)
    (folder / "PROMPT.md").write_text(PROMPT)
    return subprocess.run(
        ["sh", str(client), "push", *options, f"ada/{name}", str(folder / "PROMPT.md"), "First"],
        env=clean_environment(HOME=str(folder), **env), capture_output=True, text=True,
    )  # fmt: skip


def follow_invitation(page: Page, link: str, scripts: bool) -> None:
    page.goto(link)
    code = page.get_by_label("Invitation code")
    if scripts:
        expect(page.get_by_text("the account ada")).to_be_visible()
        expect(code).to_be_hidden()
        assert "#" not in page.url
    else:
        code.fill(link)
    set_password(page, PASSWORD)
    expect(page.get_by_role("heading", level=1)).to_have_text("New prompt")


def set_password(page: Page, password: str) -> None:
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Set password").click()


def make_token(page: Page, scripts: bool) -> str:
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_role("button", name="Create token").click()
    shown = page.locator(".snippet").first
    token = re.search(r"hub_\w{38}", shown.inner_text())[0]
    expect(page.get_by_text("HUB_TOKEN").first).to_be_visible()
    if scripts:
        shown.get_by_role("button", name="Copy").click()
        expect(shown.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == token
    return token


def test_the_first_prompt_takes_three_fields(
    people: People, context: BrowserContext, request: pytest.FixtureRequest
):
    """With scripts: a password, a title and a text, and two buttons. Without: also the code of the
    invitation, and a preview before the publication.
    """
    scripts = "no scripts" not in request.node.name
    code = Invitations(people.database).invite(f"first-{'scripts' if scripts else 'none'}")
    page = context.new_page()
    page.goto(f"{people.url}/account/invitation#{code}")
    if not scripts:
        page.get_by_label("Invitation code").fill(code)
    password = page.get_by_label("Password", exact=True)
    password.fill(PASSWORD)
    if scripts:
        page.get_by_role("button", name="Show").click()
        expect(password).to_have_attribute("type", "text")
        page.get_by_role("button", name="Hide").click()
    expect(password).to_have_attribute("type", "password")
    page.get_by_role("button", name="Set password").click()
    expect(page.locator(".told").first).to_contain_text("Write your first prompt")
    page.get_by_placeholder("Title").fill("Reply To Customer")
    # CodeMirror's field where scripts run, else the form's.
    page.locator("[contenteditable=true]" if scripts else "#content").fill("Answer {{message}}.")
    page.get_by_role("button", name="Publish 1.0.0" if scripts else "Publish").click()
    if not scripts:
        page.get_by_role("button", name="Publish 1.0.0").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reply To Customer")
    assert page.url.endswith("/reply-to-customer/published?version=1.0.0")


def test_from_an_invitation_to_a_publication_and_back(
    context: BrowserContext, request: pytest.FixtureRequest, tmp_path: Path
):
    scripts = "no scripts" not in request.node.name
    settings = settings_in(tmp_path)
    write_small_catalogue(settings.content)
    log = tmp_path / "access.log"
    with (
        issuer() as ci,
        serving(settings, "--access-log", str(log), "--trusted-issuer", f"github={ci.url}") as hub,
    ):
        done = subprocess.run(
            [HUBCTL, "owner", "invite", "ada", "--state", settings.state, "--base-url", hub.url],
            capture_output=True, text=True, check=True, env=clean_environment(),
        )  # fmt: skip
        link = done.stdout.strip()
        page = context.new_page()
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        follow_invitation(page, link, scripts)
        secrets = [PASSWORD, link.rpartition(".")[2], cookie_secret(context)]

        page.get_by_role("link", name="Tokens").first.click()
        token = make_token(page, scripts)
        secrets.append(token)
        pushed = push(hub, tmp_path, "review", HUB_TOKEN=token)
        assert (pushed.returncode, pushed.stdout) == (0, "ada/review 1.0.0\n"), pushed.stderr

        page.get_by_role("link", name="Tokens").first.click()
        expect(page.get_by_role("main")).not_to_contain_text(token)
        row = page.get_by_role("row").filter(has_text="laptop")
        expect(row).not_to_contain_text("never")
        row.locator("summary").click()
        row.get_by_role("button", name="Revoke").click()
        expect(page.locator(".told")).to_contain_text("laptop is revoked")
        refused = push(hub, tmp_path, "review", HUB_TOKEN=token)
        assert refused.returncode == 4 and "revoked" in refused.stderr

        # A job needs none.
        page.get_by_role("link", name="Publishers").click()
        page.get_by_label("Prompt", exact=True).fill("review")
        page.get_by_label("Project", exact=True).fill("octo/prompts")
        page.get_by_role("button", name="Add publisher").click()
        expect(page.locator(".told")).to_contain_text("octo/prompts")
        expect(page.get_by_text("push --trusted").first).to_be_visible()
        (tmp_path / "PROMPT.md").unlink()
        pushed = push(hub, tmp_path, "review", "--trusted", **ci.env())
        assert pushed.returncode == 0, pushed.stderr
        secrets += [RUNTIME_SECRET, *minted(hub, ci)]

        page.get_by_role("link", name="Security").click()
        for event in ("Signed in", "laptop", "octo/prompts"):
            expect(page.get_by_role("main")).to_contain_text(event)
        page.locator("summary", has_text="Change password").click()
        page.get_by_label("Current password").fill(PASSWORD)
        page.get_by_label("Password", exact=True).fill(NEW_PASSWORD)
        page.get_by_role("button", name="Change password").click()
        expect(page.locator(".told")).to_contain_text("password")
        secrets += [NEW_PASSWORD, cookie_secret(context)]
        assert len(set(secrets)) == len(secrets), "the session's secret is another one now"

        page.goto(hub.url)
        header = page.get_by_role("banner")
        header.get_by_role("link", name="Account" if scripts else "Sign in").click()
        page.get_by_role("button", name="Sign out", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        page.goto(hub.url)
        header.get_by_role("link", name="Sign in").click()
        page.get_by_label("Handle").fill("ada")
        page.get_by_label("Password").fill(NEW_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("My prompts")
        secrets.append(cookie_secret(context))
        assert faults == []
    check_nowhere(secrets, [tmp_path / "content", Path(settings.out), Path(settings.state), log])
    assert not [line for line in hub.process.lines if any(secret in line for secret in secrets)]


def test_a_tab_keeps_an_invitation_until_it_is_taken(people: People, browser: Browser):
    done = subprocess.run(
        [HUBCTL, "owner", "invite", "ada", "--state", people.settings.state,
         "--base-url", people.url],
        capture_output=True, text=True, check=True, env=clean_environment(),
    )  # fmt: skip
    link = done.stdout.strip()
    invitation, _, secret = link.partition("#")
    context = browser.new_context()
    page = context.new_page()
    invited = page.get_by_text("the account ada")
    code = page.get_by_label("Invitation code")
    # One that is refused is not kept, and can be seen.
    page.goto(f"{invitation}#ada.{'x' * 43}")
    set_password(page, PASSWORD)
    expect(page.get_by_text("This invitation is not valid")).to_be_visible()
    expect(code).to_be_visible()
    assert kept(page) == ([], [])
    # The right one, opened in the same tab; a wrong password, a reload, and back from elsewhere.
    page.goto(link)
    expect(invited).to_be_visible()
    set_password(page, "short")
    expect(page.locator(".wrong").first).to_be_visible()
    for _ in range(2):
        expect(invited).to_be_visible()
        expect(code).to_be_hidden()
        page.goto(invitation)
    page.reload()
    page.goto(f"{people.url}/account/login")
    assert kept(page) == ([secret], [])
    page.go_back()
    expect(invited).to_be_visible()
    assert page.url == invitation and code.input_value() == secret
    # Another tab has nothing of it.
    other = context.new_page()
    other.goto(page.url)
    expect(other.get_by_label("Invitation code")).to_be_visible()
    assert kept(other) == ([], [])
    set_password(page, PASSWORD)
    expect(page.get_by_role("heading", level=1)).to_have_text("New prompt")
    assert kept(page) == ([], ["ada"])  # the mark of a signed-in user
    context.close()


def test_an_invitation_where_a_browser_keeps_nothing(people: People, browser: Browser):
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('denied') } })"
    )
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{people.url}/account/invitation#ada.secret")
    expect(page.get_by_text("the account ada")).to_be_visible()
    assert faults == []
    context.close()


def kept(page: Page) -> tuple[list[str], list[str]]:
    """Values that the tab stores, and values that the browser stores for other tabs too."""
    session, local, cookies = page.evaluate(
        "[Object.values(sessionStorage), Object.values(localStorage), document.cookie]"
    )
    assert cookies == ""
    return session, local


def cookie_secret(context: BrowserContext) -> str:
    (cookie,) = [cookie for cookie in context.cookies() if cookie["name"] == "hub-account"]
    return cookie["value"].partition(".")[0]


def minted(hub: Server, ci: Any) -> list[str]:
    """An ID token, and the hub's token for it."""
    id_token = ci.token(aud=hub.url)
    url = f"{hub.url}/api/v1/trusted-publishing/token"
    answer = requests.post(
        url, json={"token": id_token, "repo": "ada/review"}, timeout=DEADLINE_SECONDS
    )
    return [id_token, answer.json()["data"]["token"]]


def check_nowhere(secrets: list[str], places: list[Path]) -> None:
    """No file holds a secret in the clear, nor has one in its name."""
    files = [file for place in places for file in [place, *place.rglob("*")] if file.is_file()]
    assert {"accounts.sqlite3", "access.log", "hub.json", "1.0.0.md"} <= {f.name for f in files}
    for file in files:
        data = file.read_bytes()
        for secret in secrets:
            assert secret.encode() not in data and secret not in str(file), file
