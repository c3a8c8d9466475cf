"""Lists of several pages, the home page, and pages without prompts."""

import json
import re
from pathlib import Path

import pytest

from builder.emit import files
from builder.model import routes
from builder.model.routes import PAGE_SIZE
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.render.pages import pages_of
from builder.stats.counter import Counter
from tests.builder.pipeline.sites import answer
from tests.support.catalogues import (
    build_files,
    moment,
    read_tree,
    settings_in,
    write_owner,
    write_version,
)

# As ``moment(0)``.
FIRST_DAY = 20_089


def test_the_operator_s_words_stand_on_the_home_page(small):
    def home() -> str:
        return build_files(small)["index.html"].decode()

    words = Path(small.content, "home.md")
    without = home()
    assert "<h1>Hub</h1>" in without and "<title>Hub</title>" in without
    words.write_text("# *Ours* & you\n\nFor *us*.\n\nMore <b>words</b>.\n")
    page = home()
    assert "<title>Hub: Ours &amp; you</title>" in page
    assert (
        "<h1><em>Ours</em> &amp; you</h1>" in page and 'class="lead">For <em>us</em>.</p>' in page
    )
    assert "<p>More &lt;b&gt;words&lt;/b&gt;.</p>" in page
    words.write_text("Only this.")
    assert "<h1>Hub</h1>" in home()
    assert "Only this." in home()
    # Only a full look at the content finds changes that no hint names.
    words.write_text("Other words.")
    build(small, changed=[("ann", "review")], index=False)
    assert b"Other" not in read_tree(small.out)["index.html"]
    words.unlink()
    assert home() == without


@pytest.fixture(scope="module")
def paged(tmp_path_factory) -> Settings:
    """A built site with 120 repos, 70 of them with a tag."""
    settings = settings_in(tmp_path_factory.mktemp("paged"))
    for number in range(120):
        write_version(
            settings.content, "ann", f"r{number:03}", "1.0.0", "x",
            tags=["many"] if number < 70 else [], published_at=moment(number),
        )  # fmt: skip
    build_files(settings)
    return settings


