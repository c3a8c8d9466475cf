"""The pages on which owners see, write and publish their prompts. Each works without scripts.

Whatever fails after a form was sent, the answer shows everything that the form had.
"""

import re
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from flask import Response, abort, g, request
from msgspec import UNSET, structs

from builder.model import names
from builder.model.errors import RequestError
from builder.model.plural import counted
from builder.model.request_bodies import Draft
from publisher.accounts.saved_drafts import ID_PATTERN, SavedDraft, SavedDrafts
from publisher.web.editor.fields import WritingError, propose_name, to_draft
from publisher.web.editor.files import add_uploads, faults_of, rows_of
from publisher.web.editor.origin import ASK, OVERRIDE, origin_of
from publisher.web.editor.page import Page, show_conflict, show_editor
from publisher.web.editor.plan import (
    PublicationPlan,
    as_writing_error,
    make_plan,
    seal_of,
)
from publisher.web.editor.shelf import discard, mine, published
from publisher.web.editor.values import with_line_feeds
from publisher.web.editor.writing import (
    Base,
    Writing,
    read_base,
    read_writing,
    rebase,
)
from publisher.web.pages.frame import Frame, after_login
from publisher.web.pages.repos import show_readers
from publisher.write.decision import Terms
from publisher.write.idempotency import fingerprint
from publisher.write.publish import Published, publish
from server.bodies import VISITOR_BYTES_MAX

EXPIRED = (
    "This form has expired, as you have signed in again since you opened it. Nothing was saved or "
    "published. Here is what you sent: check it, then send it again."
)
FAILED = (
    "Nothing is published, because the hub cannot do that right now. Your text is kept on this "
    "page: try again later."
)
KEPT = (
    "Nothing was saved or published. Here is your text: you can publish it as a prompt of your "
    "own, or for another owner."
)
FILES_READ = "The files are in the list. Nothing is published yet."
CHECK = "Check what will happen, then publish."
CHANGE = "Change the text, a detail or a file first. To move a label, open Labels."
GONE = "This draft is not there any more: it was published, discarded, or not changed for 90 days."

_draft_id = re.compile(ID_PATTERN)


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    editor = _Editor(frame)
    frame.add("/prompts", mine)
    frame.add("/prompts/drafts/<draft_id>/discard", discard, "POST")
    frame.add_writing("/prompts/new", editor.new, signed_out)
    frame.add_writing("/prompts/<whose>/<name>", editor.edit, signed_out)
    frame.add("/prompts/<whose>/<name>/published", published)


def signed_out(frame: Frame, **_: str) -> Response:
    """Keeps a small form that arrives after its session is over."""
    is_kept = (request.content_length or 0) <= VISITOR_BYTES_MAX
    sent = list(request.form.items(multi=True)) if is_kept else []
    fields = [pair for pair in sent if pair[0] not in ("csrf_token", "action")]
    there = after_login(frame.here())
    has_uploads = is_kept and any(one.filename for one in request.files.values())
    shown = {"fields": fields, "is_kept": is_kept, "there": there, "has_uploads": has_uploads}
    return frame.render("signed_out.html", HTTPStatus.UNAUTHORIZED, **shown)


class _Sent(NamedTuple):
    """A form that a ``person`` sent. ``name`` is the prompt's, ``base`` the version that it began
    with. ``left_out``: sentences about what an uploaded ZIP has beside the version.
    """

    person: str
    owner: str
    name: str
    is_new: bool
    base: Base | None
    latest: Base | None
    writing: Writing
    draft: SavedDraft | None
    left_out: tuple[str, ...] = ()


