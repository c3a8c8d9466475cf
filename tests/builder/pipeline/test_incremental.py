"""Incremental equals full, byte for byte, after any sequence of changes and crashes.

A state machine changes a content tree in every possible way, counts pulls and loses the counts,
lets builds die, and builds with hints and without. After each build it compares the site with a
full build of the same content into an empty folder. The faults that it once found are plain tests
in ``test_changes`` and ``test_interrupted``. ``HYPOTHESIS_PROFILE=search`` runs more examples.
"""

import importlib
import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from builder.model.errors import ContentError
from builder.model.matching import match_file
from builder.model.routes import ROUTES
from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from builder.search.queries import ListPart, ListQuery, Queries
from builder.search.rules import search_rules
from builder.stats.counter import Counter
from builder.stats.pulls import PULLS_FILE
from tests.builder.pipeline.contents import Contents, names, numbers, owners
from tests.builder.pipeline.sites import Stopped
from tests.support.catalogues import read_tree, wait_for_tick
from tests.support.depth import seeded, some_of

PAGE_SIZE = 2
# In place of the builder's own, in every module that has them by name.
SIZES = {
    "PAGE_SIZE": PAGE_SIZE,
    "LIST_PAGES_MAX": 3,
    "HOME_ROWS": 2,
    "HOME_TAGS": 1,
    "URLS_PER_PART_MAX": 10,
    "VERSIONS_SHOWN_MAX": 3,
    "MOVES_MAX": 2,
    "_PIECE_BYTES": 200,
}

OF_REPOS = ("withdrawn", "files", "version", "label", "repo", "owner")
FIRST_DAY = 20_089  # as ``moment(0)``


