"""Netlify's files, read by Netlify's own matcher of redirects and parser of headers.

How Netlify uses them is its documentation's: a file that is there comes before any rule; else the
first rule that fits names the file; headers go by the path that was asked for.
"""

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from builder.hosts import netlify
from builder.hosts.rules import HostedSite
from builder.model.answer_headers import CORS, PAGE_SAFETY, SAFETY
from builder.model.routes import CACHE_CONTROL, READ_ROUTES, SORTS, match_file
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.node import PROGRAMS
from tests.support.catalogues import settings_in, write_label, write_small_catalogue
from tests.support.servers import DEADLINE_SECONDS, PROJECT

# What Netlify says of files by itself, for those that we leave to it.
MEDIA = {".html": "text/html", ".json": "application/json", ".txt": "text/plain",
         ".css": "text/css", ".svg": "image/svg+xml"}  # fmt: skip
PARAMETERS = {"tag": "code", "sort": "new", "page": "1"}


class Netlify:
    """A site on Netlify. ``where`` is its folder below the one that is published."""

    def __init__(self, folder: Path, site: Settings) -> None:
        hosted = HostedSite(site.out, site.state, site.base_url)
        for name, text in netlify.files(hosted).items():
            (folder / name).write_text(text, encoding="utf-8")
        self.folder = folder
        self.site = Path(site.out)
        self.base = site.base_path

    def ask(self, *urls: str) -> list[tuple[str | None, dict[str, list[str]]]]:
        """For each URL below the base URL: the file that it gives, or None, and the headers with
        the values of all rules, of which the last one holds.
        """
        requests = [(self.base + path, query) for path, _, query in
                    (url.partition("?") for url in urls)]  # fmt: skip
        node = PROGRAMS / "node"
        assert node.exists(), "Node is not there; install it with: sh tests/install-tools"
        done = subprocess.run(
            [node, PROJECT / "tests" / "hosts" / "netlify.mjs", self.folder],
            input=json.dumps(requests), capture_output=True, text=True, timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["errors"] == []
        return [
            (self._file(path, answer["target"], force=answer["force"]), answer["headers"])
            for (path, _), answer in zip(requests, told["answers"], strict=True)
        ]

    def _file(self, path: str, target: str | None, *, force: bool) -> str | None:
        for one in (target,) if force else (path, target):
            file = (one or "").removeprefix(self.base + "/")
            if file and not file.endswith("/") and (self.site / file).is_file():
                return file
        return "index.html" if path == f"{self.base}/" else None


@pytest.fixture(scope="module", params=["https://hub.example", "https://example.org/a/prompts"])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, installed_tools: None
) -> Netlify:
    folder = tmp_path_factory.mktemp("netlify")
    settings = settings_in(folder, request.param, langfuse=True)
    write_small_catalogue(settings.content)
    write_label(settings.content, "ann/review", 1, "production", "1.0.0")
    build(settings, index=False)
    return Netlify(folder, settings)


def list_files() -> dict[str, str]:
    """Queries of lists with each set of parameters in each order, and the files that answer."""
    found = {}
    for count in range(4):
        for given in itertools.permutations(PARAMETERS, count):
            values = {key: PARAMETERS[key] for key in given}
            rest = f"{values.get('sort', SORTS[0])}/{values.get('page', '1')}.json"
            file = f"api/v1/tags/code/{rest}" if "tag" in values else f"api/v1/repos/_/{rest}"
            query = "&".join(f"{key}={value}" for key, value in values.items())
            found[f"/api/v1/repos?{query}"] = file if query else "api/v1/repos.json"
    return found


def test_every_url_and_every_file_of_the_site_gives_that_file_and_its_headers(host: Netlify):
    wanted: dict[str, str] = {}
    for path in sorted(host.site.rglob("*")):
        file = path.relative_to(host.site).as_posix()
        found = path.is_file() and match_file(file)
        if found:
            wanted |= {f"/{file}": file, found.url: file}
    assert {match_file(file).route.name for file in wanted.values()} >= {
        route.name for route in READ_ROUTES if route.name not in ("list_pages", "tag_pages")
    } - {"sitemap_part"}
    for (url, file), (given, headers) in zip(wanted.items(), host.ask(*wanted), strict=True):
        route = match_file(file).route
        assert given == file, url
        assert headers["Cache-Control"][-1] == CACHE_CONTROL[route.cache], url
        if "Content-Type" in headers:
            assert set(headers["Content-Type"]) == {route.media}, url
        else:
            assert route.media.startswith(MEDIA[Path(file).suffix]), url
        # A host that joins the values of all rules, and does not take the last, is wrong only here.
        if route.name not in (
            "version_raw", "version_body", "langfuse_page", "not_found_page", "unavailable_page",
        ):  # fmt: skip
            assert len(set(headers["Cache-Control"])) == 1, url


