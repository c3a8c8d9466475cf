"""Nothing opens a private hub by mistake."""

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.privacy import is_marked
from builder.store.site import read_hub
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
        (["serve", "--port", "0", "--open-signup"], 2, "hubctl owner invite"),
        (["hosts", "nginx", "--no-upstream"], 2, "--no-upstream"),
        (["deploy", "copy"], 1, "--no-private"),
    ],
)  # fmt: skip
def test_refusals(private: Path, args: list[str], status: int, told: str):
    before = {path.name for path in private.iterdir()}
    done = run(*args)
    assert (done.exit_code, told in done.stderr) == (status, True), done.stderr
    assert {path.name for path in private.iterdir()} == before


def is_private(out: str) -> bool:
    return read_hub(out).private


def lose_the_site(private: Path) -> None:
    """Leave the content alone, as a restore on another machine does."""
    for folder in ("site_out", "var"):
        shutil.rmtree(private / folder)


def lose_the_mark(private: Path) -> None:
    """As a release left it that had no mark yet."""
    (private / "content/.hub-private").unlink()


@pytest.mark.parametrize("lose", [lose_the_site, lose_the_mark])
@pytest.mark.parametrize("setting", [{}, {"HUB_PRIVATE": "0"}])
def test_a_private_hub_stays_private(private: Path, lose: Callable[[Path], None], setting: dict):
    lose(private)
    done = run("build", *BASE, "--no-index", **setting)
    assert (done.exit_code, "stays private" in done.stderr) == (0, bool(setting)), done.stderr
    assert is_private("site_out") and is_marked("content")
    assert run("deploy", "copy").exit_code == 1


def test_a_private_hub_stays_private_in_hub_toml(private: Path):
    Path("hub.toml").write_text("private = false\n")
    done = run("build", *BASE, "--no-index")
    assert (done.exit_code, "stays private" in done.stderr) == (0, True)
    assert is_private("site_out")


def test_other_users_of_the_machine_cannot_read_it(private: Path):
    for folder in ("content", "site_out", "var"):
        os.chmod(folder, 0o755)
        assert run("build", *BASE, "--no-index", "--private").exit_code == 0
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_what_cannot_be_marked_is_private_all_the_same(
    private: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    lose_the_mark(private)

    def fail(path: str, mode: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    os.chmod("site_out", 0o755)
    monkeypatch.setattr(os, "chmod", fail)
    assert run("build", *BASE, "--no-index", "--private").exit_code == 0
    assert "site_out cannot be marked or closed to other users: Read-only" in caplog.text


def test_a_public_service_builds_no_marked_content(private: Path):
    settings = Settings("content", "site_out", "var", BASE[1])
    with pytest.raises(OperatorError, match="Restart the service"):
        build(settings)


def test_a_mark_that_cannot_be_read_counts(tmp_path: Path):
    assert not is_marked(str(tmp_path)) and not is_marked(str(tmp_path / "none"))
    (tmp_path / ".hub-private").mkdir()
    assert is_marked(str(tmp_path))


def test_what_is_said_on_purpose_is_done(private: Path):
    assert run("deploy", "copy", "--no-private").exit_code == 0
    printed = run("hosts", "caddy").stdout
    assert "private hub" in printed and str(private) not in printed
    assert run("build", "--no-private", "--check", *BASE).exit_code == 1
    assert is_marked("content")
    opened = run("build", "--no-private", *BASE, "--no-index")
    assert (opened.exit_code, "everyone can read it" in opened.stderr) == (0, True), opened.stderr
    assert not is_private("site_out") and not is_marked("content")
    assert stat.S_IMODE(os.stat("site_out").st_mode) == 0o755
    assert run("build", *BASE, "--no-index").exit_code == 0
    assert not is_private("site_out")
