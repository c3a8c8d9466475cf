"""The commands of the documents run as they stand, in order, and print what the documents show.

Blocks of sh, python and js are run; a comment above a block may say why it is not:
``<!-- not run: it needs a server of yours -->``. A block of text after one is what it prints, with
``…`` in the place of anything.
"""

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from builder.model.settings import DEFAULT_BASE_URL, Settings
from tests.support.progress import without_progress
from tests.support.servers import DEADLINE_SECONDS, PROJECT, Server, clean_environment, serving

# Their commands write to the current folder and to $HOME alone.
DOCUMENTS = (
    "README.md docs/use/chat.md docs/use/compare.md docs/use/hub.md docs/use/labels.md "
    "docs/use/mcp.md docs/use/moving.md docs/use/publish-api.md docs/use/python.md "
    "docs/use/read-api.md docs/use/recipes.md docs/use/skills.md docs/use/typescript.md "
    "docs/use/vendors.md docs/use/withdraw.md docs/use/write.md docs/reference/content-format.md "
    "docs/operate/accounts.md docs/operate/backups.md docs/operate/deploy.md "
    "docs/operate/copies.md docs/operate/monitoring.md docs/operate/own-hub.md "
    "docs/operate/stats.md"
).split()
# Pages with commands that change the serving hub, or need its site or state.
CHANGING = (
    "README.md docs/use/chat.md docs/use/labels.md docs/use/publish-api.md docs/use/recipes.md "
    "docs/use/withdraw.md docs/operate/backups.md docs/operate/stats.md"
).split()
NODE = PROJECT / "tests/node/node_modules/.bin"
INTERPRETERS = {"python": "python3 -", "js": "node --input-type=module -"}
END = "\x1e"


class Step(NamedTuple):
    """A block that is run. ``output`` is what the document shows, None where it shows nothing."""

    language: str
    text: str
    output: str | None


def steps_in(document: str) -> list[Step]:
    """The blocks of a document that are to be run. Fails if one has a language of no known kind."""
    blocks = re.findall(
        r"(<!-- not run: [^>]+ -->\n)?^```(\w+)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?",
        document, flags=re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    return [
        Step(language, text, output or None)
        for skipped, language, text, output in blocks
        if not skipped and language in ("sh", *INTERPRETERS)
    ]


def script_of(steps: list[Step]) -> str:
    """One shell script of all steps, which share a folder and the shell's variables."""
    parts = ["exec 2>&1\nset -eu\n"]
    for step in steps:
        if step.language == "sh":
            parts.append(step.text)
        else:
            program = INTERPRETERS[step.language]
            parts.append(f"{program} <<'END OF BLOCK'\n{step.text}END OF BLOCK\n")
        parts.append(f"printf '{END}'\n")
    return "".join(parts)


def make_clone(folder: Path) -> Path:
    """A folder as a clone is after `make serve`, but for the site and the state."""
    shutil.copytree(PROJECT / "content", folder / "content")
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@contextlib.contextmanager
def serving_clone(folder: Path) -> Iterator[Server]:
    settings = Settings(f"{folder}/content", f"{folder}/site_out", f"{folder}/var")
    with serving(settings, "--metrics", "127.0.0.1:0") as server:
        yield server


@pytest.fixture(scope="module")
def read_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The hub of a clone that no document has."""
    with serving_clone(make_clone(tmp_path_factory.mktemp("read") / "clone")) as server:
        yield server


@pytest.fixture
def clone(
    request: pytest.FixtureRequest, document: str, tmp_path: Path
) -> Iterator[tuple[Path, Server]]:
    """A folder to run a document in, and a hub: that folder's, if the document changes it."""
    folder = make_clone(tmp_path / "clone")
    if document not in CHANGING:
        yield folder, request.getfixturevalue("read_hub")
        return
    with serving_clone(folder) as server:
        yield folder, server


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_commands_of(document: str, clone: tuple[Path, Server], tmp_path: Path) -> None:
    folder, server = clone
    steps = steps_in((PROJECT / document).read_text(encoding="utf-8"))
    assert steps
    metrics = server.process.wait_for_line("Metrics at").split()[-1]
    script = script_of(steps).replace(DEFAULT_BASE_URL, server.url)
    done = subprocess.run(
        ["dash", "-c", script.replace("http://127.0.0.1:9108/metrics", metrics)],
        cwd=folder, env=clean_environment(HOME=str(tmp_path), PATH=f"{NODE}:/usr/bin:/bin"),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    outputs = done.stdout.replace(server.url, DEFAULT_BASE_URL).split(END)
    assert done.returncode == 0, outputs[-1]
    for step, output in zip(steps, outputs, strict=False):
        if step.output is not None:
            parts = (re.escape(part.strip()) for part in step.output.split("…"))
            printed = without_progress(output).strip()
            assert re.fullmatch(r"\s*.*?\s*".join(parts), printed, re.DOTALL), (
                f"{step.text}\nprints\n{output}\nand not\n{step.output}"
            )
