"""A bucket as the destination, on a server that speaks S3 and checks signatures."""

import posixpath
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builder.model.caching import CACHE_CONTROL
from builder.model.errors import OperatorError
from builder.model.matching import match_file
from operate.deploy.run import Destination, open_destination
from tests.operate.deploy.conftest import PAGE_KEYS, PREFIX, S3, Look, Sites, deploy_to, expected
from tests.operate.deploy.links import broken, broken_records, by_key, by_rules
from tests.operate.deploy.proxy import Proxy
from tests.support.catalogues import read_tree
from tests.support.servers import HUBCTL, Process, clean_environment

# Other people's objects, in the prefix and beside it; some look like a page of an owner.
THEIRS = (
    "google0123.html", "favicon.ico", "backup", "photos/cat", "photos/", "logs/1/2/3", "../top",
    "../api/v1/tags.json",
)  # fmt: skip


def test_first_repeated_and_changed(
    opened: Destination, s3: S3, bucket: str, proxy: Proxy, look: Look, sites: Sites
) -> None:
    old, new = expected(sites.old.out), expected(sites.new.out)
    done = deploy_to(opened, sites.old)
    assert (done.new, done.changed) == (len(old), 0)
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
    assert deploy_to(opened, sites.old) == (0, 0, 0)
    pages = -(-len(old) // PAGE_KEYS)
    assert pages > 2 and [seen.method for seen in proxy.seen] == ["GET"] * pages

    # Only changed objects are uploaded, in order, after one listing.
    proxy.seen.clear()
    done = deploy_to(opened, sites.new)
    assert look() == new
    changed = {key for key, data in new.items() if old.get(key) != data}
    puts = [seen.key for seen in proxy.seen if seen.method == "PUT"]
    assert set(puts) == {PREFIX + key for key in changed}
    assert len(puts) == done.new + done.changed == len(changed)
    assert puts[-1] == f"{PREFIX}api/v1/hub.json"
    assert proxy.count("DELETE") == done.deleted == len(old.keys() - new.keys())
    assert (proxy.count("GET"), proxy.count("HEAD")) == (pages, 0)
    tree = dict(old)
    for seen in proxy.seen:
        key = seen.key.removeprefix(PREFIX)
        if seen.method == "PUT":
            tree[key] = new[key]
        elif seen.method == "DELETE":
            del tree[key]
        assert broken(tree, by_key) == []
    assert tree == new


def test_foreign_objects_and_files_only(
    opened: Destination, s3: S3, bucket: str, look: Look, sites: Sites
) -> None:
    old = expected(sites.old.out)
    theirs = [posixpath.normpath(PREFIX + key) + "/" * key.endswith("/") for key in THEIRS]
    for key in theirs:
        s3.client.put_object(Bucket=bucket, Key=key, Body=b"theirs")
    # A folder of a console is no object.
    s3.client.put_object(Bucket=bucket, Key=f"{PREFIX}ann/review/", Body=b"")
    deploy_to(opened, sites.old)

    # Objects of the site are repaired, others are left alone.
    s3.client.put_object(Bucket=bucket, Key=f"{PREFIX}ann/review", Body=b"another writer's")
    s3.client.delete_object(Bucket=bucket, Key=f"{PREFIX}top")
    assert deploy_to(opened, sites.old) == (1, 1, 0)
    assert deploy_to(opened, sites.old) == (0, 0, 0)

    # Without keys for URLs.
    done = deploy_to(opened, sites.old, files_only=True)
    files = read_tree(sites.old.out)
    assert done.deleted == len(old) - len(files) and not done.new
    tree = look()
    assert broken(tree, by_rules) == []
    kept = {key.removeprefix(PREFIX) for key in theirs if key.startswith(PREFIX)}
    assert tree.keys() == files.keys() | kept | {"ann/review/"}
    assert {*theirs} <= s3.etags(bucket).keys()


@pytest.mark.parametrize("prefix", ["ü+%20", "x/y"])
def test_prefixes_are_taken_literally(
    s3: S3, bucket: str, prefix: str, opened: Destination, sites: Sites
) -> None:
    deploy_to(open_destination(f"s3://{bucket}/{prefix}"), sites.old)
    assert s3.etags(bucket).keys() == {f"{prefix}/{key}" for key in expected(sites.old.out)}


@pytest.mark.parametrize(
    ("name", "message"),
    [(name, "Invalid destination") for name in
     ("s3://", "s3://a b", "s3:///x", "s3://b//x", "s3://b/../x", "s3://b/./x")]
    + [(name, "Pass a folder") for name in
       ("gs://bucket", "s3:/bucket", "S3://bucket", "file:///x", "", " ")],
)  # fmt: skip
def test_invalid_names(name: str, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        open_destination(name)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch.*Check the credentials"),
        ({"AWS_ACCESS_KEY_ID": "AKIANOBODY"}, "InvalidAccessKeyId.*Check the credentials"),
        ({"AWS_SECRET_ACCESS_KEY": None, "AWS_ACCESS_KEY_ID": None}, "Set AWS_ACCESS_KEY_ID"),
        ({"AWS_SECRET_ACCESS_KEY": None}, "Set AWS_ACCESS_KEY_ID"),
        ({"AWS_ENDPOINT_URL": "s3.example.org"}, "Invalid AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "https://s3 example.org"}, "Invalid AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "ftp://s3.example.org"}, "Invalid AWS_ENDPOINT_URL"),
    ],
)
def test_invalid_settings(
    opened: Destination, bucket: str, monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str | None], message: str,
) -> None:  # fmt: skip
    for key, value in variables.items():
        if value is None:
            monkeypatch.delenv(key)
        else:
            monkeypatch.setenv(key, value)
    with pytest.raises(OperatorError, match=message):
        open_destination(f"s3://{bucket}").objects()


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (301, "PermanentRedirect", "Set AWS_REGION"),
        (400, "ExpiredToken", "Check the credentials"),
        (403, "AccessDenied", r"Cannot list s3://.*: AccessDenied\. Let these credentials"),
        (404, "NoSuchBucket", "Create the bucket"),
        (500, "InternalError", "InternalError.*Try again"),
    ],
)
def test_errors_of_a_service(
    opened: Destination, proxy: Proxy, status: int, code: str, message: str
) -> None:
    proxy.before = lambda seen: (status, code)
    with pytest.raises(OperatorError, match=message):
        opened.objects()


