"""Writes the pages about the API and about clients, whose examples are prompts of this hub."""

from functools import lru_cache

import msgspec

from builder.emit.catalogue import read_repo
from builder.model.answers import RepoSummary
from builder.model.errors import STATUS
from builder.model.matching import version_file
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from builder.render import api_page, connect, openapi
from builder.render.api_page import Examples
from builder.render.pages import pages_of
from builder.store.site import Site
from builder.store.state import State

# So many of the top prompts are looked through for examples.
LOOKED_AT_MAX = 20
# Longer answers are cut. A character has at most four bytes.
ANSWER_CHARS = 240
ANSWER_BYTES_READ = 4 * ANSWER_CHARS


def write_reference(settings: Settings, state: State, site: Site) -> None:
    """Write the pages, after the files that they show."""
    examples = _examples(state, site)
    page = pages_of(settings).render(
        "connect.html", snippets=connect.snippets(settings), example=examples.connect()
    )
    site.write_fixed("connect", page)
    answers = {
        id: _shown(data)
        for id, file in examples.files().items()
        if (data := site.read(file, ANSWER_BYTES_READ)) is not None
    }
    shown_by = settings._replace(content="", out="", state="")
    site.write_fixed("api_page", _api_page(shown_by, examples, tuple(answers.items())))


@lru_cache(maxsize=1)
def _api_page(
    settings: Settings, examples: Examples, answers: tuple[tuple[str, str], ...]
) -> bytes:
    document = msgspec.json.decode(openapi.document(settings))
    api = api_page.describe(document, STATUS, examples)
    return pages_of(settings).render(
        "docs.html", api=api, answers=dict(answers), example=examples.connect()
    )


def _shown(data: bytes) -> str:
    text = data.decode(errors="ignore")
    return text if len(text) <= ANSWER_CHARS else text[:ANSWER_CHARS] + "…"


def _examples(state: State, site: Site) -> Examples:
    """The first of the top prompts for each kind of example."""
    top = state.repos.rows([key for key, _ in state.lists.order(None, SORTS[0], LOOKED_AT_MAX)])
    found: dict[str, api_page.Values] = {}
    for row, _ in top:
        summary = msgspec.json.decode(row, type=RepoSummary)
        at = {"owner": summary.owner, "name": summary.name}
        repo = read_repo(site, **at)
        if repo is None:
            continue
        at["version"] = repo.latest_version
        cases = {"any": at}
        if repo.tags:
            cases["tagged"] = {"tag": repo.tags[0]}
        if site.read(BY_NAME["diff"].file_for(**at), 0) is not None:
            cases["changed"] = at
        if repo.labels:
            cases["labelled"] = at | {"label": min(repo.labels)}
        if repo.files:
            path = repo.files[0].path
            cases["folder"] = at | {
                "file_path": path,
                "file": version_file(*at.values(), path).file,
            }
        found = {kind: tuple(values.items()) for kind, values in cases.items()} | found
        if len(found) == len(Examples._fields):
            break
    return Examples(**found)
