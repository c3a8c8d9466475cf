"""The client in workerd, Cloudflare's runtime, where no request may wait for another one's."""

import concurrent.futures
import contextlib
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.clients.typescript.conftest import CLIENT, HERE
from tests.clients.typescript.test_vectors import check_vectors
from tests.clients.vectors import VECTORS
from tests.node import PROGRAMS
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    Server,
    clean_environment,
    wait_until,
)

ID = "mara-okafor/sql-review"


@contextlib.contextmanager
def running_miniflare(worker: Path, **options: object) -> Iterator[str]:
    """A Worker's URL, without a slash at its end."""
    node = PROGRAMS / "node"
    assert node.exists() and (PROGRAMS / "workerd").exists(), (
        "Node and workerd are not there; install them with: sh tests/install-tools"
    )
    config = json.dumps({"worker": str(worker), **options})
    process = Process(
        str(node), str(HERE / "miniflare.mjs"), config,
        env=clean_environment(TMPDIR=str(worker.parent)),
    )  # fmt: skip
    try:
        line = process.wait_for_line("Worker at ")
        yield line.partition("Worker at ")[2].rstrip("/")
    finally:
        status = process.stop()
    assert status == 128 + signal.SIGTERM, f"exit status {status}\n{process.text}"


@pytest.fixture(scope="module")
def worker(
    live: Server, tmp_path_factory: pytest.TempPathFactory, installed_tools: None
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("worker")
    shutil.copy(CLIENT / "hub.js", folder / "hub.mjs")
    for name in ("vectors.mjs", "worker.mjs"):
        shutil.copy(HERE / name, folder)
    with running_miniflare(
        Path(folder, "worker.mjs"), variables={"HUB_URL": live.url}
    ) as url:  # fmt: skip
        yield url


def test_vectors(worker: str):
    answer = requests.post(f"{worker}/vectors", VECTORS.read_bytes(), timeout=DEADLINE_SECONDS)
    check_vectors(answer.json())


def test_many_requests_at_once(worker: str, live: Server):
    known = live.get(f"/api/v1/repos/{ID}").json()["data"]

    def ask(_: int) -> dict[str, object]:
        return requests.get(f"{worker}/get/{ID}", timeout=DEADLINE_SECONDS).json()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(40)))
    assert {(one["version"], one["sha256"]) for one in answers} == {
        (known["latest_version"], known["sha256"])
    }
    assert "memory" in {one["source"] for one in answers}, json.dumps(answers)


def test_a_refresh_goes_on_after_the_answer_where_the_worker_says_how(worker: str):
    id = "mara-okafor/text-to-sql"

    def ask(query: str = "") -> tuple[str, int]:
        answer = requests.get(f"{worker}/get/{id}{query}", timeout=DEADLINE_SECONDS).json()
        return answer["source"], answer["later"]

    assert ask() == ("network", 0)
    assert ask("?ahead=30&wait") == ("network", 0)
    assert ask("?ahead=60") == ("memory", 1)
    assert wait_until(lambda: ask("?ahead=60") == ("memory", 0), "the refresh")
