"""Level ``full``: what needs a process: searches, several tags, MCP, publishing, the rate limit."""

import contextlib
import hashlib
import json
import re
import secrets
import time
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from builder import records
from builder.names import Version
from builder.routes import (
    BY_NAME,
    CACHE_CONTROL,
    HEALTH_URL,
    JSON,
    MCP_URL,
    PAGE_SIZE,
    PUBLISH_URL,
    QUERY_CHARS_MAX,
    SORTS,
    list_api,
)
from tests.conformance.catalogue import NOBODY, Catalogue
from tests.conformance.checks import Check, spread
from tests.conformance.client import Answer, Client, header_list
from tests.conformance.test_files import file_of
from tests.conformance.test_queries import check_conditions, check_same_headers

pytestmark = pytest.mark.level("full")

area = pytest.mark.area

Id = tuple[str, str]

STOP_WORDS = "the as a for of to in and".split()
WORDS_TRIED = 12
PAGES_TRIED = 4
LISTED_SECONDS = 60
WINDOW_SECONDS = 60


# Searches


class Found(NamedTuple):
    """The repos that a search finds; ``is_whole``: all of them, and not just the first pages."""

    ids: list[Id]
    is_whole: bool


def search(check: Check, client: Client, q: str, **given: str) -> Found:
    """Ask for the first pages of a search, and hold them against the contract."""
    ids: list[Id] = []
    for number in range(1, PAGES_TRIED + 1):
        query = "".join(f"&{key}={quote(value)}" for key, value in given.items())
        page = f"&page={number}" if number > 1 else ""
        answer = client.get(f"/api/v1/repos?q={quote(q)}{query}{page}")
        rows = check.rows(answer, records.RepoSummary)
        if rows is None:
            break
        total = rows.meta.total
        pages = max(1, -(-total // PAGE_SIZE))
        wanted = records.ListMeta(
            number, pages, total, PAGE_SIZE, given.get("sort"), given.get("tag"), q
        )
        check.that(answer, rows.meta == wanted, f"meta {wanted}", f"meta {rows.meta}")
        count = min(PAGE_SIZE, total - (number - 1) * PAGE_SIZE)
        check.that(answer, len(rows.data) == count, f"{count} rows", f"{len(rows.data)} rows")
        ids += [(row.owner, row.name) for row in rows.data]
        if number >= pages:
            return Found(ids, len(ids) == total)
    return Found(ids, False)


def asked(q: str) -> str:
    return f"/api/v1/repos?q={quote(q)}"


def titles(catalogue: Catalogue) -> list[tuple[Id, str]]:
    """Some repos with titles that can be asked for."""
    usable = [
        ((line["owner"], line["name"]), line["title"])
        for line in catalogue.lines
        if len(line.get("title", "")) <= QUERY_CHARS_MAX and re.search(r"[a-z]{4}", line["title"])
    ]
    return spread(usable, WORDS_TRIED)


def word_of(title: str) -> str | None:
    """A word of plain letters, long enough to be one of few."""
    return max(re.findall(r"(?<![\w'’-])[A-Za-z]{4,}(?![\w'’-])", title), key=len, default=None)


def check_found(check: Check, client: Client, q: str, wanted: Id, found: Found) -> None:
    if found.is_whole:
        check.that(
            client.get(asked(q)), wanted in found.ids, f"{'/'.join(wanted)}, as it is in its title",
            f"{len(found.ids)} others: {found.ids[:3]}",
        )  # fmt: skip


@area("search")
def test_a_title_finds_its_repo(check: Check, client: Client, catalogue: Catalogue) -> None:
    for repo, title in titles(catalogue):
        check_found(check, client, title, repo, search(check, client, title))


@area("search")
def test_a_word_finds_its_repo_in_any_case(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    for repo, title in titles(catalogue):
        word = word_of(title)
        if word:
            found = search(check, client, word)
            check_found(check, client, word, repo, found)
            wide = "".join(chr(ord(char) + 0xFEE0) for char in word)
            for other in (word.upper(), word.lower(), f"  {word}  ", wide):
                check.that(
                    client.get(asked(other)), search(check, client, other) == found,
                    f"the repos of q={word}",
                )  # fmt: skip


@area("search")
def test_the_last_word_may_be_the_beginning_of_one(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    for repo, title in titles(catalogue):
        word = word_of(title)
        if word and len(word) > 5:
            for q in (word[:-1], word[:4]):
                check_found(check, client, q, repo, search(check, client, q))


@area("search")
def test_every_word_must_be_found(check: Check, client: Client, catalogue: Catalogue) -> None:
    for _, title in titles(catalogue):
        word = word_of(title)
        if word:
            alone = search(check, client, word)
            more = search(check, client, f"{STOP_WORDS[0]} {word}")
            if alone.is_whole:
                check.that(
                    client.get(asked(f"{STOP_WORDS[0]} {word}")), set(more.ids) <= set(alone.ids),
                    f"no repos but those of q={word}",
                )  # fmt: skip
            nothing = f"zzqxjzz{NOBODY} {word}"
            check.that(
                client.get(asked(nothing)), search(check, client, nothing).ids == [], "no repos"
            )


@area("search")
def test_stop_words_are_words(check: Check, client: Client, catalogue: Catalogue) -> None:
    """A title with the, as, … finds its repo: they are not dropped in one place and kept in
    another.
    """
    with_one = [
        (repo, title)
        for repo, title in titles(catalogue)
        if set(title.lower().split()) & set(STOP_WORDS)
    ]
    for repo, title in with_one:
        check_found(check, client, title.lower(), repo, search(check, client, title.lower()))


@area("search")
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"sort={sort}")
def test_a_search_in_an_order(
    check: Check, client: Client, catalogue: Catalogue, sort: str
) -> None:
    places = {
        repo: place
        for place, repo in enumerate(
            (row["owner"], row["name"])
            for page in catalogue.pages(None, sort)
            for row in client.get("/" + list_api(*page).file).json["data"]
        )
    }
    for _, title in titles(catalogue)[:4]:
        word = word_of(title)
        if not word:
            continue
        found, sorted_ones = search(check, client, word), search(check, client, word, sort=sort)
        answer = client.get(f"{asked(word)}&sort={sort}")
        if found.is_whole:
            same = sorted(found.ids) == sorted(sorted_ones.ids)
            check.that(answer, same, f"the repos of q={word}")
        known = [places[repo] for repo in sorted_ones.ids if repo in places]
        check.that(answer, known == sorted(known), f"the order of sort={sort}")


@area("search")
def test_a_search_within_a_tag(check: Check, client: Client, catalogue: Catalogue) -> None:
    tags_of = {(line["owner"], line["name"]): line["tags"] for line in catalogue.lines}
    for repo, title in titles(catalogue):
        word = word_of(title)
        if word and tags_of[repo]:
            found = search(check, client, word)
            tag = tags_of[repo][0]
            within = search(check, client, word, tag=tag)
            if found.is_whole:
                wanted = [one for one in found.ids if tag in tags_of.get(one, ())]
                check.that(
                    client.get(f"{asked(word)}&tag={quote(tag)}"), within.ids == wanted,
                    f"those repos of q={word} that have the tag, in the same order",
                )  # fmt: skip


@area("search")
def test_headers_of_a_search(check: Check, client: Client) -> None:
    for path in ("/api/v1/repos?q=a", f"/api/v1/repos?q={NOBODY}zz", "/api/v1/repos?sort=new&q=a"):
        answer = client.get(path)
        check.status(answer, 200)
        check.header(answer, "Content-Type", JSON)
        check.header(answer, "Cache-Control", CACHE_CONTROL["query"])
        check.header(answer, "X-Content-Type-Options", "nosniff")
        check.cors(answer)
        head = client.ask("HEAD", path)
        check.empty_body(head)
        check_same_headers(check, head, answer)
        check_conditions(check, client, path)


@area("search")
def test_unknown_parameters_of_a_search(check: Check, client: Client) -> None:
    wanted = client.get("/api/v1/repos?q=a&sort=new&page=1")
    for query in ("page=1&sort=new&q=a", "q=%61&utm=x&s%6frt=new", "sort=new&q=a&q2=b"):
        check.same_body(client.get(f"/api/v1/repos?{query}"), wanted, wanted.target)


@area("search")
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("q=", 400, "invalid_parameter"),
        ("q=%20", 400, "invalid_parameter"),
        ("q=...", 400, "invalid_parameter"),
        ("q=%F0%9F%8E%89", 400, "invalid_parameter"),
        ("q", 400, "invalid_parameter"),
        ("q=" + "x" * (QUERY_CHARS_MAX + 1), 400, "invalid_parameter"),
        ("q=" + "%C3%A9" * (QUERY_CHARS_MAX + 1), 400, "invalid_parameter"),
        ("q=%ff", 400, "invalid_parameter"),
        ("q=a&q=a", 400, "invalid_parameter"),
        ("q=a&page=0", 400, "invalid_parameter"),
        ("q=a&sort=best", 400, "invalid_parameter"),
        ("q=a&tag=UP", 400, "invalid_parameter"),
        ("q=a&tag=", 400, "invalid_parameter"),
        ("q=a&page=999999", 404, "page_not_found"),
        (f"q=a&tag={NOBODY}", 404, "tag_not_found"),
    ],
    ids=lambda part: str(part)[:60],
)
def test_errors_of_a_search(
    check: Check, client: Client, query: str, status: int, code: str
) -> None:
    check.error(client.get(f"/api/v1/repos?{query}"), status, code)


@area("search")
def test_the_longest_search(check: Check, client: Client) -> None:
    for q in ("x" * QUERY_CHARS_MAX, "é" * QUERY_CHARS_MAX, "語" * QUERY_CHARS_MAX):
        search(check, client, q)


# Several tags


@area("several tags")
@pytest.mark.parametrize("sort", [None, *SORTS])
def test_several_tags(check: Check, client: Client, catalogue: Catalogue, sort: str | None) -> None:
    pairs = dict.fromkeys(tuple(line["tags"][:2]) for line in catalogue.lines)
    for tags in spread([pair for pair in pairs if len(pair) == 2], WORDS_TRIED):
        wanted = {
            (line["owner"], line["name"])
            for line in catalogue.lines
            if set(tags) <= set(line["tags"])
        }
        order = f"&sort={sort}" if sort else ""
        found: list[Id] = []
        for number in range(1, min(PAGES_TRIED, -(-len(wanted) // PAGE_SIZE)) + 1):
            path = f"/api/v1/repos?tag={','.join(tags)}{order}&page={number}"
            answer = client.get(path)
            rows = check.rows(answer, records.RepoSummary)
            if not rows:
                return
            meta = (rows.meta.total, rows.meta.sort, rows.meta.tag, rows.meta.q)
            says = (len(wanted), sort or SORTS[0], ",".join(tags), None)
            check.that(answer, meta == says, f"total, sort, tag, q {says}", f"{meta}")
            found += [(row.owner, row.name) for row in rows.data]
            encoded = client.get(path.replace(",", "%2C"))
            check.same_body(encoded, answer, path)
            check.header(answer, "Cache-Control", CACHE_CONTROL["list"])
        if len(wanted) <= PAGES_TRIED * PAGE_SIZE:
            says = f"the {len(wanted)} repos with both"
            check.that(answer, sorted(found) == sorted(wanted), says, f"{len(found)}")
        alone = [
            (row["owner"], row["name"])
            for page in catalogue.pages(tags[0], sort or SORTS[0])
            for row in client.get("/" + list_api(*page).file).json["data"]
        ]
        if catalogue.has_all_pages(tags[0]) and len(wanted) <= PAGES_TRIED * PAGE_SIZE:
            in_order = [repo for repo in alone if repo in wanted]
            check.that(answer, found == in_order, f"the order of tag={tags[0]}")


@area("several tags")
def test_errors_of_several_tags(check: Check, client: Client, catalogue: Catalogue) -> None:
    for tag in catalogue.tags[:1]:
        for value, status, code in (
            (f"{tag},{NOBODY}", 404, "tag_not_found"),
            (f"{tag},", 400, "invalid_parameter"),
            (f",{tag}", 400, "invalid_parameter"),
            (f"{tag},UP", 400, "invalid_parameter"),
            (f"{tag},%20{tag}", 400, "invalid_parameter"),
            (",".join(f"t{number}" for number in range(11)), 400, "invalid_parameter"),
        ):
            check.error(client.get(f"/api/v1/repos?tag={value}"), status, code)


# Health


@area("health")
def test_health(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.ask("GET", HEALTH_URL)
    check.status(answer, 200)
    check.header(answer, "Content-Type", JSON)
    check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
    status = answer.json.get("status") if isinstance(answer.json, dict) else None
    check.that(answer, status in ("ok", "behind", "failing"), "a status")
    check.that(answer, status != "failing", "builds that succeed")


# MCP


MCP_VERSION = "2025-06-18"
TOOLS = {"search_prompts", "get_prompt", "list_versions", "list_tags"}


def speak(client: Client, method: str, params: dict[str, Any] | None = None) -> Answer:
    """A request to the MCP endpoint."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    headers = {
        "Content-Type": JSON,
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MCP_VERSION,
    }
    return client.ask("POST", MCP_URL, headers, json.dumps(body).encode())


def result_of(check: Check, answer: Answer) -> dict[str, Any]:
    """The result in an answer, which may be an event of a stream; empty where there is none."""
    found = answer.json
    if answer.headers.get_content_type() == "text/event-stream":
        lines = answer.body.decode("utf-8", "replace").splitlines()
        events = [line[5:] for line in lines if line.startswith("data:")]
        with contextlib.suppress(ValueError):
            found = json.loads(events[-1] if events else "")
    result = found.get("result") if isinstance(found, dict) else None
    check.that(answer, answer.status == 200 and isinstance(result, dict), "a result of JSON-RPC")
    return result if isinstance(result, dict) else {}


def use(check: Check, client: Client, tool: str, **arguments: Any) -> tuple[Answer, dict[str, Any]]:
    """What a tool gives as structured content."""
    answer = speak(client, "tools/call", {"name": tool, "arguments": arguments})
    result = result_of(check, answer)
    check.that(answer, not result.get("isError"), f"that {tool} succeeds")
    given = result.get("structuredContent")
    check.that(answer, isinstance(given, dict), "structured content")
    return answer, given if isinstance(given, dict) else {}


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp_begins(check: Check, client: Client) -> None:
    answer = speak(
        client, "initialize",
        {
            "protocolVersion": MCP_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "conformance", "version": "1"},
        },
    )  # fmt: skip
    result = result_of(check, answer)
    check.that(answer, result.get("protocolVersion") == MCP_VERSION, f"protocol {MCP_VERSION}")
    check.that(answer, "tools" in result.get("capabilities", {}), "the capability tools")
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = {"Content-Type": JSON, "Accept": "application/json, text/event-stream"}
    session = answer.headers.get("MCP-Session-Id")
    headers |= {"MCP-Session-Id": session} if session else {}
    check.status(client.ask("POST", MCP_URL, headers, json.dumps(note).encode()), 202)
    browser = client.ask("GET", MCP_URL, {"Accept": "text/event-stream"})
    check.that(browser, browser.status in (200, 405), "a stream, or 405")


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp_tools(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = speak(client, "tools/list")
    tools = {tool["name"] for tool in result_of(check, answer).get("tools", [])}
    check.that(answer, tools == TOOLS, f"the tools {', '.join(sorted(TOOLS))}", f"{sorted(tools)}")

    answer, given = use(check, client, "list_tags", limit=500)
    came = {tag["name"]: tag["count"] for tag in given.get("tags", [])}
    wanted = dict(sorted(catalogue.tag_counts.items(), key=lambda one: (-one[1], one[0]))[:500])
    check.that(answer, came == wanted, "the tags of /api/v1/tags", f"{len(came)} tags")

    answer, given = use(check, client, "search_prompts")
    total = len(catalogue.ids)
    check.that(answer, given.get("total") == total, f"total {total}", f"{given.get('total')}")

    for owner, name in spread(catalogue.repos, 4):
        repo = client.get(file_of("repo", owner=owner, name=name)).json["data"]
        answer, given = use(check, client, "get_prompt", id=f"{owner}/{name}")
        facts = ("id", "version", "sha256", "title")
        came = tuple(given.get(key) for key in facts)
        wanted = (f"{owner}/{name}", repo["latest_version"], repo["sha256"], repo["title"])
        check.that(answer, came == wanted, f"{facts} {wanted}", f"{came}")
        text = given.get("text", "")
        check.that(answer, text and text in repo["content"], "the prompt's text, or a part of it")

        answer, given = use(check, client, "list_versions", id=f"{owner}/{name}", limit=100)
        came = [version["version"] for version in given.get("versions", [])]
        rows = client.get(file_of("versions", owner=owner, name=name)).json["data"]
        wanted = [row["version"] for row in rows][:100]
        check.that(answer, came == wanted, f"the versions {wanted[:4]}", f"{came[:4]}")

        answer, given = use(check, client, "search_prompts", owner=owner, query=name[:100])
        ids = [prompt["id"] for prompt in given.get("prompts", [])]
        check.that(answer, f"{owner}/{name}" in ids, f"{owner}/{name}", f"{ids}")


@area("MCP")
@pytest.mark.needs("mcp")
def test_mcp_errors(check: Check, client: Client) -> None:
    answer = speak(client, "tools/call", {"name": "get_prompt", "arguments": {"id": f"{NOBODY}/x"}})
    check.that(answer, result_of(check, answer).get("isError") is True, "an error of the tool")
    answer = speak(client, "no/such/method")
    check.that(
        answer, isinstance(answer.json, dict) and "error" in answer.json, "an error of JSON-RPC"
    )
    check.that(answer, answer.status < 500, "no failure of the server")


# Publishing: who may


def publish_path(owner: str, name: str) -> str:
    return PUBLISH_URL.format(owner=owner, name=name)


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_token"),
        ({"Authorization": "Basic YTpi"}, "missing_token"),
        ({"Authorization": "Bearer"}, "missing_token"),
        ({"Authorization": "Bearer x"}, "invalid_token"),
        ({"Authorization": "Bearer hub_" + "A" * 38}, "invalid_token"),
    ],
    ids=["no token", "another scheme", "an empty token", "a word", "a wrong token"],
)
@pytest.mark.parametrize("body", [b'{"content": "x"}', b"{"], ids=["", "and a bad body"])
def test_who_may_not_publish(
    check: Check, client: Client, headers: dict[str, str], code: str, body: bytes
) -> None:
    # A right form and wrong contents are told only to who may publish.
    headers = {"Content-Type": JSON, "Origin": "https://elsewhere.example", **headers}
    answer = client.ask("POST", publish_path(NOBODY, "nothing"), headers, body)
    if check.error(answer, 401, code):
        scheme = answer.headers.get("WWW-Authenticate", "")
        check.that(answer, scheme.startswith("Bearer"), "WWW-Authenticate: Bearer",
                   f"401, WWW-Authenticate: {scheme}")  # fmt: skip


@area("publishing, errors")
@pytest.mark.needs("publishing")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_where_one_publishes(
    check: Check, client: Client, catalogue: Catalogue, method: str
) -> None:
    path = catalogue.fill("{repo}/versions") or publish_path(NOBODY, "nothing")
    answer = client.ask(method, path, {"Content-Type": JSON}, b"{}")
    if check.error(answer, 405, "method_not_allowed"):
        allowed = header_list(answer, "Allow")
        check.that(answer, allowed >= {"get", "head", "post"}, "Allow with GET, HEAD and POST",
                   f"405, Allow: {sorted(allowed)}")  # fmt: skip


# Publishing, with a token


class Publisher:
    """Publishes to the repo that the tester gave."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.owner, _, self.name = client.deployment.publish_to.partition("/")
        self.path = publish_path(self.owner, self.name)

    def post(self, body: Any, path: str = "", **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {
            "Authorization": f"Bearer {self.client.deployment.token}",
            "Content-Type": JSON,
            **{key.replace("_", "-"): value for key, value in headers.items()},
        }
        return self.client.ask("POST", path or self.path, sent, data)

    def file(self, name: str, **params: str) -> str:
        return file_of(name, owner=self.owner, name=self.name, **params)

    def url(self, name: str, **params: str) -> str:
        return BY_NAME[name].url_for(owner=self.owner, name=self.name, **params)


@pytest.fixture
def publisher(client: Client) -> Publisher:
    return Publisher(client)


token_needed = pytest.mark.needs("token")


@area("publishing")
@token_needed
def test_a_publication_is_readable_at_once(
    check: Check, client: Client, publisher: Publisher
) -> None:
    text = f"Conformance, {secrets.token_hex(8)}: ü 語 🎉 {{{{thing}}}}\r\nEnd without a newline."
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    body = {"content": text, "changelog": "By the conformance suite"}
    answer = publisher.post(body)
    record = check.single(answer, records.Publication, 201)
    if not record:
        return
    version = record.version
    facts = (record.owner, record.name, record.sha256, record.size, record.unchanged)
    wanted = (publisher.owner, publisher.name, digest, len(data), False)
    check.that(answer, facts == wanted, f"{wanted}", f"{facts}")
    check.header(answer, "Cache-Control", CACHE_CONTROL["none"])
    check.cors(answer)
    location = client.path_of(answer.headers.get("Location", ""))
    check.that(
        answer, location == publisher.url("version", version=version),
        f"Location of version {version}", f"Location: {answer.headers.get('Location')}",
    )  # fmt: skip
    path = client.path_of(record.raw_url)
    check.that(answer, path == publisher.file("version_raw", version=version), "raw_url, the text")

    for path in (
        publisher.url("raw"), publisher.file("raw"), publisher.file("version_raw", version=version),
        f"{publisher.url('raw')}?version={version}",
    ):  # fmt: skip
        raw = client.ask("GET", path)
        check.that(raw, raw.body == data, f"the text of {version}, byte for byte")
    for path in (publisher.url("repo"), publisher.file("repo")):
        repo = check.single(client.ask("GET", path), records.Repo)
        if repo:
            came = (repo.latest_version, repo.content, repo.sha256)
            check.that(client.ask("GET", path), came == (version, text, digest), f"{version}")
    for path in (publisher.url("versions"), publisher.file("versions")):
        rows = client.ask("GET", path)
        found = check.rows(rows, records.VersionEntry)
        if found:
            first = found.data[0]
            wanted = (version, record.previous_version, record.changelog)
            came = (first.version, first.previous, first.changelog)
            check.that(rows, came == wanted, f"the first row {wanted}", f"{came}")
    for path in (
        publisher.url("version", version=version), publisher.file("version", version=version),
    ):  # fmt: skip
        one = check.single(client.ask("GET", path), records.Version)
        if one:
            check.that(client.ask("GET", path), one.content == text, "the text that was published")
    for name in ("repo_page", "version_page"):
        page = client.ask("GET", publisher.url(name, version=version))
        check.that(page, version.encode() in page.body, f"a page about {version}")
    if record.previous_version:
        check.status(client.ask("GET", publisher.url("diff", version=version)), 200)
    check_listed(check, client, publisher, record)
    again = check.single(publisher.post(body), records.Publication)
    if again:
        came = (again.version, again.unchanged)
        check.that(answer, came == (version, True), f"{version} unchanged, sent again", f"{came}")


def check_listed(
    check: Check, client: Client, publisher: Publisher, record: records.Publication
) -> None:
    """Whether lists have a publication once ``serial`` says so, which takes seconds at most."""
    end = time.monotonic() + LISTED_SECONDS
    while True:
        hub = client.ask("GET", file_of("hub"))
        serial = hub.json["data"]["serial"]
        if serial >= record.serial or time.monotonic() > end:
            break
        time.sleep(0.2)  # a deployment elsewhere is not asked as fast as it answers
    if check.that(hub, serial >= record.serial, f"serial {record.serial} within a minute"):
        lines = client.ask("GET", file_of("catalogue"))
        found = [
            line["latest_version"]
            for line in map(json.loads, lines.body.splitlines())
            if (line["owner"], line["name"]) == (publisher.owner, publisher.name)
        ]
        check.that(lines, found == [record.version], f"the version {record.version}", f"{found}")
        user = client.ask("GET", file_of("user", owner=publisher.owner))
        check.that(
            user, any(row["name"] == publisher.name for row in user.json["data"]["repos"]),
            f"the repo {publisher.name}",
        )  # fmt: skip


@area("publishing")
@token_needed
def test_an_idempotency_key(check: Check, publisher: Publisher) -> None:
    key, mark = f"conformance-{secrets.token_hex(8)}", secrets.token_hex(8)
    body = {"content": f"Once, {mark}", "bump": "minor"}
    first = publisher.post(body, Idempotency_Key=key)
    check.status(first, 201)
    other = publisher.post({"content": f"Between, {mark}"})
    check.status(other, 201)
    again = publisher.post(body, Idempotency_Key=key)
    check.status(again, 201, 200)
    came = [answer.json and answer.json.get("data", {}).get("version") for answer in (first, again)]
    check.that(again, came[0] == came[1], f"the first answer again, {came[0]}", f"{came[1]}")
    reused = publisher.post({"content": f"Another, {mark}"}, Idempotency_Key=key)
    check.error(reused, 422, "idempotency_key_reused")


@area("publishing")
@token_needed
def test_bumps(check: Check, publisher: Publisher) -> None:
    before: Version | None = None
    for bump in ("patch", "minor", "major"):
        answer = publisher.post({"content": f"{bump} {secrets.token_hex(8)}", "bump": bump})
        record = check.single(answer, records.Publication, 201)
        if record:
            version = Version.parse(record.version)
            # The first may be the repo's first at all, which is 1.0.0 whatever bump says.
            wanted = before.bump(bump) if before else version
            check.that(answer, version == wanted, f"version {wanted}", f"version {version}")
            before = version


@area("publishing")
@token_needed
def test_not_over_somebody_elses_work(check: Check, publisher: Publisher) -> None:
    text = secrets.token_hex(8)
    first = check.single(publisher.post({"content": text}), records.Publication, 201)
    if not first:
        return
    for field, headers in (({"base_version": "0.0.1"}, {}), ({}, {"If_Match": '"0.0.1"'})):
        answer = publisher.post({"content": f"{text} again", **field}, **headers)
        if check.error(answer, 412, "base_version_mismatch"):
            said = first.version.encode() in answer.body
            check.that(answer, said, f"the current version {first.version}")
    body = {"content": f"{text} again", "base_version": first.version}
    check.status(publisher.post(body), 201)


BAD_BODIES = [
    ("no JSON", b"{", {}, 400, "invalid_json"),
    ("no UTF-8", b'{"content": "\xff"}', {}, 400, "invalid_json"),
    ("no object", b"[]", {}, 400, "invalid_json"),
    ("nothing", {}, {}, 422, "validation_failed"),
    ("empty", {"content": ""}, {}, 422, "validation_failed"),
    ("white space", {"content": " \n\t"}, {}, 422, "validation_failed"),
    ("NUL", {"content": "a\0b"}, {}, 422, "validation_failed"),
    ("lone surrogate", b'{"content": "a\\ud800"}', {}, 422, "validation_failed"),
    ("unknown field", {"content": "x", "titel": "x"}, {}, 422, "validation_failed"),
    ("bad bump", {"content": "x", "bump": "huge"}, {}, 422, "validation_failed"),
    ("bad tags", {"content": "x", "tags": ["UP"]}, {}, 422, "validation_failed"),
    ("too large", {"content": "x" * (256 * 1024 + 1)}, {}, 413, "content_too_large"),
    ("larger than a request", {"content": "x" * (2 * 1024 * 1024)}, {}, 413, "content_too_large"),
    ("no media type", {"content": "x"}, {"Content_Type": "text/plain"}, 415,
     "unsupported_media_type"),
]  # fmt: skip


@area("publishing")
@token_needed
@pytest.mark.parametrize(
    ("body", "headers", "status", "code"), [case[1:] for case in BAD_BODIES],
    ids=[case[0] for case in BAD_BODIES],
)  # fmt: skip
def test_bad_bodies(
    check: Check, publisher: Publisher, body: Any, headers: dict[str, str], status: int, code: str
) -> None:
    answer = publisher.post(body, **headers)
    if check.error(answer, status, code) and code == "validation_failed":
        details = answer.json["error"].get("details") or []
        check.that(answer, details, "details that name the field")


@area("publishing")
@token_needed
def test_secrets_and_strangers(check: Check, publisher: Publisher) -> None:
    secret = publisher.client.deployment.token
    answer = publisher.post({"content": f"My token is {secret}"})
    check.error(answer, 422, "secret_detected")
    check.that(answer, secret.encode() not in answer.body, "an answer without the token",
               "the token")  # fmt: skip
    elsewhere = publisher.post({"content": "x"}, publish_path(NOBODY, "nothing"))
    check.error(elsewhere, 403, "not_owner", "insufficient_scope")
    upper = publisher.post({"content": "x"}, publish_path(publisher.owner, "Upper-Case"))
    check.that(
        upper, upper.status in (400, 403), "400 invalid_name, or 403 for a token of one repo"
    )


# The rate limit


@area("rate limit")
@pytest.mark.needs("rate limit")
def test_the_rate_limit(check: Check, client: Client) -> None:
    limit = client.deployment.rate_limit
    # What was asked before counts, too.
    left_seconds = WINDOW_SECONDS + 1 - (time.monotonic() - client.api_asked_at)
    if left_seconds > 0:
        client.say(f"waiting {left_seconds:.0f} s until the rate limit has forgotten us")
        time.sleep(left_seconds)
    path = file_of("hub")
    refused: Answer | None = None
    for number in range(1, 2 * limit + 2):
        answer = client.ask("GET", path, is_patient=False)
        if answer.status == 429:
            refused = answer
            break
        check.that(answer, answer.status == 200, f"read {number} of a minute is answered")
    last = refused or answer
    check.that(last, number > limit, f"{limit} reads a minute", f"429 at read {number}")
    if not check.that(last, refused, "429 above the limit", f"{number} reads without"):
        return
    for method in ("GET", "HEAD"):
        answer = client.ask(method, "/api/v1/repos", is_patient=False)
        check.status(answer, 429)
        check.cors(answer)
        retry = answer.headers.get("Retry-After", "")
        check.that(
            answer, retry.isdigit() and 1 <= int(retry) <= WINDOW_SECONDS,
            "Retry-After from 1 to 60 s", f"429, Retry-After: {retry}",
        )  # fmt: skip
        check.header(answer, "RateLimit-Policy", f'"read";q={limit};w={WINDOW_SECONDS}')
        if method == "GET":
            check.error(answer, 429, "rate_limited")
    for page in ("/", "/tags"):
        check.status(client.ask("GET", page, is_patient=False), 200)