def test_a_missing_library_is_named() -> None:
    script = (
        "import sys; sys.modules['obstore'] = None; sys.argv = ['hubctl', 'deploy', 's3://x']; "
        "from cli.hubctl import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and "pip install obstore" in done.stderr


def test_a_busy_service_that_ends_and_a_deployment_that_is_killed(
    opened: Destination, bucket: str, proxy: Proxy, look: Look, sites: Sites, tmp_path: Path
) -> None:
    old, new = expected(sites.old.out), expected(sites.new.out)
    proxy.before = lambda seen: (
        (503, "SlowDown") if seen.method == "PUT" and seen.number % 40 == 7 else None
    )
    assert proxy.count("PUT") <= deploy_to(opened, sites.old).new < proxy.count("PUT")
    assert look() == old

    proxy.seen.clear()
    proxy.before = lambda seen: "cut" if seen.method == "PUT" and seen.number > 20 else None
    with pytest.raises(OperatorError, match="Try again when the service answers"):
        deploy_to(opened, sites.new)
    assert broken(look(), by_key) == []

    command = [HUBCTL, "deploy", f"s3://{bucket}/{PREFIX}"]
    command += ["--out", sites.new.out, "--state", str(tmp_path)]
    done = sum(old.get(key) != data for key, data in look().items())
    assert done >= 20
    for puts in (5, 30):
        processes: list[Process] = []
        proxy.seen.clear()
        proxy.before = lambda seen, puts=puts, processes=processes: (
            processes[0].send(signal.SIGKILL)
            if seen.method == "PUT" and seen.number == puts
            else None
        )
        environment = clean_environment(AWS_ENDPOINT_URL=proxy.url)
        processes.append(Process(*command, env=environment))
        assert processes[0].wait() == -signal.SIGKILL
        assert look() != new
        assert broken(look(), by_key) == []

    proxy.before = lambda seen: None
    report = deploy_to(opened, sites.new)
    assert look() == new
    # Stored objects were not uploaded again.
    assert report.new + report.changed <= len(new.items() - old.items()) - done - 5 - 30 + 2 * 16
