"""Output and exit status of every command, under each shell, on each host."""

import hashlib
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.client.conftest import Hub
from tests.client.fake import Fake, Request, answer
from tests.client.shells import TOKEN, Client, share

LATEST = b"Review {{code}} with care.\n"
FIRST = b"Review {{code}}.\n"
FOUND = b"ann/review\t1.1.0\tThe review prompt\tcode,careful\tA careful review.\n"


class Case(NamedTuple):
    """``err`` is in standard error; None stands for none at all."""

    command: list[str]
    status: int
    err: str | None
    out: bytes = b""


# fmt: off
USES = [
    Case([], 2, "Fetch, search and publish"),
    Case(["nonsense"], 2, "unknown command nonsense"),
    Case(["help", "nonsense"], 2, "unknown command nonsense"),
    Case(["--version"], 0, None, b"hub 1.0.0\n"),
    Case(["pull"], 2, "too few arguments for hub pull OWNER/NAME"),
    Case(["pull", "review"], 2, "'review' is not OWNER/NAME"),
    Case(["pull", "ann/review/raw"], 2, "'ann/review/raw' is not OWNER/NAME"),
    Case(["pull", "ann/"], 2, "'ann/' is not OWNER/NAME"),
    Case(["pull", "Ann/review"], 2, "'Ann/review' is not OWNER/NAME"),
    Case(["pull", "ann/..%2f"], 2, "'ann/..%2f' is not OWNER/NAME"),
    Case(["pull", "ann/a\nb"], 2, "'ann/a\nb' is not OWNER/NAME"),
    Case(["pull", "ann/*"], 2, "'ann/*' is not OWNER/NAME"),
    Case(["pull", "ann/rev;iew"], 2, "'ann/rev;iew' is not OWNER/NAME"),
    Case(["pull", "ann/$(id)"], 2, "'ann/$(id)' is not OWNER/NAME"),
    Case(["pull", "ann/a--version"], 2, "'ann/a--version' is not OWNER/NAME"),
    Case(["pull", "ann/review", "ann/story"], 2, "too many arguments: 'ann/story'"),
    Case(["pull", "ann/review", "--version"], 2, "--version needs a value"),
    Case(["pull", "ann/review", "--version", "1.0"], 2, "is not a version"),
    Case(["pull", "ann/review", "--version", "1.0.0.0"], 2, "is not a version"),
    Case(["pull", "ann/review", "--version", "01.0.0"], 2, "is not a version"),
    Case(["pull", "ann/review", "--version", "../.."], 2, "is not a version"),
    Case(["pull", "ann/review", "-o", ""], 2, "-o needs a value"),
    Case(["pull", "ann/review", "--nonsense"], 2, "unknown option --nonsense"),
    Case(["cat", "ann/review", "-o", "x"], 2, "unknown option -o"),
    Case(["cat", "ann/review", "--as"], 2, "--as needs a value"),
    Case(["cat", "ann/review", "--as", "yaml"], 2, "unknown format 'yaml'"),
    Case(["search"], 2, "what to search for?"),
    Case(["search", "a", "b"], 2, "too many arguments: 'b'"),
    Case(["search", "-a"], 2, "Put -- before a word"),
    Case(["search", "a", "--page", "0"], 2, "--page must be a number"),
    Case(["search", "a", "--tag"], 2, "--tag needs a value"),
    Case(["versions"], 2, "too few arguments for hub versions OWNER/NAME"),
    Case(["versions", "ann/review", "x/y"], 2, "too many arguments: 'x/y'"),
    Case(["push"], 2, "too few arguments for hub push"),
    Case(["push", "ada/x"], 2, "too few arguments for hub push"),
    Case(["push", "ada/x", "file", "why", "huge"], 2, "not 'huge'"),
    Case(["push", "ada/x", "file"], 4, "/account and set HUB_TOKEN"),
]
READS = [
    Case(["cat", "ann/review"], 0, None, LATEST),
    Case(["cat", "ann/review", "--version", "1.0.0"], 0, None, FIRST),
    Case(["pull", "ann/review", "-o", "-"], 0, None, LATEST),
    Case(["cat", "--", "ann/story"], 0, None, b"Tell a story.\n"),
    Case(["cat", "ann/review", "--version", "9.0.0"], 3, ""),
    Case(["cat", "ann/nothing"], 3, ""),
    Case(["cat", "nobody/nothing-h"], 3, ""),
    Case(["cat", "ann/none", "--offline"], 6, "no copy of ann/none on"),
    Case(["versions", "ann/nothing"], 3, ""),
    Case(["pull", "ann/review", "-o", "a\nb"], 2, "PATH has a tab or a line break"),
    Case(["search", "care"], 0, "", FOUND),
    Case(["search", "", "--tag", "code,careful"], 0, "", FOUND),
    Case(["search", "no such words"], 0, "no prompts found"),
    Case(["search", "--", "-zyxw * $(zyxw) 'zyxw' \"zyxw\" \\ &zyxw"], 0, "no prompts found"),
    Case(["search", "care", "--page", "2"], 3, ""),
]
# fmt: on


