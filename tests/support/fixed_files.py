"""Remembers the files of a site that depend on code and settings alone: tests build many sites."""

import functools
from collections.abc import Callable

from builder.model.settings import Settings
from builder.store.site import Site


class _Recorder:
    """Stands in for a site: keeps the written bytes by their route."""

    def __init__(self) -> None:
        self.files: list[tuple[str, bytes]] = []

    def write_fixed(self, route: str, data: bytes) -> None:
        self.files.append((route, data))


def remembering(write: Callable[[Settings, Site], None]) -> Callable[[Settings, Site], None]:
    """``write_fixed_files``, which renders once for the same settings, whatever their folders."""

    @functools.lru_cache(maxsize=16)
    def files(settings: Settings) -> list[tuple[str, bytes]]:
        recorder = _Recorder()
        write(settings, recorder)
        return recorder.files

    def write_again(settings: Settings, site: Site) -> None:
        for route, data in files(settings._replace(content="", out="", state="")):
            site.write_fixed(route, data)

    return write_again
