"""The host names under which account settings are served; tests/server/test_access.py has all."""

import pytest

from builder.model.service_urls import TRUSTED_URL
from builder.model.settings import Settings
from publisher.openid.provider import SignIn
from tests.support.hubs import MakeHub
from tests.support.servers import serving

BASE = "https://hub.example/prompts"
OWN = ("hub.example", "HUB.example:443", "localhost", "127.0.0.1:8000", "[::1]:1")
FOREIGN = (
    "", "evil.example", "hub.example.evil.example", "hub.example:8443", "evil.example@hub.example",
    "hub.example,evil.example", "192.0.2.7", "h\xfcb.example", "*",
)  # fmt: skip
OTHER = "hub-origin.example.org"


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("origins", [(), ("*",)])
def test_other_hosts_are_refused(make_hub: MakeHub, host: str, origins: tuple[str, ...]):
    hub = make_hub(BASE, sign_in=SignIn(open_signup=True, origins=origins))
    client = hub.app.test_client()
    for method, path in (
        ("GET", "/account"), ("GET", "/account/login"), ("POST", "/account/login"),
        ("POST", "/account/signup"), ("GET", "/account/nothing"), ("OPTIONS", "/account/tokens"),
    ):  # fmt: skip
        answer = client.open(path, method=method, headers={"Host": host})
        assert answer.status_code == 403
        assert f"Open {BASE}/account instead." in answer.text
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["Cache-Control"] == "no-store"
    # Addresses without cookies accept any host name.
    assert client.get("/healthz", headers={"Host": host}).status_code == 200
    assert client.post(TRUSTED_URL, json={}, headers={"Host": host}).status_code == 422


def test_own_hosts_are_served(make_hub: MakeHub):
    hub = make_hub(BASE, sign_in=SignIn(origins=("*", f"https://{OTHER}")))
    client = hub.app.test_client()
    for host in (*OWN, OTHER):
        answer = client.get("/account/login", headers={"Host": host})
        assert answer.status_code == 200, host


def test_the_host_of_an_mcp_origin_is_served_too(small: Settings):
    options = ("--base-url", "https://hub.example", "--mcp-origin", f"https://{OTHER}")
    with serving(small, *options) as server:
        for host, status in (("hub.example", 200), (OTHER, 200), ("evil.example", 403)):
            answer = server.get("/account/login", headers={"Host": host})
            assert answer.status_code == status
