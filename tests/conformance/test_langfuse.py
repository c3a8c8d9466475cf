"""Requests of Langfuse's SDKs, sent as they send them."""

import msgspec
import pytest

from builder.model import answers
from builder.model.caching import CACHE_CONTROL
from builder.model.errors import LANGFUSE_INVALID, LANGFUSE_NOT_FOUND, LANGFUSE_STATUS
from builder.model.langfuse_records import DEFAULT_LABEL, LangfusePrompt
from builder.model.matching import langfuse_page, list_api
from builder.model.names import LATEST
from builder.model.routes import BY_NAME, JSON, LANGFUSE, SORTS
from server.answer_headers import READ_METHODS
from tests.conformance.catalogue import Catalogue, file_of
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area
from tests.conformance.sample import WITHDRAWN

pytestmark = [pytest.mark.level("files"), pytest.mark.needs("langfuse")]

KEYS = ["name", "version", "type", "prompt", "config", "labels", "tags", "commitMessage"]


def prompt_in(check: Check, answer: Answer) -> LangfusePrompt | None:
    if not check.status(answer, 200):
        return None
    keys = [*answer.json] if isinstance(answer.json, dict) else []
    check.that(answer, keys == KEYS, f"the keys {', '.join(KEYS)}")
    try:
        return msgspec.json.decode(answer.body, type=LangfusePrompt)
    except msgspec.DecodeError as error:
        check.that(answer, False, "a prompt for Langfuse's SDKs", str(error))
        return None


def refused(check: Check, answer: Answer, code: str) -> bool:
    """True if this is an error that the SDKs understand."""
    status = LANGFUSE_STATUS[code]
    is_told = isinstance(answer.json, dict) and answer.json.get("error") == code
    says = f"{status} {code} with a message, as Langfuse says it"
    if not check.that(answer, answer.status == status and is_told, says):
        return False
    check.that(answer, {*answer.json} == {"error", "message"}, "error and message, nothing else")
    check.that(answer, answer.json.get("message"), "a message")
    check.header(answer, "Content-Type", JSON)
    cache = CACHE_CONTROL["not_found" if status == 404 else "none"]
    check.that(
        answer, cache in answer.headers.get_all("Cache-Control", []), f"Cache-Control: {cache}"
    )
    check.cors(answer)
    return True


@area("Langfuse")
def test_prompts_are_the_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for owner, name in catalogue.repos:
        names = {"owner": owner, "name": name}
        labels = [*(catalogue.labels(owner, name) or ()), LATEST]
        default = DEFAULT_LABEL if DEFAULT_LABEL in labels else LATEST
        wanted = client.get(file_of("langfuse_ref", **names, ref=default))
        # The SDKs for JavaScript, and those for Python from 3 on, encode the slash.
        for path in (f"{owner}/{name}", f"{owner}%2F{name}"):
            check.same_body(client.get(f"{LANGFUSE}/{path}"), wanted, wanted.target)
        latest = client.get(f"{LANGFUSE}/{owner}%2F{name}%40{LATEST}")
        for row in catalogue.versions(owner, name):
            file = file_of("version", **names, version=row["version"])
            version = check.single(client.get(file), answers.Version)
            answer = client.get(f"{LANGFUSE}/{owner}%2F{name}%40{row['version']}")
            prompt = prompt_in(check, answer)
            if not prompt or not version:
                continue
            number = client.get(f"{LANGFUSE}/{owner}/{name}@{version.ordinal}")
            check.same_body(number, answer, answer.target)
            for label in prompt.labels:
                labelled = client.get(f"{LANGFUSE}/{owner}/{name}@{label}")
                check.same_body(labelled, answer, answer.target)
            is_latest = answer.body == latest.body
            check.equal(answer, "latest", LATEST in prompt.labels, is_latest)
            messages = version.messages
            came = (prompt.name, prompt.version, prompt.type, prompt.prompt, prompt.config)
            kind = "text" if messages is None else "chat"
            text = version.body if messages is None else messages
            right = (f"{owner}/{name}", version.ordinal, kind, text, version.parameters)
            check.equal(answer, "the version's", came, right)
            check.equal(answer, "changelog", prompt.commit_message, version.changelog or None)


@area("Langfuse")
@pytest.mark.level("queries")
def test_versions_and_labels_by_query(check: Check, client: Client, catalogue: Catalogue) -> None:
    for owner, name in catalogue.repos:
        rows = catalogue.versions(owner, name)
        queries = [(f"version={row['ordinal']}", row["ordinal"]) for row in rows]
        labels = [*(catalogue.labels(owner, name) or ()), LATEST]
        queries += [(f"label={label}", label) for label in labels]
        for query, ref in queries:
            wanted = client.get(file_of("langfuse_ref", owner=owner, name=name, ref=ref))
            for path in (f"{owner}/{name}?{query}", f"{owner}%2F{name}?{query}&resolve=false"):
                answer = client.get(f"{LANGFUSE}/{path}")
                check.same_body(answer, wanted, wanted.target)
                check.header(answer, "Content-Type", JSON)
                check.header(answer, "Cache-Control", CACHE_CONTROL["repo"])


