"""The changed files of settled builds, kept as they were until a deployment sends them."""

import os
import shutil

from builder.store.site import read_serial
from operate.deploy import snapshot
from operate.deploy.snapshot import Files


class Gathered:
    """Links to files as they were after the last settled build, for the next deployment."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._paths = snapshot.paths_in(folder)
        self.files: Files = {}
        self.build = 0
        self.serial: int | None = None

    def add(self, site: str, files: set[str], build: int) -> None:
        """Keep these files in their present state. Raises OSError."""
        os.makedirs(self._folder, exist_ok=True)
        kept = snapshot.keep(site, files, self._paths)
        for file in files:
            if old := self.files.get(file):
                os.unlink(old.path)
        self.files |= kept
        self.build = build
        self.serial = read_serial(site)

    def drop(self) -> None:
        # Files that cannot be removed now are removed at the next start.
        shutil.rmtree(self._folder, ignore_errors=True)
