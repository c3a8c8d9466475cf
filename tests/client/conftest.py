"""A live hub, hosts of plain files for its site, and clients."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from builder.render.clients import shell_client
from builder.search.rules import search_rules
from tests.client.fake import Fake
from tests.client.shells import AWKS, FAKE_SLEEP, SHELLS, Client, link_tools, need
from tests.client.site import Site, small_site
from tests.support.catalogues import edit_record, settings_in, write_small_catalogue
from tests.support.depth import rotating
from tests.support.servers import Server, add_publisher, file_host, nginx, serving

# All that the client may call, but for python3.
TOOLS = (
    "awk base64 cat chmod cmp cp curl cut dd find grep ls mkdir mv od printf rm rmdir sed "
    "sha256sum sort tail tr wc xargs"
).split()


FAKE_CURL = '#!/bin/sh\n{ echo "$@"; export -p; cat; } >>"$SEEN"\nexit 2\n'


class Hub(NamedTuple):
    """A live hub with the small catalogue, and ``token`` to publish as ada."""

    server: Server
    token: str

    @property
    def url(self) -> str:
        return self.server.url


@pytest.fixture(scope="session", autouse=True)
def _needs_tools(installed_tools: None) -> None:
    """The client needs curl, and each shell that it is tried under."""


@pytest.fixture(scope="session", autouse=True)
def _signals_arrive() -> Iterator[None]:
    """Also where these tests run under nohup or in the background: there what a test starts would
    ignore them, as the tests do, and no shell can trap what was ignored from its start.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)}
    ignored = [number for number, handler in handlers.items() if handler == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def publishing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Tests may publish as ada, each to repos of its own."""
    settings = settings_in(tmp_path_factory.mktemp("hub"))
    write_small_catalogue(settings.content)
    source = {
        "issuer": "https://ci.example", "project": "ann/prompts", "ref": None,
        "commit": "1a2b3c4d", "run_url": "https://ci.example/ann/prompts/actions/runs/812",
    }  # fmt: skip
    edit_record(Path(settings.content, "ann/review/1.1.0.json"), source=source)
    token = add_publisher(settings, "ada")
    with serving(settings, "--publish-limit", "0") as server:
        yield Hub(server, token)


@pytest.fixture(scope="session")
def python_url(publishing: Hub) -> Iterator[str]:
    """The same site on Python's file server."""
    with file_host(publishing.server.settings.out) as url:
        yield url


@pytest.fixture(scope="session")
def nginx_url(publishing: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same site behind nginx, without any rule."""
    root = os.path.abspath(publishing.server.settings.out)
    with nginx(tmp_path_factory.mktemp("nginx"), f"root {root};") as (url,):
        yield url


@pytest.fixture(scope="session")
def hosts(publishing: Hub, python_url: str, nginx_url: str) -> dict[str, str]:
    """The addresses of the same site on each host."""
    return {"embedded": publishing.url, "python": python_url, "nginx": nginx_url}


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the client needs, and waits of no length."""
    need(*(command[0] for command in SHELLS.values()))
    folder = link_tools(tmp_path_factory.mktemp("tools") / "bin", *TOOLS)
    (folder / "python3").symlink_to(sys.executable)
    (folder / "sleep").write_text(FAKE_SLEEP)
    (folder / "sleep").chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The client as a site releases it."""
    path = tmp_path_factory.mktemp("release") / "hub"
    path.write_bytes(shell_client("http://127.0.0.1:8000", search_rules())[0])
    return str(path)


@pytest.fixture
def client(tools: Path, tmp_path: Path, released: str) -> Client:
    """A client with an empty home, under dash."""
    return Client(tmp_path / "client", tools=(str(tools),), script=released).make_folders()


# As a POSIX shell, bash is tried with the awks.
@pytest.fixture(params=rotating(shell for shell in SHELLS if shell != "bash-posix"))
def each(request: pytest.FixtureRequest, client: Client) -> Client:
    """A client with an empty home, under each shell. It is for tests of what shells do themselves
    (split words, match, read, print, redirect, wait, trap and export), and for one complete run of
    each command. Other tests need only dash.
    """
    return client.under(request.param)


@pytest.fixture(params=["dash", "zsh"])
def either(request: pytest.FixtureRequest, client: Client) -> Client:
    """A client with an empty home, under the two shells that differ most: for ways that the tests
    with ``each`` go past, of lines that are like theirs.
    """
    return client.under(request.param)


# Every shell, with the server only: differences between hosts are the same for all shells.
@pytest.fixture(
    params=rotating(
        [
            *(f"{shell}-embedded" for shell in SHELLS if shell != "bash-posix"),
            "dash-python",
            "dash-nginx",
        ]
    )
)
def placed(request: pytest.FixtureRequest, client: Client, hosts: dict[str, str]) -> Client:
    """A client under each shell, for each host."""
    shell, _, host = request.param.rpartition("-")
    return client.under(shell).to(hosts[host])


@pytest.fixture(scope="session")
def awks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each awk, in which it is called awk."""
    folder = tmp_path_factory.mktemp("awks")
    return {awk: link_tools(folder / awk, awk=awk) for awk in AWKS}


@pytest.fixture(params=rotating(AWKS))
def awk(request: pytest.FixtureRequest, awks: dict[str, Path], client: Client) -> Client:
    """A client with each awk."""
    return client.having(awks[request.param])


@pytest.fixture
def curl(each: Client, tmp_path: Path) -> tuple[Client, Path]:
    """A client whose curl only notes its words, environment and input, and the file with them."""
    folder = tmp_path / "curl"
    folder.mkdir()
    (folder / "curl").write_text(FAKE_CURL)
    (folder / "curl").chmod(0o755)
    seen = tmp_path / "seen"
    return each.having(folder).to("https://hub.example", SEEN=str(seen)), seen


# Not every pair of a shell and an awk: neither hides faults of the other.
@pytest.fixture(
    params=rotating([*((shell, "mawk") for shell in SHELLS), *(("dash", awk) for awk in AWKS[1:])])
)
def pair(request: pytest.FixtureRequest, awks: dict[str, Path], client: Client) -> Client:
    """A client under each shell, and one with each awk."""
    shell, awk = request.param
    return client.under(shell).having(awks[awk])


@pytest.fixture
def site() -> Site:
    """A site that tests may change; modules put one of their own in its place."""
    return small_site()


@pytest.fixture
def host(site: Site) -> Iterator[Fake]:
    with Fake(site) as fake:
        yield fake
