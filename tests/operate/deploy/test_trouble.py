"""Faults between a deployment and a bucket: clear errors, no broken links, and a next one."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from operate import buckets
from operate.deploy.destination import Destination, open_destination
from tests.operate.deploy.conftest import PREFIX, S3, Look, Sites, deploy_to, expected, listed
from tests.operate.deploy.links import broken, by_key
from tests.operate.deploy.proxy import Proxy, Seen
from tests.support.servers import HUBCTL, Process, clean_environment


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch.*Check the credentials"),
        ({"AWS_ACCESS_KEY_ID": "AKIANOBODY"}, "InvalidAccessKeyId.*Check the credentials"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "Set AWS_ACCESS_KEY_ID"),
    ],
)
def test_wrong_credentials(
    bucket: str, proxy: Proxy, sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str], message: str,
) -> None:  # fmt: skip
    for key, value in changes.items():
        if value:
            monkeypatch.setenv(key, value)
        else:
            monkeypatch.delenv(key)
    destination = open_destination(f"s3://{bucket}", endpoint_url=proxy.url)
    with pytest.raises(OperatorError, match=message):
        deploy_to(destination, sites.new, tmp_path)
    assert proxy.count("PUT") == 0


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (301, "PermanentRedirect", "Set AWS_REGION"),
        (400, "AuthorizationHeaderMalformed", "Set AWS_REGION"),
        (400, "ExpiredToken", "Get new credentials"),
        (
            403,
            "AccessDenied",
            r"Cannot list .*AccessDenied: A & B \(s3://.*Allow these credentials",
        ),
        (403, "RequestTimeTooSkewed", "Set the clock"),
        (500, "InternalError", "InternalError.*try again"),
        (503, "SlowDown", "busy"),
    ],
)
def test_errors_of_a_service(
    opened: Destination, proxy: Proxy, status: int, code: str, message: str
) -> None:
    proxy.before = lambda seen: (status, code)
    with pytest.raises(OperatorError, match=message):
        listed(opened)


@pytest.mark.parametrize(
    ("variables", "endpoint", "message"),
    [
        ({}, "s3.example.org", "Invalid address"),
        ({}, "https://s3 example.org", "Invalid address"),
        ({"AWS_ENDPOINT_URL": "ftp://s3.example.org"}, None, "Invalid address"),
        ({}, "http://127.0.0.1:99999", "Invalid address"),
        ({"AWS_REGION": "eu central"}, None, "Invalid AWS_REGION"),
        ({"AWS_SECRET_ACCESS_KEY": None}, None, "Set AWS_ACCESS_KEY_ID"),
    ],
)
def test_invalid_settings(
    bucket: str, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str | None],
    endpoint: str | None, message: str,
) -> None:  # fmt: skip
    for key, value in variables.items():
        if value is None:
            monkeypatch.delenv(key)
        else:
            monkeypatch.setenv(key, value)
    with pytest.raises(OperatorError, match=message):
        listed(open_destination(f"s3://{bucket}", endpoint_url=endpoint))


def test_a_service_that_does_not_answer(
    bucket: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "REQUEST_SECONDS", 0.2)
    monkeypatch.setitem(buckets.RETRIES, "max_retries", 0)
    answered = threading.Event()
    proxy.before = lambda seen: None if answered.wait(300) else "cut"
    destination = open_destination(f"s3://{bucket}", endpoint_url=proxy.url)
    with pytest.raises(OperatorError, match=r"not done within 0\.2 seconds.*fewer --jobs"):
        listed(destination)
    answered.set()


def test_aws_ca_bundle_names_a_trusted_certificate(
    s3: S3, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = f"{tmp_path}/cert.pem", f"{tmp_path}/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate,
         "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"],
        check=True, capture_output=True,
    )  # fmt: skip
    s3.client.put_object(Bucket=bucket, Key="top", Body=b"Top")

    def keys() -> list[str]:
        return [*listed(open_destination(f"s3://{bucket}", endpoint_url=proxy.url))]

    with Proxy(s3.url, (certificate, key)) as proxy:
        with pytest.raises(OperatorError, match=r"is not trusted\. Set AWS_CA_BUNDLE"):
            keys()
        monkeypatch.setenv("AWS_CA_BUNDLE", certificate)
        assert keys() == ["top"]
        monkeypatch.setenv("AWS_CA_BUNDLE", key)
        with pytest.raises(OperatorError, match=f"Cannot use AWS_CA_BUNDLE {key}"):
            keys()


def test_no_such_bucket(bucket: str, s3: S3) -> None:
    # With a host name as endpoint, too, the bucket is in the path.
    endpoint = s3.url.replace("127.0.0.1", "localhost")
    with pytest.raises(OperatorError, match=r"NoSuchBucket.*Create it"):
        listed(open_destination("s3://no-such-bucket", endpoint_url=endpoint))


def test_a_missing_library_is_named(bucket: str, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['obstore'] = None; sys.argv = ['hubctl', 'deploy', 's3://x']; "
        "from cli.hubctl import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and "pip install obstore" in done.stderr


def test_a_process_ends_well_while_a_thread_of_the_library_wakes_its_loop(
    bucket: str, s3: S3, sites: Sites, tmp_path: Path
) -> None:
    """Its threads call the loop from Rust, and a process that ends meanwhile aborts."""
    script = """
