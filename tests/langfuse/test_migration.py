"""Prompts that moved from Langfuse to a hub: its SDKs read the same from both."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.langfuse.test_sdks import Sdk
from tests.moving.vendors.langfuse_server import (
    ENVIRONMENT,
    REFS,
    VALUES,
    LangfuseServer,
    fill,
    langfuse_server,
)
from tests.support.catalogues import settings_in
from tests.support.servers import HUBCTL, Server, clean_environment, serving

OWNER = "mover"

pytestmark = pytest.mark.usefixtures("installed_tools")


@pytest.fixture(scope="module")
def langfuse() -> Iterator[LangfuseServer]:
    with langfuse_server() as server:
        fill(server)
        yield server


@pytest.fixture(scope="module")
def hub(
    langfuse: LangfuseServer, tmp_path_factory: pytest.TempPathFactory, installed_tools: None
) -> Iterator[Server]:
    """A hub to which all prompts moved, and then what changed meanwhile."""
    folder = tmp_path_factory.mktemp("moved")
    settings = settings_in(folder)
    os.makedirs(settings.content, exist_ok=True)

    def move() -> str:
        command = [
            HUBCTL, "import", "--from", "langfuse", langfuse.url, "--owner", OWNER,
            "--content", settings.content,
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, env=clean_environment(**ENVIRONMENT)
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    move()
    langfuse.create("support/greeting", [{"role": "user", "content": "{{question}}"}])
    langfuse.move("movie-critic", "production", 1)
    move()
    with serving(settings, "--langfuse") as server:
        yield server


@pytest.fixture(scope="module", params=["python-5", "langfuse-client-5"])
def sdk(request: pytest.FixtureRequest, installed_tools: None) -> Iterator[Sdk]:
    started = Sdk(request.param)
    yield started
    assert started.close() == 0


def test_sdks_read_the_same(sdk: Sdk, langfuse: LangfuseServer, hub: Server) -> None:
    compared = 0
    for name, refs in REFS.items():
        moved = f"{OWNER}/{name.replace('/', '-')}"
        for options in [*refs, {"version": 3}]:
            theirs = sdk.get(langfuse.url, name, VALUES, **options)
            ours = sdk.get(f"{hub.url}/langfuse", moved, VALUES, **options)
            assert _comparable(ours) == _comparable(theirs | {"name": moved}), options
            compared += "error" not in theirs
    assert compared == sum(map(len, REFS.values())) + len(REFS)


def test_what_was_deleted_is_in_neither(sdk: Sdk, langfuse: LangfuseServer, hub: Server) -> None:
    options = {"version": 2, **sdk.hasty}
    theirs = sdk.get(langfuse.url, "movie-critic", **options)
    ours = sdk.get(f"{hub.url}/langfuse", f"{OWNER}/movie-critic", **options)
    assert theirs["error"] == ours["error"]


def _comparable(found: dict[str, Any]) -> dict[str, Any]:
    """The prompt that an SDK returned; labels have no order."""
    return found | {"labels": sorted(found.get("labels", []))}
