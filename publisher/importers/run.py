"""Imports a source: gives each of its items an owner and a name, and publishes it.

Safe to repeat: what is there already, unchanged, is left alone. One item's fault is told with
its place and does not stop the rest. The disk is waited for once, at the end; after a power
cut in the middle, ``hubctl check`` names what to remove before the import is repeated.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from builder.model import names
from builder.model.errors import HubError, OperatorError, RequestError, bounded
from builder.model.records import Draft
from builder.store import content
from publisher.importers import files, lines, tables
from publisher.importers.items import Columns, Item, Rejection
from publisher.importers.naming import Names, handle_of, name_of
from publisher.write.drafts import make_draft
from publisher.write.fields import parse_loosely
from publisher.write.publish import preview, publish


class Options(NamedTuple):
    """How to import. ``owner`` gets what names nobody, ``license`` is for what names none,
    ``tags`` are for all. Without ``changelog`` it tells the source. Repos of other owners are
    updated for ``allowed_owners`` only.
    """

    owner: str = "imported"
    columns: Columns = Columns()
    license: str | None = None
    tags: tuple[str, ...] = ()
    changelog: str | None = None
    dry_run: bool = False
    allowed_owners: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What came of an import, in the order of the source; ``owner/name x.y.z`` of repos.
    ``refused``: ``owner/name`` of other owners' repos that the source would change.
    """

    created: list[str]
    updated: list[str]
    unchanged: list[str]
    refused: list[str]
    rejected: list[Rejection]
    warnings: list[str]


def import_source(
    path: str, content_root: str, options: Options, progress: Callable[[str, int, int], None]
) -> Outcome:
    """Publish every prompt of a table, of JSON lines, of a prompt file or of a folder of them.

    ``progress`` is called with what is done, how many, and of how many. Raises OperatorError
    where nothing of the source can be read, RequestError ``storage_unavailable``.
    """
    names.check_new_owner(options.owner)
    for owner in options.allowed_owners:
        names.check_owner(owner)
    content.list_owners(content_root)  # is there a content folder, and is it one?
    found = list(_read(path, options.columns))
    # The name of a file is bytes, and need not be text.
    source = os.fsencode(os.path.basename(os.path.abspath(path))).decode("utf-8", "replace")
    task = _Task(content_root, options, source)
    try:
        for done, one in enumerate(found):
            progress("Importing", done, len(found))
            task.take(one)
    finally:
        if not options.dry_run:
            os.sync()
    return task.outcome


def _read(path: str, columns: Columns) -> Iterator[Item | Rejection]:
    suffix = os.path.splitext(path)[1].lower()
    try:
        if os.path.isdir(path) or path.lower().endswith(files.SUFFIXES):
            yield from files.read_files(path)
        elif suffix in tables.SUFFIXES:
            yield from tables.read_table(path, columns)
        elif suffix in lines.SUFFIXES:
            yield from lines.read_lines(path, columns)
        else:
            kinds = ", ".join((*tables.SUFFIXES, *lines.SUFFIXES, *files.SUFFIXES))
            raise OperatorError(
                f"{path} is neither a folder nor a file that ends in {kinds}. Pass one of these."
            )
    except OSError as error:
        raise OperatorError(f"Cannot read {path}: {error.strerror}.") from None


class _Task:
    """One run: what has been given out and seen so far, and the outcome."""

    def __init__(self, root: str, options: Options, source: str) -> None:
        self.outcome = Outcome([], [], [], [], [], [])
        self._root = root
        self._options = options
        self._own = {options.owner, *options.allowed_owners}
        self._source = source
        self._names = Names()
        self._seen: dict[tuple[str, str, str], str] = {}

    def take(self, one: Item | Rejection) -> None:
        if isinstance(one, Rejection):
            self.outcome.rejected.append(one)
            return
        nobody = self._options.columns.contributor == ""
        owner = handle_of("" if nobody else one.owner, self._options.owner)
        base = name_of(one.name)
        first = self._seen.setdefault((owner, base, one.text), one.where)
        if first != one.where:
            self.outcome.rejected.append(Rejection(one.where, f"the same as {first}"))
            return
        # Also one that is rejected keeps its name: mending it renames no other.
        name = self._names.give(owner, base)
        try:
            self._publish(one, owner, name)
        except HubError as error:
            code = error.code if isinstance(error, RequestError) else ""
            if code == "storage_unavailable":
                raise
            if code == "not_owner":
                self.outcome.refused.append(f"{owner}/{name}")
                return
            self.outcome.rejected.append(Rejection(one.where, str(error).removesuffix(".")))

    def _publish(self, item: Item, owner: str, name: str) -> None:
        is_there = bool(content.list_versions(self._root, owner, name).versions)
        draft, notes = self._make_draft(item, is_there)
        # The item's fields have taken in its front matter.
        options = {
            "publisher": owner, "front_matter": False, "create_only": owner not in self._own,
        }  # fmt: skip
        if self._options.dry_run:
            done = preview(self._root, owner, name, draft, **options)
        else:
            done = publish(self._root, owner, name, draft, sync=False, **options)
        repo = f"{owner}/{name} {done.version}"
        if done.unchanged:
            self.outcome.unchanged.append(repo)
            return
        (self.outcome.updated if done.previous_version else self.outcome.created).append(repo)
        warnings = bounded(item.warnings + notes + done.warnings)
        self.outcome.warnings.extend(f"{item.where}: {warning}" for warning in warnings)

    def _make_draft(self, item: Item, is_there: bool) -> tuple[Draft, list[str]]:
        told = "Changed in" if is_there else "Imported from"
        changelog = self._options.changelog
        fields = {
            "content": item.text,
            "changelog": f"{told} {self._source}" if changelog is None else changelog,
            **({"license": self._options.license} if self._options.license else {}),
            **item.fields,
        }
        tags, notes = parse_loosely({"tags": [*self._options.tags, *fields.get("tags", [])]})
        return make_draft(fields | (tags if tags["tags"] else {})), notes
