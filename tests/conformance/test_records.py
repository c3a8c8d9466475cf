"""Contents of records, and their agreement: repos, versions, labels, texts, users."""

import hashlib
import json
import re
from typing import Any

import pytest

from builder.model import answers
from builder.model.matching import list_api
from builder.model.names import Version
from builder.model.routes import BY_NAME
from builder.text.messages import parse_messages
from tests.conformance.catalogue import Catalogue, file_of, rows_of
from tests.conformance.checks import Check
from tests.conformance.client import Answer, Client
from tests.conformance.marks import area

pytestmark = pytest.mark.level("files")


# Fields of a version that its repo has, too, if it is the latest.
SHARED = (
    "title", "description", "tags", "content", "body", "messages", "variables", "parameters",
    "license", "sha256", "size", "changelog",
)  # fmt: skip

# Repos, versions, texts


@area("repos")
def test_repos(check: Check, client: Client, catalogue: Catalogue) -> None:
    summaries = {
        (row["owner"], row["name"]): row
        for page in catalogue.all_pages
        for row in rows_of(client.get("/" + list_api(*page).file))
    }
    for owner, name in catalogue.repos:
        answer = client.get(file_of("repo", owner=owner, name=name))
        repo = check.single(answer, answers.Repo)
        if not repo:
            continue
        check.equal(answer, "the repo", (repo.owner, repo.name), (owner, name))
        check_same(check, answer, summaries.get((owner, name), {}), "the summary in lists")
        check_text(check, answer, repo)
        raw = client.get(file_of("raw", owner=owner, name=name))
        check_raw(check, raw, repo)
        check_link(check, client, answer, "raw_url", repo.raw_url, raw)
        check_body(check, client.get(file_of("body", owner=owner, name=name)), repo)
        versions = client.get(file_of("versions", owner=owner, name=name))
        check_link(check, client, answer, "versions_url", repo.versions_url, versions)
        page = client.get(file_of("repo_page", owner=owner, name=name))
        check_page_link(check, client, answer, repo.url, page)


