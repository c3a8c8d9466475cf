"""Searches, and lists of several tags: what takes an index."""

import re
from typing import NamedTuple
from urllib.parse import quote

import pytest
from msgspec import UNSET

from builder.model import answers
from builder.model.caching import CACHE_CONTROL
from builder.model.matching import list_api
from builder.model.routes import JSON, PAGE_SIZE, QUERY_CHARS_MAX, SORTS
from builder.text.words import QUERY_WORDS_MAX
from tests.conformance.catalogue import NOBODY, Catalogue
from tests.conformance.checks import Check, spread
from tests.conformance.client import Client
from tests.conformance.conditions import check_conditions
from tests.conformance.marks import area

pytestmark = pytest.mark.level("full")

Id = tuple[str, str]

# Three that accept gzip, and three that do not. None accepts an encoding that the test cannot
# decode.
STOP_WORD = "the"
WORDS_TRIED = 12
PAGES_TRIED = 4


# Searches


class Found(NamedTuple):
    """The repos that a search finds; ``is_whole``: all of them, and not just the first pages.
    ``match``: as in the meta of the first page.
    """

    ids: list[Id]
    is_whole: bool
    match: str | None


def search(check: Check, client: Client, q: str, **given: str) -> Found:
    """Request the first pages of a search, and compare them with the contract."""
    ids: list[Id] = []
    match = None
    for number in range(1, PAGES_TRIED + 1):
        query = "".join(f"&{key}={quote(value)}" for key, value in given.items())
        page = f"&page={number}" if number > 1 else ""
        answer = client.get(f"/api/v1/repos?q={quote(q)}{query}{page}")
        rows = check.rows(answer, answers.RepoSummary)
        if rows is None:
            break
        total = rows.meta.total
        pages = max(1, -(-total // PAGE_SIZE))
        wanted = answers.ListMeta(
            number, pages, total, PAGE_SIZE, given.get("sort"), given.get("tag"), q
        )
        match = match or rows.meta.match
        wanted.match, wanted.corrected = match, rows.meta.corrected
        check.equal(answer, "meta", rows.meta, wanted)
        cache = CACHE_CONTROL["query" if total else "nothing"]
        check.header(answer, "Cache-Control", cache)
        says_how = match in ("all", "some") and rows.meta.corrected is not UNSET
        check.that(answer, says_how, "match and corrected in meta")
        count = min(PAGE_SIZE, total - (number - 1) * PAGE_SIZE)
        check.equal(answer, "rows", len(rows.data), count)
        ids += [(row.owner, row.name) for row in rows.data]
        if number >= pages:
            return Found(ids, len(ids) == total, match)
    return Found(ids, False, match)


def search_path(q: str) -> str:
    return f"/api/v1/repos?q={quote(q)}"


def titles(catalogue: Catalogue) -> list[tuple[Id, str]]:
    """Some repos with titles that are usable as queries."""
    usable = [
        ((line["owner"], line["name"]), line["title"])
        for line in catalogue.lines
        if len(line.get("title", "")) <= QUERY_CHARS_MAX and re.search(r"[a-z]{4}", line["title"])
    ]
    return spread(usable, WORDS_TRIED)


def words(catalogue: Catalogue) -> list[tuple[Id, str]]:
    """A word of plain letters of each of these titles, long enough to be one of few."""
    found = [
        (repo, re.findall(r"(?<![\w'’-])[A-Za-z]{4,}(?![\w'’-])", title))
        for repo, title in titles(catalogue)
    ]
    return [(repo, max(ones, key=len)) for repo, ones in found if ones]


def check_found(check: Check, client: Client, q: str, wanted: Id, found: Found) -> None:
    if found.is_whole:
        check.that(
            client.get(search_path(q)), wanted in found.ids,
            f"{'/'.join(wanted)}, as it is in its title",
            f"{len(found.ids)} others: {found.ids[:3]}",
        )  # fmt: skip


@area("search")
def test_a_title_finds_its_repo(check: Check, client: Client, catalogue: Catalogue) -> None:
    """Also one with the, as, …: they are not dropped in one place and kept in another."""
    for repo, title in titles(catalogue):
        for q in (title, title.lower()):
            check_found(check, client, q, repo, search(check, client, q))


@area("search")
def test_a_word_finds_its_repo(check: Check, client: Client, catalogue: Catalogue) -> None:
    """In any case and width, and as the beginning of one, if it is the last."""
    for repo, word in words(catalogue):
        found = search(check, client, word)
        check_found(check, client, word, repo, found)
        wide = "".join(chr(ord(char) + 0xFEE0) for char in word)
        for other in (word.upper(), word.lower(), f"  {word}  ", wide):
            found_again = search(check, client, other)
            check.equal(client.get(search_path(other)), f"q={word}", found_again, found)
        for q in (word[:-1], word[:4]) if len(word) > 5 else ():
            check_found(check, client, q, repo, search(check, client, q))


@area("search")
def test_a_label_in_the_words_is_a_filter(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    by_label: dict[str, set[Id]] = {}
    for line in catalogue.lines:
        for label in line.get("labels", ()):
            by_label.setdefault(label, set()).add((line["owner"], line["name"]))
    for label in spread(sorted(by_label), WORDS_TRIED):
        answer = client.get(search_path(f"LABEL:{label}"))
        rows = check.rows(answer, answers.RepoSummary)
        if rows:
            found = {(row.owner, row.name) for row in rows.data}
            wanted = by_label[label] if rows.meta.pages == 1 else found & by_label[label]
            check.that(answer, found == wanted, f"{len(wanted)} with {label}", f"{found}")
            said = rows.meta.label, rows.meta.sort, rows.meta.total
            expected = label, SORTS[0], len(by_label[label])
            check.that(answer, said == expected, f"meta with {expected}", f"{said}")


@area("search")
def test_words_that_say_nothing(check: Check, client: Client, catalogue: Catalogue) -> None:
    for _, word in words(catalogue):
        alone = search(check, client, word)
        check.that(client.get(search_path(word)), alone.match == "all", "match all")
        with_stop_word = f"{STOP_WORD} {word}"
        ids = search(check, client, with_stop_word).ids
        check.equal(client.get(search_path(with_stop_word)), f"q={word}", ids, alone.ids)
        with_unknown = f"zzqxjzz{NOBODY.replace('-', '')} {word}"
        came, some = search(check, client, with_unknown), alone._replace(match="some")
        check.equal(client.get(search_path(with_unknown)), f"q={word}", came, some)


@area("search")
@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: f"sort={sort}")
def test_a_search_in_an_order(
    check: Check, client: Client, catalogue: Catalogue, sort: str
) -> None:
    places = {
        repo: place
        for place, repo in enumerate(
            (row["owner"], row["name"])
            for page in catalogue.pages(None, sort)
            for row in client.get("/" + list_api(*page).file).json["data"]
        )
    }
    for _, word in words(catalogue)[:4]:
        found, sorted_ones = search(check, client, word), search(check, client, word, sort=sort)
        answer = client.get(f"{search_path(word)}&sort={sort}")
        if found.is_whole:
            same = sorted(found.ids) == sorted(sorted_ones.ids)
            check.that(answer, same, f"the repos of q={word}")
        known = [places[repo] for repo in sorted_ones.ids if repo in places]
        check.that(answer, known == sorted(known), f"the order of sort={sort}")


@area("search")
def test_a_search_within_a_tag(check: Check, client: Client, catalogue: Catalogue) -> None:
    tags_of = {(line["owner"], line["name"]): line["tags"] for line in catalogue.lines}
    for repo, word in words(catalogue):
        if tags_of[repo]:
            found = search(check, client, word)
            tag = tags_of[repo][0]
            within = search(check, client, word, tag=tag)
            if found.is_whole:
                wanted = [one for one in found.ids if tag in tags_of.get(one, ())]
                answer = client.get(f"{search_path(word)}&tag={quote(tag)}")
                check.equal(answer, f"in the order of q={word}:", within.ids, wanted)


@area("search")
def test_headers_of_a_search(check: Check, client: Client) -> None:
    for path in ("/api/v1/repos?q=a", f"/api/v1/repos?q={NOBODY}zz", "/api/v1/repos?sort=new&q=a"):
        answer = client.get(path)
        check.status(answer, 200)
        check.header(answer, "Content-Type", JSON)
        check.header(answer, "X-Content-Type-Options", "nosniff")
        check.cors(answer)
        head = client.ask("HEAD", path)
        check.empty_body(head)
        check.same_headers(head, answer)
        check_conditions(check, client, path)


@area("search")
def test_unknown_parameters_of_a_search(check: Check, client: Client) -> None:
    wanted = client.get("/api/v1/repos?q=a&sort=new&page=1")
    for query in ("page=1&sort=new&q=a", "q=%61&utm=x&s%6frt=new", "sort=new&q=a&q2=b"):
        check.same_body(client.get(f"/api/v1/repos?{query}"), wanted, wanted.target)


BAD_QUERIES = [
    "q=", "q=%20", "q=...", "q=%F0%9F%8E%89", "q", "q=" + "x" * (QUERY_CHARS_MAX + 1),
    "q=" + "%C3%A9" * (QUERY_CHARS_MAX + 1), "q=%ff", "q=a&q=a", "q=a&page=0", "q=a&sort=best",
    "q=a&tag=UP", "q=a&tag=",
]  # fmt: skip


@area("search")
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        *((query, 400, "invalid_parameter") for query in BAD_QUERIES),
        ("q=a&page=999999", 404, "page_not_found"),
        (f"q=a&tag={NOBODY}", 404, "tag_not_found"),
    ],
    ids=lambda part: str(part)[:60],
)
def test_errors_of_a_search(
    check: Check, client: Client, query: str, status: int, code: str
) -> None:
    check.error(client.get(f"/api/v1/repos?{query}"), status, code)


