"""The table of routes: URLs and files, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import caching, matching, names, routes, version_files
from builder.model.matching import match_file, match_url
from builder.model.routes import BY_NAME, READ_ROUTES, ROUTES, SORTS
from builder.model.version_files import is_text
from tests.support.depth import searching

route_names = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)


def name_strategy(chars_max: int) -> st.SearchStrategy[str]:
    return st.from_regex(f"^{names.NAME_PATTERN}$", fullmatch=True).map(
        lambda text: text[:chars_max].rstrip("-")
    )


def paths_of(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True).filter(
        lambda path: len(path) <= version_files.PATH_CHARS_MAX
    )


PARAMS = {
    "owner": name_strategy(names.OWNER_CHARS_MAX).filter(
        lambda owner: owner not in names.RESERVED_OWNERS
    ),
    "name": name_strategy(names.REPO_CHARS_MAX) | st.sampled_from(["raw", "versions", "api", "1"]),
    "tag": name_strategy(names.TAG_CHARS_MAX) | st.sampled_from([*SORTS, "tags"]),
    "version": st.from_regex(names.VERSION_PATTERN, fullmatch=True),
    "label": st.from_regex(names.LABEL_PATTERN, fullmatch=True).filter(names.is_label)
    | st.sampled_from(["latest", "history", "labels", "json", "a.b"]),
    "ref": st.from_regex(names.LABEL_PATTERN, fullmatch=True)
    | st.sampled_from(["latest", "1.2.0", "7", "a.json"]),
    "sort": st.sampled_from(SORTS),
    "page": st.integers(1, 999_999_999).map(str),
    "text_path": paths_of(version_files.TEXT_PATTERN) | st.sampled_from(["a.txt", "d/x.html"]),
    "file_path": paths_of(version_files.PATH_PATTERN).filter(lambda path: not is_text(path))
    | st.sampled_from(["a.html.bin", "files/files", "README.MD"]),
}


def params_of(route: routes.Route) -> st.SearchStrategy[dict[str, str]]:
    used = {key: strategy for key, strategy in PARAMS.items() if f"{{{key}}}" in route.file}
    return st.fixed_dictionaries(used)


@route_names
@searching(15)
@given(data=st.data())
def test_a_url_and_a_file_lead_back_to_their_route(route, data):
    params = data.draw(params_of(route))
    expected = matching.Match(route, params)
    # Why something was withdrawn is sent with a status of its own, and has no address.
    has_url = route in READ_ROUTES
    assert match_url(route.url_for(**params)) == (expected if has_url else None)
    assert match_file(route.file_for(**params)) == expected
    assert (expected.url, expected.file) == (route.url_for(**params), route.file_for(**params))


@route_names
@searching(15)
@given(data=st.data())
def test_a_file_asked_for_by_its_path_is_found(route, data):
    params = data.draw(params_of(route))
    found = match_url("/" + route.file_for(**params))
    if route not in READ_ROUTES:
        assert found is None
        return
    assert found is not None
    assert found.file == route.file_for(**params)


@searching(30)
@given(data=st.data())
def test_no_two_routes_claim_the_same_file_or_url(data):
    first, second = data.draw(st.lists(st.sampled_from(ROUTES), min_size=2, max_size=2))
    values = data.draw(st.fixed_dictionaries(PARAMS))
    others = data.draw(st.fixed_dictionaries(PARAMS))
    if first is not second:
        assert first.file_for(**values) != second.file_for(**others)
        assert first.url_for(**values) != second.url_for(**others)


def test_each_template_and_each_name_is_there_once():
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({route.url for route in ROUTES}) == len(ROUTES)
    assert len({route.file for route in ROUTES}) == len(ROUTES)


@route_names
def test_url_and_file_have_the_same_parameters_and_known_values(route):
    fields = set(matching._FIELD.findall(route.url))
    assert fields == set(matching._FIELD.findall(route.file))
    assert fields <= routes.GRAMMAR.keys()
    assert set(matching._FIELD.findall(route.query)) in (set(), fields)
    assert route.cache in caching.CACHE_CONTROL
    assert not route.file.startswith("/")
    assert not route.file.startswith(".") or route.name == "no_jekyll"


# The contract's "Static host rule", row by row. A query becomes path segments.
STATIC_HOST_RULE = [
    ("list", {"sort": "new", "page": 2}, "/api/v1/repos?sort=new&page=2",
     "api/v1/repos/_/new/2.json"),
    ("tag_list", {"tag": "sql", "sort": "top", "page": 1}, "/api/v1/repos?tag=sql&sort=top&page=1",
     "api/v1/tags/sql/top/1.json"),
    ("repo", {"owner": "o", "name": "n"}, "/api/v1/repos/o/n", "api/v1/repos/o/n.json"),
    ("versions", {"owner": "o", "name": "n"}, "/api/v1/repos/o/n/versions",
     "api/v1/repos/o/n/versions.json"),
    ("version", {"owner": "o", "name": "n", "version": "1.2.0"},
     "/api/v1/repos/o/n/versions/1.2.0", "api/v1/repos/o/n/versions/1.2.0.json"),
    ("raw", {"owner": "o", "name": "n"}, "/api/v1/repos/o/n/raw", "api/v1/repos/o/n/raw.txt"),
    ("version_raw", {"owner": "o", "name": "n", "version": "1.2.0"},
     "/api/v1/repos/o/n/raw?version=1.2.0", "api/v1/repos/o/n/versions/1.2.0.txt"),
    ("body", {"owner": "o", "name": "n"}, "/api/v1/repos/o/n/body", "api/v1/repos/o/n/body.txt"),
    ("version_body", {"owner": "o", "name": "n", "version": "1.2.0"},
     "/api/v1/repos/o/n/body?version=1.2.0", "api/v1/repos/o/n/versions/1.2.0.body.txt"),
    ("diff", {"owner": "o", "name": "n", "version": "1.2.0"},
     "/api/v1/repos/o/n/versions/1.2.0/diff", "api/v1/repos/o/n/versions/1.2.0.diff"),
    ("labels", {"owner": "o", "name": "n"}, "/api/v1/repos/o/n/labels",
     "api/v1/repos/o/n/labels.json"),
    ("label", {"owner": "o", "name": "n", "label": "eu.1"}, "/api/v1/repos/o/n/labels/eu.1",
     "api/v1/repos/o/n/labels/eu.1.json"),
    ("label_raw", {"owner": "o", "name": "n", "label": "eu.1"}, "/api/v1/repos/o/n/raw?label=eu.1",
     "api/v1/repos/o/n/labels/eu.1.txt"),
    ("label_body", {"owner": "o", "name": "n", "label": "eu.1"},
     "/api/v1/repos/o/n/body?label=eu.1", "api/v1/repos/o/n/labels/eu.1.body.txt"),
    ("label_history", {"owner": "o", "name": "n", "label": "eu.1"},
     "/api/v1/repos/o/n/labels/eu.1/history", "api/v1/repos/o/n/labels/eu.1/history.json"),
    ("tags", {}, "/api/v1/tags", "api/v1/tags.json"),
    ("user", {"owner": "h"}, "/api/v1/users/h", "api/v1/users/h.json"),
    ("repos", {}, "/api/v1/repos", "api/v1/repos.json"),
    ("owner_page", {"owner": "o"}, "/o", "o.html"),
    ("repo_page", {"owner": "o", "name": "n"}, "/o/n", "o/n.html"),
    ("tag_page", {"tag": "sql"}, "/tags/sql", "tags/sql.html"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params", "url", "file"), STATIC_HOST_RULE)
def test_the_static_host_rule(name, params, url, file):
    route = BY_NAME[name]
    assert route.file_for(**params) == file
    assert (route.query or route.url).format_map(params) == url
    as_text = {key: str(value) for key, value in params.items()}
    assert match_file(file) == (route, as_text)
    if "?" not in url:
        assert match_url(url) == (route, as_text)


def test_what_hub_json_names_beside_the_table():
    assert BY_NAME["hub"].file == "api/v1/hub.json"
    assert BY_NAME["catalogue"].file == "api/v1/catalogue.jsonl"
    assert routes.PAGE_SIZE == 50


HOSTILE = [
    "", "/..", "/../etc/passwd", "/api/v1/../../etc/passwd", "/api/v1/repos/o/..",
    "/api/v1/repos/../n", "/api/v1/repos/o/n/versions/../../x.json", "/%2e%2e/x",
    "/api/v1/repos/o%2fn", "/api/v1/repos/o/n%00", "/api/v1/repos/o/n\0", "/api/v1/repos/o/n\n",
    "/o\n", "/o/n\n", "/api/v1/repos\n", "/\n", "/api/v1/repos/O/n", "/api/v1/repos/o/N", "/O",
    "/API/v1/repos", "/api//v1/repos", "//api/v1/repos", "/api/v1/repos/", "/o/", "/o//n",
    "/api/v1/repos/o//raw", "/api/v1/repos/_/top/0", "/api/v1/repos/_/top/01",
    "/api/v1/repos/_/top/1000000000", "/api/v1/repos/_/top/-1", "/api/v1/repos/_/best/1",
    "/api/v1/repos/_/top/１", "/api/v1/tags/_/top/1", "/api/v1/repos/o/n/versions/1.2",
    "/api/v1/repos/o/n/versions/01.2.3", "/api/v1/repos/o/n/versions/1.2.1000000000",
    "/api/v1/repos/o/n/versions/1.2.3.json.json", "/api/v1/repos/{owner}/{name}",
    "/" + "a" * 40, "/o/" + "a" * 65, "/tags/" + "a" * 49, "/" + "a/" * 100_000,
    "/" + "a" * 1_000_000,
    "/.hub.json.tmp", "/api/v1/.hub.json.tmp", "/.gitkeep", "/api", "/api/v1", "/mcp",
    "/owner.json", "/api/v1/repos/o/n/labels/.json", "/api/v1/repos/o/n/labels/A",
    "/api/v1/repos/o/n/labels/a.", "/api/v1/repos/o/n/labels/..", "/api/v1/repos/o/n/labels/a\n",
    "/api/v1/repos/o/n/labels/../history", "/api/v1/repos/o/n/labels/" + "a" * 37,
    "\\..\\x", "/o\\n", "/o;n", "/o n", "/ｏ", "/о", "/index.html/", "/index.html\n",
    "/api/v1/users/api", "/API/v1/tags.json", "/O.html", "/api/v1/repos/o/N.json",
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: repr(path)[:40])
def test_hostile_paths_match_nothing(path):
    assert match_url(path) is None
    assert match_file(path) is None
    assert match_file(path.removeprefix("/")) is None


@given(st.text(alphabet="ab/.%2\0\n\\-_019{}A*~", max_size=40))
def test_whatever_matches_stays_in_the_site(path):
    for found in (match_url(path), match_file(path)):
        if found:
            assert match_file(found.file) == found
            assert not {"", ".", ".."} & set(found.file.split("/"))
            assert found.file.isprintable() and found.file.isascii()


@pytest.mark.parametrize("owner", ["api", "tags", "assets", "404", "index", "admin"])
def test_a_reserved_owner_has_no_page(owner):
    for path in (f"/{owner}/x", f"/{owner}/x/1.0.0", f"/api/v1/users/{owner}"):
        found = match_url(path)
        assert found is None or "owner" not in found.params


def test_first_pages_have_the_short_urls():
    assert matching.list_page(None, "top", 1).url == "/top"
    assert matching.list_page(None, "new", 3).url == "/new/3"
    assert matching.list_page("sql", "top", 1).url == "/tags/sql"
    assert matching.list_page("sql", "new", 1).url == "/tags/sql/new"
    assert matching.list_page("sql", "top", 2).url == "/tags/sql/top/2"
    assert matching.list_api(None, "top", 1).file == "api/v1/repos/_/top/1.json"
    assert matching.list_api("sql", "trending", 2).file == "api/v1/tags/sql/trending/2.json"