def test_every_answer_has_the_headers_that_all_have(host: Netlify):
    _, headers = host.ask("/nothing/that/is/there")[0]
    for name, value in SAFETY + CORS + PAGE_SAFETY:
        assert headers[name.decode().title()] == [value.decode()]


def test_lists_by_query_in_every_order(host: Netlify):
    wanted = list_files()
    assert len(wanted) == 16
    for (url, file), (given, _) in zip(wanted.items(), host.ask(*wanted), strict=True):
        assert given == file, url


def test_parameters_that_mean_nothing_do_not_matter(host: Netlify):
    assert host.ask("/api/v1/repos?utm=1&sort=new&x")[0][0] == "api/v1/repos/_/new/1.json"
    assert host.ask("/api/v1/repos?utm=1")[0][0] == "api/v1/repos.json"


def test_what_langfuses_sdks_ask_for(host: Netlify):
    api = "langfuse/api/public/v2/prompts"
    wanted = {
        f"{api}/ann/review": f"{api}/ann/review",
        f"{api}/ann/review@1.0.0": f"{api}/ann/review@1.0.0",
        f"{api}/ann/review?version=1": f"{api}/ann/review@1",
        f"{api}/ann/review?label=production": f"{api}/ann/review@production",
        f"{api}/ann/review?resolve=true&label=latest": f"{api}/ann/review@latest",
        f"{api}?page=1": f"{api}/_/1.json",
        f"{api}?limit=10&tag=code": f"{api}/_/code/1.json",
        f"{api}?page=1&tag=code": f"{api}/_/code/1.json",
        f"{api}?limit=10": f"{api}.json",
        # Another version's text would be worse than none.
        f"{api}/ann/review?version=99": None,
        f"{api}/ann/review?label=nothing": None,
    }
    answers = host.ask(*(f"/{url}" for url in wanted))
    assert {url: file for url, (file, _) in zip(wanted, answers, strict=True)} == wanted


@pytest.mark.parametrize(("name", "extension"), [("raw", "txt"), ("body", "body.txt")])
def test_a_version_of_a_text(host: Netlify, name: str, extension: str):
    url = f"/api/v1/repos/ann/review/{name}"
    latest, old, labelled = host.ask(url, f"{url}?version=1.0.0", f"{url}?label=production")
    assert latest[0] == f"api/v1/repos/ann/review/{name}.txt"
    assert old[0] == f"api/v1/repos/ann/review/versions/1.0.0.{extension}"
    assert labelled[0] == f"api/v1/repos/ann/review/labels/production.{extension}"


def test_what_names_no_page_gives_no_file(host: Netlify):
    queries = (
        "sort=best", "sort=", "page=0", "page=01", "page=99", "tag=nobody", "sort=../../../hub",
        "sort=..%2F..%2F..%2Fhub", "page=1.json%00", "tag=code%2Fnew&sort=1", "sort=_&page=..",
        "tag=..&sort=..&page=hub", "page=%2e%2e%2fnew%2f1", "sort=new%2F1.json%23",
    )  # fmt: skip
    urls = [f"/api/v1/repos?{query}" for query in queries]
    for url, (file, _) in zip(urls, host.ask(*urls), strict=True):
        assert file is None, url


def test_versions_that_are_none_give_no_file(host: Netlify):
    url = "/api/v1/repos/ann/review/raw?version="
    for file, _ in host.ask(*(url + one for one in ("", "9.9.9", "../raw", "..%2f..%2freview"))):
        assert file is None


def test_addresses_that_are_nowhere_give_no_file(host: Netlify):
    urls = ("/api/v1/repos/ann/nobody", "/api/v1/repos/ann/nobody.json", "/api/v1", "/nobody")
    assert [file for file, _ in host.ask(*urls)] == [None] * len(urls)


def test_a_file_says_how_many_rules_it_has():
    redirects = netlify.files(HostedSite("/site", "/state"))["_redirects"]
    rules = [line for line in redirects.splitlines() if line and not line.startswith("#")]
    assert f"\n# {len(rules)} rules;" in redirects
