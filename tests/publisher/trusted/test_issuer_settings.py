"""Issuers of CI tokens that an operator configures."""

import re
import subprocess

import click
import pytest
from click.testing import CliRunner

from builder.model.errors import OperatorError
from cli.service_options import Publishing, publishing_options
from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer
from tests.support.servers import HUBCTL, PROJECT, clean_environment

GITHUB, GITLAB = (f"{issuer.kind}={issuer.url}" for issuer in DEFAULT_ISSUERS)


@click.command()
@publishing_options
@click.pass_context
def command(context: click.Context, publishing: Publishing) -> None:
    context.obj.extend(publishing.sign_in.issuers)


def by_option(*options: str, **environ: str) -> tuple[Issuer, ...]:
    """The issuers that a command of hubctl gets."""
    got: list[Issuer] = []
    CliRunner().invoke(
        command, options, obj=got, env=environ, catch_exceptions=False, standalone_mode=False
    )
    return tuple(got)


def test_spaces_separate():
    for text in (f"{GITHUB} {GITLAB}", f" {GITHUB}\n  {GITLAB} "):
        assert by_option(HUB_TRUSTED_ISSUERS=text) == DEFAULT_ISSUERS
    assert by_option("--trusted-issuer", GITHUB) == DEFAULT_ISSUERS[:1]


@pytest.mark.parametrize(
    "text", [f"{GITHUB}, {GITLAB}", f"{GITHUB},{GITLAB}", f"{GITHUB} , {GITLAB}", ",", f"{GITLAB},"]
)
def test_commas_do_not(text: str):
    for read in (
        lambda: by_option(HUB_TRUSTED_ISSUERS=text),
        lambda: by_option("--trusted-issuer", text),
    ):
        with pytest.raises(OperatorError, match="spaces between several"):
            read()


def test_the_service_does_not_start_with_one():
    done = subprocess.run(
        [HUBCTL, "serve"], env=clean_environment(HUB_TRUSTED_ISSUERS=f"{GITHUB}, {GITLAB}"),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "spaces between several" in done.stderr


def test_what_the_example_of_settings_has():
    """The settings that are commented out are valid too, and each is an existing one."""
    settings = (PROJECT / "deploy/hub.env").read_text(encoding="utf-8")
    shown = re.sub(r"^#(?=HUB_)", "", settings, flags=re.MULTILINE)
    names = re.findall(r"^(HUB_\w+)=", shown, flags=re.MULTILINE)
    done = subprocess.run(
        ["sh", "-euc", f"set -a\n{shown}\nprintf %s \"$HUB_TRUSTED_ISSUERS\""],
        env=clean_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [issuer.kind for issuer in by_option(HUB_TRUSTED_ISSUERS=done.stdout)] == [
        "github", "gitlab",
    ]  # fmt: skip
    documents = [PROJECT / "docs/reference/hubctl.md", PROJECT / "docs/operate/own-hub.md"]
    used = [*PROJECT.glob("deploy/*.service"), *documents]
    known = "".join(file.read_text(encoding="utf-8") for file in used)
    assert "HUB_TRUSTED_ISSUERS" in names and not [name for name in names if name not in known]
