"""Makes the expected site again: ``python -m tests.golden``."""

import shutil
import tempfile
from pathlib import Path

from builder.pipeline.build import build
from tests.golden import SITE, from_sources, golden_settings

with tempfile.TemporaryDirectory() as state:
    shutil.rmtree(SITE, ignore_errors=True)
    settings = golden_settings(SITE, state)
    report = build(settings, index=False)
for path in Path(SITE).rglob("*.gz"):  # how they are packed differs from machine to machine
    path.unlink()
for file in from_sources(settings):
    Path(SITE, file).unlink()
print(f"{report.written} files written to {SITE}")
