"""Builds are numbered across processes, and say which files they have touched."""

from builder.pipeline.build import build
from builder.pipeline.take_off import take_off
from builder.store.locks import last_build
from tests.support.catalogues import read_tree, write_version


def test_builds_have_numbers_and_say_what_they_touched(small, tmp_path):
    assert last_build(small.state) == 0
    first = build(small)
    before = read_tree(small.out)
    assert (first.number, first.touched) == (1, before.keys())
    write_version(small.content, "ann", "story", "9.0.0", "Tell another.\n")
    second = build(small, changed=[("ann", "story")])
    after = read_tree(small.out)
    assert second.number == last_build(small.state) == 2
    assert second.touched >= {file for file in after if before.get(file) != after[file]}
    assert len(second.touched) < len(after)
    take_off(small.out, small.state, "bob", "sql", ["1.0.0"], ["latest"])
    assert last_build(small.state) == 3
