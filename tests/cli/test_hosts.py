"""Messages of ``hubctl hosts`` about a server: its start command, its address, the target of links.
tests/hosts runs these commands.

That the commands start it is for tests/hosts.
"""

from pathlib import Path

import pytest

from tests.cli.command import run

pytestmark = pytest.mark.usefixtures("folder")

PUBLIC = "https://prompts.example.org/a"


def told(host: str, *options: str, base_url: str = PUBLIC) -> str:
    done = run("hosts", host, "--target", "conf", "--base-url", base_url, *options)
    assert done.exit_code == 0, done.stderr
    return done.stderr


def test_the_commands_for_nginx(folder: Path):
    said = told("nginx")
    config = f"{folder}/conf/nginx.conf"
    assert f"nginx -c {config}\n" in said and f"nginx -c {config} -s reload\n" in said
    assert f"Logs: {folder}/var/nginx\n" in said
    assert f"Links on the site start with {PUBLIC}." in said
    assert "`hubctl serve` at 127.0.0.1:8000" in said
    assert "hubctl serve" not in told("nginx", "--no-upstream")


@pytest.mark.parametrize("on_path", [False, True])
def test_a_program_that_only_root_has_on_the_path(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_path: bool,
):
    program = folder / "sbin" / "nginx"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent) if on_path else "/nowhere")
    monkeypatch.setattr("cli.hosts.ROOT_FOLDERS", str(program.parent))
    assert f"Start it with: {'nginx' if on_path else program} -c " in told("nginx")


@pytest.mark.parametrize(
    ("host", "options", "where"),
    [
        ("nginx", ["--listen", "127.0.0.1:8080"], "http://127.0.0.1:8080/a/."),
        ("nginx", ["--listen", "127.0.0.1"], "http://127.0.0.1/a/."),
        ("nginx", ["--listen", "127.0.0.1", "--certificate", "c", "k"], "https://127.0.0.1:80/a/."),
        ("nginx", ["--listen", "[::]:443", "--certificate", "c", "k"],
         "https://[::1]/a/, and on all other addresses of this machine."),
        ("nginx", ["--listen", "*:80"],
         "http://127.0.0.1/a/, and on all other addresses of this machine."),
        ("caddy", ["--listen", "prompts.example.org"], "https://prompts.example.org/a/."),
        ("caddy", ["--listen", "prompts.example.org:80"], "http://prompts.example.org/a/."),
        ("caddy", ["--listen", "127.0.0.1:8443", "--certificate", "c", "k"],
         "https://127.0.0.1:8443/a/."),
    ],
)  # fmt: skip
def test_where_it_listens(host: str, options: list[str], where: str):
    assert f"It listens on {where}\n" in told(host, *options)


@pytest.mark.parametrize("host", ["nginx", "caddy"])
@pytest.mark.parametrize(
    ("listen", "upstream", "is_same"),
    [
        ("127.0.0.1:8080", "127.0.0.1:8080", True),
        ("HUB.example:8080", "hub.example:8080", True),
        ("localhost:8080", "127.0.0.1:8080", True),
        ("[::1]:8080", "localhost:8080", True),
        ("*:8080", "127.0.0.1:8080", True),
        ("0.0.0.0:8080", "localhost:8080", True),
        ("[::]:8080", "[::1]:8080", True),
        ("127.0.0.1", "127.0.0.1:80", True),
        ("127.0.0.1:8080", "127.0.0.1:8081", False),
        ("127.0.0.1:8080", "127.0.0.2:8080", False),
        ("*:8080", "10.0.0.7:8080", False),
        ("hub.example", "127.0.0.1:80", False),
    ],
)
def test_a_server_does_not_feed_itself(
    folder: Path, host: str, listen: str, upstream: str, is_same: bool
):
    options = ("--listen", listen, "--upstream", upstream, "--base-url", PUBLIC)
    done = run("hosts", host, "--target", "conf", *options)
    assert done.exit_code == (2 if is_same else 0), done.stderr
    if is_same:
        said = f"--listen {listen} and --upstream {upstream} are the same address"
        assert said in " ".join(done.stderr.split()) and not (folder / "conf").exists()
    if host == "nginx":
        assert run("hosts", host, "--target", "conf", *options, "--no-upstream").exit_code == 0


def test_links_that_lead_past_the_server():
    base_url = "http://127.0.0.1:8000"
    said = told("nginx", base_url=base_url)
    assert "Links lead to 127.0.0.1:8000, past this server." in said
    assert "--base-url http://127.0.0.1:8080\n" in said
    assert "past this server" not in told(
        "nginx", "--listen", "127.0.0.1:8000", "--upstream", "127.0.0.1:8001", base_url=base_url
    )  # fmt: skip
    assert "past this server" not in told("nginx")


@pytest.mark.parametrize(
    ("host", "next_step"),
    [("cloudflare", "npx wrangler deploy"), ("github", "root of the published folder")],
)
def test_what_to_do_with_the_files_of_others(host: str, next_step: str):
    assert next_step in told(host)
