"""Incremental equals full, byte for byte, after any sequence of changes and crashes.

A state machine changes a content tree in every way that there is, counts pulls and loses the
counts, lets builds die, and builds with hints and without. After each build the site is held
against a full build of the same content into an empty folder. What it found once is in
``test_build`` as plain tests. ``HYPOTHESIS_PROFILE=search`` tries hard.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

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

from builder.model.errors import ContentError, Fault
from builder.model.routes import match_file
from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from builder.search.queries import Found, ListQuery, Queries
from builder.search.rules import search_rules
from builder.stats.counter import Counter
from builder.stats.pulls import PULLS_FILE
from builder.store.labels import read_labels
from builder.write.withdrawn import files_of
from tests.support.catalogues import (
    edit_record,
    moment,
    read_tree,
    settings_in,
    wait_for_tick,
    write_json,
    write_label,
    write_owner,
    write_version,
    write_withdrawn,
)
from tests.support.depth import seeded, some_of

PAGE_SIZE = 2
LIST_PAGES_MAX = 3
HOME_CARDS = 2
HOME_TAGS = 1
URLS_PER_PART_MAX = 10

OWNERS = ("ann", "a-b", "zoe")
NAMES = ("x", "x-y", "sql")
VERSIONS = ("1.0.0", "1.0.1", "1.0.2", "1.1.0", "1.10.0", "2.0.0")
TAGS = ("code", "top", "long-tag")
LABELS = ("production", "a.b")
OF_REPOS = ("withdrawn", "version", "label", "langfuse", "repo", "owner")

owners = st.sampled_from(OWNERS)
names = st.sampled_from(NAMES)
versions = st.sampled_from(VERSIONS)
hours = st.sampled_from((0, 1, 100, 100_000))
labels = st.sampled_from(LABELS)
label_lists = st.lists(labels, min_size=1, unique=True)
tag_lists = st.lists(st.sampled_from(TAGS), unique=True)
texts = st.sampled_from(("One.\n", "Two.\n", "Two {{a}}", "<b>\r\n", "---\ntitle: x\n---\nBody"))
numbers = st.integers(0, 1000)
ordinals = st.sampled_from(({}, {"ordinal": 1}, {"ordinal": 2}, {"ordinal": 7}))

FIRST_DAY = 20_089  # as ``moment(0)``


class Stopped(BaseException):
    """Stands for the end of the process: no code of ours may catch it."""


class Builds(RuleBasedStateMachine):
    """A content tree, its site, and every way to change the one and bring the other after."""

    is_indexed = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hub-")
        self.settings = settings_in(self.folder)._replace(langfuse=True)
        self.root = Path(self.settings.content)
        self.touched: set[tuple[str, str]] = set()  # repos that changed since the last good build
        self.is_hint_complete = True
        self.seen: list[dict[Path, bytes]] = []  # files of versions, at each build since then
        self.extra: set[str] = set()  # what the last build left for the next to remove
        self.is_extra_certain = False
        self.is_site_new = False  # since readers last looked
        self.old_trees: list[dict[str, bytes]] = []
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

    # What is in the tree

    def repos(self) -> list[tuple[str, str]]:
        return sorted(
            (path.parent.name, path.name)
            for path in self.root.glob("*/*")
            if path.is_dir() and any(path.rglob("*.json"))
        )

    def records(self) -> list[Path]:
        """Those of versions that are not withdrawn."""
        return sorted(
            path
            for owner, name in self.repos()
            for path in (self.root / owner / name).glob("*.json")
            if not (path.parent / "withdrawn" / path.name).exists()
            if not (path.parent / "withdrawn" / "all.json").exists()
        )

    def withdrawals(self) -> list[Path]:
        return sorted(self.root.glob("*/*/withdrawn/*.json"))

    def is_edited(self) -> bool:
        """Whether a file that a build has seen is another now; the caller builds."""
        now = {path: path.read_bytes() for path in self.root.glob("*/*/*.*")}
        seen = [item for tree in self.seen for item in tree.items()]
        self.seen.append(now)
        return any(now.get(path, data) != data for path, data in seen)

    def pick(self, things: list, number: int):
        assume(things)
        return things[number % len(things)]

    def touch(self, owner: str, name: str) -> None:
        self.touched.add((owner, name))
        # What names a version that is gone is a fault.
        while faults := self.label_faults(owner, name):
            path = self.root / faults[0].path
            if path.parent.name in ("labels", "withdrawn"):
                path.unlink()
            else:
                record = json.loads(path.read_text())
                del record["labels"], record["label_number"]
                write_json(path, record)
        self.remove_repeated_ordinals(self.root / owner / name)

    def remove_repeated_ordinals(self, folder: Path) -> None:
        """A number that two versions store is a fault."""
        taken = set()
        for path in sorted(folder.glob("withdrawn/*.json")) + sorted(folder.glob("*.json")):
            stored = json.loads(path.read_text())
            for one in stored.get("versions", {"": stored}).values():
                if one.get("ordinal") in taken:
                    del one["ordinal"]
                    write_json(path, stored)
                taken |= {one["ordinal"]} if "ordinal" in one else set()

    def label_faults(self, owner: str, name: str) -> list[Fault]:
        try:
            read_labels(str(self.root), owner, name)
        except ContentError as error:
            return [fault for fault in error.faults if "label" in fault.reason]
        return []

    def next_number(self, owner: str, name: str) -> int:
        """One that no change of a label has."""
        folder = self.root / owner / name
        taken = [int(path.stem) for path in folder.glob("labels/*.json")]
        records = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        for path in folder.glob("withdrawn/*.json"):
            stored = json.loads(path.read_text())
            records += [stored["withdrawn"], *stored["versions"].values()]
        taken += [record.get("label_number", 0) for record in records]
        return max(taken, default=0) + 1

    # Changes

    @initialize(count=st.integers(0, 7))
    def start(self, count: int) -> None:
        for number in range(count):
            owner, name = OWNERS[number % 3], NAMES[number // 3]
            for version in VERSIONS[: 1 + number % 4]:
                write_version(
                    self.root, owner, name, version, f"Start {version}\n", tags=TAGS[: number % 3],
                    published_at=moment(number),
                )  # fmt: skip
        self.build(None)

    @rule(owner=owners, name=names, version=versions, text=texts, tags=tag_lists, hour=hours,
          ordinal=ordinals)  # fmt: skip
    def publish(self, owner, name, version, text, tags, hour, ordinal):
        write_version(
            self.root, owner, name, version, text, tags=tags, published_at=moment(hour),
            changelog=f"To {version}", description=text[:3], **ordinal,
        )  # fmt: skip
        self.touch(owner, name)

    @rule(owner=owners, name=names, version=versions, labels=label_lists)
    def publish_with_labels(self, owner, name, version, labels):
        write_version(
            self.root, owner, name, version, "With labels.\n", labels=labels,
            label_number=self.next_number(owner, name),
        )  # fmt: skip
        self.touch(owner, name)

    @rule(number=numbers, label=labels, gap=st.integers(0, 2))
    def move_label(self, number, label, gap):
        path = self.pick(self.records(), number)
        owner, name = path.parts[-3:-1]
        at = self.next_number(owner, name) + gap
        write_label(self.root, f"{owner}/{name}", at, label, path.stem)
        self.touch(owner, name)

    @rule(number=numbers, label=labels)
    def remove_label(self, number, label):
        owner, name = self.pick(self.repos(), number)
        at = self.next_number(owner, name)
        write_label(self.root, f"{owner}/{name}", at, label, None, note="Gone.")
        self.touch(owner, name)

    @rule(number=numbers, is_whole=st.booleans(), note=st.sampled_from(["", "Why <é>"]),
          hour=hours)  # fmt: skip
    def withdraw(self, number, is_whole, note, hour):
        path = self.pick(self.records(), number)
        owner, name = path.parts[-3:-1]
        gone = [one.stem for one in self.records() if one.parent == path.parent]
        gone = gone if is_whole else [path.stem]
        named = read_labels(str(self.root), owner, name).versions()
        lost = [label for label, version in named.items() if version in gone]
        fields = {"labels": lost, "label_number": self.next_number(owner, name)} if lost else {}
        write_withdrawn(
            self.root, f"{owner}/{name}", None if is_whole else path.stem, note=note,
            at=moment(hour), **fields,
        )  # fmt: skip
        self.touch(owner, name)

    @rule(number=numbers)
    def forget_withdrawal(self, number):
        path = self.pick(self.withdrawals(), number)
        path.unlink()
        self.touch(*path.parts[-4:-2])

    @rule(number=numbers)
    def leave_a_withdrawn_text(self, number):
        path = self.pick(self.withdrawals(), number)
        assume(path.stem != "all")
        write_version(self.root, *path.parts[-4:-2], path.stem, "Left.\n")
        self.touch(*path.parts[-4:-2])

    @rule(number=numbers, label=labels)
    def edit_move(self, number, label):
        path = self.pick(sorted(self.root.glob("*/*/labels/*.json")), number)
        edit_record(path, label=label)
        self.touch(*path.parts[-4:-2])

    @rule(number=numbers)
    def forget_move(self, number):
        path = self.pick(sorted(self.root.glob("*/*/labels/*.json")), number)
        path.unlink()
        self.touch(*path.parts[-4:-2])

    @rule(number=numbers)
    def forget_labels(self, number):
        path = self.pick(sorted(self.root.glob("*/*/labels")), number)
        shutil.rmtree(path)
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers, field=st.sampled_from(["title", "description", "changelog", "license"]),
          value=st.sampled_from(["Other", "<i>", "字"]))  # fmt: skip
    def edit_text_of_record(self, number, field, value):
        self.edit(number, {field: value})

    @rule(number=numbers, tags=tag_lists)
    def edit_tags(self, number, tags):
        self.edit(number, {"tags": tags})

    @rule(number=numbers, hour=hours)
    def edit_time(self, number, hour):
        self.edit(number, {"published_at": moment(hour)})

    @rule(number=numbers, ordinal=ordinals)
    def edit_ordinal(self, number, ordinal):
        self.edit(number, ordinal)

    def edit(self, number: int, fields: dict) -> None:
        path = self.pick(self.records(), number)
        edit_record(path, **fields)
        self.touch(*path.parts[-3:-1])

    @rule(owner=owners, name=st.sampled_from(["Ann", "<Zoe>"]), hour=hours)
    def edit_profile(self, owner, name, hour):
        write_owner(self.root, owner, name=name, joined_at=moment(hour))
        self.is_hint_complete &= any(owner == touched for touched, _ in self.touched)

    @rule(text=st.sampled_from(["", "# Ours\n\nAll of it.\n", "Other"]))
    def edit_home(self, text):
        (self.root / "home.md").write_text(text)
        self.is_hint_complete = False

    @rule()
    def remove_home(self):
        (self.root / "home.md").unlink(missing_ok=True)
        self.is_hint_complete = False

    @rule(owner=owners)
    def remove_profile(self, owner):
        path = self.root / owner / "owner.json"
        assume(path.exists())
        path.unlink()
        self.is_hint_complete = False

    @rule(number=numbers)
    def remove_version(self, number):
        path = self.pick(self.records(), number)
        path.unlink()
        path.with_suffix(".md").unlink()
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers, version=versions)
    def rename_version(self, number, version):
        path = self.pick(self.records(), number)
        assume(not path.with_name(f"{version}.json").exists())
        path.with_suffix(".md").rename(path.with_name(f"{version}.md"))
        path.rename(path.with_name(f"{version}.json"))
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers)
    def remove_record_only(self, number):
        path = self.pick(self.records(), number)
        path.unlink()
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers, keep_folder=st.booleans())
    def remove_repo(self, number, keep_folder):
        owner, name = self.pick(self.repos(), number)
        shutil.rmtree(self.root / owner / name)
        if keep_folder:
            (self.root / owner / name).mkdir()
        self.touch(owner, name)

    @rule(number=numbers, name=names)
    def rename_repo(self, number, name):
        owner, old = self.pick(self.repos(), number)
        assume(not (self.root / owner / name).exists())
        (self.root / owner / old).rename(self.root / owner / name)
        self.touch(owner, old)
        self.touch(owner, name)

    @rule(owner=owners)
    def remove_owner(self, owner):
        assume((self.root / owner).exists())
        for path in (self.root / owner).iterdir():
            if path.is_dir():
                self.touch(owner, path.name)
        if not any(owner == touched for touched, _ in self.touched):
            self.is_hint_complete = False
        shutil.rmtree(self.root / owner)

    @rule(owner=owners)
    def make_empty_owner(self, owner):
        (self.root / owner).mkdir(exist_ok=True)

    @rule(number=numbers)
    def touch_without_change(self, number):
        path = self.pick(self.records(), number)
        os.utime(path)
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers)
    def put_another_file_with_the_same_bytes(self, number):
        path = self.pick(self.records(), number)
        other = path.with_name(".other")
        other.write_bytes(path.read_bytes())
        other.rename(path)
        self.touch(*path.parts[-3:-1])

    @rule()
    def keep_this_tree(self):
        self.old_trees.append(read_tree(self.root))

    @precondition(lambda self: self.old_trees)
    @rule(number=numbers)
    def revert_to_an_old_tree(self, number):
        old = self.old_trees[number % len(self.old_trees)]
        now = read_tree(self.root)
        for file in old.keys() | now.keys():
            if old.get(file) == now.get(file):
                continue
            path = self.root / file
            if file in old:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(old[file])
            else:
                path.unlink()
            if file.count("/") == 2:
                self.touch(*path.parts[-3:-1])
            else:
                self.is_hint_complete = False

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
            rename, unlink = os.rename, os.unlink
            left = renames

            def stop(*args):
                nonlocal left
                left -= 1
                if not left:
                    raise Stopped
                return rename(*args)

            def unlink_while_alive(path):
                if left > 0 or not is_killed:
                    unlink(path)

            patch.setattr(os, "rename", stop)
            patch.setattr(os, "unlink", unlink_while_alive)
            hint = self.touched if is_hinted and self.is_hint_complete else None
            try:
                build(
                    self.settings, changed=hint, edited=self.is_edited(), full=is_full,
                    index=self.is_indexed,
                )  # fmt: skip
            except Stopped:
                self.is_extra_certain = False
                self.is_site_new = True
                return
        self.after_build()

    @rule(number=numbers, kind=st.sampled_from(["record", "hash", "profile", "name"]),
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
        # What is seen first is there, and what is left is remembered.
        built, whole = read_tree(self.settings.out), self.build_afresh()
        for file in whole:
            found = match_file(file)
            is_first = found.route.scope in OF_REPOS or (
                found.params.get("page", "1") == "1" and found.route.scope == "list"
            )
            if self.are_pulls_new:
                # Of what depends on pulls, the repos themselves.
                is_first = found.route.scope in ("version", "withdrawn") or (
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

    def build(self, hint: set[tuple[str, str]] | None, full: bool = False) -> None:
        wait_for_tick(self.folder)
        build(
            self.settings, changed=hint, edited=self.is_edited(), full=full, index=self.is_indexed
        )
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
        for path in self.withdrawals():
            owner, name = path.parts[-4:-2]
            for version in json.loads(path.read_text())["versions"]:
                files = files_of("version", owner=owner, name=name, version=version)
                assert not [file for file in files if Path(self.settings.out, file).exists()]
                assert not list(path.parents[1].glob(f"{version}.*"))
        self.is_site_new = True
        self.touched = set()
        del self.seen[:-1]
        self.is_hint_complete = True
        self.are_pulls_new = False

    def fresh_settings(self) -> Settings:
        return self.settings._replace(
            out=f"{self.folder}/fresh", state=f"{self.folder}/fresh-state"
        )

    def build_afresh(self) -> dict[str, bytes]:
        """What a full build of the same content into an empty folder gives."""
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
            for key in ("raw_url", "versions_url"):
                assert (out / repo[key].removeprefix(f"{self.settings.base_url}/")).exists()
        for file in out.glob("api/v1/repos/*/*/versions.json"):
            for version in json.loads(file.read_bytes())["data"]:
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

    def found(self, where: Settings, query: str) -> Found:
        queries = Queries(where)
        try:
            return queries.find(ListQuery(q=query), 0, 1000)
        finally:
            queries.close()


@pytest.fixture
def small_pages(monkeypatch) -> None:
    """Lists with several pages from few repos, in every module that has the numbers by name."""
    sizes = {"PAGE_SIZE": PAGE_SIZE, "HOME_CARDS": HOME_CARDS, "HOME_TAGS": HOME_TAGS}
    sizes |= {"URLS_PER_PART_MAX": URLS_PER_PART_MAX, "LIST_PAGES_MAX": LIST_PAGES_MAX}
    search_rules()  # which the process keeps: also with what is patched, for the tests after these
    for module in [module for name, module in sys.modules.items() if name.startswith("builder.")]:
        for name in sizes.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, sizes[name])


# In a fraction of a second every file is young, and the builder looks at young files again
# whatever it remembers. Without this grain it trusts its memory, as it does in life.
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