@area("Langfuse")
@pytest.mark.level("queries")
def test_a_ref_in_the_name_wins(check: Check, client: Client, catalogue: Catalogue) -> None:
    # The result is the same as on hosts that ignore queries.
    for owner, name in catalogue.repos:
        for row in catalogue.versions(owner, name):
            path = f"{LANGFUSE}/{owner}%2F{name}%40{row['version']}"
            for query in ("label=latest", "version=1", "label=nothing"):
                check.same_body(client.get(f"{path}?{query}"), client.get(path), path)


UNKNOWN = [
    "{owner}/{nobody}", "{owner}%2F{nobody}?version=1", "{nobody}/nothing?label=latest",
    "{owner}/{name}?version=999999999", "{owner}/{name}?version=0", "{owner}/{name}?version=01",
    "{owner}/{name}?version=", "{owner}/{name}?version", "{owner}/{name}?version=1.0.0",
    "{owner}/{name}?version=-1", "{owner}/{name}?version=x", "{owner}/{name}?version=1%00",
    "{owner}/{name}?version=1%0A", "{owner}/{name}?version=" + "1" * 40,
    "{owner}/{name}?version=..%2F1", "{owner}/{name}?version=latest",
    "{owner}/{name}?label={nobody}", "{owner}/{name}?label=", "{owner}/{name}?label",
    "{owner}/{name}?label=Production", "{owner}/{name}?label=a+b%2Fc", "{owner}/{name}?label=a/b",
    "{owner}/{name}?label=1", "{owner}/{name}?label=1.0.0", "{owner}/{name}?label=..%2F..%2Fx",
    "{owner}/{name}?label=latest%00", "{owner}/{name}?label=latest%0A",
    "{owner}/{name}?label=" + "a" * 37, "{owner}/{name}@{nobody}", "{owner}/{name}@99.0.0",
    "{owner}/{name}@", "{owner}/{name}@@1", "{owner}/{name}@Production", "{owner}/{name}@latest.",
    "{owner}/{Name}", "{owner}/{name}/latest", "{owner}/{name}/", "{owner}", "{owner}/",
    "{owner}/..%2F..%2F..", "{name}", "{owner}/" + "x" * 65,
]  # fmt: skip


@area("Langfuse")
@pytest.mark.level("queries")
@pytest.mark.parametrize("path", UNKNOWN, ids=lambda text: f"GET {text}"[:90])
def test_what_is_not_there(check: Check, client: Client, catalogue: Catalogue, path: str) -> None:
    filled = catalogue.fill(path)
    if filled is None or ("{Name}" in path and filled == filled.lower()):
        return
    answer = client.get(f"{LANGFUSE}/{filled}")
    if refused(check, answer, LANGFUSE_NOT_FOUND):
        head = client.ask("HEAD", f"{LANGFUSE}/{filled}")
        check.status(head, 404)
        check.empty_body(head)


@area("Langfuse")
def test_lists(check: Check, client: Client, catalogue: Catalogue) -> None:
    first = client.get(file_of("langfuse_page", page=1))
    check.same_body(client.get(file_of("langfuse_list")), first, first.target)
    for page in catalogue.all_pages:
        if page.sort != SORTS[0]:
            continue
        answer = client.get("/" + langfuse_page(page.tag, page.number).file)
        rows = check.rows(client.get("/" + list_api(*page).file), answers.RepoSummary)
        if not check.status(answer, 200) or not rows:
            continue
        found = answer.json
        meta = {"page": page.number, "limit": 50, "totalItems": rows.meta.total,
                "totalPages": rows.meta.pages}  # fmt: skip
        check.equal(answer, "meta", found["meta"], meta)
        own = [f"{row.owner}/{row.name}" for row in rows.data]
        check.equal(answer, "prompts", [row["name"] for row in found["data"]], own)
        for row in found["data"]:
            prompt = prompt_in(check, client.get(f"{LANGFUSE}/{row['name']}@latest"))
            if prompt:
                summary = (row["type"], row["tags"], row["lastConfig"])
                right = (prompt.type, prompt.tags, prompt.config)
                check.equal(answer, row["name"], summary, right)
                has_it = max(row["versions"]) >= prompt.version and LATEST in row["labels"]
                check.that(answer, has_it, f"the versions and labels of {row['name']}")


