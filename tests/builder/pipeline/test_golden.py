"""The golden site: what a build makes of a small catalogue, byte for byte."""

import gzip
from pathlib import Path

from builder.pipeline.build import build
from operate.content_check import check
from tests.golden import (
    CONTENT,
    HUB,
    PAGES,
    SITE,
    from_sources,
    golden_settings,
    other_pages,
    without_version,
)
from tests.support.catalogues import read_tree

REMEDY = "if this is wanted: python -m tests.golden"


def test_the_golden_content_is_sound():
    assert list(check(CONTENT)) == []


def test_the_site_is_the_golden_one(tmp_path):
    settings = golden_settings(f"{tmp_path}/site", f"{tmp_path}/state")
    build(settings, index=False)
    made = read_tree(tmp_path / "site")
    expected = read_tree(SITE) | from_sources(settings)
    # The output of gzip differs between machines.
    for file in [file for file in made if file.endswith(".gz")]:
        assert gzip.decompress(made.pop(file)) == made[file.removesuffix(".gz")]
    assert made[HUB] != without_version(made[HUB])
    made[HUB] = without_version(made[HUB])
    others = other_pages(made)
    assert others == Path(PAGES).read_text().splitlines(), f"other pages; {REMEDY}"
    for file in others:
        del made[file]
    assert sorted(expected.keys() - made.keys()) == [], f"expected and not made; {REMEDY}"
    assert sorted(made.keys() - expected.keys()) == [], f"made and not expected; {REMEDY}"
    for file, data in made.items():
        # Compared as text, so that pytest shows the difference by lines.
        texts = (one.decode(errors="replace") for one in (data, expected[file]))
        assert next(texts) == next(texts), f"{file} differs; {REMEDY}"
        assert data == expected[file]
