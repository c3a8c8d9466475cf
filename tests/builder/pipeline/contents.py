"""Every way to change a content tree, as rules of a state machine."""

import os
import shutil

import msgspec
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from builder.model.records import VersionFile
from builder.model.version_files import content_sha256
from publisher.write.moves import read_labels
from tests.builder.pipeline.tree import Tree
from tests.support.catalogues import (
    edit_record,
    moment,
    read_tree,
    write_label,
    write_owner,
    write_version,
    write_withdrawn,
)

OWNERS = ("ann", "a-b", "zoe")
NAMES = ("x", "x-y", "sql")
VERSIONS = ("1.0.0", "1.0.1", "1.0.2", "1.1.0", "1.10.0", "2.0.0")
TAGS = ("code", "top", "long-tag")
LABELS = ("production", "a.b")

owners = st.sampled_from(OWNERS)
names = st.sampled_from(NAMES)
versions = st.sampled_from(VERSIONS)
hours = st.sampled_from((0, 1, 100, 100_000))
labels = st.sampled_from(LABELS)
label_lists = st.lists(labels, min_size=1, unique=True)
tag_lists = st.lists(st.sampled_from(TAGS), unique=True)
texts = st.sampled_from(("One.\n", "Two.\n", "Two {{a}}", "<b>\r\n", "---\ntitle: x\n---\nBody"))
folders = st.dictionaries(
    st.sampled_from(("a.html", "d/run.sh", "d/e/image.png")),
    st.sampled_from((b"", b"<p>", b"\x89PNG\0")),
)
numbers = st.integers(0, 1000)
ordinals = st.sampled_from(({}, {"ordinal": 1}, {"ordinal": 2}, {"ordinal": 7}))


class Contents(Tree):
    """Changes the content, and notes the hints for the next build."""

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
          ordinal=ordinals, files=folders)  # fmt: skip
    def publish(self, owner, name, version, text, tags, hour, ordinal, files):
        write_version(
            self.root, owner, name, version, text, files, tags=tags, published_at=moment(hour),
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
        write_version(self.root, *path.parts[-4:-2], path.stem, "Left.\n", {"left.sh": b"left"})
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

    @rule(number=numbers, files=folders)
    def edit_files(self, number, files):
        path = self.pick(self.records(), number)
        text = path.with_suffix(".md").read_bytes()
        write_version(self.root, *path.parts[-3:-1], path.stem, text, files)
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers)
    def edit_an_executable_bit(self, number):
        path = self.pick(self.records(), number)
        record = msgspec.json.decode(path.read_bytes(), type=VersionFile)
        one = self.pick(record.files or [], number)
        one.executable = not one.executable
        files = msgspec.to_builtins(record.files)
        edit_record(path, files=files, content_sha256=content_sha256(record.sha256, record.files))
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers)
    def leave_a_file_that_no_record_has(self, number):
        path = self.pick(self.records(), number)
        folder = path.with_suffix(".files") / "left"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.md").write_bytes(b"left")
        self.touch(*path.parts[-3:-1])

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
        shutil.rmtree(path.with_suffix(".files"), ignore_errors=True)
        self.touch(*path.parts[-3:-1])

    @rule(number=numbers, version=versions)
    def rename_version(self, number, version):
        path = self.pick(self.records(), number)
        assume(not path.with_name(f"{version}.json").exists())
        path.with_suffix(".md").rename(path.with_name(f"{version}.md"))
        shutil.rmtree(path.with_name(f"{version}.files"), ignore_errors=True)
        if path.with_suffix(".files").exists():
            path.with_suffix(".files").rename(path.with_name(f"{version}.files"))
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
        record, path = self.pick_file(number)
        os.utime(path)
        self.touch(*record.parts[-3:-1])

    @rule(number=numbers)
    def put_another_file_with_the_same_bytes(self, number):
        record, path = self.pick_file(number)
        other = path.with_name(".other")
        other.write_bytes(path.read_bytes())
        other.rename(path)
        self.touch(*record.parts[-3:-1])

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
