"""The files of each object on the site, as the last build of the object left them: what to remove,
and what the site may have lost. No digest is stored: a build compares bytes with bytes.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby

import msgspec

from builder.model.objects import SITE, Names, params_of, templates_of
from builder.store.state.tables import Table

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Names).decode


@lru_cache(256)
def _templates(encoded: bytes, are_folders: bool) -> str:
    """The templates of an object's files, or of their folders, one a line."""
    # Most objects of a kind have files of the same routes.
    templates = templates_of(_decode(encoded))
    if are_folders:
        templates = [*dict.fromkeys(one.rpartition("/")[0] for one in templates)]
    return "\n".join(templates)


def _paths(object_id: str, encoded: bytes | None) -> list[str]:
    """The paths of an object's files; None: there are none."""
    templates = _templates(encoded, False) if encoded else ""
    return templates.format_map(params_of(object_id)).split("\n") if encoded else []


class Files(Table):
    """The table ``object``. ``noted``: objects whose files were written, and are not stored yet."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.noted: dict[str, Names] = {}

    def flush(self) -> None:
        """Store the noted objects. Those of the site add to the others of it."""
        if SITE in self.noted:
            stored = self._encoded(SITE)
            known = _decode(stored) if stored else []
            self.noted[SITE] = [*dict.fromkeys(known + self.noted[SITE])]
        self._store([*self.noted])

    def _store(self, objects: Iterable[str]) -> None:
        """Store those of these objects that are noted."""
        self._db.executemany(
            "INSERT OR REPLACE INTO object VALUES (?, ?)",
            [(one, _encode(self.noted.pop(one))) for one in objects if one in self.noted],
        )

    def _encoded(self, object_id: str) -> bytes | None:
        return self._value("SELECT files FROM object WHERE id = ?", object_id)

    def of(self, object_id: str) -> list[str]:
        """The files of an object; empty for an unknown one."""
        return _paths(object_id, self._encoded(object_id))

    def remove(self, object_id: str) -> list[str]:
        """Forget an object; returns its files."""
        sql = "DELETE FROM object WHERE id = ? RETURNING files"
        return _paths(object_id, self._value(sql, object_id))

    def replace(self, repo_id: str, objects: list[str]) -> dict[str, list[str]]:
        """Store the noted objects of a repo, which has only these objects now. Returns the files
        that it has no longer, by object.
        """
        kept, lost = {*objects}, {}
        unchanged = kept - self.noted.keys()
        for object_id in sorted({*self.ids_of_repo(repo_id)} - unchanged):
            new = self.noted.get(object_id)
            files = {*_paths(object_id, new and _encode(new))}
            if gone := [file for file in self.of(object_id) if file not in files]:
                lost[object_id] = gone
            if object_id not in kept:
                self.remove(object_id)
        self._store(kept - unchanged)
        return lost

    def ids_of_repo(self, repo_id: str) -> list[str]:
        """The objects of a repo: itself, and those that are named after it."""
        sql = "SELECT id FROM object WHERE id >= ? AND id < ?"
        return self._column(sql, repo_id, f"{repo_id}!")

    def of_repo(self, repo_id: str) -> set[str]:
        """The files of a repo and of its objects."""
        return {file for one in self.ids_of_repo(repo_id) for file in self.of(one)}

    def after(self, object_id: str, limit: int) -> Iterator[tuple[list[str], list[str]]]:
        """Some objects, those after this one in the order of ids: in groups, with the folders of
        each group.
        """
        sql = "SELECT id, files FROM object WHERE id > ? ORDER BY id LIMIT ?"
        rows = self._db.execute(sql, (object_id, limit))
        for repo_id, group in groupby(rows, lambda row: row[0].partition(" ")[0]):
            of_objects = {one: _templates(files, True) for one, files in group}
            try:  # Most folders have only the name of the repo, which is faster.
                folders = "\n".join({*of_objects.values()}).format_map(params_of(repo_id))
                yield [*of_objects], folders.split("\n")
            except KeyError:
                for one, templates in of_objects.items():
                    yield [one], templates.format_map(params_of(one)).split("\n")
