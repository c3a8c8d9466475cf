"""``hubctl import --from``: an export or an API of another vendor, its prompts with histories."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from moving.importers.items import Document, History, Rejection, Revision
from moving.vendors.api import Api
from publisher.write.moves import read_labels
from tests.cli.command import run
from tests.support.fake_api import FakeApi, Request, Said, fake_api

KEY = "sk-a-secret-of-one-test"


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    for where, value in documents:
        if not isinstance(value, dict) or "texts" not in value:
            yield Rejection(where, "not of Example")
            continue
        revisions = [
            Revision(f"{where}, version {number}", text, {}, [], "f-string", number=number)
            for number, text in enumerate(value["texts"], 1)
        ]
        if revisions:
            revisions[-1] = revisions[-1]._replace(labels=("production",))
        yield History(where, "", value["name"], revisions)


def download(api: Api) -> Iterator[Document]:
    found = api.get("prompts")
    for number, name in enumerate(found, 1):
        yield Document(name, api.get(f"prompts/{name}"))
        api.count(number, len(found))


@pytest.fixture
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a vendor that has an API and exports of a made-up kind."""
    module = ModuleType("moving.vendors.langfuse")
    module.TITLE, module.read_histories, module.download = "Example", read_histories, download
    module.API_URL, module.KEYS = "https://example.com", ("EXAMPLE_KEY",)
    module.headers = lambda keys: {"Authorization": f"Bearer {keys['EXAMPLE_KEY']}"}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return folder


def write(path: Path, name: str, *texts: str) -> None:
    path.write_text(json.dumps({"name": name, "texts": texts}))


def test_an_export(folder: Path):
    export = folder / "export"
    export.mkdir()
    write(export / "a.json", "A", "one", "two {name}", "three")
    write(export / "b.json", "B", "one", "")
    (export / "c.json").write_text('{"id": 1}')
    args = ("import", "--from", "langfuse", "export", "--owner", "ada")
    planned = run(*args, "--dry-run")
    assert planned.stdout == (
        "ada/a\t3 versions and 1 label\tnew\tA\n"
        "ada/b\t1 version\tnew\tB\n"
        "2 prompts to create, 0 to update, 0 unchanged, 2 rejected, 0 refused\n"
        "4 versions to publish, 1 label to move\n"
    )
    done = run(*args)
    assert done.exit_code == 1
    assert done.stdout == (
        "2 prompts created, 0 updated, 0 unchanged, 2 rejected, 0 refused\n"
        "4 versions published, 1 label moved\n"
    )
    assert "Rejected: c.json: not of Example\n" in done.stderr
    assert "\nPlaceholders: {name} became {{name}} in 1 prompt (f-string)\n" in done.stderr
    assert "Rejected: b.json, version 2: content: is empty" in done.stderr
    assert "2 prompts or versions not imported." in done.stderr
    assert read_labels("content", "ada", "a").versions() == {"production": "1.0.2"}
    (export / "c.json").unlink()
    write(export / "b.json", "B", "one")
    again = run(*args)
    assert (again.exit_code, again.stdout) == (
        0,
        "0 prompts created, 1 updated, 1 unchanged, 0 rejected, 0 refused\n"
        "0 versions published, 1 label moved\n",
    )
    last = run(*args)
    assert last.stdout == "0 prompts created, 0 updated, 2 unchanged, 0 rejected, 0 refused\n"
    assert run("check").exit_code == 0


@pytest.fixture
def example_api() -> Iterator[FakeApi]:
    answers = {
        "/prompts": ["a", "b"],
        "/prompts/a": {"name": "A", "texts": ["one"]},
        "/prompts/b": {"name": "B", "texts": ["one", "two"]},
    }

    def answer(request: Request) -> Said:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return Said(401, {"message": f"who are you, {KEY}?"})
        return Said(200, answers[request.path])

    with fake_api(answer) as api:
        yield api


def test_an_api(folder: Path, example_api: FakeApi):
    args = ("import", "--from", "langfuse", example_api.url)
    refused = run(*args, EXAMPLE_KEY="sk-another-secret")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "HTTP 401" in refused.stderr and "Check EXAMPLE_KEY." in refused.stderr
    assert "sk-another-secret" not in refused.stderr
    done = run(*args, EXAMPLE_KEY=KEY)
    assert done.exit_code == 0
    assert done.stdout.startswith("2 prompts created")
    before = len(example_api.requests)
    again = run(*args, EXAMPLE_KEY=KEY)
    assert again.stdout.startswith("0 prompts created, 0 updated, 2 unchanged")
    assert len(example_api.requests) == before + 3


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["https://api.example"], 2, "Add --from VENDOR to say whose API it is"),
        (["--from", "langfuse", "https://api.example"], 1, "needs EXAMPLE_KEY in the environment"),
        (["--from", "langfuse", "http://api.example"], 1, "with https"),
        (["--from", "langfuse", "https://api.example", "--owner", "api"], 1, "such as api-team"),
        (["--from", "langfuse", "missing"], 2, "'missing' does not exist"),
        (["--from", "nobody", "content"], 2, "'nobody' is not one of"),
        (["--placeholders", "perl", "content"], 2, "'perl' is not one of"),
        (["--from", "langfuse", "hub.toml"], 1, "neither a folder nor a file that ends in"),
        (
            ["--from", "langfuse", "content", "--content", "nowhere"],
            1,
            "create a hub with `hubctl init DIR`",
        ),
    ],
)
def test_what_cannot_be_imported(folder: Path, args: list[str], status: int, told: str):
    (folder / "hub.toml").write_text("")
    environ = {"EXAMPLE_KEY": "" if "https://api.example" in args else KEY}
    done = run("import", *args, **environ)
    assert (done.exit_code, done.stdout) == (status, "")
    assert told in done.stderr
    assert list((folder / "content").iterdir()) == []
    assert not (folder / "langfuse-export").exists()