def check(client: Client, case: Case) -> None:
    done = client.run(*case.command)
    assert (done.status, done.out) == (case.status, case.out), (case, done.err)
    assert done.err == "" if case.err is None else case.err in done.err, case


def test_wrong_uses_ask_nobody(each: Client) -> None:
    to = each.to("http://127.0.0.1:9")
    for case in share(each.shell, USES):
        check(to, case)


def test_reads(placed: Client) -> None:
    for case in share(placed.shell, READS):
        check(placed, case)


@pytest.mark.parametrize("host", ["embedded", "python", "nginx"])
def test_versions(host: str, client: Client, hosts: dict[str, str]) -> None:
    hub = client.to(hosts[host])
    done = hub.run("versions", "ann/review")
    rows = [line.split("\t") for line in done.text.splitlines()]
    assert [[row[0], row[2], row[3], row[4]] for row in rows] == [
        ["1.1.0", str(len(LATEST)), hashlib.sha256(LATEST).hexdigest(), "With care."],
        ["1.0.0", str(len(FIRST)), hashlib.sha256(FIRST).hexdigest(), ""],
    ]
    assert [row[5] for row in rows] == ["ann/prompts@1a2b3c4, run 812", ""]


def test_pulls(placed: Client) -> None:
    file = placed.work / "PROMPT.md"
    assert placed.run("pull", "ann/review", "--version", "1.0.0").err == (
        "saved ann/review 1.0.0 as PROMPT.md\n"
    )
    assert file.read_bytes() == FIRST
    # An older version is no change of one's own.
    assert placed.run("pull", "ann/review").err == "saved ann/review 1.1.0 as PROMPT.md\n"
    assert placed.run("pull", "ann/review").err == "PROMPT.md is already ann/review 1.1.0\n"
    file.write_bytes(LATEST + b"Mine.\n")
    done = placed.run("pull", "ann/review")
    assert done.status == 1 and "has your own changes" in done.err
    assert file.read_bytes() == LATEST + b"Mine.\n"
    assert placed.run("pull", "ann/review", "--force").status == 0
    assert file.read_bytes() == LATEST
    # One that this machine has no copy of.
    file.write_bytes(FIRST)
    shutil.rmtree(placed.cache)
    assert placed.run("pull", "ann/review").status == 0
    assert file.read_bytes() == LATEST
    assert [path.name for path in placed.work.iterdir()] == ["PROMPT.md"]


@pytest.mark.parametrize("name", ["-x", "*", "--force", " q'\"\\$x é"])
def test_any_name_of_a_file(name: str, each: Client, publishing: Hub) -> None:
    hub = each.to(publishing.url, HUB_TOKEN=publishing.token)
    assert hub.run("pull", "ann/review", "--output", name).status == 0
    assert [(path.name, path.read_bytes()) for path in hub.work.iterdir()] == [(name, LATEST)]
    (hub.work / name).write_bytes(b"Hi.")  # the other prompt stays the only match
    repo = f"ada/name-{each.shell}-{name.encode().hex()}"
    assert (
        hub.run("push", repo, "--", name, "-n * \\t 'x'\n\"y\" $z").out
        == f"{repo} 1.0.0\n".encode()
    )
    (version,) = publishing.server.get(f"/api/v1/repos/{repo}/versions").json()["data"]
    assert version["changelog"] == "-n * \\t 'x'\n\"y\" $z"


