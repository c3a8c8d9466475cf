"""Writes the expected site again: ``python -m tests.golden``."""

import shutil
import tempfile
from pathlib import Path

from builder.pipeline.build import build
from tests.golden import (
    HUB,
    PAGES,
    SITE,
    from_sources,
    golden_settings,
    other_pages,
    without_version,
)
from tests.support.catalogues import read_tree

with tempfile.TemporaryDirectory() as state:
    shutil.rmtree(SITE, ignore_errors=True)
    settings = golden_settings(SITE, state)
    report = build(settings, index=False)
for path in Path(SITE).rglob("*.gz"):  # how they are packed differs from machine to machine
    path.unlink()
hub = Path(SITE, HUB)
hub.write_bytes(without_version(hub.read_bytes()))
pages = other_pages(read_tree(Path(SITE)))
Path(PAGES).write_text("\n".join([*pages, ""]))
for file in (*from_sources(settings), *pages):
    Path(SITE, file).unlink()
print(f"{report.written} files written to {SITE}")
