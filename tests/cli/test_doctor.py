"""`hubctl doctor`: output and exit status. Its checks are tested in `tests/operate/doctor`."""

from pathlib import Path

from builder.model.content_tree import PRIVATE_FILE
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store.privacy import MARK
from tests.cli.test_hubctl import folders, hubctl
from tests.support.servers import Server, serving


def test_a_hub_that_is_well(live: Server) -> None:
    done = hubctl("doctor", *folders(live.settings), "--base-url", live.url)
    levels = [line.split()[0] for line in done.stdout.splitlines() if line[0] != " "]
    assert "problem" not in levels, done.stdout
    assert (
        "ok       address: Readers get this site at the base URL, and its service is ready.\n"
        in done.stdout
    )
    assert done.stderr.startswith("0 problems, ")
    assert done.exit_code == 0


def test_a_problem_and_what_to_do(small: Settings) -> None:
    build(small, index=False)
    Path(small.content, "ann", "story", "1.0.0.json").unlink()
    done = hubctl("doctor", *folders(small), "--offline")
    assert f"problem  content: 2 faults in {small.content}: " in done.stdout
    assert f"\n         List all with `hubctl check --content {small.content}`" in done.stdout
    assert "address:" not in done.stdout
    assert done.stderr.startswith("1 problem, ")
    assert done.exit_code == 1


def test_warnings_alone_are_no_failure(small: Settings) -> None:
    done = hubctl("doctor", *folders(small), "--offline")
    assert "warning  site: " in done.stdout and "\n         Run `hubctl build`" in done.stdout
    assert done.stderr.startswith("0 problems, 3 warnings, ") and done.exit_code == 0


def test_it_asks_the_address_that_the_site_was_built_with(small: Settings) -> None:
    build(small._replace(base_url="http://127.0.0.1:1"), index=False)
    done = hubctl("doctor", *folders(small))
    assert "problem  address: No answer from http://127.0.0.1:1/api/v1/hub.json" in done.stdout
    assert done.exit_code == 1


def test_a_private_hub_and_its_service(small: Settings) -> None:
    with serving(small, "--port", "0", "--private") as server:
        done = hubctl("doctor", *folders(small), HUB_PRIVATE="0")
        assert done.stdout.startswith("ok       strangers: "), done.stdout
        assert "say private = false, but this hub is private" in done.stdout
        assert done.exit_code == 0, done.stdout
        Path(small.out, "ann", "story.html").unlink()
        lost = hubctl("doctor", *folders(small)).stdout
        assert f"problem  site: The site in {small.out} lacks 1 file: ann/story.html." in lost
        assert hubctl("build", *folders(small)).exit_code == 0
        assert "problem" not in hubctl("doctor", *folders(small)).stdout
    away = hubctl("doctor", *folders(small)).stdout
    assert "problem  service: The service is away" in away
    assert f"No answer from {server.url}/api/v1/hub.json" in away and "--base-url" not in away
    assert away.count("Start ") == 2


def test_a_site_of_files_that_became_private(live: Server, small: Settings) -> None:
    """A web server with the former configuration still serves the files."""
    other = small._replace(out=live.settings.out)
    Path(small.content, PRIVATE_FILE).write_bytes(MARK)
    done = hubctl("doctor", *folders(other), "--base-url", live.url)
    assert done.stdout.startswith(
        "problem  strangers: This hub is private, and strangers can read /, /api/v1/hub.json, "
    )
    assert done.exit_code == 1
