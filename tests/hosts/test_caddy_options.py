"""Options for Caddy, and refused ones."""

import gzip
import json
import os
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path

import pytest
import requests

from builder.hosts import caddy, caddy_options
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError
from builder.pipeline.build import build
from tests.conformance.caddy import started_caddy
from tests.hosts.hosted import get, hosted
from tests.hosts.redirects import check_redirects, make_certificate
from tests.hosts.test_caddy import NAME, REPO, raw, settings
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    RawAnswer,
    clean_environment,
    free_port,
    read_answer,
    wait_until,
)

__all__ = ["settings"]  # a fixture


def adapt(site: HostedSite, folder: Path) -> dict:
    """Caddy's own reading of the configuration, which it finds valid and well-formatted."""
    os.makedirs(caddy.folder(site), exist_ok=True)
    config = folder / caddy.FILE
    config.write_text(caddy.files(site)[caddy.FILE], encoding="utf-8")
    environment = clean_environment(HOME=str(folder))
    done = subprocess.run(
        ["caddy", "adapt", "--validate", "--config", str(config)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    formatted = subprocess.run(["caddy", "fmt", str(config)], capture_output=True, text=True)
    assert formatted.stdout == config.read_text(encoding="utf-8")
    return json.loads(done.stdout)


@pytest.mark.usefixtures("installed_tools")
def test_a_plain_address(tmp_path):
    read = adapt(HostedSite("/srv/site", str(tmp_path), listen="[::1]:8080"), tmp_path)
    assert read["admin"]["disabled"] is True
    assert [log["writer"]["roll"] for log in read["logging"]["logs"].values()] == [False, False]
    assert read["storage"] == {"module": "file_system", "root": f"{tmp_path}/caddy/data"}
    servers = {
        server["listen"][0].removeprefix("tcp/"): server
        for server in read["apps"]["http"]["servers"].values()
    }
    assert set(servers) == {"[::1]:8080", f"unix/{tmp_path}/caddy/ranges.sock"}
    assert servers["[::1]:8080"]["automatic_https"] == {"disable": True}
    # Slow senders cannot hold connections.
    limits = [server["read_timeout"] for server in servers.values()]
    assert limits and all(0 < limit <= 60e9 for limit in limits)


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize(("listen", "port"), [(NAME, 443), (f"{NAME}:8443", 8443)])
def test_a_name_gets_tls(tmp_path, listen, port):
    read = adapt(HostedSite("/srv/site", str(tmp_path), listen=listen), tmp_path)
    [server] = [
        server for server in read["apps"]["http"]["servers"].values()
        if server["listen"] == [f":{port}"]
    ]  # fmt: skip
    assert server["routes"][0]["match"] == [{"host": [NAME]}]
    assert "automatic_https" not in server


@pytest.mark.usefixtures("installed_tools")
def test_every_option_at_once(tmp_path):
    certificate = make_certificate(tmp_path)
    site = HostedSite(
        "/srv/site", str(tmp_path), "https://example.org/some/prompts", "*:8443",
        "hub_1.internal:8000", trusted_proxies=("10.0.0.0/8", "fd00::/8"), certificate=certificate,
    )  # fmt: skip
    servers = adapt(site, tmp_path)["apps"]["http"]["servers"].values()
    assert [":8443"] in [server["listen"] for server in servers]


@pytest.mark.usefixtures("installed_tools")
def test_a_name_is_served_with_a_certificate_that_caddy_gets_itself(settings, tmp_path):
    """The authority is Caddy's own: public ones do not know this machine."""
    port = free_port()
    site = hosted(settings, tmp_path, listen=f"{NAME}:{port}")
    own = f"local_certs\n\tskip_install_trust\n\thttp_port {free_port()}\n\thttps_port {port}\n\t"
    os.makedirs(caddy.folder(site))
    config = tmp_path / caddy.FILE
    config.write_text(caddy.files(site)[caddy.FILE].replace("admin off", f"{own}admin off", 1))
    process = Process(
        "caddy", "run", "--config", str(config), env=clean_environment(HOME=str(tmp_path))
    )
    try:
        certificates = tmp_path / "caddy" / "data" / "certificates" / "local" / NAME
        wait_until((certificates / f"{NAME}.json").exists, "the certificate")
        root = tmp_path / "caddy" / "data" / "pki" / "authorities" / "local" / "root.crt"
        context = ssl.create_default_context(cafile=str(root))

        def ask() -> RawAnswer | None:
            try:
                plain = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
                with context.wrap_socket(plain, server_hostname=NAME) as connection:
                    lines = f"GET {REPO}/raw HTTP/1.1\r\nHost: {NAME}\r\nRange: bytes=0-3\r\n\r\n"
                    connection.sendall(lines.encode())
                    return read_answer(connection)
            except (ConnectionError, ssl.SSLError):
                return None

        assert wait_until(ask, "an answer").status == 206
    finally:
        process.stop()


@pytest.mark.usefixtures("installed_tools")
def test_an_address_is_served_with_a_given_certificate(settings, tmp_path):
    pair = make_certificate(tmp_path)
    with started_caddy(hosted(settings, tmp_path, certificate=pair), tmp_path) as url:
        assert url.startswith("https://")
        assert get(f"{url}{REPO}", verify=pair[0]).status_code == 200
        with pytest.raises(requests.exceptions.SSLError):
            get(f"{url}{REPO}")


@pytest.mark.usefixtures("installed_tools")
def test_http_leads_to_https(settings, tmp_path):
    check_redirects(settings, hosted(settings, tmp_path), started_caddy, tmp_path)


@pytest.mark.parametrize(
    ("listen", "place"), [("hub.example.org", "[::]:80"), ("[::]:443", "hub.example.org:80")]
)
def test_caddy_redirects_a_name_by_itself(listen, place):
    with pytest.raises(OperatorError, match="by itself"):
        caddy.files(HostedSite("/srv/site", "/srv/var", listen=listen, redirect_from=place))


@pytest.mark.usefixtures("installed_tools")
def test_files_that_are_compressed_already(small, tmp_path):
    build(small, index=False)
    tags = Path(small.out, "api/v1/tags.json")
    packed = gzip.compress(tags.read_bytes(), 9)
    tags.with_suffix(".json.gz").write_bytes(packed)
    with started_caddy(hosted(small, tmp_path), tmp_path) as url:
        answer = raw(url, "/api/v1/tags", "Accept-Encoding: gzip")
        assert (answer.status, answer.body) == (200, packed)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["vary"] == "Accept-Encoding"
        assert raw(url, "/api/v1/tags.json.gz").status == 404


# Readers in the log


def install_caddy(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Make the machine's Caddy one that says this of its version."""
    program = folder / caddy_options.PROGRAM
    program.write_text(f"#!/bin/sh\n[ $1 = version ] && echo '{version}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("version", "is_new"),
    [("2.6.2", False), ("v2.7.6 h1:w0NymbG2m9PcvKWsrXO6EEkY9Ru4FJK8uQbYcev1p3A=", False),
     ("v2.8.0-rc.1 h1:x=", True), ("v2.10.2 h1:x=", True), ("v3.0.0", True), ("unknown", True),
     ("", True)],
)  # fmt: skip
def test_the_log_tells_readers_apart_where_caddy_can(tmp_path, monkeypatch, version, is_new):
    install_caddy(tmp_path, monkeypatch, version)
    site = HostedSite("/srv/site", "/srv/var", trusted_proxies=("10.0.0.0/8", "::1"))
    text = caddy.files(site)[caddy.FILE]
    lines = "\t\ttrusted_proxies static 10.0.0.0/8 ::1\n\t\ttrusted_proxies_strict\n"
    assert (lines in text) is is_new
    assert ("trusted_proxies_strict" in text) is is_new
    warning = caddy_options.warning(site)
    assert warning is None if is_new else "older than 2.8" in warning
    alone = site._replace(trusted_proxies=())
    assert caddy_options.warning(alone) is None
    assert "trusted_proxies" not in caddy.files(alone)[caddy.FILE]


def test_without_a_caddy_on_this_machine_a_new_one_is_assumed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    site = HostedSite("/srv/site", "/srv/var", trusted_proxies=("10.0.0.0/8",))
    assert "trusted_proxies_strict" in caddy.files(site)[caddy.FILE]
    assert caddy_options.warning(site) is None


# Hostile folders


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("name", ["a b#c'd;e$HOME", "ünï 語%2eb&c(d)~", "-x"])
def test_folders_may_have_odd_names(settings, name):
    with tempfile.TemporaryDirectory() as short:  # a socket's path must be
        folder = Path(short, name)
        folder.mkdir()
        (folder / "site").symlink_to(settings.out)
        site = hosted(settings._replace(out=f"{folder}/site"), folder)
        with started_caddy(site, Path(short)) as url:
            assert get(f"{url}{REPO}").status_code == 200
            assert get(f"{url}{REPO}/raw", headers={"Range": "bytes=0-3"}).status_code == 206
            assert get(f"{url}/nowhere").status_code == 404
        assert (folder / "caddy" / "access.log").exists()


@pytest.mark.parametrize(
    "name",
    ['a"b', "a`b", "a\nb", "a\rb", "a\0b", "a\\", "{env.HOME}", "{$HOME}", "a{b", "a}b", "a*", "a?",
     "a|0", "a[b]", 'a"\n\trespond "owned', "a\udcff"],
)  # fmt: skip
def test_folders_that_the_configuration_cannot_hold_are_refused(name):
    for site in (
        HostedSite(f"/srv/{name}", "/srv/var"),
        HostedSite("/srv/site", f"/srv/{name}"),
        HostedSite("/srv/site", "/srv/var", certificate=(f"/srv/{name}", "/srv/key")),
        HostedSite("/srv/site", "/srv/var", certificate=("/srv/cert", f"/srv/{name}")),
    ):
        with pytest.raises(OperatorError, match="cannot contain the path"):
            caddy.files(site)


def test_a_state_folder_whose_path_no_socket_can_have_is_refused():
    with pytest.raises(OperatorError, match="too long"):
        caddy.files(HostedSite("/srv/site", f"/srv/{'ü' * 50}"))


@pytest.mark.parametrize(
    "changes",
    [{"listen": "8080"}, {"listen": "127.0.0.1"}, {"listen": ""}, {"listen": ":0"},
     {"listen": "a:65536"}, {"listen": "[x]:80"}, {"listen": "x {\n}\n"}, {"listen": "{env.X}:80"},
     {"listen": "a b:80"}, {"listen": "_:80"}, {"upstream": "8000"}, {"upstream": "a b:80"},
     {"upstream": "{env.X}:80"}, {"upstream": "[x]:80"}, {"upstream": "a:80 b:80"},
     {"trusted_proxies": ("10.0.0.0/8 }",)}, {"trusted_proxies": ("example.org",)},
     {"base_url": "https://x.org/{env.HOME}"}, {"base_url": "https://x.org/a b"}],
    ids=str,
)  # fmt: skip
def test_other_settings_that_say_something_else_are_refused(changes):
    with pytest.raises(OperatorError):
        caddy.files(HostedSite("/srv/site", "/srv/var", **changes))
