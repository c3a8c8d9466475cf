"""Pages of missing and withdrawn prompts offer others: similar names, those of the owner, or new
ones.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.site.catalogue import FOLDER, GONE, SQL_REVIEW


@pytest.mark.parametrize(
    ("path", "heading", "first"),
    [
        ("mara-okafor/sql-reviw", "Similar prompts", SQL_REVIEW),
        ("mara-okafor/zqx", "Prompts of mara-okafor", "mara-okafor/"),
        ("bytes/qwertyuiopasdfg", "Prompts of bytes", "bytes/"),
        ("zzzz/99", "New prompts", "/"),
        ("tags/zzzz", "New prompts", "/"),
    ],
)
def test_a_wrong_address_leads_to_prompts(visits, path, heading, first):
    page = visits.open(f"/{path}")
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.locator("#suggested .path").first).to_contain_text(first)
    expect(page.locator("#suggested time:not(.first)").first).to_have_text(
        re.compile(r"^[1-9]\d? [A-Z][a-z]{2} \d{4}$")
    )
    expect(page.locator("#wrong")).to_have_text(path)
    expect(page.locator("#q")).to_have_value(path.replace("/", " ").replace("-", " "))
    assert 1 <= page.locator("#suggested > li").count() <= 3


def test_a_wrong_name_leads_to_its_owner_s_prompts_on_a_host_of_files(static_visits):
    page = static_visits.open("/bytes/qwertyuiopasdfg")
    expect(page.get_by_role("heading", name="Prompts of bytes")).to_be_visible()
    expect(page.locator("#suggested .path").first).to_contain_text("bytes/")


@pytest.mark.parametrize("host", ["visits", "ignoring_visits"])
@pytest.mark.parametrize(
    ("path", "repo", "sign"),
    [("mara-okafor/sql-reviw", SQL_REVIEW, "prompt {}"), (f"{FOLDER}s", FOLDER, "skill /")],
)
def test_similar_prompts_have_the_sign_of_their_kind_on_any_host(request, host, path, repo, sign):
    page = request.getfixturevalue(host).open(f"/{path}")
    similar = page.locator("#suggested > li").filter(has=page.get_by_text(repo, exact=True))
    kind, text = sign.split()
    expect(similar.get_by_role("img", name=kind, exact=True)).to_have_text(text)
    expect(page.locator("#suggested")).not_to_contain_text("undefined")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("a&b+c%26", "a&b+c&"),
        ("no%ffutf%8", "no\N{REPLACEMENT CHARACTER}utf%8"),
    ],
)
def test_what_is_wrong_is_shown_as_text(visits, path, shown):
    page = visits.open(f"/{path}")
    expect(page.locator("#wrong")).to_have_text(shown)
    expect(page.locator("#suggested > li").first).to_be_visible()


def test_a_withdrawn_prompt_leads_to_others(visits):
    page = visits.open(f"/{GONE}")
    expect(page.locator("#suggested .path").first).to_contain_text(GONE.split("/")[0])
    page.get_by_role("link", name="Search for “gone”").click()
    expect(page.locator("#q")).to_have_value("gone")


def test_without_scripts_a_withdrawn_prompt_leads_to_a_search(visits):
    page = visits.open(f"/{GONE}", scripts=False)
    expect(page.locator("#instead")).to_be_hidden()
    expect(page.get_by_role("link", name="Search for “gone”")).to_be_visible()
