"""Publications and changes of labels over HTTP.

Checks the token, waits until readers can see the change, and answers.
"""

from functools import partial

import msgspec
from flask import Flask, Response, g, request
from msgspec import structs

from builder.model import names
from builder.model.answers import ChangedLabel, Publication
from builder.model.envelopes import single
from builder.model.errors import Faults, RequestError
from builder.model.links import Links
from builder.model.service_urls import CHECK_URL, LABEL_URL, PUBLISH_URL
from builder.store import content
from publisher.accounts.teams import Actor
from publisher.service.parts import Service
from publisher.web.incoming import parse_publication, read_label_change, read_publication
from publisher.web.json_answers import json_answer
from publisher.web.token_check import TokenCheck, client, refuse
from publisher.write.check import check as check_draft
from publisher.write.decision import Terms
from publisher.write.idempotency import fingerprint
from publisher.write.labels import LabelChange, change_label
from publisher.write.next_version import NO_STEP, Step, step_after
from publisher.write.publish import Published, publish
from server.answer_headers import RETRY_SECONDS


def add_to(app: Flask, service: Service, tokens: TokenCheck) -> None:
    """Adds these views."""
    views = _Publishing(service, tokens)
    app.add_url_rule(_rule(PUBLISH_URL), "publish", views.publish, methods=["POST"])
    app.add_url_rule(_rule(CHECK_URL), "check", views.check, methods=["POST"])
    app.add_url_rule(_rule(LABEL_URL), "label", views.label, methods=["PUT", "DELETE"])


def _rule(url: str) -> str:
    return url.replace("{", "<").replace("}", ">")


class _Publishing:
    """The views."""

    def __init__(self, service: Service, tokens: TokenCheck) -> None:
        self._service = service
        self._tokens = tokens
        self._links = Links(service.settings.base_url)
        self._file_bytes = service.settings.file_bytes

    def publish(self, owner: str, name: str) -> Response:
        _begin("version", owner, name)
        check = partial(self._service.rights.check_may_publish, name=name)
        actor = self._tokens.admit(owner, check)
        _check_names(owner, name)
        body = read_publication(request, self._file_bytes)
        incoming = parse_publication(request, body, self._file_bytes)
        g.fields["bytes"] = len(incoming.body)
        actor = self._tokens.admit_again(actor, check)
        if incoming.draft.labels:
            check(actor, labels=incoming.draft.labels)
        mark = fingerprint(owner, name, incoming.if_match, body=incoming.body)
        terms = self._terms(actor, incoming.key, mark)
        with self._service.work.publication():
            done = publish(
                self._service.store, owner, name, incoming.draft, publisher=actor.name, terms=terms
            )
            done = structs.replace(done, warnings=incoming.warn(done.warnings))
            self._service.note_change(actor, "published", done)
            saved = f"{owner}/{name} {done.version}"
            return self._answer(done, self._make_visible(owner, name, saved))

    def check(self, owner: str, name: str) -> Response:
        """Returns what the same request would do as a publication."""
        _begin("check", owner, name)
        may_publish = partial(self._service.rights.check_may_publish, name=name)
        actor = self._tokens.admit_check(owner, may_publish)
        _check_names(owner, name)
        too_long = partial(refuse, reason="Checks from your address took too much time of this hub")
        body = read_publication(request, self._file_bytes)
        with self._service.work.turn(client(), too_long):
            incoming = parse_publication(request, body, self._file_bytes)
            g.fields["bytes"] = len(incoming.body)
            if actor and incoming.draft.labels:
                may_publish(actor, labels=incoming.draft.labels)
            done = check_draft(
                self._service.store,
                owner,
                name,
                incoming.draft,
                publisher=actor.name if actor else owner,
                terms=Terms(quotas=self._service.quotas),
            )
        done.warnings = incoming.warn(done.warnings)
        g.fields |= {"version": done.version, "unchanged": done.unchanged}
        return json_answer(200, single(done))

    def label(self, owner: str, name: str, label: str) -> Response:
        """Moves a label to a version, or removes it."""
        _begin("label", owner, name)
        check = partial(self._service.rights.check_may_label, name=name, labels=[label])
        actor = self._tokens.admit(owner, check)
        _check_names(owner, name)
        g.fields["label"] = names.check_new_label(label)
        incoming = read_label_change(request)
        g.fields["bytes"] = len(incoming.body)
        actor = self._tokens.admit_again(actor, check)
        mark = fingerprint(owner, name, label, request.method, body=incoming.body)
        terms = self._terms(actor, incoming.key, mark)
        done = change_label(
            self._service.store, owner, name, label, incoming.draft, by=actor.name, terms=terms
        )
        self._service.note_change(actor, "label_moved", done)
        self._make_visible(owner, name, f"The label {label} of {owner}/{name}")
        return self._answer_label(done)

    def _terms(self, actor: Actor, key: str | None, mark: bytes) -> Terms:
        found = None if key is None else self._service.idempotency_key(actor.name, key, mark)
        return Terms(source=actor.token.source, idempotency_key=found, quotas=self._service.quotas)

    def _make_visible(self, owner: str, name: str, saved: str) -> int:
        """Waits until readers see what was ``saved``."""
        try:
            visible = self._service.rebuilder.make_visible(owner, name)
        except RequestError as error:
            raise RequestError(
                error.code,
                f"{saved} is saved. {error} Send the same request again in {RETRY_SECONDS} "
                "seconds: it is not saved twice.",
            ) from error
        return self._service.store.decided_serial or visible

    def _answer(self, done: Published, serial: int) -> Response:
        where = {"owner": done.owner, "name": done.name, "version": done.version}
        publication = Publication(
            **msgspec.structs.asdict(done),
            url=self._links.page("version_page", **where),
            raw_url=self._links.file("version_raw", **where),
            serial=serial,
        )
        response = json_answer(200 if done.unchanged else 201, single(publication))
        if not done.unchanged:
            response.headers["Location"] = self._links.page("version", **where)
        return response

    def _answer_label(self, done: LabelChange) -> Response:
        step = self._step_of(done)
        changed = ChangedLabel(**msgspec.structs.asdict(done), bump=step.bump, reasons=step.reasons)
        is_new = done.version is not None and done.previous is None and not done.unchanged
        response = json_answer(201 if is_new else 200, single(changed))
        if is_new:
            url = LABEL_URL.format(owner=done.owner, name=done.name, label=done.label)
            response.headers["Location"] = self._service.settings.base_url + url
        return response

    def _step_of(self, done: LabelChange) -> Step:
        """Returns what a move of a label changes for callers."""
        place = self._service.settings.content, done.owner, done.name
        with Faults():  # A version may have been removed meanwhile.
            there = {str(one): one for one in content.list_versions(*place).versions}
            moved = [there[one] for one in (done.previous, done.version) if one in there]
            if len(moved) == 2:
                before, after = (content.read_version(*place, one) for one in moved)
                return step_after(before, *after) or NO_STEP
        return NO_STEP


def _check_names(owner: str, name: str) -> None:
    names.check_possible_owner(owner)
    names.check_repo(name)


def _begin(kind: str, owner: str, name: str) -> None:
    """Notes a request for the metrics and the log."""
    g.publication = kind
    # A client may send anything as a name, even a token; the log gets only valid names.
    if names.is_name(owner, names.OWNER_CHARS_MAX) and names.is_name(name, names.REPO_CHARS_MAX):
        g.fields |= {"owner": owner, "repo": name}
