"""The settings of an OpenID provider."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from builder.model.errors import OperatorError
from cli.service_options import Publishing, publishing_options
from publisher.openid.provider import Provider, make_provider

SETTINGS = {
    "HUB_OPENID_ISSUER": "https://login.example.org",
    "HUB_OPENID_CLIENT_ID": "hub",
    "HUB_OPENID_CLIENT_SECRET": "quite-secret",
}


def provider_from(environ: dict[str, str]) -> Provider | None:
    """The provider that a command gets from these variables."""
    given: list[Provider | None] = []

    @click.command()
    @publishing_options
    def command(publishing: Publishing) -> None:
        given.append(publishing.sign_in.openid)

    CliRunner().invoke(command, [], env=environ, standalone_mode=False, catch_exceptions=False)
    return given[0]


def test_no_settings_are_no_provider() -> None:
    assert provider_from({}) is None
    assert provider_from({"HUB_OPENID_ISSUER": "", "HUB_OPENID_CLIENT_SECRET_FILE": ""}) is None


def test_settings_of_the_environment(tmp_path: Path) -> None:
    provider = provider_from(SETTINGS)
    assert provider == make_provider(
        "https://login.example.org", "hub", "login.example.org", "quite-secret"
    )
    assert "quite-secret" not in repr(provider)
    file = tmp_path / "secret"
    file.write_text("of-a-file\n")
    named = {name: SETTINGS[name] for name in ("HUB_OPENID_ISSUER", "HUB_OPENID_CLIENT_ID")} | {
        "HUB_OPENID_CLIENT_SECRET_FILE": str(file),
        "HUB_OPENID_NAME": "Staff",
    }
    provider = provider_from(named)
    assert (provider.client_secret, provider.name) == ("of-a-file", "Staff")


@pytest.mark.parametrize("missing", SETTINGS)
def test_settings_are_whole_or_not_there(missing: str) -> None:
    given = {name: value for name, value in SETTINGS.items() if name != missing}
    with pytest.raises(OperatorError, match=r"also needs the (issuer|client ID|client secret)"):
        provider_from(given)


@pytest.mark.parametrize(
    "issuer",
    [
        "http://login.example.org", "login.example.org", "https://", "ftp://login.example.org",
        "https://me:word@login.example.org", "https://login.example.org?a=b",
        "https://login.example.org#a", "https://login.example.org:0", "https://lo gin.example.org",
        "https://[::1", "https://login.example.org:x",
    ],
)  # fmt: skip
def test_an_issuer_is_asked_in_private(issuer: str) -> None:
    with pytest.raises(OperatorError, match="is not an OpenID issuer"):
        provider_from(SETTINGS | {"HUB_OPENID_ISSUER": issuer})


def test_a_secret_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    variable = "HUB_OPENID_CLIENT_SECRET_FILE"
    with pytest.raises(OperatorError, match="not both"):
        provider_from(SETTINGS | {variable: str(tmp_path / "secret")})
    bare = {name: value for name, value in SETTINGS.items() if "SECRET" not in name}
    with pytest.raises(OperatorError, match=r"Cannot read .*missing.*No such file"):
        provider_from(bare | {variable: str(tmp_path / "missing")})
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("\n")
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match="is empty"):
        provider_from(bare | {variable: str(empty)})
    with pytest.raises(OperatorError, match="not UTF-8"):
        provider_from(bare | {variable: str(binary)})
