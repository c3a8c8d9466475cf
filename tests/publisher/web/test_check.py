"""A check says what the publication would, needs no token, and leaves nothing behind."""

import io
import json
import sqlite3
import tempfile
import warnings
import zipfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import FileStorage
from werkzeug.test import TestResponse, encode_multipart

from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from builder.model.routes import API
from publisher.accounts.token import LABEL, PUBLISH, READ, make_token
from publisher.limits import Quotas
from server import throttle
from tests.publisher.write.acts import take_back
from tests.support.calls import once, watched
from tests.support.clock import StopClock
from tests.support.hubs import URL, Hub, MakeHub, code_of

CHECK = f"{API}/repos/ann/story/check"
SECRET = make_token()

CONTENTS = [
    "One.",
    "Two.",
    "Say {{tone}}.",
    "Say {{tone}} in {{language}}.",
    "---\nvariables:\n  tone: {default: calm}\n---\nSay {{tone}}.",
    "---\nvariables:\n  tone: {enum: [calm, loud]}\n---\nSay {{tone}}.",
    "---\ntitle: [\n---\nText.",
    "---\ncolor: red\ntags: [con, sql]\n---\nText.",
    '{{role "user"}}\nHi {{tone}}.',
    f"The token is {SECRET}.",
    " \n",
]
FILES = [
    {"path": "run.sh", "content": "echo hi\n", "executable": True},
    {"path": "run.sh", "content": "echo hi\n"},
    {"path": "docs/a.md", "content": "# A\n" * 100},
    {"path": "docs/b.bin", "base64": "AP8="},
    {"path": "Docs/c", "content": ""},
    {"path": "../up", "content": "x"},
    {"path": "key", "content": SECRET},
]
BODIES = st.fixed_dictionaries(
    {"content": st.sampled_from(CONTENTS)},
    optional={
        "files": st.lists(st.sampled_from(FILES), max_size=3),
        "bump": st.sampled_from(["major", "minor", "patch", "auto", "mega"]),
        "base_version": st.sampled_from(["1.0.0", "1.0.1", "2.0.0", "x"]),
        "labels": st.lists(st.sampled_from(["production", "staging", "latest", "Bad"]), max_size=2),
        "tags": st.sampled_from([["sql"], ["con"], "sql"]),
        "title": st.sampled_from(["A story", ""]),
        "contents": st.just("a typo"),
    },
)


def check(hub: Hub, body: object = None, token: str | None = None, **options: Any) -> TestResponse:
    return hub.post(body, CHECK, token, **options)


def said(answer: TestResponse) -> dict[str, Any]:
    """The parts that the answers of a check and of a publication share."""
    if answer.status_code >= 400:
        return {"status": answer.status_code, **answer.json["error"]}
    data = answer.json["data"]
    found = {key: data[key] for key in ("owner", "name", "version", "unchanged", "warnings")}
    found |= {key: data.get(key) for key in ("files", "content_sha256")}
    return {**found, "previous": data["previous_version"], "labels": data.get("labels", [])}


