"""Every state of the account pages, for the checkers of markup."""

from collections.abc import Iterator

from publisher.accounts.people.attempts import VISITOR_LIMIT
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.publisher.web.pages.editor import fields_of, send
from tests.publisher.web.pages.test_editor_files import upload
from tests.publisher.web.pages.test_release import board_of

LONG_AGENT = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Mobile Safari/537.36"
)


def full_member(people: People) -> Visitor:
    """A user with something to show on each page, also hostile values."""
    visitor = people.member(agent=f"<b>Agent</b> {LONG_AGENT}")
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
        visitor, "Be <b>kind</b>.\n\n{{name}}\n", "Be \N{RIGHT-TO-LEFT OVERRIDE}kind.\n\n{{name}}\n"
    )
    for version in ("1.0.0", "1.0.1"):
        visitor.get(f"{board_of(visitor)}/move?label=production&version={version}")
        visitor.submit("/labels/move", note="<i>A note \N{RIGHT-TO-LEFT OVERRIDE}")
    visitor.get("/account/labels")
    visitor.submit("/labels/protect", label="production", repo="story")
    visitor.get("/account/profile")
    visitor.submit(name="<b>Mara</b>", bio="Writes.\n\n<script>", url="https://example.org/?a&b")
    return visitor


def states(people: People, member: Visitor) -> Iterator[tuple[str, Page]]:
    """Each page, also after a form that was wrong."""
    visitor = people.visitor()
    for name in ("login", "signup", "invitation"):
        yield name, visitor.get(f"/account/{name}")
    yield "invitation-wrong", visitor.submit(code="x", password="short")
    visitor.get("/account/login")
    yield "login-wrong", visitor.submit(handle="nobody", password="wrong")
    yield "missing", visitor.get("/account/nowhere")
    yield from editor_states(people)
    yield from withdrawal_states(people)
    yield from refusal_states(people)
    for name in ("prompts", "tokens", "publishers", "labels", "profile", "security"):
        yield name, member.get(f"/account/{name}")
    member.get("/account/tokens")
    wrong = member.submit(name="", expires="30")
    yield "tokens-wrong", wrong
    yield "token-made", member.submit(name="shown once", expires="30")
    member.get("/account/publishers")
    yield "publishers-wrong", member.submit(project="x", workflow="y", repo="A B")
    yield "board", member.get(board_of(member))
    yield "board-wrong", member.get(f"{board_of(member)}/move?label=x&version=9.9.9")
    for name, query in (
        ("release", "label=production&version=1.0.0"),
        ("label-new", "label=canary&version=1.0.0"),
        ("label-removed", "label=production&version="),
    ):
        yield name, member.get(f"{board_of(member)}/move?{query}")
    member.get(f"{board_of(member)}/move?label=production&version=1.0.0")
    yield "release-moved", member.submit("/labels/move", expected="1.0.0")
    yield "labels-wrong", member.get("/account/labels?repo=")
    empty = people.guest()
    yield "labels-none", empty.get("/account/labels")
    people.publish_story(empty, "Be kind.")
    yield "board-none", empty.get(board_of(empty))
    member.get("/account/profile")
    yield "profile-wrong", member.submit(name="", url="javascript:alert(1)")


def editor_states(people: People) -> Iterator[tuple[str, Page]]:
    """The editor: empty, with faults, with what will happen, and where two changes met."""
    hostile = "<b>\N{RIGHT-TO-LEFT OVERRIDE}{{a}} and {{b}}\n"
    writer = people.guest()
    yield "prompts-empty", writer.get("/account/prompts")
    yield "new", writer.get("/account/prompts/new")
    wrong = {"name": "A", "content": " ", "tags": "é", "more": "{", "new_labels": "latest"}
    yield "new-wrong", send(writer, "preview", upload("a b", b""), **wrong)
    right = {"name": "story", "content": hostile, "tags": "a", "more": "", "new_labels": "canary"}
    right |= {"file-path": "a-b"}
    yield "first", send(writer, "preview", upload("run.sh", b"<b>\n"), **right)
    yield "published", send(writer, "publish")
    where = f"/account/prompts/{writer.handle}/story"
    yield "edit", writer.get(where)
    front = "---\ntitle: T\ntags: [a]\nvariables: {a: 1}\nparameters: {x: 1}\nlicense: MIT\n---\n"
    yield "front-matter", send(writer, "preview", content=front + hostile)
    writer.get(where)
    mine = fields_of(writer, content=hostile + "mine {{c}}")
    uploads = upload("run.sh", b"<b>new\n"), upload("image.png", b"\0")
    changed = {"content": hostile + "theirs {{d}}", "title": "New"}
    yield "version", send(writer, "preview", *uploads, **changed)
    yield "saved", send(writer, "save")
    yield "prompts-some", writer.get("/account/prompts")
    writer.get(where)
    yield "draft-offered", writer.page
    send(writer, "preview", *uploads, content=hostile + "theirs", changelog="Better")
    send(writer, "publish")
    yield "conflict", writer.post(where, [*mine, ("action", "publish")])
    yield "merge", send(writer, "merge")
    kept = fields_of(writer)
    writer.session.cookies.clear()
    yield "signed-out", writer.post(where, [*kept, ("action", "save")])
    other = people.guest()
    yield "foreign", other.get(where)


def withdrawal_states(people: People) -> Iterator[tuple[str, Page]]:
    """Withdrawing a version: the question, a fault in it, what it comes to, and what is left."""
    owner = people.guest()
    people.publish_story(owner, "Be kind.", "Be <b>kind</b>.")
    owner.get(f"{board_of(owner)}/move?label=production&version=1.0.0")
    owner.submit("/labels/move")
    where = f"/account/prompts/{owner.handle}/story/withdraw"
    yield "withdraw", owner.get(where)
    yield "withdraw-wrong", owner.submit("/withdraw", version="9.9.9")
    owner.get(where)
    note = "<i>A note \N{RIGHT-TO-LEFT OVERRIDE}"
    page = owner.submit("/withdraw", version="1.0.0", reason="legal", note=note)
    yield "withdraw-confirm", page
    yield "withdrawn", owner.submit("/confirm")
    yield "board-withdrawn", owner.get(board_of(owner))


def refusal_states(people: People) -> Iterator[tuple[str, Page]]:
    """Forms that come too late or too often."""
    visitor = people.visitor()
    visitor.get("/account/login")
    yield "form-expired", visitor.post("/account/login", [("handle", "ann")])
    writer = people.guest()
    writer.get("/account/prompts/new")
    changed = {"title": "Kind", "content": "Be kind.", "csrf_token": "old"}
    yield "editor-expired", send(writer, "publish", **changed)
    for _ in range(VISITOR_LIMIT + 1):
        visitor.get("/account/login")
        page = visitor.submit(handle="nobody", password="wrong")
    yield "too-many", page
