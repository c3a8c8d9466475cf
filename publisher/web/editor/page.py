"""Shows the editor, and the page for two changes that conflict."""

import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from flask import Response, request
from msgspec import structs

from builder.model import names
from builder.model.matching import version_file
from builder.model.plural import counted
from builder.model.records import CONTENT_BYTES_MAX
from builder.model.request_bodies import publication_bytes_max
from builder.model.version_files import FILES_MAX
from builder.text.prompts import parse_document, variable_names
from publisher.accounts.rights import ProtectedLabels
from publisher.accounts.saved_drafts import SavedDraft
from publisher.web.editor.fields import TYPES, front_fields
from publisher.web.editor.files import FileRow, data_of, rows_of
from publisher.web.editor.origin import OVERRIDE, origin_of
from publisher.web.editor.shelf import current_labels
from publisher.web.editor.values import restore_line_ends, show_value
from publisher.web.editor.writing import (
    AUTO,
    NO,
    PARAMETERS,
    YES,
    Base,
    VariableRow,
    Writing,
    rows_for,
)
from publisher.web.pages.difference import compare
from publisher.web.pages.frame import Frame

_FIELD_NAMES = {
    "title": "Title",
    "name": "Name",
    "content": "Prompt",
    "variables": "Variables",
    "description": "Description",
    "tags": "Tags",
    "license": "Licence",
    "more": "Other parameters",
    "files": "Files",
    "labels": "Labels",
    "new_labels": "Labels",
    "changelog": "What changes",
    OVERRIDE: "Repository",
} | {f"parameter-{name}": label for name, (label, _) in PARAMETERS.items()}

_CHOICES_OF_REQUIRED = ((AUTO, "If no default"), (YES, "Always"), (NO, "Never"))


class ShownFile(NamedTuple):
    """A row of a file. ``size`` is None if its data cannot be read; ``url``: the address of a file
    of the base version; empty for others.
    """

    row: FileRow
    size: int | None
    state: str
    url: str = ""


class Page(NamedTuple):
    """The prompt and the draft that the editor is open on. ``repo`` is empty for a new prompt,
    which has no ``latest`` version. ``draft`` is the saved draft that the ``writing`` comes from,
    if any. ``drafts`` are those of this prompt that the author can continue.
    """

    owner: str
    repo: str
    latest: Base | None
    writing: Writing
    draft: SavedDraft | None
    drafts: Sequence[SavedDraft] = ()


# Additions to the editor's page, where there are none. ``plan``: what publishing would do.
# ``detail``: the part of the ``note`` for the operator. ``proposed``: the name of a new prompt.
# ``is_preview``: small screens show the preview first. ``is_look``: a script requests the page for
# its preview.
_NOTHING = {"plan": None, "errors": {}, "is_preview": False, "is_look": False}
_NOTHING |= dict.fromkeys(("note", "detail", "proposed"), "")


