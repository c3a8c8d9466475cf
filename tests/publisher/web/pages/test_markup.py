"""axe-core and the Nu checker find nothing to say of the account pages, in any state."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.editor import fields_of, send
from tests.publisher.web.pages.test_editor_files import upload
from tests.publisher.web.pages.test_release import board_of
from tests.site.browser import DESKTOP, PHONE
from tests.site.test_axe import axe, violations_both_ways
from tests.site.test_html import check

__all__ = ["axe"]  # a fixture


@pytest.fixture(scope="module")
def member(people: People) -> Visitor:
    """A user with something to show on each page, also hostile values."""
    visitor = people.member(agent="<b>Agent</b>")
    for name in ("gone", "laptop", "a <i>\N{RIGHT-TO-LEFT MARK}name"):
        visitor.get("/account/tokens")
        visitor.submit(name=name, expires="30")
    page = visitor.get("/account/tokens")
    revoke = next(form.action for form in page.forms if form.action.endswith("/revoke"))
    visitor.post(revoke, visitor.csrf())
    visitor.get("/account/publishers")
    visitor.submit(
        issuer=people.github.url, project="octo/prompts", workflow="publish.yml", repo="review"
    )
    people.publish_story(
        visitor,
        "Be <b>kind</b>.\n\n{{name}}\n",
        "Be \N{RIGHT-TO-LEFT OVERRIDE}kind.\n\n{{name}}\n",
    )
    for version in ("1.0.0", "1.0.1"):
        visitor.get(f"{board_of(visitor)}/move?label=production&version={version}")
        visitor.submit("/labels/move", note="<i>A note \N{RIGHT-TO-LEFT OVERRIDE}")
    visitor.get("/account/labels")
    visitor.submit("/labels/protect", label="production", repo="story")
    visitor.get("/account/profile")
    visitor.submit(name="<b>Mara</b>", bio="Writes.\n\n<script>", url="https://example.org/?a&b")
    return visitor


def states(people: People, member: Visitor) -> Iterator[tuple[str, str]]:
    """The HTML of each page, also after a form that was wrong."""
    visitor = people.visitor()
    for name in ("login", "signup", "invitation"):
        yield name, visitor.get(f"/account/{name}").html
    yield "invitation-wrong", visitor.submit(code="x", password="short", again="other").html
    visitor.get("/account/login")
    yield "login-wrong", visitor.submit(handle="nobody", password="wrong").html
    yield "missing", visitor.get("/account/nowhere").html
    yield from editor_states(people)
    yield from withdrawal_states(people)
    for name in ("prompts", "tokens", "publishers", "labels", "profile", "security"):
        yield name, member.get(f"/account/{name}").html
    member.get("/account/tokens")
    wrong = member.submit(name="", expires="30")
    yield "tokens-wrong", wrong.html
    yield "token-made", member.submit(name="shown once", expires="30").html
    member.get("/account/publishers")
    yield "publishers-wrong", member.submit(project="x", workflow="y", repo="A B").html
    yield "board", member.get(board_of(member)).html
    yield "board-wrong", member.get(f"{board_of(member)}/move?label=x&version=9.9.9").html
    for name, query in (
        ("release", "label=production&version=1.0.0"),
        ("label-new", "label=canary&version=1.0.0"),
        ("label-removed", "label=production&version="),
    ):
        yield name, member.get(f"{board_of(member)}/move?{query}").html
    member.get(f"{board_of(member)}/move?label=production&version=1.0.0")
    yield "release-moved", member.submit("/labels/move", expected="1.0.0").html
    yield "labels-wrong", member.get("/account/labels?repo=").html
    empty = people.guest()
    yield "labels-none", empty.get("/account/labels").html
    people.publish_story(empty, "Be kind.")
    yield "board-none", empty.get(board_of(empty)).html
    member.get("/account/publishers")
    (change,) = [one for one in member.page.forms if one.action.endswith("/labels")]
    yield "publishers-labels-wrong", member.submit(change.action, labels="latest").html
    member.get("/account/profile")
    yield "profile-wrong", member.submit(name="", url="javascript:alert(1)").html


def editor_states(people: People) -> Iterator[tuple[str, str]]:
    """The editor: empty, with faults, with what will happen, and where two changes met."""
    hostile = "<b>\N{RIGHT-TO-LEFT OVERRIDE}{{a}} and {{b}}\n"
    writer = people.guest()
    yield "prompts-empty", writer.get("/account/prompts").html
    yield "new", writer.get("/account/prompts/new").html
    wrong = {"name": "A", "content": " ", "tags": "é", "more": "{", "new_labels": "latest"}
    yield "new-wrong", send(writer, "preview", upload("a b", b""), **wrong).html
    right = {"name": "story", "content": hostile, "tags": "a", "more": "", "new_labels": "canary"}
    right |= {"file-path": "a-b"}
    yield "first", send(writer, "preview", upload("run.sh", b"<b>\n"), **right).html
    yield "published", send(writer, "publish").html
    where = f"/account/prompts/{writer.handle}/story"
    yield "edit", writer.get(where).html
    front = "---\ntitle: T\ntags: [a]\nvariables: {a: 1}\nparameters: {x: 1}\nlicense: MIT\n---\n"
    yield "front-matter", send(writer, "preview", content=front + hostile).html
    writer.get(where)
    mine = fields_of(writer, content=hostile + "mine {{c}}")
    uploads = upload("run.sh", b"<b>new\n"), upload("image.png", b"\0")
    changed = {"content": hostile + "theirs {{d}}", "title": "New"}
    yield "version", send(writer, "preview", *uploads, **changed).html
    yield "saved", send(writer, "save").html
    yield "prompts-some", writer.get("/account/prompts").html
    writer.get(where)
    yield "draft-offered", writer.page.html
    send(writer, "preview", *uploads, content=hostile + "theirs", changelog="Better")
    send(writer, "publish")
    yield "conflict", writer.post(where, [*mine, ("action", "publish")]).html
    yield "merge", send(writer, "merge").html
    kept = fields_of(writer)
    writer.session.cookies.clear()
    yield "signed-out", writer.post(where, [*kept, ("action", "save")]).html
    other = people.guest()
    yield "foreign", other.get(where).html


def withdrawal_states(people: People) -> Iterator[tuple[str, str]]:
    """Withdrawing a version: the question, a fault in it, what it comes to, and what is left."""
    owner = people.guest()
    people.publish_story(owner, "Be kind.", "Be <b>kind</b>.")
    owner.get(f"{board_of(owner)}/move?label=production&version=1.0.0")
    owner.submit("/labels/move")
    where = f"/account/prompts/{owner.handle}/story/withdraw"
    yield "withdraw", owner.get(where).html
    yield "withdraw-wrong", owner.submit("/withdraw", what="version", version="9.9.9").html
    owner.get(where)
    note = "<i>A note \N{RIGHT-TO-LEFT OVERRIDE}"
    page = owner.submit("/withdraw", what="version", version="1.0.0", reason="legal", note=note)
    yield "withdraw-confirm", page.html
    yield "withdrawn", owner.submit("/confirm").html
    yield "board-withdrawn", owner.get(board_of(owner)).html


def test_the_checkers_find_nothing(
    people: People, member: Visitor, browser: Browser, axe: str, tmp_path: Path
):
    shown = dict(states(people, member))
    files = [tmp_path / f"{name}.html" for name in shown]
    for file, html in zip(files, shown.values(), strict=True):
        file.write_text(html, encoding="utf-8")
    assert check(*files) == []
    page = browser.new_page()
    found = {}
    for name, html in shown.items():
        show(page, people.url, html)
        page.evaluate(axe)
        found[name] = violations_both_ways(page)
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("place", ["tokens", "publishers", "security", "labels", "board"])
def test_a_phone_has_all_of_a_table_in_sight(
    people: People, member: Visitor, browser: Browser, place: str
):
    page = browser.new_page(viewport=DESKTOP)
    path = board_of(member) if place == "board" else f"/account/{place}"
    show(page, people.url, member.get(path).html)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    wide = table_of(page)
    assert {role for role, _ in wide} == {
        "table", "rowgroup", "row", "rowheader", "columnheader", "cell"
    }  # fmt: skip
    page.set_viewport_size(PHONE)
    assert page.locator(".scroll").count() == page.locator(".records").count() > 0
    for table in page.locator(".scroll").all():
        assert table.evaluate("it => it.scrollWidth <= it.clientWidth")
    for button in page.locator(".records button").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    # The wide table's roles remain for screen readers, and each cell shows its column's name.
    assert table_of(page) == wide
    for cell in page.locator(".records td[data-name]").all():
        content = cell.evaluate("it => getComputedStyle(it, '::before').content")
        assert content.startswith(f'"{cell.get_attribute("data-name")}: "')
    page.close()


def table_of(page: Page) -> Counter[tuple[str, str]]:
    """Roles and names of the tables of a page, as a screen reader finds them."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    roles = ("table", "rowgroup", "row", "rowheader", "columnheader", "cell")
    shown = [node for node in tree["nodes"] if not node["ignored"]]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown]
    return Counter(
        # A cell is named by what stands in it: the column's name too, where that is in sight.
        (role, "" if role == "cell" else name)
        for role, name in named
        if role in roles
    )


def show(page: Page, url: str, html: str) -> None:
    """Open a page as it came, with the site's own style and scripts."""
    address = f"{url}/account/shown"
    page.unroute_all()
    page.route(address, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it is too wide"
