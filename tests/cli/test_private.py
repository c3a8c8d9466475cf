"""Commands refuse to open a private hub by mistake."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from cli.publish_service import publish_service
from tests.cli.command import run
from tests.support.catalogues import write_small_catalogue

pytestmark = pytest.mark.usefixtures("folder")

BASE = ("--base-url", "https://prompts.example.org")


@pytest.fixture
def private(folder: Path) -> Path:
    """A folder with the site of a private hub."""
    write_small_catalogue("content")
    done = run("build", "--private", *BASE, "--no-index")
    assert done.exit_code == 0, done.stderr
    return folder


def test_the_site_says_that_it_is_private(private: Path):
    site = private / "site_out"
    assert json.loads((site / "api/v1/hub.json").read_bytes())["data"]["private"] is True
    assert (site / "robots.txt").read_text() == "User-agent: *\nDisallow: /\n"
    for page in ("index.html", "ann/story.html", "search.html"):
        assert '<meta name="robots" content="noindex">' in (site / page).read_text()
    assert "Public" not in (site / "llms.txt").read_text()
    assert "you need no key" not in (site / "connect.html").read_text()
    assert "Browsing" not in (site / "503.html").read_text()


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["build", *BASE], 1, "--no-private"),
        (["serve", "--port", "0"], 1, "--no-private"),
        (["serve", "--port", "0", "--private", "--open-signup"], 2, "hubctl owner invite"),
        (["hosts", "nginx", "--target", "conf"], 1, "--no-private"),
        (["hosts", "nginx", "--target", "conf", "--private", "--no-upstream"], 2, "--upstream"),
        (["hosts", "cloudflare", "--target", "conf", "--private"], 2, "Use nginx or caddy"),
        (["hosts", "github", "--target", "conf", "--private"], 2, "Use nginx or caddy"),
        (["deploy", "copy"], 1, "--guarded"),
        (["mcp", "--host", "0.0.0.0", "--port", "0"], 1, "hubctl serve --private"),
    ],
)  # fmt: skip
def test_refusals(private: Path, args: list[str], status: int, told: str):
    before = {path.name for path in private.iterdir()}
    done = run(*args)
    assert (done.exit_code, told in done.stderr) == (status, True), done.stderr
    assert {path.name for path in private.iterdir()} == before


def test_what_is_said_on_purpose_is_done(private: Path):
    assert run("deploy", "copy", "--guarded").exit_code == 0
    assert run("deploy", "other", "--dry-run").exit_code == 0
    assert run("hosts", "caddy", "--target", "conf", "--private").exit_code == 0
    assert "account/access" in (private / "conf/Caddyfile").read_text()
    opened = run("build", "--no-private", *BASE, "--no-index")
    assert opened.exit_code == 0, opened.stderr
    assert "private" not in (private / "site_out/api/v1/hub.json").read_text()
    assert run("build", *BASE, "--no-index").exit_code == 0


@pytest.mark.parametrize("args", [[], ["--private"]])
def test_the_publish_service_on_its_own_does_not_start(private: Path, args: list[str]):
    with ExitStack() as running, pytest.raises(OperatorError, match="hubctl serve --private"):
        publish_service.main(args, standalone_mode=False, obj=running)
