"""Publications, moves of labels, crashes, builds and readers in any order: nothing acknowledged is
ever lost.

A state machine publishes and moves labels, lets publications, moves and builds die at any call,
forgets all that a process has in memory, and holds what is stored, what is answered and what
readers see against a model that is a list of versions, and one of moves, a repo. Readers look after
every single file that a build writes. ``HYPOTHESIS_PROFILE=search`` tries hard.
"""

import shutil
import tempfile
from collections.abc import Callable

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

from builder.model.errors import HubError
from builder.pipeline.build import build, compare
from builder.pipeline.context import Visible
from operate.content_check import check
from publisher.accounts.database import Database
from publisher.write.labels import LabelChange
from publisher.write.publish import Published
from tests.builder.pipeline.test_incremental import Stopped, small_pages  # noqa: F401
from tests.publisher.write.model import (
    Model,
    Outcome,
    Request,
    bases,
    bodies,
    calls,
    deaths,
    failing,
    keys,
    labels,
    repos,
)
from tests.publisher.write.readers import REPOS, Readers, Repo
from tests.publisher.write.service import Service
from tests.support.calls import watched
from tests.support.catalogues import read_tree, settings_in, wait_for_tick
from tests.support.depth import seeded, some_of

# Faults of files that a crash may leave in the content, which are no version.
RESTS = ("no versions", "text without record")


class Publications(Model, Service, Readers, RuleBasedStateMachine):
    """A content folder with its site, what was acknowledged, and what readers have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hub-")
        self.settings = settings_in(self.folder)
        self.database = Database(self.settings.state)
        self.hint: set[Repo] = set()  # what the service knows that it has to build
        self.is_hint_complete = True  # nothing but these differs, no rest of a crash either

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

    # Publications

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

    # Labels

    @precondition(lambda self: any(self.versions.values()))
    @rule(repo=repos, label=labels, number=st.none() | st.integers(0, 5), base=bases)
    def move_a_label(self, repo, label, number, base):
        move = self.plan_move(repo, label, number, base)
        answer = self.send_move(repo, move, base, self.tick())
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
        now = self.tick()
        try:
            with watched(failing(call, death)):
                answer = self.send_move(repo, move, None, now)
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
