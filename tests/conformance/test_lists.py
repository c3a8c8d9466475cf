"""Lists of repos and of tags: their pages, rows and order."""

from itertools import pairwise

import pytest

from builder.model import answers
from builder.model.matching import list_api
from builder.model.routes import PAGE_SIZE, SORTS
from tests.conformance import orders
from tests.conformance.catalogue import NOBODY, Catalogue, file_of
from tests.conformance.checks import Check
from tests.conformance.client import Client
from tests.conformance.marks import area

pytestmark = pytest.mark.level("files")


@area("lists")
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"sort={sort}")
def test_all_repos_are_in_each_order(
    check: Check, client: Client, catalogue: Catalogue, sort: str
) -> None:
    check_list(check, client, catalogue, None, sort)


@area("lists")
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"sort={sort}")
def test_all_repos_with_a_tag_are_in_each_order(
    check: Check, client: Client, catalogue: Catalogue, sort: str
) -> None:
    for tag in catalogue.tags:
        check_list(check, client, catalogue, tag, sort)


def check_list(
    check: Check, client: Client, catalogue: Catalogue, tag: str | None, sort: str
) -> None:
    total = catalogue.tag_counts[tag] if tag else len(catalogue.ids)
    pages = max(1, -(-total // PAGE_SIZE))
    rows: list[answers.RepoSummary] = []
    before: answers.RepoSummary | None = None
    for page in catalogue.pages(tag, sort):
        answer = client.get("/" + list_api(tag, sort, page.number).file)
        found = check.rows(answer, answers.RepoSummary)
        if not found:
            continue
        wanted = answers.ListMeta(page.number, pages, total, PAGE_SIZE, sort, tag, None)
        check.equal(answer, "meta", found.meta, wanted)
        count = min(PAGE_SIZE, total - (page.number - 1) * PAGE_SIZE)
        check.equal(answer, "rows", len(found.data), count)
        follows = [before, *found.data] if before and catalogue.has_all_pages(tag) else found.data
        for one, next_one in pairwise(follows):
            reason = orders.is_wrong(client, sort, one, next_one)
            check.that(answer, not reason, f"the order of sort={sort}", reason)
        before = found.data[-1] if found.data else None
        rows += found.data
    ids = [(row.owner, row.name) for row in rows]
    answer = client.get("/" + list_api(tag, sort, 1).file)
    check.that(answer, len(set(ids)) == len(ids), "no repo twice on the list's pages")
    if catalogue.has_all_pages(tag):
        wanted_ids = {
            (line["owner"], line["name"])
            for line in catalogue.lines
            if not tag or tag in line["tags"]
        }
        different = sorted(wanted_ids.symmetric_difference(ids))
        check.that(
            answer, not different, "the list's pages together with just the repos of "
            "catalogue.jsonl", f"differ in {different[:3]}",
        )  # fmt: skip


@area("lists")
def test_the_short_list_is_the_first_page(check: Check, client: Client) -> None:
    first = client.get("/" + list_api(None, SORTS[0], 1).file)
    check.same_body(client.get(file_of("repos")), first, first.target)


@area("lists")
def test_a_list_ends(check: Check, client: Client, catalogue: Catalogue) -> None:
    for tag in (None, *catalogue.tags):
        total = catalogue.tag_counts[tag] if tag else len(catalogue.ids)
        last = max(1, -(-total // PAGE_SIZE))
        check.status(client.get("/" + list_api(tag, SORTS[0], last + 1).file), 404)
    check.status(client.get("/" + list_api(NOBODY, SORTS[0], 1).file), 404)


@area("tags")
def test_tags_are_counted_and_sorted(check: Check, client: Client, catalogue: Catalogue) -> None:
    answer = client.get(file_of("tags"))
    found = check.rows(answer, answers.Tag)
    if found:
        counted = sorted(catalogue.tag_counts.items(), key=lambda one: (-one[1], one[0]))
        came = [(tag.name, tag.count) for tag in found.data]
        different = next((pair for pair in zip(came, counted, strict=False) if len(set(pair)) > 1),
                         (len(came), len(counted)))  # fmt: skip
        check.that(
            answer, came == counted, "the tags of catalogue.jsonl, most used first, then by name",
            f"{different[0]} and not {different[1]}",
        )  # fmt: skip
        check.whole_list(answer, found)
