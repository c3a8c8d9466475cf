"""The page about the API: all that the API document says, linked, and examples that work."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from html import unescape
from itertools import chain
from pathlib import Path

import pytest

from builder.model.errors import STATUS
from builder.model.routes import QUERY_CHARS_MAX
from builder.model.service_urls import TRUSTED_URL
from builder.model.settings import Settings
from builder.render import openapi
from builder.render.api_page import ApiPage, Examples, Kind, Operation, describe, shown
from publisher.accounts.database import Database
from publisher.accounts.token import Grant
from publisher.accounts.tokens import Accounts
from tests.support.catalogues import build_files, write_label, write_version
from tests.support.servers import DEADLINE_SECONDS, Server, sample_settings, serving

SETTINGS = Settings(base_url="https://hub.example/prompts", queries=True)
DOCUMENT = json.loads(openapi.document(SETTINGS))


@pytest.fixture(scope="module")
def page() -> ApiPage:
    return describe(DOCUMENT, STATUS, Examples())


@pytest.fixture(scope="module")
def operations(page) -> list[Operation]:
    return [*chain(*page.groups.values())]


def test_sections_have_every_operation_once(page, operations):
    assert sorted((one.method, one.url) for one in operations) == sorted(
        (method.upper(), url) for url, item in DOCUMENT["paths"].items() for method in item
    )
    assert [(one.method, one.body) for one in operations if one.needs_token] == [
        ("POST", Kind("Draft", "Draft")),
        ("PUT", Kind("LabelDraft", "LabelDraft")),
        ("DELETE", Kind("LabelRemoval", "LabelRemoval")),
    ]
    (exchange,) = [one for one in operations if one.url == TRUSTED_URL]
    assert exchange.method == "POST"
    assert exchange.body == Kind("TrustedExchange", "TrustedExchange")
    groups = {group: [one.id for one in ones] for group, ones in page.groups.items()}
    assert groups["Prompts"] == ["repo", "raw", "body"]
    assert {"versions", "version_raw", "version_file"} <= {*groups["Versions"]}
    assert {"labels", "label", "label_history"} <= {*groups["Labels"]}
    assert {"repos", "tag_list", "user", "hub"} <= {*groups["Lists"]}
    assert {*groups["Publishing"]} == {"publish", "check", "trusted_publishing"} | {
        f"{verb}_label" for verb in ("move", "remove")
    }


def test_parameters_say_where_and_by_what_rule(operations):
    repos = {one.id: one for one in operations}["repos"]
    fields = {field.name: field for field in repos.parameters}
    assert set(fields) == {"page", "sort", "tag", "owner", "q", "explain"}
    assert fields["page"].kind == Kind("integer")
    assert fields["page"].rules == ["at least 1", "at most 999999999", "default `1`"]
    assert fields["sort"].kind.words == "one of `top`, `trending`, `new`"
    assert fields["q"].rules == [f"at most {QUERY_CHARS_MAX} characters"]
    assert not any(field.is_required for field in repos.parameters)
    publish = {one.id: one for one in operations}["publish"]
    assert [(field.name, field.place, field.is_required) for field in publish.parameters] == [
        ("owner", "path", True), ("name", "path", True),
        ("Idempotency-Key", "header", False), ("If-Match", "header", False),
    ]  # fmt: skip


def test_answers_lead_to_their_records(page, operations):
    answers = {one.id: one.answers for one in operations}
    whole = answers["repos"][0]
    assert (whole.status, whole.media) == ("200", "application/json")
    assert [(field.name, field.kind) for field in whole.fields] == [
        ("data", Kind("array of RepoSummary", "RepoSummary")),
        ("meta", Kind("ListMeta", "ListMeta")),
    ]  # fmt: skip
    for of_one in answers.values():
        assert of_one[-1].status == "other"
        assert of_one[-1].fields[0].kind.record == "ErrorEnvelope"


def test_records_have_all_fields(page):
    schemas = DOCUMENT["components"]["schemas"]
    assert [one.name for one in page.records] == list(schemas)
    for record in page.records:
        schema = schemas[record.name]
        assert [field.name for field in record.fields] == list(schema["properties"])
        required = [field.name for field in record.fields if field.is_required]
        assert required == schema.get("required", [])
    fields = {
        (record.name, field.name): field for record in page.records for field in record.fields
    }
    assert fields["Repo", "pulls"].kind == Kind("integer or null")
    assert fields["Repo", "variables"].kind == Kind("array of Variable", "Variable")
    assert fields["Repo", "created_at"].description == "RFC 3339, in UTC, to the second"
    assert fields["Variable", "type"].rules == ['default `"string"`']
    assert fields["Draft", "tags"].rules[0] == "at most 10 items"


def test_codes_of_errors_stand_with_their_status(page):
    assert {code: status for status, codes in page.failures.items() for code in codes} == STATUS
    assert [*page.failures] == sorted({*STATUS.values()})


@pytest.fixture
def html(empty: Settings) -> str:
    return build_files(empty)["docs.html"].decode()


def test_the_page_shows_it(html, operations):
    titles = [(one.summary, f"<b>{one.method}</b> {one.url}") for one in operations]
    assert re.findall("<summary><h3>(.*?)</h3> <code>(.*?)</code>", unescape(html)) == titles
    for operation in operations:
        assert f'<div id="endpoint-{operation.id}"' in html
    for code in STATUS:
        assert f"<code>{code}</code>" in html
    # Code between backticks is marked up, none is left over.
    assert "`" not in html
    assert "<code>hub_</code> and 38 letters" in html


@pytest.mark.parametrize(
    ("answer", "beginning"),
    [
        ("Say hi.\n", "Say hi.\n"),
        ("x" * 241, "x" * 240 + "…"),
        ('{"data":[{"name":"a","count":1},{"name":"b","count":2}],"meta":{}}',
         '{"data":[{"name":"a","count":1},…],"meta":{}}'),
        ('{"data":{"a":"' + "é" * 49 + '","b":[]}}', '{"data":{"a":"' + "é" * 48 + '…","b":[]}}'),
        (json.dumps({"data": {str(n): n for n in range(7)}}),
         '{"data":{' + "".join(f'"{n}":{n},' for n in range(6)) + "…}}"),
        ('{"prompt":"no envelope"}', '{"prompt":"no envelope"}'),
        ('{"data":' + " " * 65_536, '{"data":' + " " * 232 + "…"),
    ],
)  # fmt: skip
def test_an_answer_is_shown_by_its_beginning_and_json_is_indented(answer, beginning):
    text = shown(answer.encode())
    is_indented = answer.startswith('{"data"') and len(answer) < 65_536
    assert (re.sub(r"\n +|\n(?=})|(?<=:) ", "", text) if is_indented else text) == beginning
    assert text.startswith('{\n  "data": ') == is_indented


def printed(page: str) -> list[str]:
    """The commands for a shell on a page."""
    parts = re.findall('<pre class="snippet">\n?(.*?)</pre>', page, re.DOTALL)
    return [unescape(part) for part in parts if part.startswith(("curl", "./hub", "sha256sum"))]


@pytest.fixture(scope="module")
def hub(tmp_path_factory) -> Iterator[Server]:
    """The sample catalogue, and prompts of ann with files, several versions and a label."""
    settings = sample_settings(tmp_path_factory.mktemp("examples"))
    for version in ("1.0.0", "1.1.0"):
        files = {"scripts/run.sh": b"#!/bin/sh\n"}
        write_version(settings.content, "ann", "story", version, f"Tell {version}.\n", files)
    write_label(settings.content, "ann/story", 1, "production", "1.0.0")
    with serving(settings) as server:
        yield server


def token(hub: Server, owner: str) -> str:
    with Database(hub.settings.state) as database:
        accounts = Accounts(database)
        if not accounts.is_known(owner):
            accounts.add_owner(owner)
        return accounts.create_token(owner, "ci", Grant(), 90, None)[0]


def run(command: str, token: str, folder: Path) -> str:
    done = subprocess.run(
        ["sh", "-euc", command.replace("curl ", "curl -fsS ").replace(" --trusted", "")],
        cwd=folder, env={**os.environ, "HUB_TOKEN": token, "HUB_OWNER": "ann"},
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def test_examples_name_a_prompt_with_a_title_in_latin_letters_if_there_is_one(empty):
    def is_named(repo: str) -> bool:
        docs = build_files(empty)["docs.html"].decode().replace("<wbr>", "")
        return f"/api/v1/repos/{repo}/versions/1.0.0" in docs

    titles = {"ann/x": "كتابة رسالة", "ann/y": "Ça – v2 ✓", "ann/z": "議事録"}
    for repo, title in titles.items():
        write_version(empty.content, *repo.split("/"), "1.0.0", "Hi.\n", title=title)
        assert is_named("ann/y" if repo > "ann/x" else repo)


def test_each_printed_command_works_and_gives_the_answer_beside(tmp_path, hub):
    """On a hub whose prompts have labels, files and several versions."""
    docs = hub.get("/docs").text.replace("<wbr>", "")
    commands = printed(docs)
    assert len(commands) > 25 and not any("ada/" in one or "NAME" in one for one in commands)
    answers = re.findall(
        r'<pre class="snippet">\n?([^<]*)</pre>\s*<pre class="told">\n(.*?)</pre>',
        docs,
        re.DOTALL,
    )
    assert len(answers) > 20
    anns = token(hub, "ann")
    for command, answer in answers:
        given = run(unescape(command), anns, tmp_path)
        assert shown(given.encode()).strip() == unescape(answer).strip(), command
    for command in commands:
        if "$ID_TOKEN" not in command:  # a CI job has it
            run(command, anns, tmp_path)
    page = hub.get("/connect").text
    (owner,) = re.findall("hub push --trusted (.*?)/", page)
    # The commands above published, so the page may name ann by now.
    owners = anns if owner == "ann" else token(hub, owner)
    for command in printed(page):
        run(command, owners, tmp_path)
