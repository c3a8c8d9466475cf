"""Two `hubctl serve` over one database: what one publishes, the other shows."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.settings import Settings
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from tests.support.postgres import Postgres
from tests.support.servers import (
    HUBCTL,
    Process,
    Server,
    serve_command,
    serving,
    wait_until,
)

BASE_URL = "http://hub.example"


def settings_of(folder: Path) -> Settings:
    return Settings(f"{folder}/content", f"{folder}/site", f"{folder}/var", BASE_URL)


@pytest.fixture(scope="module")
def nodes(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[tuple[Server, Server, str]]:
    """Two nodes of an empty database, and a token that publishes on both."""
    folder, url = tmp_path_factory.mktemp("nodes"), postgres.new_database()
    options = ("--database", url, "--base-url", BASE_URL)
    with Database(url) as database:
        Accounts(database).add_owner("ann")
        token, _ = Accounts(database).create_token("ann", "test")
    with (
        serving(settings_of(folder / "one"), *options) as first,
        serving(settings_of(folder / "two"), *options) as second,
    ):
        yield first, second, token


def publish(server: Server, token: str, name: str, text: str, **headers: str):
    return server.request(
        "POST", f"/api/v1/repos/ann/{name}/versions", json={"content": text},
        headers={"Authorization": f"Bearer {token}"} | headers,
    )  # fmt: skip


def test_a_reader_elsewhere_can_wait_for_a_publication(nodes: tuple[Server, Server, str]):
    one, two, token = nodes
    for number, (here, there) in enumerate(((one, two), (two, one), (one, two))):
        done = publish(here, token, "story", f"{number}\n")
        assert done.status_code == 201, done.text
        serial = done.json()["data"]["serial"]

        def has_it(server: Server = there, serial: int = serial) -> bool:
            return server.get("/api/v1/hub.json").json()["data"]["serial"] >= serial

        wait_until(has_it, "the other node")
        assert there.get("/api/v1/repos/ann/story/raw").text == f"{number}\n"
        assert here.get(done.json()["data"]["raw_url"].removeprefix(BASE_URL)).ok


def test_a_check_elsewhere_knows_all_publications(nodes: tuple[Server, Server, str]):
    one, two, token = nodes
    for number, (here, there) in enumerate(((one, two), (two, one)) * 3):
        published = publish(here, token, "checked", f"{number}\n")
        assert published.status_code == 201
        path = "/api/v1/repos/ann/checked/check"
        checked = there.request("POST", path, json={"content": "Next.\n"}).json()["data"]
        assert checked["previous_version"] == published.json()["data"]["version"]
        again = there.request("POST", path, json={"content": f"{number}\n"}).json()["data"]
        assert again["unchanged"]


def test_readiness_shows_the_store(nodes: tuple[Server, Server, str]):
    part = nodes[0].get("/readyz").json()["parts"]["store"]
    assert part["failures"] == 0 and not part["other_history"]
    assert part["applied"] > 0


def test_a_fault_of_a_moment_does_not_end_a_new_node(tmp_path: Path, postgres: Postgres):
    """Such a fault occurs when a prompt is withdrawn between two reads of a build."""
    settings = settings_of(tmp_path)
    place = ("--database", postgres.new_database())
    (tmp_path / "story.md").write_text("Tell a story.\n")
    publishing = [HUBCTL, "publish", "ann/story", str(tmp_path / "story.md")]
    done = subprocess.run([*publishing, *place, "--content", settings.content])
    assert done.returncode == 0
    # The file is not in the database, so the node cannot restore it before it builds.
    record = Path(settings.content) / "ann/other/1.0.0.json"
    record.parent.mkdir()
    record.write_bytes(b"{")
    process = Process(*serve_command(settings, *place))
    try:
        process.wait_for_line("The node tries again")
        shutil.rmtree(record.parent)
        process.wait_for_line("(stop with Ctrl-C)")
    finally:
        assert process.stop() == 0