def test_a_host_without_queries_is_not_asked_any(either: Client, python_url: str) -> None:
    done = either.to(python_url).run("search", "care")
    assert "is plain files: searching names" in done.err and done.out == FOUND


def test_a_search_passes_on_everything(client: Client) -> None:
    def answers(request: Request) -> bytes:
        return answer('{"data":{"queries":true}}' if "hub.json" in request.path else "", 200)

    with Fake(answers) as fake:
        client.to(fake.url).run("search", "a b", "--tag", "code", "--page", "2")
    assert fake.requests[1].path == "/api/v1/repos?page=2&q=a+b&tag=code"


def test_push(client: Client, publishing: Hub) -> None:
    hub = client.to(publishing.url, HUB_TOKEN=publishing.token)
    repo = "ada/push"
    (hub.work / "a.md").write_bytes(b"One.")
    assert hub.run("push", repo, "a.md").out == f"{repo} 1.0.0\n".encode()
    assert hub.run("push", repo, "a.md").out == f"{repo} 1.0.0 unchanged\n".encode()
    assert hub.run("push", repo, "-", "Two", "minor", stdin=b"Two.").text == f"{repo} 1.1.0\n"
    assert hub.run("push", repo, "-", "", "major", stdin=b"Three.").text == f"{repo} 2.0.0\n"
    warned = hub.run("push", repo, "-", stdin=b"---\nnonsense: 1\nother thing: 2\n---\nHi.")
    assert warned.status == 0 and warned.err.startswith("standard input: warning: ")
    assert '"' not in warned.err
    assert hub.run("push", repo, "none.md").err == "'none.md' is not a file. Check the path\n"
    assert hub.run("push", "ann/review", "a.md").status == 4
    assert hub.run("push", "admin/review", "a.md").status in (4, 5)
    wrong = client.to(publishing.url, HUB_TOKEN="hub_x").run("push", repo, "a.md")
    assert wrong.status == 4 and "token" in wrong.err


@pytest.mark.parametrize("host", ["python", "nginx"])
def test_a_host_of_files_takes_no_publications(
    host: str, client: Client, hosts: dict[str, str]
) -> None:
    done = client.to(hosts[host], HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
    assert (
        done.status in (1, 3, 6) and "does not accept publications" in done.err and done.out == b""
    )


def test_names_that_end_like_options(client: Client, publishing: Hub) -> None:
    hub = client.to(publishing.url, HUB_TOKEN=publishing.token)
    assert hub.run("push", "ada/ends-h", "-", stdin=b"Hi.").status == 0
    assert hub.run("cat", "ada/ends-h").out == b"Hi."


def test_help(either: Client) -> None:
    for command in (
        "pull", "cat", "search", "versions", "labels", "lock", "sync", "update", "push", "label",
    ):  # fmt: skip
        told = either.run("help", command).out
        assert told.startswith(f"hub {command} ".encode())
        assert either.run(command, "--help").out == told
    assert either.run("push", "-h").out == either.run("help", "push").out


def test_help_names_the_hub(each: Client) -> None:
    assert "https://hub.example/x" in each.to("https://hub.example/x/").run("--help").text


def test_modules_of_the_folder_are_not_used(client: Client, publishing: Hub) -> None:
    (client.work / "json.py").write_text("raise SystemExit(99)")
    assert client.to(publishing.url).run("search", "care").status == 0


def test_the_environment_s_variables_are_not_the_client_s(
    each: Client, publishing: Hub, tmp_path: Path
) -> None:
    names = "tmp target_tmp cache_tmp child cache etag kept is_offline found http key text sha256"
    noise = dict.fromkeys(names.split(), str(tmp_path / "noise"))
    assert each.to(publishing.url, **noise).run("cat", "ann/review").out == LATEST
    assert not (tmp_path / "noise").exists()