@area("Langfuse")
@pytest.mark.level("queries")
def test_lists_by_query(check: Check, client: Client, catalogue: Catalogue) -> None:
    first = client.get(file_of("langfuse_page", page=1))
    for query in ("", "?limit=10", "?page=1&limit=100", "?limit=1&page=1&x=%41"):
        check.same_body(client.get(LANGFUSE + query), first, first.target)
    for page in catalogue.all_pages:
        if page.sort == SORTS[0]:
            wanted = client.get("/" + langfuse_page(page.tag, page.number).file)
            query = f"?page={page.number}" + (f"&tag={page.tag}" if page.tag else "")
            check.same_body(client.get(LANGFUSE + query), wanted, wanted.target)


@area("Langfuse")
@pytest.mark.level("queries")
@pytest.mark.parametrize(
    ("query", "code"),
    [("page=999999999", LANGFUSE_NOT_FOUND), ("tag={nobody}", LANGFUSE_NOT_FOUND),
     *((query, LANGFUSE_INVALID) for query in (
        "page=0", "page=x", "page=", "page", "page=1&page=2", "tag=", "tag=A", "tag=a,b",
        "tag=..%2F..", "tag=a%00", "name=a%2Fb", "name=a/b", "label=latest", "version=1",
        "fromUpdatedAt=2026-01-01T00:00:00Z", "limit=10&toUpdatedAt", "page=1%0A",
     ))],
    ids=str,
)  # fmt: skip
def test_lists_that_there_are_not(
    check: Check, client: Client, catalogue: Catalogue, query: str, code: str
) -> None:
    refused(check, client.get(f"{LANGFUSE}?{catalogue.fill(query)}"), code)


@area("Langfuse")
@pytest.mark.level("queries")
@pytest.mark.parametrize("path", ["/langfuse", "/langfuse/", "/langfuse/api/public/projects",
    "/langfuse/api/public/health", "/langfuse/api/public/v2/prompts/a/b/c"])  # fmt: skip
def test_nothing_else_is_there(check: Check, client: Client, path: str) -> None:
    refused(check, client.get(path), LANGFUSE_NOT_FOUND)


@area("Langfuse")
@pytest.mark.level("queries")
@pytest.mark.parametrize("query", [
    "version=1&label=latest", "label=latest&x&version=1", "version=1&version=1",
    "label=latest&label=latest", "version=x&label=X", "version&label",
])  # fmt: skip
def test_contradictions(check: Check, client: Client, catalogue: Catalogue, query: str) -> None:
    path = catalogue.fill("{owner}/{name}")
    if path is not None:
        refused(check, client.get(f"{LANGFUSE}/{path}?{query}"), LANGFUSE_INVALID)


@area("Langfuse")
@pytest.mark.level("queries")
def test_what_was_withdrawn(check: Check, client: Client, catalogue: Catalogue) -> None:
    # 404, since at any other status the SDKs continue to use the cached prompt.
    for owner, name in catalogue.repos:
        for row in catalogue.withdrawn(owner, name):
            for suffix in (
                f"@{row['version']}",
                f"@{row['ordinal']}",
                f"?version={row['ordinal']}",
            ):
                answer = client.get(f"{LANGFUSE}/{owner}/{name}{suffix}")
                refused(check, answer, LANGFUSE_NOT_FOUND)
    for suffix in ("", "@1.0.0", "@1", "@latest", "?version=1", "?label=latest"):
        answer = client.get(f"{LANGFUSE}/{'%2F'.join(WITHDRAWN)}{suffix}")
        refused(check, answer, LANGFUSE_NOT_FOUND)


@area("Langfuse")
@pytest.mark.level("queries")
@pytest.mark.parametrize("path", [
    "/langfuse/api/public/ingestion", "/langfuse/api/public/otel/v1/traces",
    "/langfuse/api/public/media", BY_NAME["langfuse_prompt"].url_for(owner="a", name="b"), LANGFUSE,
])  # fmt: skip
def test_what_the_sdks_send(check: Check, client: Client, path: str) -> None:
    # They do not try again after a 405.
    answer = client.ask("POST", path, {"Content-Type": JSON}, b"{}")
    check.error(answer, 405, "method_not_allowed")
    check.header(answer, "Allow", READ_METHODS)


@area("Langfuse")
@pytest.mark.level("queries")
def test_keys_mean_nothing(check: Check, client: Client, catalogue: Catalogue) -> None:
    path = catalogue.fill(f"{LANGFUSE}/{{owner}}%2F{{name}}")
    if path is not None:
        keys = {"Authorization": "Basic cGstbGYteDpzay1sZi14", "X-Langfuse-Public-Key": "pk-lf-x"}
        check.same_body(client.ask("GET", path, keys), client.get(path), path)
