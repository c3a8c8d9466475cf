"""The operations that write are what the API document says: whatever is sent, nothing undocumented.

Schemathesis makes requests from the document, right ones and wrong ones, and holds each answer
against it. It loads this module for the hook and the check below.
"""

import re
from pathlib import Path

import pytest
import schemathesis

from builder.model.service_urls import PUBLISH_URL
from tests.support.catalogues import settings_in
from tests.support.depth import some
from tests.support.servers import add_publisher, run_schemathesis, serving

EXAMPLES = 40
CONFIG = """
hooks = "tests.publisher.web.test_schemathesis"
# In every request, also in those that shall be without it.
headers = {{ Authorization = "Bearer {token}" }}
checks.missing_required_header.enabled = false
# The check below is stricter: it looks at why a right request was refused.
checks.positive_data_acceptance.enabled = false
[parameters]
"path.owner" = "ann"
"""

# Facts that no schema has: requests that fit the document may be refused for these.
STATE = {
    "label_moved": "what the label names now",
    "label_not_found": "which labels there are",
    "version_not_found": "which versions there are",
    "base_version_mismatch": "which version is the latest",
    "idempotency_key_reused": "what was sent before",
    "invalid_token": "what an issuer has signed",
    "name_reserved": "which labels are reserved",
    "rate_limited": "how many wrong tokens came before",
}
FIELDS = {
    ("label", "would be one of"): "how many labels there are",
    ("If-Match", "send only one of them"): "that two conditions are one",
    ("variables", "a variable name appears twice"): "that items differ in one of their keys",
    ("tags", "a tag appears twice"): "that items differ",
    ("labels", "names a label twice"): "that items differ",
    ("content", "is empty"): "that there is more than white space",
    ("content", "has a NUL"): "which characters are none of a text",
    ("title", "one line of printable text"): "what is printable",
    ("repo", "must be OWNER/NAME"): "how long each half may be",
    ("files", "send a ZIP"): "what is in a ZIP",
    ("files", "is the path of two files"): "that items differ in one of their keys",
    ("files", "in capitals only"): "that items differ in one of their keys",
    ("files", "is in a folder"): "that items differ in parts of their keys",
    ("files", "reserves for devices"): "which names Windows reserves",
    ("files", "the prompt's own text"): "which path has the text",
}
# Any text, at any depth of a field, may have characters that are not allowed.
ANYWHERE = "has the control character"
MORE = re.compile(r"And [0-9,]+ more\.")


@schemathesis.hook
def before_call(context, case, kwargs) -> None:
    # Most requests of the coverage phase would be refused for these alone.
    for header in ("If-Match", "Idempotency-Key"):
        if case.headers.get(header) == "0":
            del case.headers[header]
    if isinstance(case.body, dict) and case.operation.method.upper() in ("PUT", "DELETE"):
        # A label can only move to an existing version.
        if case.body.get("version") == "1.2.0":
            case.body["version"] = "1.0.0"
        if case.body.get("expected") == "1.2.0":
            del case.body["expected"]
    elif isinstance(case.body, dict) and case.body.get("base_version") == "1.2.0":
        del case.body["base_version"]


@schemathesis.check
def refuses_only_what_no_schema_tells(context, response, case) -> None:
    """A request that fits the document is refused for nothing but the reasons above."""
    if not case.meta or not case.meta.generation.mode.is_positive or response.status_code < 400:
        return
    error = response.json()["error"]
    unknown = [
        detail
        for detail in error.get("details", [])
        if ANYWHERE not in detail["message"]
        and not MORE.fullmatch(detail["message"])
        and not any(
            detail["field"].partition("[")[0] == field and part in detail["message"]
            for field, part in FIELDS
        )
    ]
    assert error["code"] in STATE or (error["code"] == "validation_failed" and not unknown), error


@pytest.mark.parametrize("methods", [*some([("POST",), ("PUT", "DELETE")])], ids="-".join)
def test_what_is_sent(tmp_path: Path, methods: tuple[str, ...]) -> None:
    """Requests of publications, of their checks, and of moves of an existing repo's labels."""
    settings = settings_in(tmp_path)
    token = add_publisher(settings, "ann")
    config = CONFIG.format(token=token)
    with serving(settings, "--publish-limit", "0") as server:
        if methods != ("POST",):
            config += '"path.name" = "story"\n'
            answer = server.request(
                "POST", PUBLISH_URL.format(owner="ann", name="story"), json={"content": "Hi."},
                headers={"Authorization": f"Bearer {token}"},
            )  # fmt: skip
            assert answer.status_code == 201
        document = f"{server.url}/api/v1/openapi.json"
        report = run_schemathesis(document, tmp_path, config, EXAMPLES, *methods)
    assert "Tested: 3\n" in report if methods == ("POST",) else "Tested: 2\n" in report