def show_editor(
    frame: Frame,
    page: Page,
    status: int = HTTPStatus.OK,
    before: Base | None = None,
    **shown: Any,
) -> Response:
    """The editor's page, with the additions ``shown``. ``before``: others have published since this
    version, and the author merges their changes by hand.
    """
    writing = page.writing
    text = restore_line_ends(writing.content, page.latest.text if page.latest else "")
    document = parse_document(text)
    fields = front_fields(document)
    front = {
        field: ", ".join(value) if field == "tags" else show_value(value)
        for field, value in fields.items()
        if field != "variables"
    }
    found = variable_names(document.body)
    known = page.latest.shown.rows if page.latest else ()
    rows = rows_for(found, (*known, *writing.rows))
    described = [*known, *(row for row in rows if row != VariableRow(row.name))]
    if "variables" in fields:
        described = fields["variables"]
        front["variables"] = ", ".join(one.name for one in described)
    unknown = {*found} - {one.name for one in described}
    name = page.repo or shown.get("proposed", "")
    return frame.render(
        "editor.html", status, **_shared(frame, page), **(_NOTHING | shown),
        drafts=page.drafts, is_refused=status >= HTTPStatus.BAD_REQUEST, field_name=_field_name,
        told=request.form.get("told"),
        choices_of_owner=[] if page.repo else [(one, one) for one in frame.owners()],
        origin=origin_of(frame.service, page.owner, name, page.latest),
        front=front, has_front=document.front is not None,
        is_behind=bool(page.latest) and writing.base_version != str(page.latest.version),
        size=len(text.encode("utf-8", "surrogatepass")), size_max=CONTENT_BYTES_MAX,
        request_max=publication_bytes_max(frame.service.settings.file_bytes),
        file_rows=_file_rows(page, frame.service.settings.base_path), counted=counted,
        files_max=FILES_MAX, file_bytes_max=frame.service.settings.file_bytes,
        new_file=ShownFile(FileRow(""), 0, "new"),
        rows=rows, found=set(found), unknown=[one for one in found if one in unknown],
        new_names={one for one in found if known and one not in {row.name for row in known}},
        types=[(type, type) for type in TYPES], required_choices=_CHOICES_OF_REQUIRED,
        parameters=PARAMETERS, is_override=OVERRIDE in request.form,
        theirs=before and page.latest and compare(
            before.text, page.latest.text, str(before.version), str(page.latest.version)
        ),
        their_text=page.latest.text if before and page.latest else "",
    )  # fmt: skip


def _field_name(id: str) -> str:
    """Returns the name of a field, or of the variable that it describes."""
    return _FIELD_NAMES.get(id) or "Variable " + id.removeprefix("variable-").rpartition("-")[0]


def show_conflict(frame: Frame, page: Page, base: Base | None) -> Response:
    """Shows the page of a writing that began with ``base``, which is no longer the latest
    version.
    """
    latest, writing = page.latest, page.writing
    mine = restore_line_ends(writing.content, base.text if base else "")
    name = str(base.version) if base else ""
    return frame.render(
        "conflict.html",
        HTTPStatus.PRECONDITION_FAILED,
        **_shared(frame, page),
        base=base,
        latest=latest,
        my_change=base and compare(base.text, mine, name, "yours"),
        their_change=base and compare(base.text, latest.text, name, str(latest.version)),
        my_text=mine,
        their_files=base
        and sorted({path for path, _ in base.files.items() ^ latest.files.items()}),
    )


def _shared(frame: Frame, page: Page) -> dict[str, Any]:
    """Returns the values that both pages and the fields on them need."""
    where = f"/prompts/{page.owner}/{page.repo}" if page.repo else "/prompts/new"
    labels = current_labels(frame.service.settings, page.owner, page.repo) if page.repo else {}
    writing = page.writing
    return {
        "owner": page.owner,
        "repo": page.repo,
        "action": f"{where}?draft={page.draft.id}" if page.draft else where,
        "draft": page.draft,
        "writing": structs.replace(writing, nonce=secrets.token_hex(8)),
        "latest_version": str(page.latest.version) if page.latest else "",
        "labels": labels,
        "protected": ProtectedLabels(frame.service.database).in_repo(page.owner, page.repo),
        "labels_max": names.LABELS_PER_REPO_MAX,
    }


def _file_rows(page: Page, base_path: str) -> list[ShownFile]:
    files = page.latest.files if page.latest else {}
    at = page.owner, page.repo, page.writing.base_version
    shown = []
    # A draft that an older release saved has no rows.
    for row in page.writing.files or rows_of(files):
        is_known = row.source in files
        if row.removed and not is_known:
            continue
        try:
            size = len(data_of(row, files))
        except ValueError:
            size = None
        state = "changed" if is_known else "new"
        if not row.data:
            state = "renamed" if row.was else ""
        url = base_path + version_file(*at, row.source).url if is_known else ""
        shown.append(ShownFile(row, size, state, url))
    return shown
