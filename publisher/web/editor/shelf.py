"""The pages around the editor: the list of an owner's prompts, and the page after a publication.

The list shows the output of the last build, so it does not open the files of each prompt.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from flask import Response, request

from builder.model import names
from builder.model.answers import RepoSummary
from builder.model.errors import RequestError
from builder.model.matching import fits, version_file
from builder.model.plural import counted
from builder.model.routes import PAGE_SIZE
from builder.model.settings import Settings
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.saved_drafts import SavedDrafts
from publisher.web.editor.writing import read_base
from publisher.web.pages.frame import Frame
from publisher.web.pages.repos import labels_of, reading

_decode_summary = msgspec.json.Decoder(RepoSummary).decode


class Mine(NamedTuple):
    """A page of the prompts of some owners, latest changed first, each with its labels and their
    versions. ``total``: of all their prompts.
    """

    prompts: list[tuple[RepoSummary, dict[str, str]]]
    page: int
    pages: int
    total: int


def _list_mine(settings: Settings, owners: Sequence[str], page: int) -> Mine:
    """Returns a page. A page number after the last page gives the last page. Raises RequestError
    ``unavailable`` before the site is built.
    """
    with reading(settings) as state:
        total = state.repos.count_of_owners(owners)
        pages = max(1, -(-total // PAGE_SIZE))
        page = min(max(page, 1), pages)
        rows = state.repos.summaries_of_owners(owners, (page - 1) * PAGE_SIZE, PAGE_SIZE)
    prompts = [_decode_summary(row) for row in rows]
    shown = [(one, current_labels(settings, one.owner, one.name)) for one in prompts]
    return Mine(shown, page, pages, total)


def current_labels(settings: Settings, owner: str, name: str) -> dict[str, str]:
    """Returns the version of each label of a prompt, as readers see it."""
    moves = labels_of(settings, owner, name)
    return {label: move.version for label, move in moves.items() if move.version}


def mine(frame: Frame, person: str) -> Response:
    owners = frame.owners()
    if "owner" in request.args:
        owners = [frame.chosen(person).owner]
    page = request.args.get("page", "1")
    number = int(page) if fits("page", page) else 1
    try:
        found, missing = _list_mine(frame.service.settings, owners, number), ""
    except RequestError as error:
        # Drafts, and the link to the editor, are shown without the list too.
        found, missing = Mine([], 1, 1, 0), str(error)
    drafts = SavedDrafts(frame.service.database).of(person)
    drafts = [draft for draft in drafts if draft.owner in owners]
    return frame.render("prompts.html", mine=found, missing=missing, drafts=drafts)


def discard(frame: Frame, person: str, draft_id: str) -> Response:
    is_gone = SavedDrafts(frame.service.database).discard(person, draft_id)
    return frame.redirect("/prompts", "The draft is discarded." if is_gone else "No such draft.")


def published(frame: Frame, person: str, whose: str, name: str) -> Response:
    owner = frame.act(person, whose).owner
    version, root = request.args.get("version", ""), frame.service.settings.content
    found = read_base(root, owner, names.check_repo(name), version)
    if not found:
        raise RequestError(
            "version_not_found", f"{owner}/{name} has no such version. Go to My prompts."
        )
    return frame.render(
        "published.html",
        name=name,
        version=version,
        counted=counted,
        record=found.record,
        size=len(found.text.encode()),
        labels=current_labels(frame.service.settings, owner, name),
        protected=ProtectedLabels(frame.service.database).in_repo(owner, name),
        files=[version_file(owner, name, version, path).url for path in found.files],
    )