def check_text(check: Check, answer: Answer, record: answers.Repo | answers.Version) -> None:
    """Check that the hash and the size of a record fit its content."""
    data = record.content.encode(errors="surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    check.equal(answer, "that of content: sha256", record.sha256, digest)
    check.equal(answer, "that of content: size", record.size, len(data))
    is_end = record.content.endswith(record.body)
    check.that(answer, is_end, "body, the end of content", f"body {record.body[:40]!r}")
    check.equal(answer, "messages of body", record.messages, parse_messages(record.body))


def check_same(check: Check, answer: Answer, row: dict[str, Any], where: str) -> None:
    """Check that a record has the fields of another form of it."""
    data = answer.json["data"]
    differing = [key for key in row if data.get(key) != row[key]]
    check.that(answer, not differing, f"the same as {where}", f"other: {', '.join(differing)}")


def check_body(check: Check, text: Answer, record: answers.Repo | answers.Version) -> None:
    """Check that a text is a record's body, byte for byte."""
    check.that(
        text, text.status == 200 and text.body == record.body.encode(errors="surrogatepass"),
        f"the record's body: {record.body[:40]!r}", f"{len(text.body)} bytes: {text.brief}",
    )  # fmt: skip


def check_raw(check: Check, raw: Answer, record: answers.Repo | answers.Version) -> None:
    """Check that a raw text is a record's content, byte for byte."""
    check.that(
        raw, raw.status == 200 and raw.body == record.content.encode(errors="surrogatepass"),
        f"the {record.size} bytes of the record's content: {record.content[:40]!r}",
        f"{len(raw.body)} bytes: {raw.brief}",
    )  # fmt: skip


def check_link(
    check: Check, client: Client, answer: Answer, field: str, url: str, wanted: Answer
) -> None:
    """Check that a URL in a record leads to its object, on any host."""
    path = client.path_of(url)
    if check.that(answer, path, f"{field} below {client.base_url}", f"{field} {url}"):
        linked = client.get(path)
        check.same_body(linked, wanted, f"{wanted.target}, as {field} of {answer.target} says")


def check_page_link(check: Check, client: Client, answer: Answer, url: str, wanted: Answer) -> None:
    """Check that a URL of a page leads to it; on a host of files alone, to its file."""
    if client.deployment.has_queries:
        check_link(check, client, answer, "url", url, wanted)
    else:
        check_link(check, client, answer, "url", f"{url}.html", wanted)


@area("versions")
def test_lists_of_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for owner, name in catalogue.repos:
        answer = client.get(file_of("versions", owner=owner, name=name))
        found = check.rows(answer, answers.ListedVersion)
        if not found:
            continue
        check.whole_list(answer, found)
        versions = [Version.parse(entry.version) for entry in found.data]
        check.equal(answer, "newest version first:", versions, sorted({*versions}, reverse=True))
        ordinals = [entry.ordinal for entry in found.data]
        is_once = len({*ordinals}) == len(ordinals)
        check.that(answer, is_once, "ordinals, none twice", f"{ordinals[:8]}")
        previous = [entry.previous for entry in found.data]
        readable = [entry for entry in found.data if not entry.withdrawn]
        wanted = [
            next((one.version for one in found.data[at + 1 :] if not one.withdrawn), None)
            for at in range(len(found.data))
        ]
        check.equal(answer, "previous: the next below, not withdrawn:", previous, wanted)
        for entry in found.data:
            check.that(
                answer, bool(entry.diff_url) == bool(entry.previous and not entry.withdrawn),
                "diff_url null for the first version and for withdrawn ones alone",
                f"{entry.version} {entry.diff_url}",
            )  # fmt: skip
        repo = check.single(client.get(file_of("repo", owner=owner, name=name)), answers.Repo)
        if repo and readable:
            latest, times = readable[0], [entry.published_at for entry in found.data]
            facts = (
                ("latest_version", repo.latest_version, latest.version),
                ("versions_count", repo.versions_count, len(found.data)),
                ("created_at", repo.created_at, min(times)),
                ("updated_at", repo.updated_at, latest.published_at),
                ("sha256", repo.sha256, latest.sha256),
                ("changelog", repo.changelog, latest.changelog),
            )
            for field, has, wanted in facts:
                check.equal(answer, f"as in the repo: {field}", wanted, has)


@area("versions")
def test_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        owner, name, number = params["owner"], params["name"], params["version"]
        answer = client.get(file_of("version", **params))
        version = check.single(answer, answers.Version)
        if not version:
            continue
        place = (version.owner, version.name, version.version)
        check.equal(answer, "the version", place, (owner, name, number))
        row = next(row for row in catalogue.versions(owner, name) if row["version"] == number)
        row = {key: value for key, value in row.items() if key != "labels"}
        check_same(check, answer, row, "in the list of versions")
        check_text(check, answer, version)
        repo = client.get(file_of("repo", **params)).json["data"]
        if number == repo["latest_version"]:
            check_same(check, answer, {key: repo.get(key) for key in SHARED}, "the repo")


@area("labels")
def test_lists_of_labels(check: Check, client: Client, catalogue: Catalogue) -> None:
    for at in catalogue.params(BY_NAME["labels"]):
        answer = client.get(file_of("labels", **at))
        found = check.rows(answer, answers.LabelMove)
        repo = check.single(client.get(file_of("repo", **at)), answers.Repo)
        if not found or not repo:
            continue
        check.whole_list(answer, found)
        named = [(move.label, move.version) for move in found.data]
        check.equal(answer, "the labels of the repo", named, list(repo.labels.items()))
        check.that(answer, named == sorted(named), "sorted by label", f"{named}")
        for row in rows_of(client.get(file_of("versions", **at))):
            wanted = [label for label, version in named if version == row["version"]]
            check.equal(answer, f"labels of {row['version']}", wanted, row.get("labels"))


@area("labels")
def test_labels(check: Check, client: Client, catalogue: Catalogue) -> None:
    for at in catalogue.params(BY_NAME["label"]):
        answer = client.get(file_of("label", **at))
        named = check.single(answer, answers.LabelledVersion)
        if not named:
            continue
        of_version = at | {"version": named.version}
        version = client.get(file_of("version", **of_version)).json["data"]
        added = {"label": at["label"], "moved_at": named.moved_at}
        check.equal(answer, "the version's record:", answer.json["data"], version | added)
        raw = client.get(file_of("version_raw", **of_version))
        check.same_body(client.get(file_of("label_raw", **at)), raw, raw.target)
        body = client.get(file_of("version_body", **of_version))
        check.same_body(client.get(file_of("label_body", **at)), body, body.target)
        history = client.get(file_of("label_history", **at))
        moves = check.rows(history, answers.LabelMove)
        if not moves or not moves.data:
            check.that(history, False, "the moves of a label that names a version")
            continue
        check.whole_list(history, moves)
        newest = moves.data[0]
        came = newest.version, newest.moved_at
        check.equal(history, "the newest move", came, (named.version, named.moved_at))
        chain = [move.previous for move in moves.data]
        wanted = [*(move.version for move in moves.data[1:]), None]
        check.equal(history, "previous: the version of the move before:", chain, wanted)
        listed = rows_of(client.get(file_of("labels", **at)))
        row = next(row for row in listed if row["label"] == at["label"])
        check.equal(history, "the newest move as in the list:", history.json["data"][0], row)


@area("raw text")
def test_raw_texts_of_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        answer = client.get(file_of("version", **params))
        version = check.single(answer, answers.Version)
        if version:
            raw = client.get(file_of("version_raw", **params))
            check_raw(check, raw, version)
            check_link(check, client, answer, "raw_url", version.raw_url, raw)
            check_body(check, client.get(file_of("version_body", **params)), version)


@area("diffs")
def test_diffs(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        version = client.get(file_of("version", **params)).json["data"]
        diff = client.get(file_of("diff", **params))
        if version["previous"] is None:
            check.status(diff, 404)
            continue
        check_link(check, client, diff, "diff_url", version["diff_url"], diff)
        old = client.get(file_of("version_raw", **{**params, "version": version["previous"]}))
        new = client.get(file_of("version_raw", **params))
        if old.body == new.body:
            check.empty_body(diff)
            continue
        removed = re.findall(rb"^-(?!--)(.*)$", diff.body, re.MULTILINE)
        added = re.findall(rb"^\+(?!\+\+)(.*)$", diff.body, re.MULTILINE)
        check.that(
            diff,
            diff.body.startswith(b"--- ") and b"\n+++ " in diff.body and b"\n@@ " in diff.body
            and all(line.strip() in old.body for line in removed)
            and all(line.strip() in new.body for line in added),
            f"a unified diff from {version['previous']}",
        )  # fmt: skip


# Users


@area("users")
def test_users(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["user"]):
        owner = params["owner"]
        answer = client.get(file_of("user", owner=owner))
        user = check.single(answer, answers.User)
        if not user:
            continue
        check.equal(answer, "handle", user.handle, owner)
        names = sorted(name for repo_owner, name in catalogue.ids if repo_owner == owner)
        came = sorted(repo.name for repo in user.repos)
        check.equal(answer, "the owner's repos of catalogue.jsonl:", came, names)
        check.equal(answer, "repos_count", user.repos_count, len(names))
        times = [repo.updated_at for repo in user.repos]
        check.equal(answer, "the latest updated first:", times, sorted(times, reverse=True))
        check.that(answer, b"@" not in answer.body or not has_address(answer), "no e-mail address")


def has_address(answer: Answer) -> bool:
    profile = {key: value for key, value in answer.json["data"].items() if key != "repos"}
    return bool(re.search(r"[\w.+-]+@[\w-]+\.\w", json.dumps(profile)))