def traces(hub: Hub) -> tuple[dict[str, bytes], list[str]]:
    """All files of the content, with their bytes, and all rows of the accounts."""
    root = Path(hub.settings.content)
    files = {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    files |= {str(path): b"" for path in root.rglob("*") if path.is_dir()}
    (accounts,) = Path(hub.settings.state).glob("accounts.sqlite3")
    return files, [*sqlite3.connect(accounts).iterdump()]


@given(st.lists(st.tuples(BODIES, st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_a_check_says_what_the_publication_says(
    drafts: list[tuple[dict[str, Any], bool, bool]],
):
    with tempfile.TemporaryDirectory() as folder:
        hub = Hub(Path(folder), publications=0, checks=0, quotas=Quotas(1, 4, 3600))
        try:
            for draft, has_token, is_form in drafts:
                body, headers = form_of(draft) if is_form else (draft, {})
                before = traces(hub)
                checked = check(hub, body, "" if has_token else None, headers=headers)
                assert traces(hub) == before
                assert said(checked) == said(hub.post(body, headers=headers))
        finally:
            hub.close()


def form_of(body: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    """A form with the files of a body in a ZIP, and its headers."""
    draft = {key: value for key, value in body.items() if key != "files"}
    packed = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(packed, "w") as file:
        warnings.simplefilter("ignore")  # two entries with one name
        for one in body.get("files", []):
            info = zipfile.ZipInfo(one["path"])
            info.external_attr = (0o755 if one.get("executable") else 0o644) << 16
            file.writestr(info, b64decode(one["base64"]) if "base64" in one else one["content"])
    packed.seek(0)
    parts = {"files": FileStorage(packed, "folder.zip"), "draft": json.dumps(draft)}
    boundary, form = encode_multipart(parts)
    return form, {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def test_the_difference_has_files(hub: Hub):
    hub.post({"files": [FILES[0], FILES[3]]})
    data = check(hub, {"files": [FILES[1], FILES[2]]}).json["data"]
    assert [one["path"] for one in data["files"]] == ["docs/a.md", "run.sh"]
    for part in (
        "new file mode 100644\n--- /dev/null\n+++ b/docs/a.md\n@@ -0,0 +1,100 @@\n+# A\n",
        "deleted file mode 100644\nBinary files a/docs/b.bin and /dev/null differ\n",
        "diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n",
    ):
        assert part in data["diff"]
    assert data["diff_size"] == len(data["diff"].encode())
    # Without files, those of the latest version stay.
    kept = check(hub, {"content": "Two."}).json["data"]
    assert "diff --git" not in kept["diff"] and len(kept["files"]) == 2


@pytest.mark.parametrize(
    ("sent", "read"),
    [({}, "md"), ({}, "files/run.sh"), ({"files": [FILES[2]]}, "files/run.sh")],
    ids=["text", "kept", "compared"],
)
def test_a_withdrawal_between_two_reads_is_seen(hub: Hub, sent: dict[str, Any], read: str):
    done = []
    for text in ("One.", "Two."):
        hub.post({"content": text, "files": [FILES[0]]})
    with watched(
        once(
            "open", f"ann/story/1.0.1.{read}", lambda: done.append(take_back(hub.settings.content))
        )
    ):
        data = check(hub, {"content": "Three."} | sent).json["data"]
    assert (data["version"], data["previous_version"]) == ("1.0.2", "1.0.0") and done


def test_what_changes_for_callers(hub: Hub):
    first = check(hub, {"content": "Say {{tone}}."})
    assert first.status_code == 200
    assert first.headers["Cache-Control"] == "no-store"
    assert first.json["data"] == {
        "owner": "ann", "name": "story", "version": "1.0.0", "previous_version": None,
        "unchanged": False, "bump": "patch", "reasons": [],
        "variables": {"added": ["tone"], "removed": [], "changed": []},
        "labels": [], "warnings": [], "diff_size": 0, "diff": None,
    }  # fmt: skip
    hub.post({"content": "Say {{tone}} to {{who}}."})
    parameters = {"variables": [{"name": "tone", "type": "integer"}], "labels": ["staging"]}
    data = check(hub, {"content": "Say {{tone}}, {{ö}} {{mood}}."} | parameters).json["data"]
    assert (data["version"], data["bump"], data["labels"]) == ("1.0.1", "major", ["staging"])
    assert data["variables"] == {"added": ["mood"], "removed": ["who"], "changed": ["tone"]}
    assert data["reasons"][0] == "mood is a new required variable."
    assert data["warnings"][0].startswith("breaking_variables: ")
    assert data["diff"] == (
        "--- ann/story/1.0.0.md\n+++ ann/story/1.0.1.md\n@@ -1 +1 @@\n"
        "-Say {{tone}} to {{who}}.\n\\ No newline at end of file\n"
        "+Say {{tone}}, {{ö}} {{mood}}.\n\\ No newline at end of file\n"
    )
    assert data["diff_size"] == len(data["diff"].encode())
    again = check(hub, {"content": "Say {{tone}} to {{who}}."}).json["data"]
    assert (again["unchanged"], again["version"], again["diff"]) == (True, "1.0.0", "")


def test_a_difference_that_takes_too_long_is_left_out(hub: Hub):
    hub.post({"content": "a\nb\n" * 60_000})
    data = check(hub, {"content": "b\na\n" * 60_000}).json["data"]
    assert data["diff"] is None
    assert data["diff_size"] > 0


def test_a_token_is_checked_and_not_noted(hub: Hub):
    labels, _ = hub.make_token("ann", "labels", rights=(LABEL,))
    one_label, _ = hub.make_token("ann", "staging", rights=(PUBLISH, LABEL), labels=("staging",))
    reads, _ = hub.make_token("ann", "reader", rights=(READ,))
    bobs, _ = hub.make_token("bob")
    before = traces(hub)
    found = {token: check(hub, token=token) for token in (labels, bobs, SECRET, reads, "")}
    codes = [answer.status_code == 200 or code_of(answer) for answer in found.values()]
    assert codes == ["insufficient_scope", "not_owner", "invalid_token", True, True]
    assert found[SECRET].headers["WWW-Authenticate"] == "Bearer"
    production, staging = ({"labels": [label]} for label in ("production", "staging"))
    assert code_of(check(hub, production, one_label)) == "insufficient_scope"
    assert check(hub, staging, one_label).status_code == 200
    # Permissions are checked before the body: a foreign token learns nothing of its faults.
    assert code_of(check(hub, b"{", bobs)) == "not_owner"
    assert traces(hub) == before


def test_headers_count_as_in_a_publication(hub: Hub):
    hub.post()
    key = {"Idempotency-Key": "k"}
    stale = {"If-Match": '"0.9.0"'}
    assert code_of(check(hub, {"content": "Two."}, headers=stale)) == "base_version_mismatch"
    assert check(hub, {"content": "Two."}, headers=key).json["data"]["version"] == "1.0.1"
    # The key is not used up.
    assert hub.post({"content": "Three."}, headers=key).status_code == 201
    refused = check(hub, headers={"Content-Type": "text/plain"})
    assert code_of(refused) == "unsupported_media_type"
    assert code_of(check(hub, b"x" * (PUBLICATION_BYTES_MAX + 1))) == "content_too_large"
    method = hub.app.test_client().get(CHECK)
    assert (method.status_code, method.headers["Allow"]) == (405, "OPTIONS, POST")


@pytest.mark.parametrize("path", ["Ann/story", "api/story", "ann/Story", "ann/con"])
def test_names_are_checked(hub: Hub, path: str):
    checked, published = (
        hub.post(path=f"{API}/repos/{path}/{address}") for address in ("check", "versions")
    )
    assert said(checked) == said(published)
    anonymous = hub.post(path=f"{API}/repos/{path}/check", token=None)
    assert code_of(anonymous) in ("invalid_name", "name_reserved")


def test_a_strangers_thousand_checks(make_hub: MakeHub, stop_clock: StopClock):
    clock = stop_clock(throttle)
    hub = make_hub()
    statuses = [check(hub, b"{}").status_code for _ in range(1000)]
    assert statuses == [422] * 240 + [429] * 760
    clock.now += 20
    refused = check(hub, token="")
    assert refused.headers["Retry-After"] == "40"
    assert refused.headers["RateLimit-Policy"] == '"check";q=240;w=60'
    assert refused.headers["RateLimit"] == '"check";r=0;t=40'
    assert refused.headers["Cache-Control"] == "no-store"
    elsewhere = {"REMOTE_ADDR": "198.51.100.7"}
    assert check(hub, environ_overrides=elsewhere).status_code == 200
    assert hub.post().status_code == 201
    clock.now += 40
    assert check(hub).status_code == 200


def test_a_check_is_no_publication_and_its_log_has_no_text(hub: Hub, log: io.StringIO):
    check(hub, {"content": "A private thought.", "changelog": "My diary."})
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert (line["event"], line["repo"], line["version"]) == ("check", "story", "1.0.0")
    assert "thought" not in log.getvalue() and "diary" not in log.getvalue()
    assert hub.rebuilder.requested == []
    assert hub.app.test_client().get(URL).status_code == 405
