"""Options for nginx, and refused ones."""

import ipaddress
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from builder.hosts import nginx
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError
from builder.pipeline.build import build
from cli.hubctl import main
from tests.conformance.nginx import started_nginx
from tests.hosts.addresses import check_clients, made_up_addresses
from tests.hosts.hosted import get, hosted
from tests.hosts.redirects import check_challenge, check_redirects, make_certificate
from tests.hosts.rootless import start_command
from tests.support.servers import (
    free_port,
    sample_settings,
    wait_until,
)

REPO = "/api/v1/repos/mara-okafor/sql-review"


@pytest.mark.usefixtures("installed_tools")
def test_a_host_below_a_path(tmp_path):
    settings = sample_settings(tmp_path, "https://example.org/some/prompts")
    build(settings)
    with started_nginx(hosted(settings, tmp_path), tmp_path) as url:
        assert url.endswith("/some/prompts")
        assert get(f"{url}{REPO}").status_code == 200
        assert get(url).text == get(f"{url}/").text != ""
        assert get(f"{url}/mara-okafor/").headers["Location"] == "/some/prompts/mara-okafor"
        assert get(f"{url}/api/v1/repos?tag=sql").json()["meta"]["tag"] == "sql"
        outside = url.removesuffix("/some/prompts")
        assert get(f"{outside}{REPO}").status_code == 404


@pytest.mark.usefixtures("installed_tools")
def test_all_of_ipv6_has_ipv4_in_it(built_sample, tmp_path):
    port = free_port()
    with started_nginx(hosted(built_sample, tmp_path, listen=f"[::]:{port}"), tmp_path):
        for host in ("127.0.0.1", "[::1]"):
            assert get(f"http://{host}:{port}{REPO}").status_code == 200


@pytest.mark.parametrize(
    "options",
    [["--listen", "127.0.0.1:70000"], ["--listen", "a b"], ["--listen", "x;y"],
     ["--upstream", ":8000"], ["--upstream", "*:8000"], ["--upstream", "8000"],
     ["--trusted-proxy", "localhost"]],
)  # fmt: skip
def test_addresses_that_nginx_would_refuse_are_refused(built_sample, tmp_path, options):
    result = CliRunner().invoke(
        main, ["hosts", "nginx", "--target", str(tmp_path), "--out", built_sample.out,
               "--state", str(tmp_path), *options],
    )  # fmt: skip
    assert result.exit_code == 2
    assert options[1] in result.output
    assert not (tmp_path / "nginx.conf").exists()


@pytest.mark.usefixtures("installed_tools")
def test_clients_behind_a_trusted_proxy_have_limits_of_their_own(built_sample, tmp_path):
    site = hosted(built_sample, tmp_path, reads_per_minute=1, trusted_proxies=("127.0.0.0/8",))
    with started_nginx(site, tmp_path) as url:
        for client in ("192.0.2.1", "192.0.2.2"):
            # An address that the client adds is to the left of the address that the proxy saw.
            headers = {"X-Forwarded-For": f"203.0.113.9, {client}"}
            statuses = [get(f"{url}{REPO}", headers=headers).status_code for _ in range(2)]
            assert statuses == [200, 429]


@pytest.mark.usefixtures("installed_tools")
def test_addresses_of_one_ipv6_network_share_a_limit(built_sample, tmp_path):
    site = hosted(built_sample, tmp_path, reads_per_minute=1, trusted_proxies=("127.0.0.0/8",))
    with started_nginx(site, tmp_path) as url:

        def read(client: str) -> int:
            return get(f"{url}{REPO}", headers={"X-Forwarded-For": client}).status_code

        for same in (
            ("2001:db8::1", "2001:0DB8:0:0::2", "2001:db8::ffff:192.0.2.9", "2001:db8::a:a:a:a"),
            ("2001:db8:0:1::1", "2001:db8::1:0:0:0:1"),
            ("2001:a0a:a0a:a0a:a0a:a0a:a0a:a0a", "2001:a0a:a0a:a0a::"),
            ("::1", "::"),
            ("192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201"),
            ("192.0.2.2",),
            ("10.10.10.10", "::ffff:10.10.10.10"),
        ):  # fmt: skip
            assert [read(client) for client in same] == [200] + [429] * (len(same) - 1)


