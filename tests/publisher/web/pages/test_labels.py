"""The page of an owner's labels, and what tokens and jobs may do with them."""

from publisher.accounts.tokens import Accounts
from publisher.trusted.publishers import TrustedPublishers
from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.test_release import move, owner
from tests.support.hubs import MakeHub

__all__ = ["owner"]  # a fixture

LABELS = "/account/labels"


def test_it_leads_to_the_boards(people: People, owner: Visitor) -> None:
    assert "story none 1.0.1 Create production" in owner.get(LABELS).words
    move(owner)
    page = owner.get(LABELS)
    assert "story Label production 1.0.0 1.0.1 Move production" in page.words
    compared = f"/{owner.handle}/story/compare?from=1.0.0&amp;to=1.0.1"
    review = f"/account/prompts/{owner.handle}/story/labels/move?label=production&amp;version=1.0.1"
    assert f'href="{compared}"' in page.html and f'href="{review}"' in page.html
    move(owner, version="1.0.1")
    page = owner.get(LABELS)
    assert "story Label production 1.0.1 the same" in page.words and "/move?" not in page.html
    board = f"/account/prompts/{owner.handle}/story/labels"
    assert f'href="{board}"' in page.html
    for written in ("story", f" {owner.handle}/story "):
        assert owner.get(LABELS, params={"repo": written}).path == board


def test_a_prompt_that_is_not_there_has_no_board(owner: Visitor) -> None:
    page = owner.get(LABELS, params={"repo": "poem"})
    assert page.status == 404 and f"No prompt {owner.handle}/poem." in page.words
    for written, message in (
        ("", "Enter the prompt name."), ("A b", "Invalid prompt name"), ("a/b", "Invalid prompt"),
    ):  # fmt: skip
        page = owner.get(LABELS, params={"repo": written})
        assert (page.status, page.path) == (422, LABELS) and message in page.words


def test_the_page_works_before_the_site_is_built(make_hub: MakeHub) -> None:
    answer = make_hub("http://127.0.0.1:8000").signed_in("ann").get(LABELS)
    assert answer.status_code == 200 and "cannot be listed right now" in answer.text


def test_protected_labels(people: People, owner: Visitor) -> None:
    owner.get(LABELS)
    page = owner.submit("/labels/protect", label="production", repo="")
    assert f"The label production of {owner.handle}/* is protected." in page.words
    assert "is no longer protected" in owner.submit("/labels/unprotect").words
    owner.get(LABELS)
    page = owner.submit("/labels/protect", label="latest", repo="")
    assert page.status == 422 and "reserved" in page.words
    log = owner.get("/account/security").words
    assert f"Label protected: production of {owner.handle}/*." in log
    assert f"Label no longer protected: production of {owner.handle}/*." in log


def test_tokens_with_rights(people: People, owner: Visitor) -> None:
    owner.get("/account/tokens")
    page = owner.submit("/tokens", name="release", rights="label", labels="production, canary")
    assert page.status == 201
    tokens = {one.name: one for one in Accounts(people.database).tokens(owner.handle)}
    token = tokens["release"]
    assert (token.rights, token.labels) == (("label",), ("production", "canary"))
    assert "moves production, canary" in owner.get("/account/tokens").words
    for labels, rights, message in (
        ("production", "publish", "moves none"),
        ("Production", "label", "Invalid label"),
        (" ".join(f"label-{number}" for number in range(21)), "label", "at most 20"),
    ):
        owner.get("/account/tokens")
        page = owner.submit("/tokens", name="other", rights=rights, labels=labels)
        assert page.status == 422 and message in page.words


def test_labels_of_jobs(people: People, owner: Visitor) -> None:
    owner.get("/account/publishers")
    fields = {"project": "octo/prompts", "workflow": "publish.yml"}
    page = owner.submit("/publishers", **fields, labels="production,production latest")
    assert page.status == 422 and "reserved" in page.words
    page = owner.submit("/publishers", **fields, labels=" production, canary ")
    assert page.status == 200 and "Labels production, canary" in page.words
    (publisher,) = TrustedPublishers(people.database).of(owner.handle)
    assert publisher.labels == "production canary"
