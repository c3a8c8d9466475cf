"""Keeps compiled templates: to compile them takes longer than a small build does."""

import contextlib
import importlib.metadata
import importlib.util
import os
import sys

import jinja2
from jinja2.bccache import Bucket


class CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Where Python keeps compiled modules, and as with these, only if it can."""

    def __init__(self) -> None:
        folder = os.path.dirname(importlib.util.cache_from_source(__file__))
        super().__init__(folder, f"%s.jinja2-{importlib.metadata.version('jinja2')}.pyc")

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                super().dump_bytecode(bucket)