import asyncio, threading, time
wake = asyncio.BaseEventLoop.call_soon_threadsafe
def wake_slowly(*args, **kwargs):
    try:
        return wake(*args, **kwargs)
    finally:
        if threading.current_thread().name.startswith("Dummy"):  # it is not Python's
            for _ in range(1000):
                time.sleep(0.001)
asyncio.BaseEventLoop.call_soon_threadsafe = wake_slowly
from cli.hubctl import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "deploy", f"s3://{bucket}", "--dry-run",
         "--out", sites.new.out, "--state", str(tmp_path)],
        capture_output=True, text=True, env=clean_environment(AWS_ENDPOINT_URL=s3.url),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_busy_service_a_damaged_upload_and_another_writer(
    opened: Destination, s3: S3, bucket: str, proxy: Proxy, look: Look, sites: Sites,
    tmp_path: Path,
) -> None:  # fmt: skip
    new = expected(sites.new.out)
    proxy.before = lambda seen: (
        (503, "SlowDown") if seen.method == "PUT" and seen.number % 40 == 7 else None
    )
    report = deploy_to(opened, sites.old, tmp_path)
    assert proxy.count("PUT") > report.new
    assert look() == expected(sites.old.out)

    # The service says that it has stored something else.
    proxy.seen.clear()
    proxy.before = lambda seen: "damage" if seen.method == "PUT" and seen.number == 30 else None
    with pytest.raises(OperatorError, match="has other content"):
        deploy_to(opened, sites.new, tmp_path)
    assert broken(look(), by_key) == []

    # Another program writes to the bucket at the last moment.
    def meddle(seen: Seen) -> None:
        if seen.method == "PUT" and seen.key.endswith("hub.json"):
            s3.client.put_object(Bucket=bucket, Key=f"{PREFIX}top", Body=b"another writer's")
            s3.client.delete_object(Bucket=bucket, Key=f"{PREFIX}search")

    proxy.before = meddle
    message = "search is missing\n  top has other content\nMake sure"
    with pytest.raises(OperatorError, match=message):
        deploy_to(opened, sites.new, tmp_path, everything=True)

    proxy.before = lambda seen: None
    report = deploy_to(opened, sites.new, tmp_path)
    assert (report.new, report.changed) == (1, 1)
    assert look() == new


def test_the_service_ends_and_the_deployment_is_killed(
    opened: Destination, bucket: str, proxy: Proxy, look: Look, sites: Sites, tmp_path: Path
) -> None:
    old, new = expected(sites.old.out), expected(sites.new.out)
    deploy_to(opened, sites.old, tmp_path)
    proxy.seen.clear()
    proxy.before = lambda seen: "cut" if seen.method == "PUT" and seen.number > 20 else None
    with pytest.raises(OperatorError, match=r"(?s)try again when the service answers.*continue"):
        deploy_to(opened, sites.new, tmp_path)
    assert broken(look(), by_key) == []

    command = [HUBCTL, "deploy", f"s3://{bucket}/{PREFIX}", "--endpoint-url", proxy.url]
    command += ["--out", sites.new.out, "--state", str(tmp_path), "--jobs", "8"]
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
        processes.append(Process(*command, env=clean_environment()))
        assert processes[0].wait() == -signal.SIGKILL
        assert look() != new
        assert broken(look(), by_key) == []
        assert list(tmp_path.glob("deploy-*.snapshot"))

    proxy.before = lambda seen: None
    proxy.seen.clear()
    report = deploy_to(opened, sites.new, tmp_path)
    assert look() == new
    # Stored objects were not uploaded again.
    assert report.new + report.changed <= len(new.items() - old.items()) - done - 5 - 30 + 2 * 8
    assert not list(tmp_path.glob("deploy-*.snapshot"))
