"""`hubctl mcp`: its options, what it says where, and what it does not touch."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from builder.model.settings import Settings
from cli.hubctl import main
from tests.cli.test_hubctl import hubctl
from tests.mcp.wire import HANDSHAKE, STATELESS, Wire, built_catalogue, call, message, serving_mcp
from tests.support.catalogues import read_tree
from tests.support.servers import Server, free_port


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return built_catalogue(tmp_path_factory.mktemp("catalogue"))


@pytest.fixture(scope="module")
def server(catalogue: Settings) -> Iterator[Server]:
    with serving_mcp(catalogue) as server:
        yield server


def test_help() -> None:
    done = hubctl("mcp", "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith("Usage: hubctl mcp [OPTIONS]\n")
    for option in main.get_command(click.Context(main), "mcp").params:
        assert option.opts[0] in done.stdout
    assert "8001" in done.stdout
    assert "mcp" in hubctl("--help").stdout


@pytest.mark.parametrize("command", ["mcp", "serve"])
@pytest.mark.parametrize(
    "origin", ["app.example.org", "https://app.example.org/", "https://*.example.org", "null", ""]
)
def test_an_origin_that_is_none(command: str, origin: str) -> None:
    done = hubctl(command, "--mcp-origin", origin, "--port", "0")
    assert done.exit_code in (1, 2)
    assert "Invalid origin" in done.output
    assert "https://app.example.org, or * for any" in done.output
    assert "Serving" not in done.output


@pytest.mark.parametrize(
    "options", [["--content", "x"], ["--watch"], ["--port", "65536"], ["--rate-limit", "-1"]]
)
def test_options_that_are_none(options: list[str]) -> None:
    assert hubctl("mcp", *options).exit_code == 2


def test_a_base_url_that_is_none() -> None:
    done = hubctl("mcp", "--base-url", "ftp://x", "--port", "0")
    assert done.exit_code in (1, 2)
    assert "base URL" in done.output or "--base-url" in done.output


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = hubctl("mcp", "--port", str(port))
    assert done.exit_code == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr


def test_it_says_where_it_is(server: Server) -> None:
    assert f"MCP at http://127.0.0.1:{server.port}/mcp (stop with Ctrl-C)" in server.process.text
    assert "No site" not in server.process.text


def test_it_answers_in_both_eras(server: Server, catalogue: Settings) -> None:
    with Wire(server) as wire:
        for version in (None, HANDSHAKE, STATELESS):
            for path in ("/mcp", "/mcp/"):
                given = wire.ask(
                    *call("get_prompt", id="ann/review", version=version), path=path
                ).given
                # People find the pages where the site is, not here.
                assert given["url"] == f"{catalogue.base_url}/ann/review/1.1.0"
        found = wire.ask(*call("search_prompts", query="review")).given
        assert [prompt["id"] for prompt in found["prompts"]] == ["ann/review"]


@pytest.mark.parametrize(
    "path", ["/", "/mcp/x", "/MCP", "/api/v1/repos", "/healthz", "/index.html", "/..%2fmcp"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_there_is_nothing_else(server: Server, path: str, method: str) -> None:
    with Wire(server) as wire:
        reply = wire.ask(*message("ping"), path=path, method=method)
        assert reply.status == 404
        assert reply.json["error"]["code"] == "not_found"
        assert "/mcp" in reply.json["error"]["message"]
        assert wire.ask(*message("ping")).result == {}


def test_head_of_nothing_has_no_body(server: Server) -> None:
    with Wire(server) as wire:
        reply = wire.ask(path="/nothing", method="HEAD")
        assert (reply.status, reply.body) == (404, b"")
        assert wire.ask(*message("ping")).result == {}


def test_under_another_address(catalogue: Settings) -> None:
    options = ("--base-url", "https://example.org/prompts", "--mcp-origin", "https://a.example")
    with serving_mcp(catalogue, *options) as server, Wire(server) as wire:
        assert f":{server.port}/prompts/mcp (stop" in server.process.text
        for host in ("example.org", "a.example", "localhost"):
            asked = message("ping")._replace(headers={"Host": host})
            assert wire.ask(*asked, path="/prompts/mcp").result == {}
        allowed = wire.ask(
            *message("ping")._replace(headers={"Origin": "https://a.example"}), path="/prompts/mcp"
        )
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        nowhere = wire.ask(*message("ping"))
        assert nowhere.status == 404
        assert "/prompts/mcp" in nowhere.json["error"]["message"]


def test_it_limits_and_trusts_as_its_options_say(catalogue: Settings) -> None:
    options = ("--trusted-proxy", "127.0.0.1")
    with serving_mcp(catalogue, *options, rate_limit=2) as server, Wire(server) as wire:

        def status(client: str) -> int:
            return wire.ask(message("ping").body, {"X-Forwarded-For": client}).status

        assert [status("192.0.2.1") for _ in range(3)] == [200, 200, 429]
        assert status("192.0.2.2") == 200


def test_it_writes_nothing(catalogue: Settings, server: Server, tmp_path: Path) -> None:
    before = read_tree(catalogue.out)
    with Wire(server) as wire:
        for valid in (
            call("search_prompts", query="review"), call("get_prompt", id="ann/review"),
            call("list_tags"), message("prompts/list"),
        ):  # fmt: skip
            assert wire.ask(*valid).result
    assert read_tree(catalogue.out) == before
    nothing = Settings("", f"{tmp_path}/site", f"{tmp_path}/state", catalogue.base_url)
    with serving_mcp(nothing, "--port", str(free_port())) as empty, Wire(empty) as wire:
        wire.ask(*call("search_prompts", query="review"))
    assert os.listdir(tmp_path) == []
