"""Makes the expected site again: ``python -m tests.golden``."""

import shutil
import tempfile
from pathlib import Path

from builder.pipeline.build import build
from tests.golden import SITE, golden_settings

with tempfile.TemporaryDirectory() as state:
    shutil.rmtree(SITE, ignore_errors=True)
    report = build(golden_settings(SITE, state), index=False)
    shutil.rmtree(f"{SITE}/cli")  # the client has tests of its own
    shutil.rmtree(f"{SITE}/assets")  # the same as in the source
    for path in Path(SITE).rglob("*.gz"):  # how they are packed differs from machine to machine
        path.unlink()
print(f"{report.written} files written to {SITE}")