class Builds(Contents):
    """The content's site, pulls, and every way to bring the one after the other."""

    is_indexed = False

    def __init__(self) -> None:
        super().__init__()
        self.extra: set[str] = set()  # what the last build left for the next to remove
        self.is_extra_certain = False
        self.is_site_new = False  # since readers last looked
        self.unnamed: set[tuple[str, str, str]] = set()  # withdrawn versions that lists may name
        self.clients = 0
        self.old_pulls: list[bytes] = []
        self.are_pulls_new = False  # since the last good build

    def teardown(self) -> None:
        try:
            self.build(None)
            self.build(None)
            assert self.extra == set()
            assert read_tree(self.settings.out) == self.build_afresh()
        finally:
            shutil.rmtree(self.folder)

    # Pulls

    @property
    def pulls_path(self) -> Path:
        return Path(self.settings.state, PULLS_FILE)

    @rule(repos=st.lists(st.tuples(owners, names), max_size=4), day=st.integers(0, 30),
          count=st.integers(1, 30))  # fmt: skip
    def count_pulls(self, repos, day, count):
        with Counter(self.settings.state, FIRST_DAY + 30) as counter:
            for owner, name in repos:
                for _ in range(count):
                    self.clients += 1
                    counter.add(FIRST_DAY + day, b"%d" % self.clients, f"{owner}/{name}")
        self.are_pulls_new = True

    @rule()
    def keep_these_pulls(self):
        assume(self.pulls_path.exists())
        self.old_pulls.append(self.pulls_path.read_bytes())

    @precondition(lambda self: self.old_pulls)
    @rule(number=numbers, is_in_place=st.booleans())
    def restore_old_pulls(self, number, is_in_place):
        old = self.old_pulls[number % len(self.old_pulls)]
        self.lose_pulls(is_in_place)
        self.pulls_path.parent.mkdir(exist_ok=True)
        self.pulls_path.write_bytes(old)

    @rule()
    def remove_pulls(self):
        self.lose_pulls()

    def lose_pulls(self, keep_file: bool = False) -> None:
        for suffix in ("-wal", "-shm") if keep_file else ("", "-wal", "-shm"):
            self.pulls_path.with_name(PULLS_FILE + suffix).unlink(missing_ok=True)
        self.are_pulls_new = True

    def copy_pulls(self, state: str) -> None:
        shutil.rmtree(state, ignore_errors=True)
        os.mkdir(state)
        if self.pulls_path.exists():
            shutil.copy(self.pulls_path, state)

    # Builds that do not end well

    @rule(renames=st.integers(1, 40), is_killed=st.booleans(), is_full=st.booleans(),
          is_hinted=st.booleans())  # fmt: skip
    def stop_a_build(self, renames, is_killed, is_full, is_hinted):
        wait_for_tick(self.folder)
        with pytest.MonkeyPatch.context() as patch:
            rename, link, unlink = os.rename, os.link, os.unlink
            left = renames

            def stop(function, *args):
                nonlocal left
                left -= 1
                if not left:
                    raise Stopped
                return function(*args)

            def unlink_while_alive(path):
                if left > 0 or not is_killed:
                    unlink(path)

            patch.setattr(os, "rename", partial(stop, rename))
            patch.setattr(os, "link", partial(stop, link))
            patch.setattr(os, "unlink", unlink_while_alive)
            hint = self.touched if is_hinted and self.is_hint_complete else None
            try:
                build(
                    self.settings, changed=hint, edited=self.is_edited(), full=is_full,
                    index=self.is_indexed,
                )  # fmt: skip
            except Stopped:
                self.is_extra_certain = False
                # A withdrawal removes a text before anything else, so old lists may still name it.
                self.unnamed = self.withdrawn()
                self.is_site_new = True
                return
        self.after_build()

    @rule(number=numbers, kind=st.sampled_from(["record", "hash", "file", "profile", "name"]),
          is_hinted=st.booleans())  # fmt: skip
    def build_with_a_fault(self, number, kind, is_hinted):
        if kind == "name":
            path, data = self.root / "Bad" / "x", b""
            path.parent.mkdir()
        elif kind == "profile":
            path, data = self.root / "ann" / "owner.json", b"{"
            (self.root / "ann").mkdir(exist_ok=True)
            self.is_hint_complete = False
        else:
            path = self.pick(self.records(), number)
            self.touch(*path.parts[-3:-1])
            data = b"{"
            if kind == "hash":
                path, data = path.with_suffix(".md"), b"Edited"
            elif kind == "file":
                listed = json.loads(path.read_text()).get("files", [])
                path = path.with_suffix(".files") / self.pick(listed, number)["path"]
                data = b"Edited"
        sound = path.read_bytes() if path.exists() else None
        path.write_bytes(data)
        wait_for_tick(self.folder)
        hint = self.touched if is_hinted and self.is_hint_complete and kind != "name" else None
        with pytest.raises(ContentError):
            build(self.settings, changed=hint, edited=self.is_edited(), index=self.is_indexed)
        self.is_extra_certain = False
        if kind == "name":
            shutil.rmtree(path.parent)
        elif sound is None:
            path.unlink()
        else:
            path.write_bytes(sound)

    @rule(what=st.sampled_from(["out", "state", "hub.json"]))
    def lose_what_was_built(self, what):
        if what == "hub.json":
            Path(self.settings.out, "api/v1/hub.json").unlink(missing_ok=True)
        else:
            shutil.rmtree(getattr(self.settings, what), ignore_errors=True)
            self.are_pulls_new |= what == "state"
        self.is_extra_certain = False

    @precondition(lambda self: self.is_hint_complete)
    @rule(questions=st.integers(0, 20))
    def make_visible_and_leave_the_rest(self, questions):
        left = questions

        def is_wanted() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        wait_for_tick(self.folder)
        report = build(
            self.settings, changed=self.touched, edited=self.is_edited(), index=self.is_indexed,
            is_wanted=is_wanted,
        )  # fmt: skip
        if report.is_settled:
            self.after_build()
            return
        self.is_extra_certain = False
        self.is_site_new = True
        # The files that readers see first are current, and the builder remembers the rest.
        built, whole = read_tree(self.settings.out), self.build_afresh()
        for file in whole:
            found = match_file(file)
            # Deep pages of lists may be left, and Langfuse's are among them.
            is_first = found.route.scope in OF_REPOS or (
                found.params.get("page", "1") == "1" and found.route.scope in ("list", "langfuse")
            )
            if self.are_pulls_new:
                # Files that depend on pulls are current for the changed repos only.
                is_first = found.route.scope in ("files", "version", "withdrawn") or (
                    found.route.scope == "repo"
                    and (found.params["owner"], found.params["name"]) in self.touched
                )
            if is_first:
                assert built[file] == whole[file], file
        self.touched = set()

    # Builds

    @rule()
    def build_without_hint(self):
        self.build(None)

    @precondition(lambda self: self.is_hint_complete)
    @rule(more=st.lists(st.tuples(owners, names), max_size=2))
    def build_with_hint(self, more):
        self.build(self.touched | set(more))

    @rule()
    def build_in_full(self):
        self.build(None, full=True)

    @rule(number=numbers, is_hinted=st.booleans())
    def build_after_a_file_was_lost(self, number, is_hinted):
        files = sorted(filter(self.can_return, Path(self.settings.out).rglob("*.*")))
        self.pick(files, number).unlink()
        self.build(self.touched if is_hinted and self.is_hint_complete else None, check_seconds=60)

    def can_return(self, path: Path) -> bool:
        """True for a file of the site whose prompt, if it has one, is still in the content. The
        files of one that is gone stay for a build, and what they name cannot be written again.
        """
        found = match_file(str(path.relative_to(self.settings.out)))
        at = found.params if found else {}
        repo = self.root / at.get("owner", "") / at.get("name", "")
        is_gone = "name" in at and not [*repo.glob("*.json"), *repo.glob("withdrawn/*.json")]
        return path.is_file() and not is_gone

    def build(self, hint: set[tuple[str, str]] | None, **options: object) -> None:
        wait_for_tick(self.folder)
        edited, index = self.is_edited(), self.is_indexed
        build(self.settings, changed=hint, edited=edited, index=index, **options)
        self.after_build()

    def after_build(self) -> None:
        assert compare(self.settings)[:3] == ([], [], [])
        # Without the state, what is left for the next build to remove is named too.
        no_state = self.settings._replace(state=f"{self.folder}/nothing")
        self.copy_pulls(no_state.state)
        missing, differing, extra = compare(no_state)[:3]
        assert missing == differing == []
        if self.is_extra_certain:
            assert not self.extra & set(extra), "left for more than one build"
        self.extra = set(extra)
        self.is_extra_certain = True
        for owner, name, version in self.withdrawn():
            at = {"owner": owner, "name": name, "version": version}
            files = [route.file_for(**at) for route in ROUTES if route.scope == "version"]
            assert not [file for file in files if Path(self.settings.out, file).exists()]
            assert not list(self.root.glob(f"{owner}/{name}/{version}.*"))
            assert not list(
                Path(self.settings.out).glob(
                    f"api/v1/repos/{owner}/{name}/versions/{version}.*/**/*.*"
                )
            )
        self.unnamed = set()
        self.is_site_new = True
        self.touched = set()
        del self.seen[:-1]
        self.is_hint_complete = True
        self.are_pulls_new = False

    def withdrawn(self) -> set[tuple[str, str, str]]:
        """Owner, name and number of each withdrawn version."""
        return {
            (*path.parts[-4:-2], version)
            for path in self.withdrawals()
            for version in json.loads(path.read_text())["versions"]
        }

    def fresh_settings(self) -> Settings:
        return self.settings._replace(
            out=f"{self.folder}/fresh", state=f"{self.folder}/fresh-state"
        )

    def build_afresh(self) -> dict[str, bytes]:
        """The files that a full build of the same content writes to an empty folder."""
        fresh = self.fresh_settings()
        shutil.rmtree(fresh.out, ignore_errors=True)
        self.copy_pulls(fresh.state)
        build(fresh, index=self.is_indexed)
        return read_tree(fresh.out)

    @precondition(lambda self: self.is_site_new)
    @invariant()
    def no_reader_follows_a_pointer_into_nothing(self):
        self.is_site_new = False
        out = Path(self.settings.out)
        for file in out.glob("api/v1/repos/*/*.json"):
            repo = json.loads(file.read_bytes())["data"]
            if (repo["owner"], repo["name"], repo["latest_version"]) in self.unnamed:
                continue
            for key in ("raw_url", "versions_url"):
                assert (out / repo[key].removeprefix(f"{self.settings.base_url}/")).exists()
        for file in out.glob("api/v1/repos/*/*/versions.json"):
            for version in json.loads(file.read_bytes())["data"]:
                ends = version["version"], version["previous"]
                if any((*file.parts[-3:-1], one) in self.unnamed for one in ends):
                    continue
                for key in ("raw_url", "diff_url"):
                    if version[key]:
                        path = version[key].removeprefix(f"{self.settings.base_url}/")
                        assert (out / path).exists() == ("withdrawn" not in version)
                if "withdrawn" in version:
                    assert (file.parent / "versions" / version["version"]).is_dir()


