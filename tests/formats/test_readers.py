"""The cases and the sample catalogue, read by the formats' own programs, say what the hub says."""

import json
import subprocess
from typing import Any

import msgspec
import pytest

from builder.store import content
from builder.text.formats import write_as
from builder.text.messages import parse_messages
from builder.text.prompts import body_of, fill, variable_names
from tests.clients.exports import read_cases
from tests.support.servers import PROJECT

pytestmark = pytest.mark.usefixtures("installed_tools")

PYTHON = ["build/formats/bin/python", "tests/formats/reader.py"]
NODE = ["node", "tests/node/formats.mjs"]
# Parts of the expected messages.
SHOWN = ("<<<dotprompt:", "{{history}}", "variables named not")


def sample(format: str) -> list[dict[str, Any]]:
    """A case for each prompt of the sample catalogue."""
    root = str(PROJECT / "content")
    cases = []
    for owner in content.list_owners(root):
        for name in content.list_repos(root, owner):
            version = content.list_versions(root, owner, name).versions[-1]
            stored, text = content.read_version(root, owner, name, version)
            body = body_of(text, stored.front_matter_bytes)
            fields = msgspec.to_builtins(stored) | {"license": stored.license}
            record = fields | {
                "owner": owner, "name": name, "version": str(version), "body": body,
                "messages": msgspec.to_builtins(parse_messages(body)),
            }  # fmt: skip
            written, losses = write_as(record, format)
            cases.append({"record": record, "text": written, "losses": losses})
    return cases


def values_of(record: dict[str, Any]) -> dict[str, str]:
    names = [*variable_names(record["body"]), *(one["name"] for one in record["variables"])]
    for one in record["messages"] or []:
        names += variable_names(one["content"])
    # The program that fills in variables reserves this name.
    return {name: f"<{name}>" for name in names if name != "self"}


def said(record: dict[str, Any], alone: str, roles: dict[str, str]) -> list[list[str]]:
    """A record's messages, filled in, with the roles of the format, and without white space around
    them; ``alone`` is the role of a text.
    """
    messages = record["messages"]
    if messages is None:
        messages = [{"role": alone, "content": record["body"]}]
    values = values_of(record)
    filled = [
        [roles.get(one["role"], one["role"]), fill(one["content"], values).strip()]
        for one in messages
    ]
    return [one for one in filled if one[1]]


def read_by(reader: list[str], format: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    requests = [[format, case["text"], values_of(case["record"])] for case in cases]
    done = subprocess.run(
        reader, input=json.dumps(requests), capture_output=True, text=True, cwd=PROJECT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cases_of(format: str) -> list[dict[str, Any]]:
    return [case for case in read_cases() if case["format"] == format] + sample(format)


def tidy(messages: list[list[str]]) -> list[list[str]]:
    """The messages without differences in line ends and white space, which are the libraries'
    choice.
    """
    stripped = [
        [role, text.strip("\ufeff \t\r\n").replace("\r\n", "\n")] for role, text in messages
    ]
    return [one for one in stripped if one[1]]


def test_dotprompt():
    cases = cases_of("dotprompt")
    found = read_by(NODE, "dotprompt", cases)
    for case, one in zip(cases, found, strict=True):
        record = case["record"]
        assert one["about"]["title"] == record["title"]
        assert one["about"]["description"] == record["description"]
        if not any(loss.startswith(SHOWN) for loss in case["losses"]):
            expected = said(record, "user", {"assistant": "model"})
            assert tidy(one["messages"]) == tidy(expected), record["body"]


def test_prompty():
    cases = cases_of("prompty")
    found = read_by(PYTHON, "prompty", cases)
    for case, one in zip(cases, found, strict=True):
        record, about = case["record"], one["about"]
        if not any(loss.startswith("values such") for loss in case["losses"]):
            assert about["displayName"] == record["title"]
            assert about["description"] == record["description"]
        assert about["metadata"]["authors"] == [record["owner"]]
        model = record["parameters"].get("model")
        assert not isinstance(model, str) or about["model"]["id"] == model
        if not any(loss.startswith((*SHOWN, "lines such")) for loss in case["losses"]):
            expected = said(record, "system", {"tool": "user"})
            assert tidy(one["messages"]) == tidy(expected), record["body"]


def test_skills():
    cases = cases_of("skill")
    for case, one in zip(cases, read_by(PYTHON, "skill", cases), strict=True):
        record, about = case["record"], one["about"]
        assert about["name"] == record["name"]
        assert about["metadata"]["title"] == record["title"]
        assert about["metadata"]["author"] == record["owner"]
        if not any("description" in loss and "variables" not in loss for loss in case["losses"]):
            assert about["description"].endswith(record["description"].strip())
