"""Contents of records, and their agreement: repos, versions, labels, texts, users."""

import hashlib
import json
import re

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
        check.that(answer, (repo.owner, repo.name) == (owner, name), f"the repo {owner}/{name}")
        summary = summaries.get((owner, name))
        if summary:
            data = answer.json["data"]
            differing = [key for key in summary if data.get(key) != summary[key]]
            check.that(
                answer, not differing, "the same as the summary in lists",
                f"other: {', '.join(differing)}",
            )  # fmt: skip
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
    check.that(
        answer, record.sha256 == digest, f"sha256 {digest}, that of content",
        f"sha256 {record.sha256}",
    )  # fmt: skip
    check.that(
        answer, record.size == len(data), f"size {len(data)}, that of content",
        f"size {record.size}",
    )  # fmt: skip
    check.that(
        answer, record.content.endswith(record.body), "body, the end of content",
        f"body {record.body[:40]!r}",
    )  # fmt: skip
    messages = parse_messages(record.body)
    check.that(
        answer, record.messages == messages, f"the messages of body: {str(messages)[:80]}",
        f"messages {str(record.messages)[:80]}",
    )  # fmt: skip


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
        check.that(
            answer, versions == sorted(set(versions), reverse=True), "newest version first",
            ", ".join(map(str, versions[:8])),
        )  # fmt: skip
        ordinals = [entry.ordinal for entry in found.data]
        check.that(
            answer, len({*ordinals}) == len(ordinals), "ordinals, none twice", f"{ordinals[:8]}"
        )
        previous = [entry.previous for entry in found.data]
        readable = [entry for entry in found.data if not entry.withdrawn]
        wanted = [
            next((one.version for one in found.data[at + 1 :] if not one.withdrawn), None)
            for at in range(len(found.data))
        ]
        rule = "previous: the next one below that was not withdrawn"
        check.that(answer, previous == wanted, rule, f"{previous}")
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
                check.that(answer, has == wanted, f"{field} {has!r} as in the repo", f"{wanted!r}")


@area("versions")
def test_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        owner, name, number = params["owner"], params["name"], params["version"]
        answer = client.get(file_of("version", **params))
        version = check.single(answer, answers.Version)
        if not version:
            continue
        place = (version.owner, version.name, version.version)
        check.that(answer, place == (owner, name, number), f"{owner}/{name} {number}", f"{place}")
        data = answer.json["data"]
        row = next(row for row in catalogue.versions(owner, name) if row["version"] == number)
        differing = [key for key in row if key != "labels" and data.get(key) != row[key]]
        check.that(
            answer, not differing, "the same as in the list of versions",
            f"other: {', '.join(differing)}",
        )  # fmt: skip
        check_text(check, answer, version)
        if number == client.get(file_of("repo", **params)).json["data"]["latest_version"]:
            repo = client.get(file_of("repo", **params)).json["data"]
            shared = (
                "title", "description", "tags", "content", "body", "messages", "variables",
                "parameters", "license", "sha256", "size", "changelog",
            )  # fmt: skip
            differing = [key for key in shared if data.get(key) != repo.get(key)]
            check.that(
                answer, not differing, "the latest version's fields as in the repo",
                f"other: {', '.join(differing)}",
            )  # fmt: skip


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
        check.that(
            answer, named == list(repo.labels.items()), f"the labels of the repo {repo.labels}",
            f"{named}",
        )  # fmt: skip
        check.that(answer, named == sorted(named), "sorted by label", f"{named}")
        for row in rows_of(client.get(file_of("versions", **at))):
            wanted = [label for label, version in named if version == row["version"]]
            check.that(
                answer, row.get("labels") == wanted,
                f"the labels {row.get('labels')} of {row['version']} in the list of versions",
                f"{wanted}",
            )  # fmt: skip


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
        check.that(
            answer, answer.json["data"] == version | added,
            f"the record of {named.version} with label and moved_at",
        )  # fmt: skip
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
        check.that(
            history, (newest.version, newest.moved_at) == (named.version, named.moved_at),
            f"the newest move to {named.version} at {named.moved_at}", f"{newest}",
        )  # fmt: skip
        chain = [move.previous for move in moves.data]
        wanted = [*(move.version for move in moves.data[1:]), None]
        check.that(history, chain == wanted, "previous: the version of the move before", f"{chain}")
        listed = rows_of(client.get(file_of("labels", **at)))
        row = next(row for row in listed if row["label"] == at["label"])
        first = history.json["data"][0]
        check.that(history, first == row, f"the newest move as in the list of labels {row}")


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
        check.that(answer, user.handle == owner, f"handle {owner}", f"handle {user.handle}")
        names = sorted(name for repo_owner, name in catalogue.ids if repo_owner == owner)
        came = sorted(repo.name for repo in user.repos)
        check.that(answer, came == names, "the owner's repos of catalogue.jsonl", f"{came[:9]}")
        check.that(answer, user.repos_count == len(names), f"repos_count {len(names)}")
        times = [repo.updated_at for repo in user.repos]
        check.that(answer, times == sorted(times, reverse=True), "the latest updated first")
        check.that(answer, b"@" not in answer.body or not has_address(answer), "no e-mail address")


def has_address(answer: Answer) -> bool:
    profile = {key: value for key, value in answer.json["data"].items() if key != "repos"}
    return bool(re.search(r"[\w.+-]+@[\w-]+\.\w", json.dumps(profile)))
