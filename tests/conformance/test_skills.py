"""Prompts as Agent Skills: what installers read fits together."""

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest

from builder.model.routes import BY_NAME
from builder.render.skills import INDEXED_MAX, SCHEMA
from tests.conformance.catalogue import Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area

pytestmark = [pytest.mark.level("files"), area("skills")]

CHANNELS = {"skill_index": "skill", "label_skill_index": "label_skill"}


def url_of(client: Client, check: Check, answer: Answer, url: Any) -> str:
    """The path of an absolute URL of the site."""
    path = client.path_of(url) if isinstance(url, str) else None
    check.that(answer, path, f"an address below {client.base_url}", str(url))
    return path or "/"


def check_entry(check: Check, client: Client, answer: Answer, entry: dict[str, Any]) -> Answer:
    """Check that an entry of an index fits its file."""
    named = client.get(url_of(client, check, answer, entry.get("url")))
    check.status(named, 200)
    digest = f"sha256:{hashlib.sha256(named.body).hexdigest()}"
    check.that(answer, entry.get("digest") == digest, f"the digest {digest}")
    files = entry.get("files") or []
    kind = "archive" if len(files) > 1 else "skill-md"
    check.that(answer, entry.get("type") == kind, f"the type {kind}")
    check.that(answer, files[:1] == ["SKILL.md"], "SKILL.md first")
    if len(files) > 1:
        with zipfile.ZipFile(io.BytesIO(named.body)) as packed:
            check.that(named, packed.namelist() == files, "the files of the index")
    about = entry.get("description", "")
    check.that(answer, 0 < len(about.encode("utf-16-le")) <= 2048, "1 to 1,024 characters")
    return named


@pytest.mark.parametrize("index", CHANNELS)
def test_channels(check: Check, client: Client, catalogue: Catalogue, index: str) -> None:
    for params in catalogue.params(BY_NAME[index]):
        answer = client.get("/" + BY_NAME[index].file_for(**params))
        check.that(answer, answer.json.get("$schema") == SCHEMA, f"the schema {SCHEMA}")
        (entry,) = answer.json["skills"]
        check.that(answer, entry["name"] == params["name"], "the repo's name")
        named = check_entry(check, client, answer, entry)
        own = client.get("/" + BY_NAME[CHANNELS[index]].file_for(**params))
        if entry["type"] == "skill-md":
            check.same_body(named, own, own.target)
        else:
            with zipfile.ZipFile(io.BytesIO(named.body)) as packed:
                check.that(named, packed.read("SKILL.md") == own.body, "the skill's own text")
        if "label" in params:
            record = client.get("/" + BY_NAME["label"].file_for(**params)).json["data"]
            check.that(answer, entry["version"] == record["version"], "the label's version")


def test_owners(check: Check, client: Client, catalogue: Catalogue) -> None:
    for owner in catalogue.owners:
        wanted = sorted(name for one, name in catalogue.ids if one == owner)
        answer = client.get("/" + BY_NAME["owner_skill_index"].file_for(owner=owner))
        names = sorted(entry["name"] for entry in answer.json["skills"])
        check.that(answer, len(names) == min(len(wanted), INDEXED_MAX), "at most 50, and all else")
        check.that(answer, {*names} <= {*wanted}, "the owner's prompts")
        for entry in answer.json["skills"][:3]:
            check_entry(check, client, answer, entry)
        answer = client.get("/" + BY_NAME["marketplace"].file_for(owner=owner))
        plugins = answer.json["plugins"]
        check.that(answer, [one["name"] for one in plugins] == wanted, "all prompts, by name")
        check.that(answer, answer.json["owner"]["name"], "the owner's name")
        for plugin in plugins[:3]:
            check_plugin(check, client, answer, plugin)


def check_plugin(check: Check, client: Client, answer: Answer, plugin: dict[str, Any]) -> None:
    source = plugin["source"]
    archive = client.get(url_of(client, check, answer, source["url"]))
    check.that(answer, source["source"] == "archive", "a source of the kind archive")
    digest = hashlib.sha256(archive.body).hexdigest()
    check.that(answer, source["sha256"] == digest, f"the digest {digest}")
    with zipfile.ZipFile(io.BytesIO(archive.body)) as file:
        check.that(archive, file.namelist() == ["SKILL.md"], "SKILL.md alone, at its root")
        text = file.read("SKILL.md")
    check.that(archive, f'version: "{plugin["version"]}"\n'.encode() in text, "its version in it")


ABSENT = [
    ("/.well-known/agent-skills/index.json", "not_found"),
    ("/{nobody}/.well-known/agent-skills/index.json", "user_not_found"),
    ("/{nobody}/nothing/.well-known/agent-skills/index.json", "repo_not_found"),
    ("/{owner}/{name}/labels/no-such-label/.well-known/agent-skills/index.json",
     "label_not_found"),
    ("/{owner}/{name}/.well-known/agent-skills/more.json", "not_found"),
    ("{repo}/versions/999.0.0/skill", "version_not_found"),
]  # fmt: skip


@pytest.mark.level("queries")
@pytest.mark.parametrize(("template", "code"), ABSENT)
def test_what_is_not_there(
    check: Check, client: Client, catalogue: Catalogue, template: str, code: str
) -> None:
    path = catalogue.fill(template)
    if path is None:
        return
    answer = client.get(path)
    check.status(answer, 404)
    check.cors(answer)
    found = json.loads(answer.body)["error"]["code"]
    check.that(answer, found in (code, "not_found"), code, found)
    check.header(answer, "Content-Type", "application/json")
