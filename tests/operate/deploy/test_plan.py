"""The plan of a dry run as JSON, carried out by a tool that knows nothing but its lines."""

import hashlib
import json
import random
from pathlib import Path

from builder.model.caching import CACHE_CONTROL
from builder.model.settings import Settings
from operate.deploy.destination import Destination
from operate.deploy.order import match_key
from tests.operate.deploy.conftest import PREFIX, Sites, deploy_to, expected
from tests.operate.deploy.links import broken, by_key
from tests.operate.deploy.proxy import Proxy
from tests.operate.deploy.test_cli import run
from tests.support.catalogues import read_tree


def plan(settings: Settings, *options: str) -> list[dict]:
    done = run(settings, "--dry-run", "--json", *options)
    return list(map(json.loads, done.stdout.splitlines()))


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


def test_without_a_destination_the_plan_has_the_whole_site(sites: Sites) -> None:
    lines = plan(sites.new)
    for line in lines:
        route = match_key(line["key"]).route
        assert line["content_type"] == route.media
        assert line["cache_control"] == CACHE_CONTROL[route.cache]
    groups = [line["group"] for line in lines]
    assert groups == sorted(groups) and groups[0] == 1
    tree: dict[str, bytes] = {}
    carry_out(lines, sites.new.out, tree, check=False)
    assert tree == expected(sites.new.out)
    # Nothing is taken for done.
    assert plan(sites.new) == lines

    tree = {}
    carry_out(plan(sites.new, "--files-only"), sites.new.out, tree, check=False)
    assert tree == read_tree(sites.new.out)


def test_for_a_bucket_the_plan_has_new_changed_and_lost_objects(
    opened: Destination, bucket: str, proxy: Proxy, sites: Sites, tmp_path: Path
) -> None:
    deploy_to(opened, sites.old, tmp_path)
    lines = plan(sites.new, f"s3://{bucket}/{PREFIX}", "--endpoint-url", proxy.url)
    old, new = expected(sites.old.out), expected(sites.new.out)
    assert {line["key"] for line in lines if line["action"] == "put"} == {
        key for key, data in new.items() if old.get(key) != data
    }
    actions = [line["action"] for line in lines]
    assert actions == sorted(actions, reverse=True) and "delete" in actions
    tree = dict(old)
    carry_out(lines, sites.new.out, tree, check=True)
    assert tree == new
