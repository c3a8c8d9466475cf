"""Writes files of the site, one module for each scope: a repo, an owner, a list, the whole site.

A module of this package is loaded when ``emit.{module}`` is first used, with templates and all, so
that a build without work starts faster.
"""

import importlib
from types import ModuleType

# Allocations between two runs of the cyclic garbage collector while files are rendered.
GC_THRESHOLD = 50_000


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(name) from None


def load() -> None:
    """Load what builds use, so that the first publication to a service does not wait for it."""
    for name in ("catalogue", "fixed", "pool"):
        importlib.import_module(f"{__name__}.{name}")
