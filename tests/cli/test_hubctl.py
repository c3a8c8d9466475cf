"""The operator's command: what it prints where, and what it exits with."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from builder.model.settings import Settings
from cli.hubctl import COMMANDS, MODULES, main
from tests.support.catalogues import read_tree, settings_in, write_small_catalogue, write_version
from tests.support.progress import without_progress
from tests.support.servers import HUBCTL, PROJECT, SAMPLE, clean_environment

LINE = re.compile(
    r"([\d,]+) prompts?, ([\d,]+) versions?: ([\d,]+) files? written, ([\d,]+) unchanged, "
    r"([\d,]+) removed(?:, ([\d,]+) prompts? indexed with tantivy)? in \d+\.\d\d seconds\n"
)


def hubctl(*arguments: str, cwd: Path | None = None, **environment: str) -> Result:
    """Run the command in this process: a process of its own takes longer than what it does."""
    ours = {key: None for key in os.environ if key.startswith("HUB_")}
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(main, arguments, prog_name="hubctl", env=ours | environment)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


def folders(settings: Settings) -> list[str]:
    return ["--content", settings.content, "--out", settings.out, "--state", settings.state]


def counts(output: str) -> dict[str, int]:
    """The numbers of the line that a build ends with, which must be all of the output."""
    found = LINE.fullmatch(output)
    assert found, output
    names = ("repos", "versions", "written", "unchanged", "removed", "indexed")
    return dict(zip(names, (int(text.replace(",", "")) for text in found.groups("0")), strict=True))


# Help and wrong use


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(option: str) -> None:
    done = hubctl(option)
    assert done.exit_code == 0
    assert "Exit status: 0 success, 1 " in done.stdout
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", done.stdout, re.MULTILINE)
    assert done.stderr == ""


def test_version() -> None:
    done = subprocess.run([HUBCTL, "--version"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout == f"hubctl, version {metadata.version('prompt-hub')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"], ["build", "--nothing"], ["build", "extra"], ["check", "--out", "x"],
        ["serve", "--port", "70000"], ["serve", "--port", "http"], ["serve", "--rate-limit", "-1"],
    ],
)  # fmt: skip
def test_wrong_use(arguments: list[str], tmp_path: Path) -> None:
    done = hubctl(*arguments, cwd=tmp_path)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "Usage:" in done.stderr
    assert not list(tmp_path.iterdir())


# build


def talk(done: Result) -> list[str]:
    """Lines on standard error, but for progress."""
    return without_progress(done.stderr).splitlines()


def test_build(small: Settings) -> None:
    options = ("--base-url", "https://hub.example", "--queries")
    first = hubctl("build", *folders(small), *options)
    assert first.exit_code == 0
    assert talk(first) == []
    files = read_tree(small.out)
    assert counts(first.stdout) == {
        "repos": 3, "versions": 4, "written": len(files), "unchanged": 0, "removed": 0,
        "indexed": 3,
    }  # fmt: skip
    second = hubctl("build", *folders(small), *options)
    assert second.exit_code == 0
    assert counts(second.stdout)["written"] == 0
    assert counts(second.stdout)["indexed"] == 0
    assert read_tree(small.out) == files
    write_version(small.content, "ann", "story", "1.0.1", "Tell a long story.\n")
    third = hubctl("build", *folders(small), *options)
    assert 0 < counts(third.stdout)["written"] < len(files)
    assert counts(third.stdout)["indexed"] == 1


def test_build_of_the_sample(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)._replace(content=str(SAMPLE))
    done = hubctl("build", *folders(settings), "--site-name", "Prompts")
    assert done.exit_code == 0
    assert counts(done.stdout)["repos"] == 33
    assert "--base-url" in done.stderr
    assert "http://127.0.0.1:8000" in done.stderr
    hub = json.loads(Path(settings.out, "api/v1/hub.json").read_text())["data"]
    assert (hub["name"], hub["queries"]) == ("Prompts", False)


@pytest.mark.parametrize(
    ("options", "indexed", "has_words"),
    [([], 0, True), (["--queries"], 4, False), (["--index"], 4, True),
     (["--queries", "--no-index"], 0, False)],
)  # fmt: skip
def test_the_text_is_prepared_for_the_search_of_the_host(
    options: list[str], indexed: int, has_words: bool, small: Settings
) -> None:
    write_version(small.content, "ann", "heat", "1.0.0", "Wait.\n\nRead the thermometer.\n")
    done = hubctl("build", *folders(small), *options)
    assert counts(done.stdout)["indexed"] == indexed
    assert Path(small.state, "search").exists() == bool(indexed)
    assert ("thermometer" in Path(small.out, "api/v1/catalogue.jsonl").read_text()) == has_words


def test_build_check(small: Settings) -> None:
    missing = hubctl("build", *folders(small), "--check")
    assert missing.exit_code == 1
    assert "missing: 404.html\n" in missing.stdout
    assert "more\n" in missing.stdout
    assert not Path(small.out).exists()
    hubctl("build", *folders(small))
    clean = hubctl("build", *folders(small), "--check")
    assert clean.exit_code == 0
    assert "up to date" in clean.stdout
    assert talk(clean) == []
    Path(small.out, "ann/review.html").write_text("not what was built")
    Path(small.out, "api/v1/tags.json").unlink()
    before = read_tree(small.out)
    done = hubctl("build", *folders(small), "--check")
    assert done.exit_code == 1
    # The page about the API shows the beginning of the tags.
    assert done.stdout.splitlines() == [
        "missing: api/v1/tags.json", "differing: ann/review.html", "differing: docs.html",
        "differing: docs.html.gz",
    ]  # fmt: skip
    assert "4 files" in done.stderr
    assert "hubctl build" in done.stderr
    assert read_tree(small.out) == before
    assert hubctl("build", *folders(small), "--full").exit_code == 0
    assert hubctl("build", *folders(small), "--check").exit_code == 0
    shutil.rmtree(f"{small.content}/bob")
    hubctl("build", *folders(small))
    left = hubctl("build", *folders(small), "--check")
    assert left.exit_code == 0 and "until the next `hubctl build`" in left.stdout
    hubctl("build", *folders(small))
    assert "until the next" not in hubctl("build", *folders(small), "--check").stdout
    # The other options count: another base URL is another site.
    other = hubctl("build", *folders(small), "--check", "--base-url", "https://hub.example")
    assert other.exit_code == 1
    assert "differing: ann.html" in other.stdout


def test_build_with_faults(small: Settings) -> None:
    Path(small.content, "bob/sql/1.0.0.md").write_text("Changed after it was published.\n")
    done = hubctl("build", *folders(small))
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "bob/sql/1.0.0.md" in done.stderr
    assert "hubctl check" in done.stderr
    assert not Path(small.out, "api/v1/hub.json").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"out": "{content}/site"}, {"state": "{content}/state"}, {"content": "{out}/content"},
        {"state": "{out}/state"}, {"out": "{state}/site"}, {"out": "{content}"},
        {"out": "{content}/../content/ann"}, {"state": "{out}"}, {"content": "/"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("options", [["build"], ["build", "--check"], ["serve", "--port", "0"]])
def test_folders_inside_each_other(
    small: Settings, change: dict[str, str], options: list[str]
) -> None:
    moved = {key: value.format(**small._asdict()) for key, value in change.items()}
    settings = small._replace(**moved)
    before = read_tree(small.content)
    done = hubctl(*options, *folders(settings))
    assert done.exit_code == 1
    assert "--" + next(iter(change)) in done.stderr
    assert "separate" in done.stderr
    assert done.stdout == ""
    assert read_tree(small.content) == before


def test_folder_whose_name_begins_like_another(small: Settings) -> None:
    """``site`` and ``site-state`` lie beside each other."""
    settings = small._replace(state=f"{small.out}-state")
    assert hubctl("build", *folders(settings)).exit_code == 0


def test_folder_inside_another_through_a_link(small: Settings, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(small.content)
    done = hubctl("build", *folders(small._replace(out=f"{link}/site")))
    assert done.exit_code == 1
    assert not Path(small.content, "site").exists()


@pytest.mark.parametrize(
    "url",
    [
        "example.org", "ftp://example.org", "https://", "https://example.org?x=1",
        "https://example.org/#x", "https://user@example.org", "https://example.org/a b",
        "https://example.org/../x", "https://example.org//x", "https://example.org:port",
        "https://example.org:99999", "https://exa<mple.org", 'https://example.org/"x',
        "//example.org",
        "javascript:alert(1)", "https://example.org/é",
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["option", "variable"])
def test_bad_base_url(small: Settings, url: str, how: str) -> None:
    options, environment = ["--base-url", url], {}
    if how == "variable":
        options, environment = [], {"HUB_BASE_URL": url}
    for command in (["build"], ["serve", "--port", "0"]):
        done = hubctl(*command, *folders(small), *options, **environment)
        assert done.exit_code in (1, 2)
        assert repr(url) in done.stderr
        assert "https://prompts.example.org" in done.stderr
        assert not Path(small.out).exists()


@pytest.mark.parametrize(
    "url", ["https://example.org", "https://example.org/", "http://[::1]:8000/"]
)
def test_good_base_url(small: Settings, url: str) -> None:
    assert hubctl("build", *folders(small), "--base-url", url).exit_code == 0
    hub = json.loads(Path(small.out, "api/v1/hub.json").read_text())["data"]
    assert hub["base_url"] == url.rstrip("/")


def test_variables_mean_the_same_as_options(small: Settings, tmp_path: Path) -> None:
    options = [
        "--base-url", "https://hub.example/p", "--site-name", "Our prompts", "--queries",
        "--search", "whoosh", "--langfuse",
    ]  # fmt: skip
    hubctl("build", *folders(small), *options)
    by_variables = settings_in(tmp_path / "other")
    write_small_catalogue(by_variables.content)
    environment = {
        "HUB_CONTENT": by_variables.content, "HUB_OUT": by_variables.out,
        "HUB_STATE": by_variables.state, "HUB_BASE_URL": "https://hub.example/p",
        "HUB_SITE_NAME": "Our prompts", "HUB_QUERIES": "1", "HUB_SEARCH": "whoosh",
        "HUB_LANGFUSE": "1",
    }  # fmt: skip
    done = hubctl("build", cwd=tmp_path, **environment)
    assert done.exit_code == 0
    assert talk(done) == []
    assert read_tree(by_variables.out) == read_tree(small.out)
    assert Path(by_variables.state, "build.sqlite3").exists()
    # An option wins over its variable.
    hubctl("build", "--site-name", "Mine", cwd=tmp_path, **environment)
    hub = json.loads(Path(by_variables.out, "api/v1/hub.json").read_text())["data"]
    assert (hub["name"], hub["base_url"]) == ("Mine", "https://hub.example/p")
    assert hub["search"] == "whoosh"
    assert hubctl("check", cwd=tmp_path, HUB_CONTENT=by_variables.content).exit_code == 0


def test_a_port_that_is_taken(small: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = hubctl("serve", *folders(small), HUB_PORT=str(port))
    assert done.exit_code == 1 and not os.path.exists(small.out)
    assert done.stderr.count("Address already in use") == done.stderr.count("127.0.0.1") == 1
    assert f"127.0.0.1:{port}" in done.stderr and "HUB_PORT" in done.stderr


def test_no_content_leaves_nothing_behind(tmp_path: Path) -> None:
    for command in (["build"], ["serve", "--port", "0"]):
        done = hubctl(*command, cwd=tmp_path)
        assert done.exit_code == 1 and "hubctl init" in done.stderr and "--content" in done.stderr
        assert not os.listdir(tmp_path)


def test_default_folders(tmp_path: Path) -> None:
    write_small_catalogue(tmp_path / "content")
    assert hubctl("build", cwd=tmp_path).exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["content", "site_out", "var"]


def test_folder_that_cannot_be_written(small: Settings) -> None:
    """A file stands where the folder should be."""
    for option in ("out", "state"):
        path = Path(getattr(small, option) + "-file")
        path.write_text("mine")
        done = hubctl("build", *folders(small._replace(**{option: str(path)})))
        assert done.exit_code == 1
        assert path.name in done.stderr
        assert path.read_text() == "mine"


def test_progress_goes_to_standard_error(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    for number in range(500):
        text = f"Number {number}.\n" + "More to index, word by word. " * 200
        write_version(settings.content, f"o{number % 7}", f"n{number}", "1.0.0", text)
    done = hubctl("build", *folders(settings), "--base-url", "https://hub.example")
    assert done.exit_code == 0
    assert counts(done.stdout)["repos"] == 500
    assert talk(done) == []


# check


def loaded_by(code: str) -> set[str]:
    """The modules that a new process has loaded after ``code``."""
    code += "; import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_no_command_loads_what_only_its_work_needs() -> None:
    """With a hub.toml, every command loads all of them, to know their options."""
    heavy = {"flask", "authlib", "requests", "joserfc", "cryptography", "asyncio", "uvicorn"}
    heavy |= {"limits", "mcp", "tantivy", "whoosh", "obstore", "prometheus_client", "watchfiles"}
    heavy |= {"psycopg"}
    heavy |= {"builder.pipeline.build", "builder.pipeline.rebuild", "builder.render.pages"}
    heavy |= {"publisher.web.app", "operate.doctor.examine", "operate.backup.take"}
    heavy |= {"operate.deploy.run"}
    loaded = loaded_by("from cli.hubctl import main; from cli.config import schema_of; "
                       "schema_of(main)")  # fmt: skip
    assert {f"cli.{MODULES.get(name, name)}" for name in COMMANDS} <= loaded
    assert not heavy & loaded


def test_an_upgrade_without_its_libraries_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "hub.toml").write_text('site-name = "Hub"\n')
    program = "import sys; sys.modules['yaml'] = None; from cli.hubctl import main; main(['build'])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
        env=clean_environment(PYTHONPATH=str(PROJECT)),
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "is incomplete: " in line and "yaml" in line and "again" in line


def test_as_the_first_process_of_a_container_it_ends_while_it_loads() -> None:
    """To that process, the kernel sends no signal that it has not asked for."""
    program = """
import os, signal, sys
from cli import hubctl
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.getpid = lambda: 1
load = hubctl.import_module
def load_slowly(name):
    signal.raise_signal(signal.SIGTERM)
    return load(name)
hubctl.import_module = load_slowly
hubctl.main(["check"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (128 + 15, "", "")
