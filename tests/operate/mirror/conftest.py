"""A hub whose content a test changes, and a folder for its mirror."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from builder.model.settings import Settings
from builder.pipeline.build import build
from cli.hubctl import main
from tests.client.fake import Answer, Request, answer, error
from tests.support.catalogues import (
    read_tree,
    settings_in,
    write_label,
    write_small_catalogue,
    write_version,
)
from tests.support.servers import free_port

CATALOGUE = "api/v1/catalogue.jsonl"
REPOS = "api/v1/repos"
FILES = {
    "assets/logo.png": b"\x89\0\xff",
    "empty": b"",
    "scripts/a/run.sh": b"true\n",
    "y+z@2.txt": b"x",
}
Change = Callable[[bytes], bytes]


class Origin:
    """A hub whose content a test changes, and a server of its files. ``changed`` has what is
    answered instead of the files at some paths.
    """

    def __init__(self, folder: Path) -> None:
        self.settings: Settings = settings_in(folder, f"http://127.0.0.1:{free_port()}")
        self.content = Path(self.settings.content)
        write_small_catalogue(self.content)
        write_label(self.content, "ann/review", 1, "production", "1.0.0", note="Go.")
        write_label(self.content, "ann/review", 2, "old", "1.0.0")
        write_label(self.content, "ann/review", 3, "old", None)
        write_version(self.content, "ann", "story", "1.0.0", "Tell a story.\n", FILES)
        self.changed: dict[str, Answer] = {}
        self.build()

    def build(self) -> None:
        build(self.settings, index=False)

    @property
    def files(self) -> dict[str, bytes]:
        return read_tree(self.settings.out)

    def __call__(self, request: Request) -> Answer:
        path = request.path.removeprefix("/")
        if path in self.changed:
            return self.changed[path]
        file = Path(self.settings.out, path)
        return answer(file.read_bytes()) if file.is_file() else error(404, "Not here.")

    def mirrored(self) -> dict[str, bytes]:
        """The files that a mirror should have."""
        files = self.files
        wanted = {CATALOGUE, "api/v1/hub.json"}
        for line in files[CATALOGUE].splitlines():
            repo = REPOS + "/{owner}/{name}".format_map(json.loads(line))
            wanted |= {f"{repo}.json", f"{repo}/versions.json"}
            for one in json.loads(files[f"{repo}/versions.json"])["data"]:
                if "withdrawn" not in one:
                    version = f"{repo}/versions/{one['version']}"
                    wanted |= {f"{version}.json", f"{version}.txt"}
                    wanted |= {path for path in files if path.startswith(f"{version}.files/")}
            if f"{repo}/labels.json" in files:
                wanted.add(f"{repo}/labels.json")
                for one in json.loads(files[f"{repo}/labels.json"])["data"]:
                    label = f"{repo}/labels/{one['label']}"
                    wanted |= {f"{label}.json", f"{label}/history.json"}
        return {path: data for path, data in files.items() if path in wanted}

    def edit(self, path: str, change: Change) -> None:
        """Answer with other bytes than those of the file."""
        self.changed[path] = answer(change(self.files[path]))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "origin")


@dataclass
class Copy:
    """A folder for a mirror, and how long its runs have waited."""

    folder: Path
    slept: list[float] = field(default_factory=list)

    def run(self, url: str, *options: str, token: str = "") -> Result:
        words = ["mirror", *options, url, str(self.folder)]
        return CliRunner().invoke(main, words, env={"HUB_TOKEN": token, "HUB_CONFIG": ""})

    @property
    def tree(self) -> dict[str, bytes]:
        """The files that readers of the mirror get."""
        found = read_tree(self.folder) if self.folder.exists() else {}
        return {path: data for path, data in found.items() if not path.startswith(".hub-mirror/")}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    made = Copy(tmp_path / "m")
    monkeypatch.setattr(time, "sleep", made.slept.append)
    return made
