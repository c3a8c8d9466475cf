"""The site after commands that change the content: with the settings that it had before."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from builder.model.settings import Settings
from builder.store.site import read_hub
from tests.cli.test_hubctl import folders, hubctl
from tests.support.catalogues import read_tree
from tests.support.servers import Server, serving

MADE = ("--base-url", "https://hub.example/a", "--site-name", "Ours", "--queries", "--langfuse")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/poem.md").write_text("Write a poem.")
    (tmp_path / "text.md").write_text("Say hello to {{name}}.")
    return tmp_path


def changes(source: Path) -> list[tuple[str, ...]]:
    return [
        ("publish", "ann/hello", f"{source}/text.md", "--label", "beta"),
        ("import", f"{source}/more", "--owner", "zoe"),
        ("label", "set", "ann/story", "production", "1.0.0"),
        ("label", "remove", "ann/story", "production"),
        ("withdraw", "bob/sql", "--reason", "error", "--yes"),
    ]


def test_each_change_is_on_the_site_with_the_settings_of_its_last_build(
    small: Settings, source: Path
) -> None:
    assert hubctl("build", *folders(small), *MADE, "--private").exit_code == 0
    for command in changes(source):
        done = hubctl(*command, *folders(small))
        assert done.exit_code == 0, done.output
        assert f"The site in {small.out} is up to date." in done.stderr
        assert "hubctl build" not in done.stderr
        checked = hubctl("build", *folders(small), *MADE, "--private", "--check")
        assert checked.exit_code == 0, checked.output


def test_what_changes_nothing_builds_nothing(small: Settings, source: Path) -> None:
    publish = ("publish", "ann/hello", f"{source}/text.md", *folders(small))
    assert "site" not in hubctl(*publish).stderr  # no site exists
    hubctl("build", *folders(small))
    shown = read_tree(small.out)
    for command in (publish, ("import", f"{source}/more", "--dry-run", *folders(small))):
        done = hubctl(*command)
        assert done.exit_code == 0 and "site" not in done.stderr
    assert read_tree(small.out) == shown


def test_a_site_of_unknown_settings_is_left_alone(small: Settings, source: Path) -> None:
    hubctl("build", *folders(small), *MADE)
    shown = read_tree(small.out)
    other = folders(small._replace(state=f"{small.state}-other"))
    done = hubctl("publish", "ann/hello", f"{source}/text.md", *other)
    assert (done.exit_code, done.stdout) == (0, "ann/hello 1.0.0\n")
    assert "settings of the site" in done.stderr and read_tree(small.out) == shown


def test_a_change_beside_a_service_is_live_with_the_settings_of_the_service(
    small: Settings, source: Path
) -> None:
    with serving(small, "--langfuse", "--site-name", "Ours") as server:
        hub = read_hub(small.out)
        for command in changes(source):
            assert hubctl(*command, *folders(small)).exit_code == 0
        built = hubctl("build", *folders(small), "--full")
        assert built.exit_code == 0 and "settings of the service" in built.stderr
        assert "Links on the site" not in built.stderr
        now = read_hub(small.out)
        assert replace(now, serial=0, repos_count=0) == replace(hub, serial=0, repos_count=0)
        assert (now.base_url, now.name, now.queries) == (server.url, "Ours", True)
        _check_live(server)
        assert hubctl("build", *folders(small), "--check").exit_code == 0
        offline = hubctl("doctor", *folders(small), "--offline")
        assert "site: This release built the site" in offline.stdout
        for flags in (("--base-url", "https://x.example"), ("--no-langfuse",), ("--private",)):
            refused = hubctl("build", *folders(small), *flags)
            assert refused.exit_code == 2 and flags[0].replace("--no-", "--") in refused.stderr
        same = hubctl("build", *folders(small), "--langfuse", "--base-url", server.url)
        assert same.exit_code == 0
    # Without the service, the options of the command count.
    assert hubctl("build", *folders(small)).exit_code == 0
    assert read_hub(small.out).name == "Hub"


def _check_live(server: Server) -> None:
    api = "/api/v1/repos"
    assert server.get(f"{api}/ann/hello/raw?label=beta").text == "Say hello to {{name}}."
    assert server.get(f"{api}/zoe/poem/raw").text == "Write a poem."
    assert server.get(f"{api}/ann/story/labels").json()["data"] == []
    assert server.get(f"{api}/bob/sql").status_code == 410
    assert [one["name"] for one in server.get(f"{api}?q=poem").json()["data"]] == ["poem"]
    assert server.get("/langfuse/api/public/v2/prompts/ann/hello").json()["labels"]
    assert f"baked_url='{server.url}'" in server.get("/cli/hub").text


def test_a_build_of_another_site_has_its_own_settings(small: Settings, tmp_path: Path) -> None:
    with serving(small):
        other = small._replace(out=f"{tmp_path}/public", state=f"{tmp_path}/other")
        assert hubctl("build", *folders(other), *MADE).exit_code == 0
    assert read_hub(other.out).name == "Ours"


def test_the_doctor_warns_of_a_site_that_is_not_the_service_s(
    small: Settings, tmp_path: Path
) -> None:
    with serving(small, "--site-name", "Ours") as server:
        other = folders(small._replace(state=f"{tmp_path}/other-state"))
        assert hubctl("build", *other, "--base-url", server.url).exit_code == 0
        told = hubctl("doctor", *folders(small), "--offline").stdout
        assert "site-name 'Hub' and 'Ours'" in told and "queries False and True" in told
        assert hubctl("build", *folders(small)).exit_code == 0
        assert "and the service" not in hubctl("doctor", *folders(small), "--offline").stdout
