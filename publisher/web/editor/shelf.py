"""The pages around the editor: the list of an owner's prompts, and the page after a publication."""

from flask import Response, request

from builder.model import names
from builder.model.errors import RequestError
from builder.model.matching import fits, version_file
from builder.model.names import Version
from builder.model.plural import counted
from publisher.accounts.protected import ProtectedLabels
from publisher.accounts.saved_drafts import SavedDrafts
from publisher.web.editor.mine import Mine, current_labels, list_mine
from publisher.web.editor.writing import read_base
from publisher.web.pages.frame import Frame


def mine(frame: Frame, person: str) -> Response:
    owners = frame.owners()
    if "owner" in request.args:
        owners = [frame.chosen(person).owner]
    words, page = request.args.get("q", "").strip(), request.args.get("page", "1")
    number = int(page) if fits("page", page) else 1
    try:
        found, missing = list_mine(frame.service.settings, owners, words, number), ""
    except RequestError as error:
        # Drafts, and the link to the editor, are shown without the list too.
        found, missing = Mine([], 1, 1, 0, False), str(error)
    drafts = SavedDrafts(frame.service.database).of(person)
    drafts = [draft for draft in drafts if draft.owner in owners]
    return frame.render("prompts.html", mine=found, missing=missing, drafts=drafts, q=words)


def discard(frame: Frame, person: str, draft_id: str) -> Response:
    is_gone = SavedDrafts(frame.service.database).discard(person, draft_id)
    return frame.redirect("/prompts", "The draft is discarded." if is_gone else "No such draft.")


def published(frame: Frame, person: str, whose: str, name: str) -> Response:
    owner = frame.act(person, whose).owner
    version, root = request.args.get("version", ""), frame.service.settings.content
    is_version = names.is_version(version)
    found = is_version and read_base(root, owner, names.check_repo(name), Version.parse(version))
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
