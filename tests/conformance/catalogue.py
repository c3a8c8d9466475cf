"""The contents of a deployment, learned from the deployment itself: names for requests."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from builder.model.matching import langfuse_page, list_api, list_page, version_file
from builder.model.names import LATEST
from builder.model.routes import BY_NAME, GZIP, LIST_PAGES_MAX, READ_ROUTES, SORTS, ZIP, Route
from tests.conformance.checks import spread
from tests.conformance.client import Answer, Client

FIELD = re.compile(r"\{(\w+)\}")
# A name that exists in no catalogue.
NOBODY = "conformance-nobody"

# Compressed files, and those that a host sends in place of an answer, are for the host alone.
FILES = [
    route
    for route in READ_ROUTES
    if route.media != GZIP and route.cache != "not_found" and route.url not in ("/503", "/api/503")
]


class Unusable(Exception):
    """The suite cannot test this address; the message says why."""


class Page(NamedTuple):
    """One page of a list; ``tag`` None: of all repos."""

    tag: str | None
    sort: str
    number: int


class Catalogue:
    """The repos, tags and pages of a deployment, and those of them that are looked at."""

    def __init__(self, client: Client) -> None:
        """Raises Unusable, NoAnswer."""
        self.client = client
        self.sample = client.deployment.sample
        hub = client.get("/" + BY_NAME["hub"].file)
        data = hub.json.get("data") if isinstance(hub.json, dict) else None
        if hub.status != 200 or not isinstance(data, dict) or "base_url" not in data:
            location = hub.headers.get("Location")
            raise Unusable(
                f"There is no hub at {client.address}: GET {hub.url} gave {hub.brief}"
                f"{f' and leads to {location}' if location else ''}. The base URL is the address "
                "of the home page; a path belongs to it."
            )
        self.hub: dict[str, Any] = data
        answer = client.get("/" + BY_NAME["catalogue"].file)
        try:
            lines = [json.loads(line) for line in answer.body.splitlines()]
            self.lines: list[dict[str, Any]] = [
                {"owner": line["owner"], "name": line["name"], "tags": list(line["tags"])} | line
                for line in lines
            ]
        except (ValueError, TypeError, KeyError) as error:
            raise Unusable(
                f"There is no list of what is in the hub: GET {answer.url} gave {answer.brief} "
                f"({type(error).__name__}: {error})."
            ) from None

    @cached_property
    def ids(self) -> list[tuple[str, str]]:
        """Owner and name of every repo, in the catalogue's order."""
        return [(line["owner"], line["name"]) for line in self.lines]

    @cached_property
    def owners(self) -> list[str]:
        return sorted({owner for owner, _ in self.ids})

    @cached_property
    def tag_counts(self) -> Counter[str]:
        return Counter(tag for line in self.lines for tag in line["tags"])

    # Repos, tags and pages under test

    @cached_property
    def repos(self) -> list[tuple[str, str]]:
        """The repos that are looked at: spread over the catalogue, and what stands out."""
        chosen = spread(self.ids, self.sample)
        by_tags = sorted(self.lines, key=lambda line: len(line["tags"]))
        standing_out = [(line["owner"], line["name"]) for line in by_tags[:1] + by_tags[-1:]]
        rows = rows_of(self.client.get("/" + BY_NAME["repos"].file))
        with_most = sorted(rows, key=lambda row: row.get("versions_count", 0))[-1:]
        standing_out += [(row["owner"], row["name"]) for row in with_most]
        return list(dict.fromkeys([*chosen, *standing_out]))

    @cached_property
    def tags(self) -> list[str]:
        """The tags that are looked at: the most used, and others."""
        by_count = [tag for tag, _ in sorted(self.tag_counts.items(), key=lambda one: -one[1])]
        return spread(by_count, self.sample)

    def versions(self, owner: str, name: str) -> list[dict[str, Any]]:
        """The versions of a repo that are looked at, newest first."""
        return spread(self._listed(owner, name, is_withdrawn=False), self.sample)

    def withdrawn(self, owner: str, name: str) -> list[dict[str, Any]]:
        """The withdrawn versions of a repo that are looked at, newest first."""
        return spread(self._listed(owner, name, is_withdrawn=True), self.sample)

    def _listed(self, owner: str, name: str, *, is_withdrawn: bool) -> list[dict[str, Any]]:
        path = "/" + BY_NAME["versions"].file_for(owner=owner, name=name)
        rows = rows_of(self.client.get(path))
        return [row for row in rows if ("withdrawn" in row) == is_withdrawn]

    def labels(self, owner: str, name: str) -> list[str] | None:
        """The labels of a repo; None if it never had a label."""
        answer = self.client.get("/" + BY_NAME["repo"].file_for(owner=owner, name=name))
        data = answer.json.get("data") if isinstance(answer.json, dict) else None
        labels = data.get("labels") if isinstance(data, dict) else None
        return [*spread(labels, self.sample)] if isinstance(labels, dict) else None

    def pages(self, tag: str | None, sort: str) -> list[Page]:
        """The pages of a list that are looked at."""
        total = self.tag_counts[tag] if tag else len(self.ids)
        last = max(1, -(-total // 50))
        return [Page(tag, sort, number) for number in spread(range(1, last + 1), self.sample)]

    def has_all_pages(self, tag: str | None) -> bool:
        """True if all pages of a list are tested."""
        return len(self.pages(tag, SORTS[0])) == self.pages(tag, SORTS[0])[-1].number

    @cached_property
    def all_pages(self) -> list[Page]:
        """All pages of lists that are looked at."""
        return [
            page for tag in (None, *self.tags) for sort in SORTS for page in self.pages(tag, sort)
        ]

    @cached_property
    def has_langfuse(self) -> bool:
        """True if Langfuse's SDKs can read the first repo, and so all of them."""
        if not self.ids:
            return False
        owner, name = self.ids[0]
        path = "/" + BY_NAME["langfuse_prompt"].file_for(owner=owner, name=name)
        return self.client.get(path).status == 200

    def refs(self, owner: str, name: str) -> list[str]:
        """The names for versions of a repo that Langfuse's SDKs can give, of what is looked at."""
        rows = self.versions(owner, name)
        numbers = [str(row["ordinal"]) for row in rows]
        labels = [*(self.labels(owner, name) or ()), LATEST]
        return [*(row["version"] for row in rows), *numbers, *labels]

    def params(self, route: Route) -> Iterator[dict[str, Any]]:
        """Parameters of a route's template, for each thing under test."""
        fields = set(FIELD.findall(route.file))
        if route.scope == "langfuse" and not self.has_langfuse:
            return
        if route.scope == "langfuse" and "name" not in fields:
            tagged = [page for page in self.all_pages if bool(page.tag) == ("tag" in fields)]
            chosen = [page for page in tagged if page.sort == SORTS[0]] if fields else [None]
            yield from (dict(langfuse_page(*page[::2]).params) if page else {} for page in chosen)
        elif "ref" in fields:
            for owner, name in self.repos:
                refs = self.refs(owner, name)
                yield from ({"owner": owner, "name": name, "ref": ref} for ref in refs)
        elif "version" in fields:
            for owner, name in self.repos:
                for number, row in enumerate(self.versions(owner, name)):
                    at = {"owner": owner, "name": name, "version": row["version"]}
                    if number and route.name == "version_plugin":
                        continue
                    is_archive = number and route.name == "version_skill_archive"
                    if route.scope == "files" or is_archive:
                        yield from self._folder(route, at)
                    elif route.name != "diff" or row["previous"]:
                        yield at
        elif route.scope == "label":
            for owner, name in self.repos:
                labels = self.labels(owner, name)
                if labels is not None and "label" not in fields:
                    yield {"owner": owner, "name": name}
                elif labels is not None:
                    yield from ({"owner": owner, "name": name, "label": one} for one in labels)
        elif route.scope == "versions":
            for owner, name in self.repos:
                path = file_of("versions", owner=owner, name=name)
                if len(rows_of(self.client.get(path))) > 1:
                    yield {"owner": owner, "name": name}
        elif "name" in fields:
            yield from ({"owner": owner, "name": name} for owner, name in self.repos)
        elif "owner" in fields:
            yield from ({"owner": owner} for owner in sorted({owner for owner, _ in self.repos}))
        elif route.scope == "list" and fields:
            for page in self.all_pages:
                if route.is_api:
                    match = list_api(*page)
                elif page.number <= LIST_PAGES_MAX:
                    match = list_page(*page)
                else:
                    continue
                if match.route == route:
                    yield dict(match.params)
        elif fields == {"page"}:
            # The sitemap has at least one part, and its index lists the others.
            yield {"page": 1}
        else:
            yield {}

    def _folder(self, route: Route, at: dict[str, str]) -> Iterator[dict[str, str]]:
        """The values for the template of a route for a version's files."""
        record = self.client.get("/" + BY_NAME["version"].file_for(**at)).json["data"]
        matches = [version_file(**at, path=one["path"]) for one in record.get("files", [])]
        if route.media == ZIP:
            yield from [at] if matches else []
        elif route.name == "file_page":
            yield from ({**at, "file_path": one["path"]} for one in record.get("files", []))
        else:
            yield from (dict(one.params) for one in matches if one.route == route)

    def example(self, route: Route) -> dict[str, Any] | None:
        """The first of ``params``; None if there are none."""
        return next(self.params(route), None)

    def files(self, route: Route) -> Iterator[str]:
        """The paths of a route's files, for all that is looked at."""
        for params in self.params(route):
            yield "/" + route.file_for(**params)

    def urls(self, route: Route) -> Iterator[tuple[str, str]]:
        """Each URL of a route, with the path of its file, for all that is looked at."""
        for params in self.params(route):
            file = "/" + route.file_for(**params)
            yield route.url_for(**params), file
            if route.query:
                yield route.query.format_map(params), file

    def url(self, route: Route) -> str | None:
        """An address of a route as in the spec, with a query if it has one.

        None if the deployment has nothing to request there.
        """
        params = self.example(route)
        return None if params is None else (route.query or route.url).format_map(params)

    # Requests for things that exist

    @cached_property
    def names(self) -> dict[str, str] | None:
        """Values for ``fill``: a repo, its newest version, a tag; None in an empty catalogue."""
        if not self.repos:
            return None
        with_diff = self.example(BY_NAME["diff"]) or self.example(BY_NAME["version"]) or {}
        owner, name = with_diff.get("owner", self.repos[0][0]), with_diff.get("name", "")
        repo = f"/api/v1/repos/{owner}/{name}"
        return {
            "owner": owner,
            "name": name,
            "Owner": owner.upper(),
            "Name": name.upper(),
            "version": with_diff.get("version", ""),
            "repo": repo,
            "tag": self.tags[0] if self.tags else NOBODY,
            "nobody": NOBODY,
        }

    def fill(self, template: str) -> str | None:
        """A path filled with names of the catalogue; None if it has no such names."""
        fields = set(FIELD.findall(template))
        if fields <= {"nobody"}:
            return template.replace("{nobody}", NOBODY)
        if self.names is None or ("tag" in fields and not self.tags):
            return None
        return FIELD.sub(lambda found: self.names[found[1]], template)


def file_of(name: str, /, **params: object) -> str:
    """The path of a route's file."""
    return "/" + BY_NAME[name].file_for(**params)


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """The rows of a list; none where the answer is no list."""
    data = answer.json.get("data") if isinstance(answer.json, dict) else None
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