class IndexedBuilds(Builds):
    """The same with the search index: it finds what a fresh one finds."""

    is_indexed = True

    def after_build(self) -> None:
        super().after_build()
        self.build_afresh()
        for query in ("one", "two", "other", "zoe x", "sql", "body", "code", "start"):
            assert self.found(self.settings, query) == self.found(self.fresh_settings(), query)

    def found(self, where: Settings, query: str) -> ListPart:
        queries = Queries(where)
        try:
            return queries.find(ListQuery(q=query), 0, 1000)
        finally:
            queries.close()


@pytest.fixture
def small_pages(monkeypatch) -> None:
    """Lists with several pages from few repos, and rows in several pieces from few versions."""
    search_rules()  # which the process keeps: also with what is patched, for the tests after these
    for name in ("catalogue", "pool"):
        importlib.import_module(f"builder.emit.{name}")  # which builds load when they need it
    unused = {*SIZES}
    for module in [module for name, module in sys.modules.items() if name.startswith("builder.")]:
        for name in SIZES.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, SIZES[name])
            unused.discard(name)
    assert not unused


# In these fractions of a second every file is young, and the builder reads young files again,
# whatever it remembers. Without this grain it trusts its memory, as it does in production.
@pytest.mark.parametrize(
    ("grain_ns", "share"), [(0, 4), (20_000_000, 10)], ids=["settled", "young"]
)
def test_incremental_equals_full(small_pages, monkeypatch, grain_ns, share):
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", grain_ns)
    run_machine(Builds, steps=20, share=share)


def test_incremental_equals_full_with_the_search_index(small_pages, monkeypatch):
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0)
    run_machine(IndexedBuilds, steps=10, share=10)


def run_machine(machine: type[Builds], steps: int, share: int) -> None:
    """Try one of ``share`` of the examples that other tests try: these take long."""
    examples = some_of(settings.default.max_examples // share)
    run_state_machine_as_test(
        seeded(machine), settings=settings(stateful_step_count=steps, max_examples=examples)
    )
