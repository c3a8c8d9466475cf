"""The upload plan, carried out by a tool that knows nothing but its lines."""

import hashlib
import json
import random
import subprocess
from pathlib import Path

import pytest

from builder.deploy.order import match_key
from builder.hosts.s3 import PLAN_FILE, write
from builder.model.errors import OperatorError
from builder.model.routes import CACHE_CONTROL
from builder.model.settings import Settings
from tests.deploy.conftest import Sites, expected
from tests.deploy.links import broken, by_key
from tests.support.catalogues import read_tree
from tests.support.servers import HUBCTL, clean_environment


def make(settings: Settings, folder: Path, **options) -> list[dict]:
    """The lines of a new plan; state and target are in ``folder``."""
    summary = write(settings._replace(state=str(folder / "state")), str(folder / "s3"), **options)
    assert summary.path == str(folder / "s3" / PLAN_FILE)
    lines = [json.loads(line) for line in Path(summary.path).read_bytes().splitlines()]
    assert summary.puts == sum(line["action"] == "put" for line in lines)
    assert summary.puts + summary.deletes == len(lines)
    return lines


def carry_out(lines: list[dict], site: str, tree: dict[str, bytes], *, check: bool) -> None:
    """Do what the lines say, in any order within each group."""
    for number in sorted({line["group"] for line in lines}):
        group = [line for line in lines if line["group"] == number]
        random.Random(number).shuffle(group)
        for line in group:
            if line["action"] == "delete":
                del tree[line["key"]]
            else:
                data = Path(site, line["file"]).read_bytes()
                assert len(data) == line["size"]
                assert hashlib.md5(data).hexdigest() == line["md5"]
                tree[line["key"]] = data
            assert not check or broken(tree, by_key) == []


def test_plans_carried_out_one_after_the_other(sites: Sites, tmp_path: Path) -> None:
    tree: dict[str, bytes] = {}
    first = make(sites.old, tmp_path)
    for line in first:
        route = match_key(line["key"]).route
        assert line["content_type"] == route.media
        assert line["cache_control"] == CACHE_CONTROL[route.cache]
    assert [line["group"] for line in first] == sorted(line["group"] for line in first)
    carry_out(first, sites.old.out, tree, check=False)
    assert tree == expected(sites.old.out)

    # It is still there, so it counts for nothing.
    assert make(sites.old, tmp_path) == first
    (tmp_path / "s3" / PLAN_FILE).unlink()
    assert make(sites.old, tmp_path) == []
    (tmp_path / "s3" / PLAN_FILE).unlink()

    second = make(sites.new, tmp_path)
    old, new = dict(tree), expected(sites.new.out)
    assert {line["key"] for line in second if line["action"] == "put"} == {
        key for key, data in new.items() if old.get(key) != data
    }
    actions = [line["action"] for line in second]
    assert actions == sorted(actions, reverse=True) and "delete" in actions
    carry_out(second, sites.new.out, tree, check=True)
    assert tree == new


def test_a_plan_that_was_not_carried_out_is_in_the_next_one(sites: Sites, tmp_path: Path) -> None:
    carried_out = make(sites.old, tmp_path)
    tree: dict[str, bytes] = {}
    carry_out(carried_out, sites.old.out, tree, check=False)
    (tmp_path / "s3" / PLAN_FILE).unlink()
    make(sites.new, tmp_path)
    # Not carried out, and then the site is as it was.
    assert make(sites.old, tmp_path) == []
    lines = make(sites.new, tmp_path)
    carry_out(lines, sites.new.out, tree, check=True)
    assert tree == expected(sites.new.out)


def test_files_only(sites: Sites, tmp_path: Path) -> None:
    lines = make(sites.new, tmp_path)
    tree: dict[str, bytes] = {}
    carry_out(lines, sites.new.out, tree, check=False)
    (tmp_path / "s3" / PLAN_FILE).unlink()
    # As people give it; the second keys of the plan before have to go.
    done = subprocess.run(
        [HUBCTL, "hosts", "s3", "--files-only", "--target", str(tmp_path / "s3"),
         "--out", sites.new.out, "--state", str(tmp_path / "state")],
        capture_output=True, text=True, timeout=60, env=clean_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 's3' / PLAN_FILE}\n"
    lines = list(map(json.loads, Path(done.stdout.strip()).read_bytes().splitlines()))
    assert {line["action"] for line in lines} == {"delete"}
    carry_out(lines, sites.new.out, tree, check=False)
    assert tree == read_tree(sites.new.out)
    # And from the first plan on.
    lines = make(sites.new, tmp_path / "first", files_only=True)
    assert [line["key"] for line in lines] == [line["file"] for line in lines]
    assert len(lines) == len(tree)


def test_without_a_site_there_is_no_plan(small: Settings, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="Run `hubctl build`"):
        make(small, tmp_path)
    assert not (tmp_path / "s3" / PLAN_FILE).exists()


def test_a_target_that_cannot_be_written_is_named(sites: Sites, tmp_path: Path) -> None:
    (tmp_path / "s3").write_text("a file")
    with pytest.raises(OperatorError, match="Cannot write the plan to"):
        make(sites.new, tmp_path)
