"""Requests that count as reads of a repo, by the table of routes and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.routes import BY_NAME, ROUTES
from builder.stats.targets import PATH_CHARS_MAX, PULLED, repo_of

PARAMS = {
    "owner": "ann", "name": "story", "version": "1.20.3", "tag": "sql", "sort": "new", "page": "2",
    "label": "production", "ref": "1.20.3", "text_path": "a/run.sh", "file_path": "a/b.png",
}  # fmt: skip
REPO = "/api/v1/repos/ann/story"


@pytest.mark.parametrize("base_path", ["", "/prompts", "/a/b.c"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_row_of_the_table_as_url_and_file(route, base_path):
    expected = "ann/story" if route.name in PULLED else None
    assert repo_of(base_path + route.url_for(**PARAMS), base_path) == expected
    assert repo_of(f"{base_path}/{route.file_for(**PARAMS)}", base_path) == expected
    if route.query:
        by_query = base_path + route.query.format_map(PARAMS)
        assert repo_of(by_query, base_path) == expected


def test_what_counts_is_the_text_the_record_and_versions():
    assert {BY_NAME[name].scope for name in PULLED} == {"repo", "version", "label", "langfuse"}
    assert not {"versions", "diff", "labels", "label_history"} & {*PULLED}


@pytest.mark.parametrize(
    "target",
    [
        f"{REPO}/raw?version=1.0.0", f"{REPO}/raw?version=nonsense", f"{REPO}/raw?label=production",
        f"{REPO}/body?version=1.0.0", f"{REPO}/labels/production.body.txt", f"{REPO}/raw?x=/../..",
        f"{REPO}?", f"{REPO}/raw#part", "/api/v1/repos/a%6En/story",
        "/api/v1/repos/ann%2Fstory/raw", "/%61pi/v1/repos/ann/story", "//api/v1//repos/ann///story",
        "/api/v1/repos/bob/../ann/./story", "/x/../api/v1/repos/ann/story",
        "/langfuse/api/public/v2/prompts/ann%2Fstory",
        "/langfuse/api/public/v2/prompts/ann%2Fstory%40production",
        "/langfuse/api/public/v2/prompts/ann/story?version=3", f"http://hub.example{REPO}/raw",
        f"HTTPS://hub.example:8443{REPO}.json",
    ],
)  # fmt: skip
def test_spellings_that_servers_take(target):
    assert repo_of(target, "") == "ann/story"


@pytest.mark.parametrize(
    "target",
    [
        "", "/", "*", "hub.example:443", "/ann/story", "/api/v1/repos/ann",
        "/api/v1/repos/Ann/story", "/api/v1/repos/ann/story/", "/api/v1/repos/ann/story_/raw",
        "/api/v1/repos/an%256En/story", "/api/v1/repos/ann/story%00", "/api/v1/repos/ann/story%0A",
        "/api/v1/repos/ann/story\n", "/api/v1/repos/ann/../../../../etc/passwd",
        "/api/v1/repos/ann/story/versions/01.0.0", "/api/v1/repos/ann/story/versions/1.0",
        "/api/v1/repos/ann/story/versions/1.0.0/raw", "/api/v2/repos/ann/story",
        "/prompts/api/v1/repos/ann/story", f"/api/v1/repos/{'a' * 40}/story",
        f"/api/v1/repos/ann/{'a' * 65}", f"/api/v1/repos/ann/story{'/' * PATH_CHARS_MAX}",
    ],
)  # fmt: skip
def test_no_repo(target):
    assert repo_of(target, "") is None


def test_only_what_is_below_the_base_url():
    assert repo_of(f"/prompts{REPO}", "/prompts") == "ann/story"
    for path in ("", "/promptsx", "/other"):
        assert repo_of(path + REPO, "/prompts") is None


@given(st.text(max_size=60) | st.text(alphabet="/.%2Ff?an-1:#", max_size=40).map(REPO.__add__))
def test_any_target_gives_a_repo_of_the_grammar_or_none(target):
    repo = repo_of(target, "")
    if repo is not None:
        owner, name = repo.split("/")
        assert repo_of(BY_NAME["repo"].url_for(owner=owner, name=name), "") == repo