@area("search")
def test_the_longest_search(check: Check, client: Client) -> None:
    for q in ("x" * QUERY_CHARS_MAX, "é" * QUERY_CHARS_MAX, "語" * QUERY_CHARS_MAX):
        search(check, client, q)


@area("search")
def test_the_first_different_words_count(check: Check, client: Client) -> None:
    first = " ".join(f"w{number}" for number in range(QUERY_WORDS_MAX))
    wanted = search(check, client, first)
    for more in ("the", "prompt review"):
        assert search(check, client, f"{first} {more}") == wanted, more


# Several tags


@area("several tags")
@pytest.mark.parametrize("sort", [None, *SORTS])
def test_several_tags(check: Check, client: Client, catalogue: Catalogue, sort: str | None) -> None:
    pairs = dict.fromkeys(tuple(line["tags"][:2]) for line in catalogue.lines)
    for tags in spread([pair for pair in pairs if len(pair) == 2], WORDS_TRIED):
        wanted = {
            (line["owner"], line["name"])
            for line in catalogue.lines
            if set(tags) <= set(line["tags"])
        }
        order = f"&sort={sort}" if sort else ""
        found: list[Id] = []
        for number in range(1, min(PAGES_TRIED, -(-len(wanted) // PAGE_SIZE)) + 1):
            path = f"/api/v1/repos?tag={','.join(tags)}{order}&page={number}"
            answer = client.get(path)
            rows = check.rows(answer, answers.RepoSummary)
            if not rows:
                return
            meta = (rows.meta.total, rows.meta.sort, rows.meta.tag, rows.meta.q)
            says = (len(wanted), sort or SORTS[0], ",".join(tags), None)
            check.equal(answer, "total, sort, tag, q", meta, says)
            found += [(row.owner, row.name) for row in rows.data]
            encoded = client.get(path.replace(",", "%2C"))
            check.same_body(encoded, answer, path)
            check.header(answer, "Cache-Control", CACHE_CONTROL["list"])
        if len(wanted) <= PAGES_TRIED * PAGE_SIZE:
            check.equal(answer, "the repos with both:", sorted(found), sorted(wanted))
        alone = [
            (row["owner"], row["name"])
            for page in catalogue.pages(tags[0], sort or SORTS[0])
            for row in client.get("/" + list_api(*page).file).json["data"]
        ]
        if catalogue.has_all_pages(tags[0]) and len(wanted) <= PAGES_TRIED * PAGE_SIZE:
            in_order = [repo for repo in alone if repo in wanted]
            check.equal(answer, f"in the order of tag={tags[0]}:", found, in_order)


@area("several tags")
def test_errors_of_several_tags(check: Check, client: Client, catalogue: Catalogue) -> None:
    for tag in catalogue.tags[:1]:
        for value, status, code in (
            (f"{tag},{NOBODY}", 404, "tag_not_found"),
            (f"{tag},", 400, "invalid_parameter"),
            (f",{tag}", 400, "invalid_parameter"),
            (f"{tag},UP", 400, "invalid_parameter"),
            (f"{tag},%20{tag}", 400, "invalid_parameter"),
            (",".join(f"t{number}" for number in range(11)), 400, "invalid_parameter"),
        ):
            check.error(client.get(f"/api/v1/repos?tag={value}"), status, code)


@area("search")
def test_an_explained_search_within_an_owner(
    check: Check, client: Client, catalogue: Catalogue
) -> None:
    (owner, name), title = titles(catalogue)[0]
    path = f"/api/v1/repos?owner={owner}&q={quote(title)}&explain=true"
    answer = client.get(path)
    rows = check.rows(answer, answers.RepoSummary)
    if rows:
        meta = rows.meta
        check.equal(answer, "owner in meta", meta.owner, owner)
        check.that(answer, {row.owner for row in rows.data} == {owner}, f"only repos of {owner}")
        matches, facets = meta.matches or [], meta.facets
        check.that(answer, len(matches) == len(rows.data), "a match for each repo")
        is_by_title = any("title" in one.places for one in matches[:1])
        check.that(answer, is_by_title, f"{name} found by its title")
        counts = [(one.name, one.count) for one in facets.owners] if facets else []
        check.equal(answer, "owners in facets", counts, [(owner, meta.total)])
    for wrong in ("owner=A", "owner=", "owner=a&owner=b", "explain=1", "q=a&explain=", "owner=a,b"):
        check.error(client.get(f"/api/v1/repos?{wrong}"), 400, "invalid_parameter")
    check.error(client.get(f"/api/v1/repos?owner={NOBODY}"), 404, "user_not_found")
    check.error(client.get(f"/api/v1/repos/{owner}/{name}?explain=true"), 400, "invalid_parameter")