def test_its_map_tells_clients_apart_as_the_service_does(built_sample):
    conf = nginx.files(HostedSite(built_sample.out, built_sample.state))[nginx.FILE]
    block = conf[conf.index("map $binary_remote_addr ") :].partition("}\n    #")[0]
    patterns = [
        re.compile(found.replace("(?<", "(?P<").replace(r"\z", r"\Z").encode())
        for found in re.findall('"~(.*)"', block)
    ]
    assert len(patterns) == 2

    def key(address: str) -> bytes:
        # The value of nginx's $binary_remote_addr.
        packed = ipaddress.ip_address(address).packed
        found = next(filter(None, (pattern.match(packed) for pattern in patterns)), None)
        return found["network"] if found else packed

    addresses = made_up_addresses(2000)
    check_clients(addresses, map(key, addresses))


@pytest.mark.usefixtures("installed_tools")
def test_it_speaks_tls(built_sample, tmp_path):
    pair = make_certificate(tmp_path)
    site = hosted(built_sample, tmp_path, certificate=pair)
    with started_nginx(site, tmp_path) as url:
        assert url.startswith("https://")
        answer = get(f"{url}{REPO}", verify=pair[0])
        assert answer.status_code == 200 and "Strict-Transport-Security" not in answer.headers
        with pytest.raises(requests.exceptions.SSLError):
            get(f"{url}{REPO}")


@pytest.mark.usefixtures("installed_tools")
def test_http_leads_to_https(built_sample, tmp_path):
    check_redirects(built_sample, hosted(built_sample, tmp_path), started_nginx, tmp_path)


@pytest.mark.usefixtures("installed_tools")
def test_a_first_certificate_can_be_asked_for(built_sample, tmp_path):
    site = hosted(built_sample, tmp_path)
    with started_nginx(site, tmp_path) as url:
        check_challenge(site, url)


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("name", ["a b", "ünï", "a-(b)[c]*?"])
def test_folders_may_have_odd_names(tmp_path, name):
    settings = sample_settings(tmp_path / name)
    build(settings)
    with started_nginx(hosted(settings, tmp_path), tmp_path) as url:
        assert get(f"{url}{REPO}").status_code == 200


@pytest.mark.parametrize("name", ['a"b', "a$b", "a\nb", "a;b", "a{b", "a\\b", "a'b", "a#b"])
def test_folders_that_the_configuration_cannot_hold_are_refused(name):
    with pytest.raises(OperatorError, match="nginx"):
        nginx.files(HostedSite(f"/srv/{name}", "/srv/var"))
    with pytest.raises(OperatorError, match="nginx"):
        nginx.files(HostedSite("/srv/site", f"/srv/{name}"))


@pytest.mark.usefixtures("installed_tools")
def test_it_runs_without_root_as_the_command_says(open_folder):
    """`hubctl hosts nginx`, then the line that it prints, as another user."""
    settings = sample_settings(open_folder)
    build(settings)
    port = free_port()
    command = start_command("nginx", nginx.FILE, settings, open_folder, port)
    pid = Path(settings.state, "nginx", "nginx.pid")
    subprocess.run(command, check=True, capture_output=True)
    try:
        wait_until(pid.exists, "nginx")
        wait_until(lambda: get(f"http://127.0.0.1:{port}{REPO}").ok, "an answer")
    finally:
        os.kill(int(wait_until(lambda: pid.read_text().strip(), "its id")), signal.SIGQUIT)
        wait_until(lambda: not pid.exists(), "its end")
    log = Path(settings.state, "nginx", "access.log").read_text()
    assert f'"GET {REPO} HTTP/1.1" 200' in log


def test_the_configuration_is_the_same_each_time(built_sample):
    site = HostedSite(built_sample.out, built_sample.state)
    assert nginx.files(site) == nginx.files(site)
