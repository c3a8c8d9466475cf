"""The release board of a prompt: move labels after a look at the difference, roll back, history."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from builder.model.labels import Labels
from builder.model.request_bodies import LabelDraft, LabelRemoval
from publisher.accounts.tokens import Accounts
from publisher.web.pages import release
from publisher.write.durable import FolderStore
from publisher.write.labels import change_label
from publisher.write.moves import read_labels
from tests.builder.render.test_changes_table import Table
from tests.publisher.web.pages.conftest import Page, People, Visitor
from tests.support.catalogues import write_version


@pytest.fixture
def owner(people: People) -> Visitor:
    """A user who has published two versions of a story."""
    visitor = people.guest()
    people.publish_story(visitor, "Tell <b>one</b> story.", "Tell two stories.")
    return visitor


def board_of(owner: Visitor) -> str:
    return f"/account/prompts/{owner.handle}/story/labels"


def review(owner: Visitor, label: str = "production", version: str = "1.0.0") -> Page:
    """Look at what a move would do."""
    return owner.get(f"{board_of(owner)}/move", params={"label": label, "version": version})


def move(owner: Visitor, label: str = "production", version: str = "1.0.0", note: str = "") -> Page:
    """Look at it, then confirm."""
    review(owner, label, version)
    return owner.submit("/labels/move", note=note)


def all_labels(people: People, owner: Visitor) -> Labels:
    return read_labels(people.settings.content, owner.handle, "story")


def labels(people: People, owner: Visitor) -> dict[str, str]:
    return all_labels(people, owner).versions()


def change_elsewhere(people: People, owner: Visitor, version: str | None) -> None:
    """Another program moves the label, or removes it."""
    draft = LabelDraft(version=version) if version else LabelRemoval()
    change_label(
        FolderStore(people.settings.content),
        owner.handle,
        "story",
        "production",
        draft,
        by=owner.handle,
    )


def test_the_step_says_what_changes_for_applications(people: People, owner: Visitor) -> None:
    people.publish_story(owner, "Tell {{hero}} stories.")
    move(owner, version="1.0.1")
    page = review(owner, version="1.0.2")
    before, _, after = page.words.partition("For applications major hero")
    assert "required" in after.partition("Note")[0] and "Move label" not in before
    withdraw = f'href="/account/prompts/{owner.handle}/story/withdraw"'
    assert withdraw in owner.get(board_of(owner)).html


def test_release_watch_and_roll_back(people: People, owner: Visitor) -> None:
    page = owner.get(board_of(owner))
    assert page.status == 200 and "has no label. Create one below" in page.words
    page = review(owner)
    assert "Create the label production" in page.words and "<table" not in page.html
    assert labels(people, owner) == {}
    page = owner.submit("/labels/move", note="First release")
    assert page.path == board_of(owner) and "production now names 1.0.0." in page.words
    assert "Roll back" not in page.words

    page = review(owner, version="1.0.1")
    assert "Move production to 1.0.1" in page.words
    assert "Variables and parameters are as before." in page.words
    assert [cells for _, cells, _ in Table(page.html).rows[1:]] == [
        ["1", "", "−", "Tell <b>one</b> story. no line break at the end"],
        ["", "1", "+", "Tell two stories. no line break at the end"],
    ]
    page = owner.submit("/labels/move", note="<i>Evaluated</i>")
    assert labels(people, owner) == {"production": "1.0.1"}
    assert "production 1.0.1 since 2" in page.words and f"by {owner.handle}" in page.words

    page = owner.submit("/labels/move", expected="1.0.1")
    assert "production now names 1.0.0." in page.words and "Return to 1.0.1" in page.words
    assert labels(people, owner) == {"production": "1.0.0"}
    history = all_labels(people, owner).history["production"]
    assert [(move.previous, move.version, move.note) for move in history] == [
        ("1.0.1", "1.0.0", "Roll back from 1.0.1"),
        ("1.0.0", "1.0.1", "<i>Evaluated</i>"),
        (None, "1.0.0", "First release"),
    ]
    assert f'href="/{owner.handle}/story/versions"' in page.html
    raw = owner.session.get(
        f"{people.url}/api/v1/repos/{owner.handle}/story/raw", params={"label": "production"}
    )
    assert raw.text == "Tell <b>one</b> story."


def test_a_move_shows_files_and_what_is_new_in_abilities(people: People, owner: Visitor) -> None:
    files = [{"path": "run.sh", "content": "curl https://new.example\n", "executable": True}]
    people.publish_story(owner, "Tell two stories.", files=files, bump="major")
    move(owner)
    page = review(owner, version="2.0.0")
    assert "Runs run.sh new Commands curl new run.sh:1 Names a host new.example new" in page.words
    assert "run.sh added · executable" in page.words
    move(owner, version="2.0.0")
    files[0]["executable"] = False
    people.publish_story(owner, "Tell two stories.", files=files, bump="major")
    page = review(owner, version="3.0.0")
    assert "The text is the same." in page.words and "metadata" not in page.words
    assert "no longer executable Only the executable bit has changed." in page.words


def test_remove_and_create_again(people: People, owner: Visitor) -> None:
    move(owner)
    page = review(owner, version="")
    assert "Remove production" in page.words and "get the error 404" in page.words
    page = owner.submit("/labels/move", note="Unused")
    assert "production is removed." in page.words and "has no label now." in page.words
    assert labels(people, owner) == {}
    move(owner, version="1.0.1")
    assert labels(people, owner) == {"production": "1.0.1"}


def test_who_comes_too_late_sees_the_new_state(people: People, owner: Visitor) -> None:
    move(owner)
    review(owner, version="1.0.1")
    change_elsewhere(people, owner, None)
    page = owner.submit("/labels/move", note="Kept")
    assert page.status == 412 and labels(people, owner) == {}
    assert "production has changed since you opened the page, when it named 1.0.0." in page.words
    assert "Create the label production" in page.words and 'value="Kept"' in page.html
    assert owner.submit("/labels/move").status == 200
    assert labels(people, owner) == {"production": "1.0.1"}

    move(owner)  # the board offers to return to 1.0.1
    change_elsewhere(people, owner, "1.0.1")
    page = owner.submit("/labels/move", expected="1.0.0")
    assert page.status == 422 and "production names 1.0.1 already." in page.words


def test_of_several_at_once_one_wins(people: People, owner: Visitor) -> None:
    move(owner)
    for version in ("1.0.1", "1.0.0", "1.0.1"):
        review(owner, version=version)
        form = owner.form("/labels/move")
        before = len(all_labels(people, owner).history["production"])

        def send(_: int, form=form) -> int:
            answer = owner.session.post(
                people.url + form.action, data=form.fields, allow_redirects=False
            )
            return answer.status_code

        with ThreadPoolExecutor(4) as pool:
            answers = sorted(pool.map(send, range(4)))
        # The others are too late, or find done what they want.
        assert answers.count(303) == 1 and {*answers[1:]} <= {412, 422}, answers
        assert labels(people, owner) == {"production": version}
        assert len(all_labels(people, owner).history["production"]) == before + 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": "9.9.9"}, "has no version 9.9.9. Its latest version is 1.0.1."),
        ({"version": "x"}, "x.y.z"),
        ({"version": "1" * 5000}, "x.y.z"),
        ({"label": "latest"}, "is reserved"),
        ({"label": "<b>"}, "Invalid label"),
        ({"label": ""}, "Enter the label."),
        ({"label": "canary", "version": ""}, "has no label canary."),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_wrong_stands_at_its_field(
    people: People, owner: Visitor, fields: dict[str, str], message: str, method: str
) -> None:
    move(owner, version="1.0.1")
    given = {"label": "production", "version": "1.0.0"} | fields
    if method == "GET":
        page = review(owner, **given)
    else:
        review(owner)
        page = owner.submit("/labels/move", **given)
    assert page.status == 422 and message in page.words and "Nothing was changed." in page.words
    assert "<b>" not in page.html
    assert ('id="version-of-production-wrong"' in page.html) == ("label" not in fields)
    assert labels(people, owner) == {"production": "1.0.1"}


def test_a_label_stays_where_it_is(people: People, owner: Visitor) -> None:
    move(owner)
    page = review(owner)
    assert page.status == 422 and "production names 1.0.0 already." in page.words
    review(owner, version="1.0.1")
    page = owner.submit("/labels/move", version="1.0.0")
    assert page.status == 200 and "production names 1.0.0 already." in page.words
    assert len(all_labels(people, owner).history["production"]) == 1


def test_what_is_wrong_with_a_note_stands_at_it(people: People, owner: Visitor) -> None:
    page = move(owner, note="x" * 1025)
    assert page.status == 422 and "longer than 1,024 bytes" in page.words
    token, _ = Accounts(people.database).create_token(owner.handle, "leaked")
    page = move(owner, note=f"See {token}")
    assert page.status == 422 and "The note contains an access token" in page.words
    assert labels(people, owner) == {}
    assert move(owner, note="Fine").status == 200
    assert labels(people, owner) == {"production": "1.0.0"}


def test_a_made_up_expectation_is_refused(people: People, owner: Visitor) -> None:
    review(owner)
    page = owner.submit("/labels/move", expected="<script>")
    assert page.status == 422 and "Nothing was changed." in page.words
    assert "<script>" not in page.words and labels(people, owner) == {}


@pytest.mark.parametrize("path", ["", "/move?label=production&version=1.0.0"])
def test_only_their_owner_moves_labels(people: People, owner: Visitor, path: str) -> None:
    other = people.guest()
    page = other.get(board_of(owner) + path)
    assert page.status == 403 and f"you are signed in as {other.handle}" in page.words
    other.get("/account/tokens")
    page = other.post(
        f"{board_of(owner)}/move",
        [("label", "production"), ("version", "1.0.0"), ("expected", ""), *other.csrf()],
    )
    assert page.status == 403 and labels(people, owner) == {}
    assert people.visitor().get(board_of(owner) + path).path == "/account/login"


def test_a_link_to_a_board_leads_there_after_signing_in(people: People, owner: Visitor) -> None:
    answer = people.visitor().session.get(people.url + board_of(owner), allow_redirects=False)
    assert answer.headers["Location"].endswith(f"?next=/prompts/{owner.handle}/story/labels")


@pytest.mark.parametrize(
    ("name", "status"), [("poem", 404), ("A%20b", 400), ("story%3Cscript%3E", 400)]
)
def test_other_names_have_no_board(owner: Visitor, name: str, status: int) -> None:
    page = owner.get(f"/account/prompts/{owner.handle}/{name}/labels")
    assert page.status == status and "<script>" not in page.words


def test_of_very_many_versions_one_writes_the_version(people: People, owner: Visitor) -> None:
    assert '<select id="version"' in owner.get(board_of(owner)).html
    for number in range(2, release.OFFERED_VERSIONS_MAX + 1):
        write_version(people.settings.content, owner.handle, "story", f"1.0.{number}", "More.")
    html = owner.get(board_of(owner)).html
    assert '<input id="version"' in html and "<select" not in html
    assert html.count("<option value") == release.OFFERED_VERSIONS_MAX


def test_protected_labels_are_marked(people: People, owner: Visitor) -> None:
    move(owner)
    owner.get("/account/labels")
    owner.submit("/labels/protect", label="production", repo="story")
    page = owner.get(board_of(owner))
    assert "<small>protected</small>" in page.html
    # Their owner moves it all the same, signed in.
    move(owner, version="1.0.1")
    assert labels(people, owner) == {"production": "1.0.1"}