@pytest.mark.parametrize(("folder", "total"), [("api/v1/repos/_", 120), ("api/v1/tags/many", 70)])
@pytest.mark.parametrize("sort", routes.SORTS)
def test_pages_hold_every_repo_once_in_order(paged, folder, total, sort):
    tag = "many" if "tags" in folder else None
    names = []
    last = -(-total // PAGE_SIZE)
    for page in range(1, last + 1):
        data = answer(paged, f"{folder}/{sort}/{page}.json")
        assert data["meta"] == {
            "page": page, "pages": last, "total": total, "page_size": 50, "sort": sort, "tag": tag,
            "q": None,
        }  # fmt: skip
        assert len(data["data"]) == (PAGE_SIZE if page < last else total - PAGE_SIZE * (last - 1))
        names += [repo["name"] for repo in data["data"]]
    # All were published once: each order is newest first.
    assert names == [f"r{number:03}" for number in reversed(range(total))]
    assert not Path(paged.out, f"{folder}/{sort}/{last + 1}.json").exists()


def test_an_empty_catalogue_is_a_site(empty):
    site = build_files(empty)
    assert json.loads(site["api/v1/repos.json"]) == {
        "data": [],
        "meta": {"page": 1, "pages": 1, "total": 0, "page_size": 50, "sort": "top", "tag": None,
                 "q": None},
    }  # fmt: skip
    assert json.loads(site["api/v1/tags.json"])["data"] == []
    assert site["api/v1/catalogue.jsonl"] == b""
    assert json.loads(site["api/v1/hub.json"])["data"]["serial"] == 0
    home = site["index.html"]
    assert b"no prompts yet" in home and b">0 prompts" not in home and b"/account" not in home
    assert b"no prompts yet" in site["top.html"] and b"pulled" not in site["top.html"]
    with_accounts = pages_of(empty._replace(queries=True))
    assert 'href="/account/prompts/new"' in with_accounts.macro("macros.html", "no_prompts")()
    assert build(empty).written == 0


def test_an_owner_without_a_profile_and_one_without_repos(empty):
    write_version(empty.content, "ann", "x", "1.0.0", "x", published_at=moment(3))
    write_owner(empty.content, "bob", name="Bob")
    Path(empty.content, "cyd").mkdir()
    site = build_files(empty)
    ann = json.loads(site["api/v1/users/ann.json"])["data"]
    bob = json.loads(site["api/v1/users/bob.json"])["data"]
    assert (ann["name"], ann["joined_at"], ann["repos_count"]) == ("ann", moment(3), 1)
    assert (bob["name"], bob["repos_count"], bob["repos"]) == ("Bob", 0, [])
    assert "bob.html" in site
    assert "cyd.html" not in site
    assert build(empty, index=False).written == 0


def test_titles_and_descriptions_say_what_a_page_is(empty):
    for number in range(PAGE_SIZE + 2):
        tags = ["many"] if number else []
        write_version(empty.content, "ann", f"r{number}", "1.0.0", "Say it.\n", tags=tags)
    pages = build_files(empty)
    for file, title, about in (
        ("top.html", "Top prompts", "52 prompts on Hub"),
        ("new/2.html", "New prompts, page 2", "52 prompts on Hub"),
        ("tags/many.html", "Top prompts tagged “many”", "51 prompts tagged “many” on Hub"),
        ("tags/many/trending/2.html", "Trending prompts tagged “many”, page 2", "51 prompts"),
        ("tags.html", "Tags", "1 tag of prompts on Hub: many."),
        ("ann.html", "ann", "52 prompts by ann on Hub."),
    ):
        text = pages[file].decode()
        assert f"<title>{title} · Hub</title>" in text, file
        assert f'<meta property="og:title" content="{title}">' in text, file
        assert f'<meta name="description" content="{about}' in text, file


def test_lists_say_how_they_are_sorted_and_top_ones_show_pulls_where_there_are_some(small):
    files = ("index.html", "top.html", "new.html")
    before = [build_files(small)[file].decode() for file in files]
    with Counter(small.state, FIRST_DAY) as counter:
        counter.add(FIRST_DAY, b"client", "ann/story")
    after = [build_files(small)[file].decode() for file in files]
    for pages, order, name in (
        (before, "none pulled yet, so last updated first", "rows"),
        (after, "most pulled first", "rows top"),
    ):
        home, top, new = pages
        assert order in top and f'<ol class="{name}" start' in top
        assert "newest first" in new and '<ol class="rows new" start' in new
        assert ("rows top" in home) == (pages is after)


@pytest.mark.parametrize("count", [2, 3])
def test_an_owner_s_page_lists_the_latest_prompts_and_says_where_the_others_are(
    empty, monkeypatch, count
):
    monkeypatch.setattr(files, "ROWS_MAX", 2)
    for number in range(count):
        write_version(
            empty.content, "ann", f"p{number}", "1.0.0", "Hi.", published_at=moment(number)
        )
    page = build_files(empty)["ann.html"].decode()
    assert page.count('href="/ann/p') == 2 and f'href="/ann/p{count - 1}"' in page
    note = '<a href="/api/v1/users/ann.json">the API\'s record</a> lists all of them.'
    assert ("The latest 2 are listed here." in page and note in page) == (count > 2)
    assert answer(empty, "api/v1/users/ann.json")["data"]["repos_count"] == count


def test_the_margin_of_an_owner_s_page_has_the_facts(empty):
    write_owner(empty.content, "ann", url="https://ann.example/a?b", joined_at=moment(0))
    write_version(empty.content, "ann", "story", "1.0.0", "Say it.\n")
    text = build_files(empty)["ann.html"].decode()
    margin = text[text.index("<aside") : text.index("</aside>")]
    facts = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", margin)
    assert [term for term, _ in facts] == ["Prompts", "Joined", "Website", "Follow"]
    assert facts[0][1] == "1" and "2025-01-01" in facts[1][1]
    assert 'href="https://ann.example/a?b">ann.example/a?b</a>' in facts[2][1]


def test_each_tab_has_a_rule_that_shows_it(paged):
    build(paged._replace(queries=True))
    files = read_tree(paged.out)
    tabs_max = files["assets/style.css"].count(b"> .tab:nth-of-type(")
    pages = [data for file, data in files.items() if file.endswith(".html")]
    counts = {
        tabs.count(b"<label>")
        for page in pages
        for tabs in re.findall(rb'<fieldset class="tabs">.*?</fieldset>', page)
    }
    assert counts and max(counts) <= tabs_max
