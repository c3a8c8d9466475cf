"""Publications, moves of labels, crashes, builds and readers in any order: nothing acknowledged is
ever lost.

A state machine publishes and moves labels, lets publications, moves and builds die at any call,
forgets all that a process has in memory, and holds what is stored, what is answered and what
readers see against a model that is a list of versions, and one of moves, a repo. Readers look after
every single file that a build writes. ``HYPOTHESIS_PROFILE=search`` tries hard.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import UNSET

from builder.model.errors import HubError, RequestError
from builder.pipeline.build import build, compare
from builder.pipeline.context import Visible
from builder.store import content
from builder.store.check import check
from builder.store.labels import read_labels
from publisher.accounts.database import Database
from publisher.write.decision import Terms
from publisher.write.drafts import parse_draft, parse_label_draft, parse_label_removal
from publisher.write.idempotency import IdempotencyKey, fingerprint
from publisher.write.labels import LabelChange, change_label
from publisher.write.publish import Published, publish
from publisher.write.store_protocol import Folder
from tests.builder.pipeline.test_incremental import Stopped, small_pages  # noqa: F401
from tests.publisher.write.model import (
    Memory,
    Moved,
    Outcome,
    Request,
    bases,
    bodies,
    bumped,
    calls,
    deaths,
    failing,
    keys,
    labels,
    repos,
)
from tests.publisher.write.readers import REPOS, Readers, Repo, Stored
from tests.support.calls import watched
from tests.support.catalogues import read_tree, settings_in, wait_for_tick
from tests.support.depth import seeded, some_of

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
# Faults of files that a crash may leave in the content, which are no version.
RESTS = ("no versions", "text without record")


class Publications(Readers, RuleBasedStateMachine):
    """A content folder with its site, what was acknowledged, and what readers have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hub-")
        self.settings = settings_in(self.folder)
        self.database = Database(self.settings.state)
        self.versions: dict[Repo, list[Stored]] = {repo: [] for repo in REPOS}
        self.moves: dict[Repo, list[Moved]] = {repo: [] for repo in REPOS}  # in order
        # By owner and key: possible stored answers; None: no answer stored.
        self.memories: dict[tuple[str, str], list[Memory | None]] = {}
        self.keyed: list[Request] = []
        self.hint: set[Repo] = set()  # what the service knows that it has to build
        self.unbuilt: set[Repo] = set()  # what differs from what readers were shown
        self.is_hint_complete = True  # nothing but these differs, no rest of a crash either
        self.minutes = 0

    def teardown(self) -> None:
        try:
            self.restart()
            self.build(None)
            self.build(None)
            fresh = self.settings._replace(
                out=f"{self.folder}/fresh", state=f"{self.folder}/fresh-state"
            )
            build(fresh, index=False)
            assert read_tree(self.settings.out) == read_tree(fresh.out)
        finally:
            self.close()

    def close(self) -> None:
        self.database.close()
        shutil.rmtree(self.folder)

    @initialize()
    def start(self) -> None:
        self.build(None)

    # The model

    def outcomes(self, request: Request, now: datetime) -> list[Outcome]:
        """Possible results of the request, one for each possible stored answer for its key."""
        found = []
        for memory in self.kept(request):
            if memory and memory.request != request:
                found.append(Outcome("idempotency_key_reused", None, memory))
            elif memory and memory.is_stored:
                found.append(Outcome(memory.answer, None, memory))
            else:
                answer, stored = self.plan(request, now)
                if isinstance(answer, Published):
                    memory = Memory(request, answer, True)
                found.append(Outcome(answer, stored, memory, is_done_now=True))
        return found

    def kept(self, request: Request) -> list[Memory | None]:
        return self.memories.get((request.repo[0], request.key), [None])

    def plan(self, request: Request, now: datetime) -> tuple[Published | str, Stored | None]:
        """The result of the request without a stored answer, and the version that it makes."""
        owner, name = request.repo
        fields = json.loads(request.body)
        versions = self.versions[request.repo]
        latest = versions[-1] if versions else None
        if fields.get("base_version") not in (None, latest and latest.version):
            return "base_version_mismatch", None
        new = Stored(
            bumped(latest and latest.version, fields.get("bump", "patch")),
            fields["content"],
            fields.get("title", latest.title if latest else name),
            fields.get("tags", latest.tags if latest else []),
            fields.get("changelog", ""),
            now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        is_same = latest is not None and new[1:4] == latest[1:4]
        if not is_same:
            versions = [*versions, new]
        last = versions[-1]
        answer = Published(
            owner=owner, name=name, version=last.version,
            previous_version=versions[-2].version if len(versions) > 1 else None,
            changelog=last.changelog, sha256=sha256(last.text.encode()).hexdigest(),
            size=len(last.text), publisher=owner, published_at=last.published_at,
            unchanged=is_same, warnings=[], labels=sorted(fields.get("labels", ())) or UNSET,
        )  # fmt: skip
        return answer, None if is_same else new

    # Publications

    def tick(self) -> datetime:
        self.minutes += 1
        return BEGINNING + timedelta(minutes=self.minutes)

    def send(self, request: Request, now: datetime) -> Published | str:
        """Handle a request as the service does; returns its answer, or the code of its refusal."""
        owner, name = request.repo
        key = None
        if request.key:
            mark = fingerprint(owner, name, None, body=request.body)
            key = IdempotencyKey(self.database, owner, request.key, mark)
        try:
            terms = Terms(idempotency_key=key, now=now)
            return publish(
                Folder(self.settings.content),
                owner,
                name,
                parse_draft(request.body),
                publisher=owner,
                terms=terms,
            )
        except RequestError as error:
            return error.code

    def make_request(self, repo: Repo, fields: dict, base: str | None, key: str | None) -> Request:
        versions = self.versions[repo]
        if base == "right":
            assume(versions)
            fields = fields | {"base_version": versions[-1].version}
        elif base == "wrong":
            fields = fields | {"base_version": "7.0.0"}
        request = Request(repo, json.dumps(fields).encode(), key)
        if key:
            self.keyed.append(request)
        return request

    @rule(repo=repos, fields=bodies, base=bases, key=keys)
    def publish(self, repo, fields, base, key):
        self.publish_whole(self.make_request(repo, fields, base, key))

    @precondition(lambda self: any(self.versions.values()))
    @rule(repo=repos, fields=bodies)
    def publish_the_latest_text(self, repo, fields):
        assume(self.versions[repo])
        fields = fields | {"content": self.versions[repo][-1].text}
        self.publish_whole(self.make_request(repo, fields, None, None))

    @precondition(lambda self: self.keyed)
    @rule(number=st.integers(0, 100))
    def repeat_a_request_with_a_key(self, number):
        self.publish_whole(self.keyed[-1 - number % len(self.keyed)])

    def publish_whole(self, request: Request) -> None:
        now = self.tick()
        possible = self.outcomes(request, now)
        self.note_answer(request, possible, self.send(request, now))

    def note_answer(
        self, request: Request, possible: list[Outcome], answer: Published | str
    ) -> None:
        real = [outcome for outcome in possible if outcome.answer == answer]
        assert real, f"answered {answer} instead of one of {[one.answer for one in possible]}"
        if request.key:
            self.memories[request.repo[0], request.key] = [outcome.memory for outcome in real]
        if real[0].stored:
            self.note_version(request.repo, real[0].stored)
        if isinstance(answer, Published):
            if real[0].is_done_now:
                self.note_moves(request.repo, self.moves_with(request))
            self.hint.add(request.repo)  # the publisher waits for a build before it gets the answer

    def note_version(self, repo: Repo, stored: Stored) -> None:
        self.versions[repo].append(stored)
        self.unbuilt.add(repo)

    # Labels

    def current(self, repo: Repo, label: str) -> str | None:
        """The version that a label names."""
        named = [move.version for move in self.moves[repo] if move.label == label]
        return named[-1] if named else None

    def moves_with(self, request: Request) -> list[Moved]:
        """The moves of a publication to what is the latest version by now."""
        latest = self.versions[request.repo][-1].version
        wanted = json.loads(request.body).get("labels", [])
        return [
            Moved(label, latest, self.current(request.repo, label), "")
            for label in wanted
            if self.current(request.repo, label) != latest
        ]

    def note_moves(self, repo: Repo, moves: list[Moved]) -> None:
        self.moves[repo] += moves
        if moves:
            self.unbuilt.add(repo)

    def plan_move(self, repo: Repo, label: str, number: int | None, base: str | None) -> Moved:
        """A move to one of the versions; None: to none, so the label goes."""
        versions = self.versions[repo]
        assume(versions)
        version = None if number is None else versions[number % len(versions)].version
        current = self.current(repo, label)
        assume(version is not None or current is not None)
        return Moved(label, version, current, f"{self.minutes} {base}")

    def send_move(self, repo: Repo, move: Moved, base: str | None) -> LabelChange | str:
        fields: dict[str, Any] = {"note": move.note}
        if base == "right" and move.previous:
            fields["expected"] = move.previous
        elif base:
            fields["expected"] = "7.0.0"
        if move.version is None:
            draft = parse_label_removal(json.dumps(fields).encode())
        else:
            draft = parse_label_draft(json.dumps(fields | {"version": move.version}).encode())
        try:
            return change_label(
                Folder(self.settings.content),
                *repo,
                move.label,
                draft,
                by=repo[0],
                terms=Terms(now=self.tick()),
            )
        except RequestError as error:
            return error.code

    @precondition(lambda self: any(self.versions.values()))
    @rule(repo=repos, label=labels, number=st.none() | st.integers(0, 5), base=bases)
    def move_a_label(self, repo, label, number, base):
        move = self.plan_move(repo, label, number, base)
        answer = self.send_move(repo, move, base)
        if base and not (base == "right" and move.previous):
            assert answer == "label_moved"
            return
        assert isinstance(answer, LabelChange), answer
        assert (answer.label, answer.version) == (label, move.version)
        assert answer.unchanged == (move.version == move.previous)
        if not answer.unchanged:
            assert answer.previous == move.previous
            self.note_moves(repo, [move])
        self.hint.add(repo)

    @precondition(lambda self: any(self.versions.values()))
    @rule(repo=repos, label=labels, number=st.none() | st.integers(0, 5), call=calls, death=deaths)
    def move_a_label_and_fail(self, repo, label, number, call, death):
        move = self.plan_move(repo, label, number, None)
        answer: LabelChange | str | None = None
        try:
            with watched(failing(call, death)):
                answer = self.send_move(repo, move, None)
        except (Stopped, HubError):
            pass
        is_moved = move.version != move.previous
        if answer in (None, "storage_unavailable"):
            # No answer was sent, and the move exists whole or not at all.
            self.is_hint_complete = False
            is_moved = is_moved and self.read_moves(repo)[label][-1:] == [move]
        else:
            assert isinstance(answer, LabelChange), answer
            self.hint.add(repo)
        if is_moved:
            self.note_moves(repo, [move])
        if death != "full":
            self.restart()

    def read_moves(self, repo: Repo) -> dict[str, list[Moved]]:
        """The moves of each label that are stored, in order."""
        history = read_labels(self.settings.content, *repo).history
        return {
            label: [
                Moved(label, move.version, move.previous, move.note)
                for move in reversed(history.get(label, []))
            ]
            for label in ("production", "canary")
        }

    @rule(repo=repos, fields=bodies, base=bases, key=keys, call=calls, death=deaths)
    def publish_and_fail(self, repo, fields, base, key, call, death):
        self.publish_cut_off(self.make_request(repo, fields, base, key), call, death)

    @precondition(lambda self: self.keyed)
    @rule(number=st.integers(0, 100), call=calls, death=deaths)
    def repeat_and_fail(self, number, call, death):
        self.publish_cut_off(self.keyed[-1 - number % len(self.keyed)], call, death)

    def publish_cut_off(self, request: Request, call: int, death: str) -> None:
        now = self.tick()
        possible = self.outcomes(request, now)
        answer: Published | str | None = None
        try:
            with watched(failing(call, death)):
                answer = self.send(request, now)
        except (Stopped, HubError):
            pass
        if answer not in (None, "storage_unavailable"):
            self.note_answer(request, possible, answer)
            return
        # No answer was sent, and the version exists whole or not at all.
        self.is_hint_complete = False
        made = next((one.stored for one in possible if one.stored), None)
        is_committed = bool(made) and self.read_content(request.repo)[-1:] == [made]
        if request.key:
            after = self.kept(request) if not is_committed else []
            after += [
                one.memory and one.memory._replace(is_stored=is_committed or not one.stored)
                for one in possible
                if one.stored or not is_committed
            ]
            self.memories[request.repo[0], request.key] = after
        if is_committed:
            self.note_version(request.repo, made)
            self.note_moves(request.repo, self.moves_with(request))
        elif self.versions[request.repo]:
            self.note_moves_found(request)
        if death != "full":
            self.restart()

    def note_moves_found(self, request: Request) -> None:
        """Without a version, each label has moved by itself, in order; or not yet."""
        there = self.read_moves(request.repo)
        for move in self.moves_with(request):
            before = [old for old in self.moves[request.repo] if old.label == move.label]
            if there[move.label] == [*before, move]:
                self.note_moves(request.repo, [move])

    def read_content(self, repo: Repo) -> list[Stored]:
        """The stored versions of a repo, as the reader of the content returns them."""
        root = self.settings.content
        stored = []
        for version in content.list_versions(root, *repo).versions:
            record, text = content.read_version(root, *repo, version)
            fields = (record.title, record.tags, record.changelog, record.published_at)
            stored.append(Stored(str(version), text, *fields))
        return stored

    def read_ordinals(self, repo: Repo) -> list[int]:
        """The stored numbers of a repo's versions, in order of version."""
        root = self.settings.content
        found = content.list_versions(root, *repo).versions
        return [content.read_record(root, *repo, version).ordinal for version in found]

    @invariant()
    def everything_acknowledged_is_stored(self):
        faults = check(self.settings.content)
        wrong = [fault for fault in faults if not fault.reason.startswith(RESTS)]
        assert not wrong, f"faults in the content: {wrong}"
        for repo, versions in self.versions.items():
            stored = self.read_content(repo)
            assert stored == versions, f"{repo} has {stored} instead of {versions}"
            assert self.read_ordinals(repo) == [*range(1, len(versions) + 1)]
            for label, moves in self.read_moves(repo).items():
                expected = [move for move in self.moves[repo] if move.label == label]
                assert moves == expected, f"{label} of {repo} has {moves} instead of {expected}"

    @rule()
    def restart(self):
        """The process ends; the next knows only what is on the disk."""
        self.database.close()
        self.database = Database(self.settings.state)
        self.hint = set()

    # Builds

    @rule(is_wanted=st.booleans())
    def build_what_was_published(self, is_wanted):
        self.build(self.hint, is_wanted=lambda: is_wanted)

    @rule()
    def build_all(self):
        self.build(None)

    @rule(renames=st.integers(1, 40), is_hinted=st.booleans())
    def build_and_die(self, renames, is_hinted):
        try:
            self.build(self.hint if is_hinted else None, stop_at=renames)
        except Stopped:
            self.restart()

    def build(
        self, hint: set[Repo] | None, *, is_wanted: Callable[[], bool] | None = None,
        stop_at: int | None = None,
    ) -> None:  # fmt: skip
        wait_for_tick(self.folder)
        repos = set(REPOS) if hint is None else set(hint)

        def on_visible(visible: Visible) -> None:
            self.unbuilt -= repos
            self.hint -= repos
            self.is_hint_complete |= hint is None
            assert not visible.faulty
            if not self.unbuilt:
                assert visible.serial == sum(map(len, self.versions.values()))
            for repo in repos:
                self.check_repo(repo)
            self.check_lists()

        try:
            with self.readers(stop_at):
                report = build(
                    self.settings, changed=hint, index=False, on_visible=on_visible,
                    is_wanted=is_wanted,
                )  # fmt: skip
        finally:
            assert not self.complaints, self.complaints
        if report.is_settled and not self.unbuilt and self.is_hint_complete:
            assert compare(self.settings)[:3] == ([], [], [])


@pytest.fixture(autouse=True)
def trusting(small_pages: None, settled: None) -> None:  # noqa: F811
    """Builds trust what they remember of files, however young, as they do in life."""


def test_readers_and_publishers_get_along() -> None:
    # A third of the examples that other tests try: these take long.
    examples = some_of(settings.default.max_examples // 3)
    run_state_machine_as_test(
        seeded(Publications), settings=settings(stateful_step_count=25, max_examples=examples)
    )
