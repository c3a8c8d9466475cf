"""Imports a source: derives an owner and a name for each item or history, and publishes it.

Safe to repeat: unchanged prompts stay as they are. A faulty item is reported with its place and
does not stop the others. The import waits for the disk once, at the end. After a power cut in the
middle, ``hubctl check`` names what to remove before you repeat the import.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from builder.model import names
from builder.model.errors import HubError, OperatorError, RequestError, bounded, cut
from builder.model.plural import counted
from builder.model.records import VersionFile
from builder.model.request_bodies import Draft
from builder.model.version_files import BYTES_MAX
from builder.store import content
from builder.text.one_line import one_line
from moving.importers import files, folders, lines, tables
from moving.importers.beside import have_same_files
from moving.importers.histories import FromElsewhere, import_history
from moving.importers.items import Columns, History, Item, PassedOver, Rejection, reason_of
from moving.importers.naming import Names, display_name, handle_of, name_of
from moving.importers.origin import CHANGED, IMPORTED, Origin, Other, origin_in
from moving.importers.placeholding import Counts, Placing
from moving.importers.revisions import Target
from publisher.write.decision import Terms
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore
from publisher.write.fields import parse_loosely
from publisher.write.publish import preview, publish

# The longest file name of common file systems.
SOURCE_CHARS_MAX = 255


class Options(NamedTuple):
    """Settings of an import. ``owner`` gets prompts without an author, and ``license`` is for those
    without one. ``all_tags`` are added to all. By default, ``changelog`` names the source. Repos of
    other owners are updated only for ``allowed_owners``. ``placeholders``: the convention of all
    texts, or ``auto``: by the source. ``markdown``, ``instructions``: as for ``find_prompts``.
    ``onto_others``: prompts may become versions of those that came from elsewhere.
    ``file_bytes``: the most of the files of a version.
    """

    owner: str = "imported"
    columns: Columns = Columns()
    license: str | None = None
    all_tags: tuple[str, ...] = ()
    changelog: str | None = None
    dry_run: bool = False
    allowed_owners: tuple[str, ...] = ()
    placeholders: str = "auto"
    markdown: bool = False
    instructions: bool = False
    onto_others: bool = False
    file_bytes: int = BYTES_MAX


@dataclass
class Outcome:
    """The result of an import, in the order of the source: ``owner/name x.y.z`` of repos, or
    ``owner/name with 3 versions`` for histories. ``refused``: ``owner/name`` of other owners' repos
    that the source would change. ``placeholders``: of all prompts of the source.

    ``versions`` and ``labels``: the numbers published and moved with histories. ``beside``: the
    number of prompts with files that are left out. ``titles``: by ``owner/name``. ``elsewhere``:
    prompts that got another name, because the one of theirs came from elsewhere.
    """

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    placeholders: Counts = field(default_factory=Counts)
    versions: int = 0
    labels: int = 0
    passed_over: list[PassedOver] = field(default_factory=list)
    beside: int = 0
    titles: dict[str, str] = field(default_factory=dict, compare=False)
    elsewhere: list[str] = field(default_factory=list)


def import_source(
    path: str,
    store: FolderStore,
    options: Options,
    progress: Callable[[str, int, int], None],
    own: Collection[str] = (),
) -> Outcome:
    """Publish every prompt of a table, of JSON, of a prompt file or of a folder of them. ``own``:
    folders of the hub, as in ``read_files``.

    ``progress`` gets the kind of work, the number done, and the total. Raises OperatorError if
    nothing of the source can be read, RequestError ``storage_unavailable``.
    """
    # A file's name is bytes, and may be no valid text.
    name = os.fsencode(os.path.basename(os.path.abspath(path))).decode("utf-8", "replace")
    source = one_line(name, SOURCE_CHARS_MAX)
    found = _read(path, options, own)
    return import_found(found, source, store, options, progress, is_folder=os.path.isdir(path))


def import_found(
    found: Iterable[Item | History | Rejection | PassedOver],
    source: str,
    store: FolderStore,
    options: Options,
    progress: Callable[[str, int, int], None],
    *,
    is_folder: bool = False,
) -> Outcome:
    """Publish what was found in a source, which is read once, after the options are checked.
    ``source``: its name in changelogs, to which a folder's files add their paths. Raises as
    ``import_source``.
    """
    check_owners(options)
    content.list_owners(store.root)  # raises unless it is a content folder
    found = list(found)
    placing = Placing(found, options.placeholders)
    task = _Task(store, options, Origin(source, is_folder), placing, progress)
    try:
        task.take_all(found)
    finally:
        if not options.dry_run:
            os.sync()
    return task.outcome


def check_owners(options: Options) -> None:
    """Raises RequestError ``invalid_name`` or ``name_reserved``."""
    names.check_possible_owner(options.owner)
    for owner in options.allowed_owners:
        names.check_owner(owner)


def _read(
    path: str, options: Options, own: Collection[str]
) -> Iterator[Item | Rejection | PassedOver]:
    suffix = os.path.splitext(path)[1].lower()
    try:
        if os.path.isdir(path) or path.lower().endswith(folders.SUFFIXES):
            more = {"markdown": options.markdown, "instructions": options.instructions}
            yield from files.read_files(path, own, **more)
        elif suffix in tables.SUFFIXES:
            yield from tables.read_table(path, options.columns)
        elif suffix in lines.SUFFIXES:
            yield from lines.read_lines(path, options.columns)
        elif suffix == lines.JSON_SUFFIX:
            yield from lines.read_json(path, options.columns)
        else:
            kinds = (*tables.SUFFIXES, *lines.SUFFIXES, lines.JSON_SUFFIX, *folders.SUFFIXES)
            raise OperatorError(
                f"{path} is neither a folder nor a file that ends in {', '.join(kinds)}. "
                "Pass one of these."
            )
    except OSError as error:
        raise OperatorError(f"Cannot read {path}: {error.strerror}.") from None


class _Task:
    """One run: the names given so far, and the outcome."""

    def __init__(
        self,
        store: FolderStore,
        options: Options,
        origin: Origin,
        placing: Placing,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self.outcome = Outcome()
        self._store = store
        self._options = options
        self._own = {options.owner, *options.allowed_owners}
        self._origin = origin
        self._placing = placing
        self._progress = progress
        self._names = Names()
        self._seen: dict[tuple[str, str, str], list[Item]] = {}
        self._noted: set[str] = set()  # notes on names, which many items can share

    def take_all(self, found: list[Item | History | Rejection | PassedOver]) -> None:
        histories = self._name_histories([one for one in found if isinstance(one, History)])
        total, done = sum(_steps(one) for one in found), 0
        for one in found:
            tick = count(done)
            self._progress("Importing", next(tick), total)
            if isinstance(one, Rejection):
                self.outcome.rejected.append(one)
            elif isinstance(one, PassedOver):
                self.outcome.passed_over.append(one)
            elif isinstance(one, Item):
                self._take_item(self._placing.turn(one))
            else:
                owner, name = histories[id(one)]
                tell = partial(self._tell, tick, total)
                self._try(one.where, owner, name, partial(self._publish_history, one, tell))
            done += _steps(one)
        self.outcome.placeholders = self._placing.counts

    def _tell(self, tick: Iterator[int], total: int) -> None:
        self._progress("Importing", next(tick), total)

    def _name_histories(self, histories: list[History]) -> dict[int, tuple[str, str]]:
        """The owner and the name of each, by its id: the same each time, in any order. If several
        derive the same name, the history that already has it in the source gets it.
        """
        named: dict[int, tuple[str, str]] = {}
        first: dict[tuple[str, str], str] = {}
        by_name = [(*self._named(one), one) for one in histories]
        by_name.sort(key=lambda each: (each[2].name != each[1], each[2].name, each[2].where))
        for owner, base, one in by_name:
            name = self._names.give(owner, base)
            named[id(one)] = owner, name
            other = first.setdefault((owner, base), one.name)
            if name != base:
                self.outcome.warnings.append(
                    f"{one.where}: imported as {owner}/{name}, because {cut(repr(other), 80)} has "
                    f"the name {base} already."
                )
        return named

    def _named(self, one: Item | History) -> tuple[str, str]:
        """The owner and the name of one. Warns if a reserved name is replaced."""
        is_unnamed = self._options.columns.contributor == ""
        notes: list[str] = []
        owner = handle_of("" if is_unnamed else one.owner, self._options.owner, notes)
        name = name_of(one.name, notes)
        new = [note for note in notes if note not in self._noted]
        self.outcome.warnings += [f"{one.where}: {note}" for note in new]
        self._noted.update(notes)
        return owner, name

    def _take_item(self, one: Item) -> None:
        owner, base = self._named(one)
        alike = self._seen.setdefault((owner, base, one.text), [])
        for other in alike:
            if have_same_files(one.beside, other.beside, self._options.file_bytes):
                self.outcome.passed_over.append(PassedOver(one.where, f"the same as {other.where}"))
                return
        alike.append(one)
        self.outcome.beside += bool(one.beside and one.beside.left)
        # A rejected item keeps its name, so that its corrected version does not rename others.
        name = self._names.give(owner, base, one.kind)
        first, other = name, None
        while there := self._other_at(owner, name, one):
            if there.same and one.beside and one.beside.files:
                break
            if there.same:
                self.outcome.unchanged.append(f"{owner}/{name} {there.same}")
                return
            other = other or there.first
            name = self._names.give(owner, base, one.kind)
        if other:
            self._tell_of_other(f"{owner}/{first}", other, self._origin.place(one.where), name)
        self._try(one.where, owner, name, partial(self._publish, one))

    def _other_at(self, owner: str, name: str, one: Item) -> Other | None:
        """The repo, if it came from elsewhere than the item."""
        if self._options.onto_others or owner not in self._own:
            return None
        try:
            changelog = self._options.changelog
            return self._origin.other_at(self._store.root, owner, name, one, changelog)
        except HubError:  # publishing reports it
            return None

    def _tell_of_other(self, repo: str, there: VersionFile, place: str, name: str) -> None:
        origin = origin_in(there.changelog)
        since = f"since {there.published_at[:10]}" + (f" from {origin}" if origin else "")
        done = "would be imported" if self._options.dry_run else "imported"
        self.outcome.elsewhere.append(
            f"{repo}: here {since}; this one is {place}: {done} as {name}"
        )

    def _try(self, where: str, owner: str, name: str, publish: Callable[[str, str], None]) -> None:
        try:
            publish(owner, name)
        except HubError as error:
            code = error.code if isinstance(error, RequestError) else ""
            if code == "storage_unavailable":
                raise
            if code == "not_owner":
                self.outcome.refused.append(f"{owner}/{name}")
                return
            self.outcome.rejected.append(Rejection(where, reason_of(error)))

    def _publish_history(
        self, history: History, progress: Callable[[], None], owner: str, name: str
    ) -> None:
        first, other = name, None
        while True:
            target = Target(
                self._store,
                owner,
                name,
                self._origin.source,
                self._draft_of_past,
                convention=self._options.placeholders,
                create_only=owner not in self._own,
                onto_others=self._options.onto_others or owner not in self._own,
                dry_run=self._options.dry_run,
            )
            try:
                result = import_history(history, target, progress)
                break
            except FromElsewhere as error:
                other = other or error.first
                name = self._names.give(owner, first)
        if other:
            place = f"{self._origin.source}, {history.where}"
            self._tell_of_other(f"{owner}/{first}", other, place, name)
        outcome, repo = self.outcome, f"{owner}/{name}"
        outcome.rejected += result.rejected
        outcome.warnings += bounded(result.warnings)
        outcome.titles[repo] = history.name
        outcome.versions += result.versions
        outcome.labels += result.labels
        self._placing.counts.add(result.placed)
        if result.versions or result.labels:
            parts = [counted(result.versions, "version")] if result.versions else []
            parts += [counted(result.labels, "label")] if result.labels else []
            done = outcome.created if result.is_new else outcome.updated
            done.append(f"{repo} with {' and '.join(parts)}")
        elif result.is_here:
            outcome.unchanged.append(repo)

    def _draft_of_past(self, fields: dict[str, Any]) -> tuple[Draft, list[str]]:
        changelog = fields["changelog"] or self._options.changelog
        text = f"{IMPORTED} {self._origin.source}" if changelog is None else changelog
        return self._make_draft(fields | {"changelog": text})

    def _publish(self, item: Item, owner: str, name: str) -> None:
        is_there = bool(content.list_versions(self._store.root, owner, name).versions)
        how = CHANGED if is_there else IMPORTED
        changelog = self._options.changelog
        by = f" by {author}" if (author := display_name(item.author)) else ""
        changelog = f"{how} {self._origin.of(item.where)}{by}" if changelog is None else changelog
        title = {"title": item.title} if item.title and not is_there else {}
        made = {"content": item.text, "changelog": changelog, "bump": names.AUTO}
        files = {"files": item.beside.read(self._options.file_bytes)} if item.beside else {}
        draft, notes = self._make_draft(made | title | item.fields | files)
        # The item's fields already include its front matter.
        terms = Terms(sync=False, front_matter=False, create_only=owner not in self._own)
        if self._options.dry_run:
            root = self._store.root
            found = preview(root, owner, name, draft, publisher=owner, terms=terms)
            done = found.decision.answer
        else:
            done = publish(self._store, owner, name, draft, publisher=owner, terms=terms)
        self.outcome.titles[f"{owner}/{name}"] = item.fields.get("title", item.title)
        repo = f"{owner}/{name} {done.version}"
        if done.unchanged:
            self.outcome.unchanged.append(repo)
            return
        (self.outcome.updated if done.previous_version else self.outcome.created).append(repo)
        warnings = bounded(item.warnings + notes + done.warnings)
        self.outcome.warnings.extend(f"{item.where}: {warning}" for warning in warnings)

    def _make_draft(self, fields: dict[str, Any]) -> tuple[Draft, list[str]]:
        """A draft that includes the settings of the options."""
        if self._options.license:
            fields = {"license": self._options.license} | fields
        tags, notes = parse_loosely({"tags": [*self._options.all_tags, *fields.get("tags", [])]})
        fields = fields | (tags if tags["tags"] else {})
        return make_draft(fields, self._options.file_bytes), notes


def _steps(one: Item | History | Rejection | PassedOver) -> int:
    return max(len(one.revisions), 1) if isinstance(one, History) else 1
