"""The API document: valid, complete, and true of every answer that the live server gives."""

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from builder.model.routes import (
    GZIP,
    LATEST_TEXTS,
    LIST_PARAMETERS,
    QUERY_CHARS_MAX,
    READ_ROUTES,
    ROUTES,
)
from builder.model.service_urls import CHECK_URL, LABEL_URL, PUBLISH_URL, TRUSTED_URL
from tests.support.depth import some
from tests.support.servers import Server, run_schemathesis

# No schema can say that q has a word in it, how long several tags are together, or that a text has
# one of two parameters. Schemathesis therefore accepts a 400 of these operations.
CONFIG = """
[[operations]]
include-name = "GET /api/v1/repos/{owner}/{name}/raw"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-name = "GET /api/v1/repos/{owner}/{name}/body"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-name = "GET /api/v1/repos"
checks.positive_data_acceptance.enabled = false
"""
# Names that exist, so that answers with data are tried too.
REAL_CONFIG = """
[parameters]
"path.owner" = "sam-ferreira"
"path.name" = "diff-review"
"path.version" = "1.1.0"
"path.label" = "production"
"path.tag" = "code"
"path.page" = "1"
"path.file_path" = "image.png"
"""


@pytest.fixture(scope="module")
def document(live: Server) -> dict:
    return live.get("/api/v1/openapi.json").json()


def reads(document: dict) -> dict[str, dict]:
    """The operations that read, by URL."""
    return {url: item["get"] for url, item in document["paths"].items() if "get" in item}


def test_is_valid(document):
    assert document["openapi"].startswith("3.1")
    errors = list(OpenAPIV31SpecValidator(document).iter_errors())
    assert not errors


def test_has_every_public_route(document, live):
    assert set(reads(document)) == {route.url for route in ROUTES if route.summary}
    # Langfuse's API is not ours, and only on sites that were built for it.
    read = [route for route in READ_ROUTES if route.is_api and route.scope != "langfuse"]
    # What a host sends in place of an answer is no endpoint.
    read = [route for route in read if route.cache not in ("none", "not_found")]
    # A file's address has one operation, whether it is served as text or as bytes.
    api = {route.url for route in read if route.media != GZIP and route.name != "version_text_file"}
    assert api == set(reads(document))
    others = {url: set(item) - {"get"} for url, item in document["paths"].items()}
    assert {url: methods for url, methods in others.items() if methods} == {
        PUBLISH_URL: {"post"},
        CHECK_URL: {"post"},
        LABEL_URL: {"put", "delete"},
        TRUSTED_URL: {"post"},
    }
    items = document["paths"].values()
    operations = [operation for item in items for operation in item.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    error = {"$ref": "#/components/responses/Error"}
    assert all(one["responses"]["default"] == error for one in operations)
    assert document["servers"] == [{"url": live.url}]


def test_parameters_of_the_spec(document):
    parameters = {
        path: {parameter["name"]: parameter for parameter in operation["parameters"]}
        for path, operation in reads(document).items()
    }
    assert set(parameters["/api/v1/repos"]) == {*LIST_PARAMETERS}
    assert parameters["/api/v1/repos"]["sort"]["schema"]["enum"] == ["top", "trending", "new"]
    assert parameters["/api/v1/repos"]["q"]["schema"]["maxLength"] == QUERY_CHARS_MAX
    for name in LATEST_TEXTS:
        text = parameters[f"/api/v1/repos/{{owner}}/{{name}}/{name}"]
        assert set(text) == {"owner", "name", "version", "label"}
        assert text["version"]["in"] == text["label"]["in"] == "query"
        assert not (text["version"]["required"] or text["label"]["required"])
    assert all(
        parameter["required"] == (parameter["in"] == "path")
        for one in parameters.values()
        for parameter in one.values()
    )


def schema_of(document: dict, url: str) -> dict:
    content = document["paths"][url]["get"]["responses"]["200"]["content"]
    (schema,) = (media["schema"] for media in content.values())
    return schema


def check(document: dict, schema: dict, value: object) -> None:
    """Fails unless ``value`` is what the schema says."""
    whole = {**schema, "components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/api/v1/repos", "/api/v1/repos"),
        ("/api/v1/repos?sort=new&page=1", "/api/v1/repos"),
        ("/api/v1/repos?tag=sql", "/api/v1/repos"),
        ("/api/v1/repos?tag=sql,json", "/api/v1/repos"),
        ("/api/v1/repos?q=review", "/api/v1/repos"), ("/api/v1/repos?q=zzzz", "/api/v1/repos"),
        ("/api/v1/repos/_/trending/1", "/api/v1/repos/_/{sort}/{page}"),
        ("/api/v1/tags/sql/new/1", "/api/v1/tags/{tag}/{sort}/{page}"),
        ("/api/v1/tags", "/api/v1/tags"), ("/api/v1/hub.json", "/api/v1/hub.json"),
        ("/api/v1/repos?q=sql%20interviwer", "/api/v1/repos"),
    ],
)  # fmt: skip
def test_lists_are_as_documented(document, live, path, url):
    check(document, schema_of(document, url), live.get(path).json())


def test_trusted_publishing_is_documented(document):
    operation = document["paths"][TRUSTED_URL]["post"]
    assert "security" not in operation
    schemas = document["components"]["schemas"]
    sent, answered = schemas["TrustedExchange"], schemas["TrustedToken"]
    assert sent["required"] == ["token", "repo"]
    assert sent["additionalProperties"] is False
    for sample, is_right in (
        ({"token": "a.b.c", "repo": "ada/*"}, True), ({"token": "a", "repo": "ada/x"}, True),
        ({"token": "a.b.c"}, False), ({"token": "", "repo": "a/b"}, False),
        ({"token": "a", "repo": "review"}, False), ({"token": "a", "rep": "a/b"}, False),
    ):  # fmt: skip
        whole = {**sent, "components": document["components"]}
        assert jsonschema.Draft202012Validator(whole).is_valid(sample) is is_right
    assert list(answered["properties"]) == ["token", "owner", "repos", "expires_at"]
    assert answered["required"] == list(answered["properties"])


@pytest.mark.parametrize(
    "config",
    [*some([pytest.param(CONFIG, id="any"), pytest.param(CONFIG + REAL_CONFIG, id="real")])],
)
def test_schemathesis(live, document, tmp_path, config):
    """No 5xx, nothing undocumented, nothing accepted that the document forbids, by the reads."""
    report = run_schemathesis(f"{live.url}/api/v1/openapi.json", tmp_path, config, 12, "GET")
    assert f"Tested: {len(reads(document))}\n" in report
