"""A bucket as the destination, on a server that speaks S3 and checks signatures."""

import hashlib
import posixpath
from pathlib import Path

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.errors import OperatorError
from builder.model.matching import match_file
from operate.deploy.destination import Destination, open_destination
from operate.deploy.order import match_key
from tests.operate.deploy.conftest import PAGE_KEYS, PREFIX, S3, Look, Sites, deploy_to, expected
from tests.operate.deploy.links import broken, broken_records, by_key, by_rules
from tests.operate.deploy.proxy import Proxy
from tests.support.catalogues import read_tree

# Other people's objects, in the prefix and beside it; some look like a page of an owner.
THEIRS = (
    "google0123.html", "favicon.ico", "backup", "photos/cat", "photos/", "logs/1/2/3", "../top",
    "../api/v1/tags.json",
)  # fmt: skip


def test_first_repeated_forgotten_and_changed(
    opened: Destination, s3: S3, bucket: str, proxy: Proxy, look: Look, sites: Sites,
    tmp_path: Path,
) -> None:  # fmt: skip
    old, new = expected(sites.old.out), expected(sites.new.out)
    # Another tool has put some of it before, without headers.
    before = ["api/v1/repos.json", "ann.html", "top"]
    for key in before:
        s3.client.put_object(Bucket=bucket, Key=PREFIX + key, Body=old[key])
    report = deploy_to(opened, sites.old, tmp_path)
    assert (report.new, report.changed) == (len(old) - len(before), len(before))
    assert look() == old
    for file in read_tree(sites.old.out):
        match = match_file(file)
        key = match.url.removeprefix("/") or file
        head = s3.client.head_object(Bucket=bucket, Key=PREFIX + key)
        assert head["ContentType"] == match.route.media
        assert head["CacheControl"] == CACHE_CONTROL[match.route.cache]
        assert "ContentEncoding" not in head
    # The site's own links are keys, and so are the API's URLs.
    assert broken(old, by_key) == [] == broken_records(old, by_key)
    assert old["api/v1/repos/ann/review"] == old["api/v1/repos/ann/review.json"]

    # Nothing has changed: one listing.
    proxy.seen.clear()
    assert deploy_to(opened, sites.old, tmp_path).current == len(old)
    pages = -(-len(old) // PAGE_KEYS)
    assert pages > 2 and [seen.method for seen in proxy.seen] == ["GET"] * pages

    # Nothing is remembered: the headers have to be looked at.
    proxy.seen.clear()
    assert deploy_to(opened, sites.old, tmp_path / "another-state").current == len(old)
    assert (proxy.count("HEAD"), proxy.count("PUT")) == (len(old), 0)

    # Only changed objects are uploaded, in order; with a listing before and one after.
    proxy.seen.clear()
    report = deploy_to(opened, sites.new, tmp_path)
    assert look() == new
    changed = {key for key, data in new.items() if old.get(key) != data}
    puts = [seen.key for seen in proxy.seen if seen.method == "PUT"]
    assert set(puts) == {PREFIX + key for key in changed}
    assert len(puts) == report.new + report.changed == len(changed)
    assert puts[-1] == f"{PREFIX}api/v1/hub.json"
    assert proxy.count("DELETE") == report.deleted == len(old.keys() - new.keys())
    assert proxy.count("GET") == pages + -(-len(new) // PAGE_KEYS)
    assert proxy.count("HEAD") == 0
    tree = dict(old)
    for seen in proxy.seen:
        key = seen.key.removeprefix(PREFIX)
        if seen.method == "PUT":
            tree[key] = new[key]
        elif seen.method == "DELETE":
            del tree[key]
        assert broken(tree, by_key) == []
    assert tree == new


def test_foreign_objects_and_changed_rules(
    opened: Destination, s3: S3, bucket: str, look: Look, sites: Sites, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    old = expected(sites.old.out)
    theirs = [posixpath.normpath(PREFIX + key) + "/" * key.endswith("/") for key in THEIRS]
    for key in theirs:
        s3.client.put_object(Bucket=bucket, Key=key, Body=b"theirs")
    deploy_to(opened, sites.old, tmp_path)

    # Objects of the site are repaired, others are left alone.
    s3.client.put_object(Bucket=bucket, Key=f"{PREFIX}ann/review", Body=b"another writer's")
    s3.client.delete_object(Bucket=bucket, Key=f"{PREFIX}top")
    report = deploy_to(opened, sites.old, tmp_path)
    within = sum(key.startswith(PREFIX) for key in theirs)
    assert (report.new, report.changed, report.deleted, report.foreign) == (1, 1, 0, within)

    # A changed cache rule updates its objects.
    monkeypatch.setitem(CACHE_CONTROL, "version", "public, max-age=301")
    report = deploy_to(opened, sites.old, tmp_path)
    key = "api/v1/repos/ann/review/versions/1.1.0"
    assert report.changed == sum(match_key(key).route.cache == "version" for key in old)
    for suffix in ("", ".json", ".diff", "/diff"):
        head = s3.client.head_object(Bucket=bucket, Key=PREFIX + key + suffix)
        assert head["CacheControl"] == "public, max-age=301"

    # Without keys for URLs.
    report = deploy_to(opened, sites.old, tmp_path, files_only=True)
    files = read_tree(sites.old.out)
    assert report.deleted == len(old) - len(files) and not report.new
    tree = look()
    assert broken(tree, by_rules) == []
    etags = s3.etags(bucket)
    assert {etags[key] for key in theirs} == {hashlib.md5(b"theirs").hexdigest()}
    assert tree.keys() == files.keys() | {
        key.removeprefix(PREFIX) for key in theirs if key.startswith(PREFIX)
    }


def test_folders_of_a_console_are_no_objects(
    opened: Destination, s3: S3, bucket: str, look: Look, sites: Sites, tmp_path: Path
) -> None:
    folders = [f"{PREFIX}{name}/" for name in ("ann/review", "bob/sql", "api/v1/repos")]
    for folder in folders:
        s3.client.put_object(Bucket=bucket, Key=folder, Body=b"")
    deploy_to(opened, sites.old, tmp_path)
    report = deploy_to(opened, sites.new, tmp_path)
    assert report.deleted and not report.foreign
    assert deploy_to(opened, sites.new, tmp_path).current == len(expected(sites.new.out))
    left = look()
    assert all(left.pop(folder.removeprefix(PREFIX)) == b"" for folder in folders)
    assert left == expected(sites.new.out)


def test_a_key_that_cannot_be_listed_is_named(
    opened: Destination, s3: S3, bucket: str, sites: Sites, tmp_path: Path
) -> None:
    s3.client.put_object(Bucket=bucket, Key=f"{PREFIX}photos//cat", Body=b"theirs")
    with pytest.raises(OperatorError, match=r"photos//cat.*Remove that object, or choose a prefix"):
        deploy_to(opened, sites.old, tmp_path)


@pytest.mark.parametrize("prefix", ["ü+%20", "x/y"])
def test_prefixes_are_taken_literally(
    s3: S3, bucket: str, prefix: str, sites: Sites, tmp_path: Path
) -> None:
    destination = open_destination(f"s3://{bucket}/{prefix}", endpoint_url=s3.url)
    deploy_to(destination, sites.old, tmp_path)
    assert s3.etags(bucket).keys() == {f"{prefix}/{key}" for key in expected(sites.old.out)}


@pytest.mark.parametrize(
    "name", ["s3://", "s3://a b", "s3:///x", "s3://b//x", "s3://b/../x", "s3://b/./x"]
)
def test_invalid_names_of_buckets(name: str) -> None:
    with pytest.raises(OperatorError, match="Invalid destination"):
        open_destination(name)


@pytest.mark.parametrize("name", ["gs://bucket", "s3:/bucket", "S3://bucket", "file:///x", "", " "])
def test_invalid_kinds_of_destination(name: str) -> None:
    with pytest.raises(OperatorError, match="Pass a folder"):
        open_destination(name)