class _Editor:
    """The views of the editor."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._settings = frame.service.settings
        self._root = self._settings.content
        self._drafts = SavedDrafts(frame.service.database)
        self._actions = {
            "preview": self._preview,
            "look": partial(self._preview, is_preview=False),
            "publish": self._publish,
            "save": self._save,
            "files": partial(self._again, note=FILES_READ),
            "back": partial(self._again, note="Your text is back. It is not saved yet."),
            "mine": self._take_mine,
            "merge": self._take_mine,
            "theirs": self._take_theirs,
        }

    def new(self, frame: Frame, person: str) -> Response:
        if request.method == "POST":
            return self._receive(person, request.form.get("owner") or person, None)
        draft, saved = self._saved(person, "")
        owner = frame.act(person, draft.owner).owner if draft else frame.chosen(person).owner
        writing = saved or Writing()
        name = propose_name(self._root, owner, writing)
        plan = self._first_plan(owner, name, writing, None) if saved else None
        page = Page(owner, "", None, writing, draft)
        return show_editor(frame, page, plan=plan, proposed=name if saved else "")

    def edit(self, frame: Frame, person: str, whose: str, name: str) -> Response:
        names.check_repo(name)
        if request.method == "POST":
            return self._receive(person, whose, name)
        latest = read_base(self._root, names.check_owner(whose), name)
        if not latest:
            raise RequestError(
                "repo_not_found", f"{whose} has no prompt {name}. Create it with New prompt."
            )
        if whose not in frame.owners():
            return self._copy(person, whose, name, latest)
        owner = frame.act(person, whose).owner
        draft, writing = self._saved(person, name, owner)
        drafts = [] if draft else self._drafts.of(person, owner, name)
        page = Page(owner, name, latest, writing or latest.shown, draft, drafts)
        plan = self._first_plan(owner, name, page.writing, latest)
        return show_editor(frame, page, plan=plan)

    def _copy(self, person: str, whose: str, name: str, base: Base) -> Response:
        """The editor of a new prompt with the text and files of someone else's prompt."""
        files = rows_of(base.files, with_data=True)
        writing = structs.replace(base.shown, base_version="", name=name, files=files)
        page = Page(person, "", None, writing, None)
        what = f"{whose}/{name} {base.version}"
        note = f"This is the text of {what}. Publish it as a prompt of your own."
        if base.record.license:
            note += f" Its licence is {base.record.license}."
        proposed = propose_name(self._root, person, writing)
        return show_editor(self._frame, page, note=note, proposed=proposed)

    def _first_plan(
        self, owner: str, name: str, writing: Writing, base: Base | None
    ) -> PublicationPlan | None:
        """Returns the plan of a stored text; None if it cannot be published unchanged."""
        if base and writing.base_version != str(base.version):
            return None
        try:
            return make_plan(self._settings, owner, name, writing, base)
        except (WritingError, RequestError):
            return None

    def _saved(
        self, person: str, name: str, owner: str | None = None
    ) -> tuple[SavedDraft | None, Writing | None]:
        """Returns the saved draft that the URL names, and its fields. Leads to the list if it is
        gone, or another prompt's.
        """
        draft_id = request.args.get("draft")
        if draft_id is None:
            return None, None
        found = self._drafts.find(person, draft_id) if _draft_id.fullmatch(draft_id) else None
        if not found or found[0].repo != name or owner not in (None, found[0].owner):
            abort(self._frame.redirect("/prompts", GONE))
        return found[0], msgspec.json.decode(found[1], type=Writing)

    # Sent forms

    def _receive(self, person: str, owner: str, repo: str | None) -> Response:
        writing, name = read_writing(request.form), repo or ""
        try:
            self._frame.act(person, owner)
        except RequestError as error:
            # The text is not lost: it can become a prompt of the person's own.
            writing = structs.replace(writing, base_version="", name=writing.name or name)
            sent = _Sent(person, person, "", True, None, None, writing, None)
            return self._again(sent, note=f"{error} {KEPT}", status=error.status)
        base = latest = read_base(self._root, owner, name) if repo else None
        if latest and writing.base_version != str(latest.version):
            base = read_base(self._root, owner, name, writing.base_version)
        sent = _Sent(person, owner, name, repo is None, base, latest, writing, _sent_draft())
        try:
            writing, left_out = _with_uploads(writing, self._settings.file_bytes)
            sent = sent._replace(writing=writing, left_out=tuple(left_out))
        except RequestError as error:
            return self._again(sent, errors={"files": faults_of(error)}, status=error.status)
        sent = self._named(sent) if sent.is_new else sent
        if not self._frame.is_form_ours():
            return self._again(sent, note=EXPIRED, status=HTTPStatus.BAD_REQUEST)
        action = request.form.get("action", "")
        wait_seconds = self._frame.changes_wait_seconds(person, is_preview=action == "look")
        if wait_seconds:
            return self._wait(sent, wait_seconds, "Too many changes to this account")
        try:
            return self._actions.get(action, self._preview)(sent)
        except (WritingError, RequestError) as error:
            is_look = action == "look"
            if isinstance(error, RequestError) and error.code == "base_version_mismatch":
                return self._again(sent) if is_look else self._conflict(sent)
            if isinstance(error, RequestError) and error.status >= 500:
                return self._again(sent, note=FAILED, detail=str(error), status=error.status)
            if isinstance(error, RequestError) and not is_look:
                return self._again(sent, note=str(error), status=error.status)
            errors = {"content": [str(error)]} if isinstance(error, RequestError) else error.errors
            # An unfinished text is not an error while the author writes.
            status = HTTPStatus.OK if is_look else error.status
            return self._again(sent, errors=errors, status=status, is_look=is_look)

    def _named(self, sent: _Sent) -> _Sent:
        """Returns the form of a new prompt with its name: the typed one, the one that the author
        saw and publishes, or a new proposal.
        """
        writing, proposed = sent.writing, request.form.get("proposed", "")
        if request.form.get("action") != "publish" or writing.name or not proposed:
            proposed = propose_name(self._root, sent.owner, writing)
        if writing.name:
            writing = structs.replace(writing, name=proposed)
        return sent._replace(name=proposed, writing=writing)

    def _again(self, sent: _Sent, writing: Writing | None = None, **shown: Any) -> Response:
        """Returns the editor with the fields that were sent, or with ``writing`` instead."""
        repo = "" if sent.is_new else sent.name
        page = Page(sent.owner, repo, sent.latest, writing or sent.writing, sent.draft)
        proposed = sent.name if sent.is_new else ""
        shown["note"] = " ".join(filter(None, [shown.get("note", ""), *sent.left_out]))
        return show_editor(self._frame, page, proposed=proposed, **shown)

    def _wait(self, sent: _Sent, wait_seconds: int, reason: str) -> Response:
        note = f"{reason}. Nothing is lost: send this page again in {wait_seconds} seconds."
        response = self._again(sent, note=note, status=HTTPStatus.TOO_MANY_REQUESTS)
        response.headers["Retry-After"] = str(wait_seconds)
        return response

    def _plan(self, sent: _Sent, writing: Writing | None = None) -> PublicationPlan:
        if not sent.is_new and not sent.base:
            raise RequestError("base_version_mismatch", "This version is not there any more.")
        return make_plan(self._settings, sent.owner, sent.name, writing or sent.writing, sent.base)

    def _preview(self, sent: _Sent, *, is_preview: bool = True) -> Response:
        return self._again(sent, plan=self._plan(sent), is_preview=is_preview)

    def _save(self, sent: _Sent) -> Response:
        draft = self._keep(sent)
        where = "/prompts/new" if sent.is_new else f"/prompts/{sent.owner}/{sent.name}"
        note = "The draft is saved. Only you can see it."
        if sent.draft and sent.draft.id != draft.id:
            note = (
                "This draft was saved or discarded in another window meanwhile, so yours is saved "
                "as another draft."
            )
        return self._frame.redirect(f"{where}?draft={draft.id}", note)

    def _keep(self, sent: _Sent) -> SavedDraft:
        writing = sent.writing
        title = writing.title or writing.name or " ".join(writing.content.split()[:12])
        return self._drafts.save(
            sent.person,
            (sent.owner, "" if sent.is_new else sent.name),
            title or "Untitled",
            msgspec.json.encode(writing),
            over=sent.draft,
        )

    # Publish

    def _publish(self, sent: _Sent) -> Response:
        step = request.form.get("step", "")
        bump = sent.writing.bump or (step if step in names.BUMPS else "")
        writing, file_bytes = structs.replace(sent.writing, bump=bump), self._settings.file_bytes
        draft = to_draft(writing, sent.name, sent.base, file_bytes)
        if request.form.get("seal") != seal_of(draft, sent.name) or (sent.base and not bump):
            if sent.is_new:
                sent = sent._replace(name=propose_name(self._root, sent.owner, sent.writing))
            return self._again(sent, plan=self._plan(sent), note=CHECK, is_preview=True)
        missing = {}
        if sent.base and bump != "patch" and not sent.writing.changelog.strip():
            missing["changelog"] = [f"Enter what changes: a {bump} version needs a changelog."]
        is_from_here = not origin_of(self._frame.service, sent.owner, sent.name, sent.latest)
        if OVERRIDE not in request.form and not is_from_here:
            missing[OVERRIDE] = [ASK]
        if missing:
            status = HTTPStatus.UNPROCESSABLE_ENTITY
            return self._again(sent, plan=self._plan(sent), errors=missing, status=status)
        g.publication = "version"
        if wait_seconds := self._frame.service.publications.hit(sent.owner):
            return self._wait(sent, wait_seconds, f"Too many publications of {sent.owner}")
        try:
            done = self._store(sent, draft)
        except RequestError as error:
            raise as_writing_error(error, sent.name) from error
        if done.unchanged:
            note = f"Nothing changed since {done.version}, so nothing is published. {CHANGE}"
            return self._again(sent, plan=self._plan(sent), note=note)
        if sent.draft:
            self._drafts.discard(sent.person, sent.draft.id, sent.draft.revision)
        where = f"/prompts/{done.owner}/{done.name}/published?version={done.version}"
        return self._frame.redirect(where, self._tell(done, draft))

    def _store(self, sent: _Sent, draft: Draft) -> Published:
        if not sent.is_new and not sent.base:
            raise RequestError("base_version_mismatch", "This version is not there any more.")
        body = msgspec.json.encode(draft)
        mark = fingerprint(sent.owner, sent.name, "editor", body=body)
        # The same form sent again, by a double click or a reload, is the same publication.
        key = f"editor-{sent.writing.nonce}-{mark.hex()[:32]}"
        terms = Terms(
            idempotency_key=self._frame.service.idempotency_key(sent.person, key, mark),
            quotas=self._frame.service.quotas,
            create_only=sent.is_new,
        )
        # As it is now: the role may have changed since the form was opened.
        actor = self._frame.act(sent.person, sent.owner)
        try:
            self._frame.service.rights.check_may_publish(actor, sent.name, draft.labels)
        except RequestError as error:
            raise WritingError({"new_labels": [str(error)]}, error.status) from error
        done = publish(
            self._frame.service.store,
            sent.owner,
            sent.name,
            draft,
            publisher=actor.name,
            terms=terms,
        )
        self._frame.service.note_change(actor, "published", done)
        return done

    def _tell(self, done: Published, draft: Draft) -> str:
        """Makes the version visible to readers. Returns the message for its author."""
        note = f"{done.owner}/{done.name} {done.version} is published."
        if done.files and draft.files is UNSET:
            note += f" It has the {counted(len(done.files), 'file')} of {done.previous_version}."
        return show_readers(self._frame.service.rebuilder, done.owner, done.name, note)

    # Another person has published meanwhile

    def _conflict(self, sent: _Sent) -> Response:
        repo = "" if sent.is_new else sent.name
        # The other version may have come after this request read the latest one.
        latest = read_base(self._root, sent.owner, sent.name)
        if not latest:
            raise RequestError("repo_not_found", f"{sent.owner}/{sent.name} has no version.")
        page = Page(sent.owner, repo, latest, sent.writing, sent.draft)
        return show_conflict(self._frame, page, sent.base)

    def _take_mine(self, sent: _Sent) -> Response:
        latest = sent.latest
        if not latest:
            return self._preview(sent)
        writing = rebase(sent.writing, sent.base, latest)
        if request.form.get("action") == "merge":
            note = "Copy what you want to keep of theirs into your text, then publish it."
            plan = self._first_plan(sent.owner, sent.name, writing, latest)
            return self._again(sent, writing, plan=plan, note=note, before=sent.base)
        return self._again(
            sent, writing, plan=self._plan(sent._replace(base=latest), writing), note=CHECK
        )

    def _take_theirs(self, sent: _Sent) -> Response:
        self._keep(sent)
        return self._frame.redirect(
            f"/prompts/{sent.owner}/{sent.name}",
            "You continue with the latest version. Your own text is saved as a draft.",
        )


def _with_uploads(writing: Writing, file_bytes: int) -> tuple[Writing, list[str]]:
    """Returns the fields with the files of the request, and sentences about what is left out.
    Raises RequestError.
    """
    folder = request.form.get("upload-folder", "")
    files, text, left_out = add_uploads(writing.files, request.files, folder, file_bytes)
    content = writing.content if text is None else with_line_feeds(text)
    return structs.replace(writing, files=files, content=content), left_out


def _sent_draft() -> SavedDraft | None:
    """Returns the saved draft that a form began as, by the form's hidden fields."""
    draft_id, revision = request.form.get("draft", ""), request.form.get("revision", "")
    if not _draft_id.fullmatch(draft_id) or not re.fullmatch("[0-9]{1,9}", revision):
        return None
    return SavedDraft(draft_id, "", "", "", 0, int(revision))
