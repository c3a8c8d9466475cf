"""The files of each object on the site, with their digests: what a build wrote, and so what is
wanted, lost, and to be deployed.
"""

from collections.abc import Iterable

import msgspec

from builder.model.objects import SITE, Digests, files_of
from builder.store.state.tables import Table

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Digests).decode


class Files(Table):
    """The table ``object``. ``noted``: objects whose files were written, and are not stored yet."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.noted: dict[str, Digests] = {}

    def flush(self) -> None:
        """Store the noted objects. Those of the site add to the others of it."""
        if SITE in self.noted:
            self.noted[SITE] = self.get(SITE) | self.noted[SITE]
        self._store([*self.noted])

    def _store(self, objects: Iterable[str]) -> None:
        """Store those of these objects that are noted."""
        self._db.executemany(
            "INSERT OR REPLACE INTO object VALUES (?, ?)",
            [(one, _encode(self.noted.pop(one))) for one in objects if one in self.noted],
        )

    def get(self, object_id: str) -> Digests:
        """The digests of an object's files; empty if it has none."""
        found = self._value("SELECT files FROM object WHERE id = ?", object_id)
        return _decode(found) if found else {}

    def remove(self, object_id: str) -> list[str]:
        """Forget an object; returns its files."""
        sql = "DELETE FROM object WHERE id = ? RETURNING files"
        found = self._db.execute(sql, (object_id,)).fetchone()
        return files_of(object_id, _decode(found[0])) if found else []

    def replace(self, repo_id: str, objects: list[str]) -> dict[str, list[str]]:
        """Store the noted objects of a repo, which has only these objects now. Returns the files
        that it has no longer, by object.
        """
        kept, lost = {*objects}, {}
        for object_id in self.ids_of_repo(repo_id):
            new = self.noted.get(object_id)
            if object_id in kept and new is None:
                continue
            gone = self.get(object_id).keys() - (new or {}).keys()
            if gone:
                lost[object_id] = files_of(object_id, gone)
            if object_id not in kept:
                self.remove(object_id)
        self._store(objects)
        return lost

    def ids_of_repo(self, repo_id: str) -> list[str]:
        """The objects of a repo: itself, and those that are named after it."""
        sql = "SELECT id FROM object WHERE id >= ? AND id < ?"
        return self._column(sql, repo_id, f"{repo_id}!")

    def of_repo(self, repo_id: str) -> set[str]:
        """The files of a repo and of its objects."""
        return {file for one in self.ids_of_repo(repo_id) for file in self.of(one)}

    def of(self, object_id: str) -> list[str]:
        """The files of an object."""
        return files_of(object_id, self.get(object_id))

    def after(self, object_id: str, limit: int) -> list[tuple[str, list[str]]]:
        """The files of some objects, those after this one in the order of ids."""
        sql = "SELECT id, files FROM object WHERE id > ? ORDER BY id LIMIT ?"
        rows = self._db.execute(sql, (object_id, limit))
        return [(one, files_of(one, _decode(files))) for one, files in rows]
