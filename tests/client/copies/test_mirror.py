"""`hub mirror`: a copy of a hub that is whole after each run, and right after each kill."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.client.conftest import Hub
from tests.client.fake import Answer, Fake, Request, answer, closed_port, error
from tests.client.shells import TOKEN, Client, Done, link_tools
from tests.client.test_safety import NO_ADDRESSES
from tests.support.catalogues import (
    read_tree,
    settings_in,
    write_label,
    write_small_catalogue,
    write_version,
    write_withdrawn,
)
from tests.support.servers import DEADLINE_SECONDS, free_port

CATALOGUE = "api/v1/catalogue.jsonl"
REPOS = "api/v1/repos"
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


def tree(client: Client) -> dict[str, bytes]:
    """What readers of the mirror get."""
    found = read_tree(client.work / "m")
    return {path: data for path, data in found.items() if not path.startswith(".hub-mirror/")}


def notes(client: Client) -> dict[str, str]:
    lines = (client.work / "m/.hub-mirror/noted").read_text().splitlines()
    return dict(line.split() for line in lines)


def asked(fake: Fake) -> set[str]:
    return {request.path.removeprefix("/") for request in fake.requests}


def mirror(client: Client, fake: Fake, *options: str) -> Done:
    fake.requests.clear()
    return client.run("mirror", *options, fake.url, "m")


def test_a_copy_of_a_hub(placed: Client, publishing: Hub) -> None:
    """From each host, and it is itself a hub to read from."""
    url = placed.env["HUB_URL"]
    done = placed.run("mirror", url, "m")
    assert done.status == 0, done.err
    site = read_tree(publishing.server.settings.out)
    found = tree(placed)
    assert found == {path: site[path] for path in found}
    ids = [json.loads(line) for line in site[CATALOGUE].splitlines()]
    for one in ids:
        latest = f"{REPOS}/{one['owner']}/{one['name']}/versions/{one['latest_version']}.txt"
        assert latest in found
    assert done.err == f"m is as {url}: {len(ids)} prompts, {len(ids)} fetched, 0 removed\n"
    done = placed.run("mirror", url, "m")
    assert done.err == f"m is as {url}: {len(ids)} prompts, 0 fetched, 0 removed\n"
    assert placed.run("mirror", "--check", url, "m") == (
        0,
        b"",
        f"m is as {url}: {len(ids)} prompts\n",
    )
    assert not (placed.work / "m/.hub-mirror/run").exists()


def test_each_awk_makes_the_same(awk: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        assert mirror(awk, fake).status == 0 and tree(awk) == origin.mirrored()
        assert mirror(awk, fake, "--check").status == 0
        origin.edit(f"{REPOS}/bob/sql/versions.json", lambda data: data.replace(b"1.0.0", b"../x"))
        (awk.work / "m/.hub-mirror/noted").write_text("")
        assert "such as bob/sql" in mirror(awk, fake).err
        assert not [path for path in asked(fake) if ".." in path]


def test_a_mirror_is_read_as_a_hub(client: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        mirror(client, fake)
        found = tree(client)
        fake.answers = lambda request: (
            answer(found[request.path[1:]]) if request.path[1:] in found else error(404)
        )
        to = client.to(fake.url)
        assert to.run("cat", "ann/review@production").out == b"Review {{code}}.\n"
        assert to.run("cat", "ann/review").out == b"Review {{code}} with care.\n"
        at = to.run("cat", "ann/review", "--label", "production", "--at", "2099-01-01")
        assert at.out == b"Review {{code}}.\n"
        assert to.run("labels", "ann/review").text.startswith("production\t1.0.0\t")
        assert to.run("versions", "ann/review").text.count("\n") == 2
        assert to.run("search", "sql").text.startswith("bob/sql\t")


def test_a_later_run_fetches_only_what_changed(each: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        mirror(each, fake)
        assert tree(each) == origin.mirrored() and "old" not in str([*tree(each)])
        write_version(origin.content, "bob", "sql", "1.1.0", "Write {{dialect}}.\n")
        write_label(origin.content, "ann/review", 4, "production", "1.1.0")
        origin.build()
        done = mirror(each, fake)
        assert done.status == 0 and "2 fetched, 0 removed" in done.err
        assert tree(each) == origin.mirrored()
        review, sql = f"{REPOS}/ann/review", f"{REPOS}/bob/sql"
        assert asked(fake) == {
            "api/v1/hub.json", CATALOGUE, f"{sql}.json", f"{sql}/versions.json",
            f"{sql}/versions/1.1.0.json", f"{sql}/versions/1.1.0.txt", f"{review}.json",
            f"{review}/versions.json", f"{review}/labels.json", f"{review}/labels/production.json",
            f"{review}/labels/production/history.json",
        }  # fmt: skip
        assert mirror(each, fake).status == 0 and asked(fake) == {"api/v1/hub.json", CATALOGUE}


def test_what_is_gone_is_removed(either: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        mirror(either, fake)
        write_withdrawn(origin.content, "ann/review", "1.1.0")
        write_withdrawn(origin.content, "bob/sql")
        write_label(origin.content, "ann/review", 4, "production", None)
        origin.build()
        done = mirror(either, fake)
        assert "1 fetched, 1 removed" in done.err
        assert (
            tree(either) == origin.mirrored() and not (either.work / "m" / REPOS / "bob").exists()
        )
        assert f"{REPOS}/ann/review/versions/1.1.0.txt" not in tree(either)
        assert f"{REPOS}/ann/review/labels/production.json" not in tree(either)
        assert f"{REPOS}/ann/review/labels.json" in tree(either)


def test_a_run_that_is_killed_at_any_request(client: Client, origin: Origin) -> None:
    """Whatever is noted as whole is whole, and the next run goes on. No shell can do anything about
    such a kill.
    """
    with Fake(origin) as fake:
        for number in (1, 3, 6, 9, 12):
            process = client.start("mirror", fake.url, "m", start_new_session=True)

            def kill_at(request: Request, at: int = number, pid: int = process.pid) -> Answer:
                if len(fake.requests) == at:
                    os.killpg(pid, signal.SIGKILL)
                return origin(request)

            fake.requests.clear()
            fake.answers = kill_at
            process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode in (0, -signal.SIGKILL)
            check_notes(client, origin)
            for left in client.tmp.iterdir():
                os.system(f"rm -rf '{left}'")
        fake.answers = origin
        done = mirror(client, fake)
        assert done.status == 0 and tree(client) == origin.mirrored()


def check_notes(client: Client, origin: Origin) -> None:
    """What is noted with the digest that the hub has for it now is as the hub has it."""
    noted = client.work / "m/.hub-mirror/noted"
    found, wanted = tree(client), origin.mirrored()
    known = notes(client) if noted.exists() else {}
    for line in map(json.loads, wanted[CATALOGUE].splitlines()):
        repo = "{owner}/{name}".format_map(line)
        if known.get(repo) != line["digest"]:
            continue
        of_repo = (f"{REPOS}/{repo}.", f"{REPOS}/{repo}/")
        assert {path: found[path] for path in found if path.startswith(of_repo)} == {
            path: wanted[path] for path in wanted if path.startswith(of_repo)
        }


# Kills the shell that calls it at the time that a file says.
FATAL_MV = """#!/bin/sh
read -r left <"$LEFT"
echo $((left - 1)) >"$LEFT"
[ "$left" -ne 0 ] || kill -s KILL "$PPID"
exec "$MV" "$@"
"""


def test_a_run_that_is_killed_while_it_replaces(
    client: Client, origin: Origin, tmp_path: Path, tools: Path
) -> None:
    folder = tmp_path / "mv"
    folder.mkdir()
    (folder / "mv").write_text(FATAL_MV)
    (folder / "mv").chmod(0o755)
    left = tmp_path / "left"
    fatal = client.having(folder).to("http://x", LEFT=str(left), MV=str(tools / "mv"))
    with Fake(origin) as fake:
        assert mirror(client, fake).status == 0
        killed = 0
        for number in range(0, 200, 3):
            version = f"1.{number + 2}.0"
            write_version(origin.content, "ann", "review", version, f"{number}.\n")
            write_label(origin.content, "ann/review", number + 4, "production", version)
            origin.build()
            left.write_text(f"{number}\n")
            process = fatal.start("mirror", fake.url, "m")
            process.communicate(timeout=DEADLINE_SECONDS)
            check_notes(client, origin)
            for path in client.tmp.iterdir():
                os.system(f"rm -rf '{path}'")
            if process.returncode == 0:
                break
            killed += 1
        assert killed > 5 and process.returncode == 0
        assert tree(client) == origin.mirrored()


def test_a_text_that_is_another_is_never_shown(either: Client, origin: Origin) -> None:
    text = f"{REPOS}/bob/sql/versions/1.0.0.txt"
    with Fake(origin) as fake:
        origin.edit(text, lambda data: data.upper())
        done = mirror(either, fake)
        assert done.status == 6 and "1 prompts are not what the list of prompts says" in done.err
        assert "such as bob/sql" in done.err
        assert not [path for path in tree(either) if "bob" in path]
        assert CATALOGUE not in tree(either) and f"{REPOS}/ann/story.json" in tree(either)
        assert either.sleeps == ["2", "4"]
        origin.changed.clear()
        assert mirror(either, fake).status == 0 and tree(either) == origin.mirrored()


CHANGES: list[tuple[str, Change]] = [
    ("versions/1.0.0.json", lambda data: data.replace(b"The n", b"A n")),
    ("versions.json", lambda data: data.replace(b"With care.", b"Without.")),
    ("labels.json", lambda data: data.replace(b"Go.", b"No.")),
    ("labels/production/history.json", lambda data: data.replace(b"Go.", b"No.")),
    ("labels/production.json", lambda data: data.replace(b'"production"', b'"staging"')),
    ("versions/1.1.0.txt", lambda data: data[:-1]),
    ("versions.json", lambda _: b"<!doctype html>"),
    ("versions.json", lambda data: data[:-40]),
    ("versions.json", lambda _: b""),
    (".json", lambda data: data.replace(b'"1.1.0"', b'"1.0.1"', 1)),
]


def write_each(origin: Origin, changes: list[tuple[str, Change]]) -> None:
    """A prompt for each change, with a label and two versions, whose file is answered so. Before
    each is one whose files are as they are.
    """
    for number in range(len(changes)):
        for name in (f"n{number:02}-whole", f"n{number:02}-wrong"):
            write_version(origin.content, "ann", name, "1.0.0", f"{name}.\n")
            write_version(
                origin.content, "ann", name, "1.1.0", f"{name}!\n", changelog="With care."
            )
            write_label(origin.content, f"ann/{name}", 1, "production", "1.0.0", note="Go.")
    origin.build()
    for number, (path, change) in enumerate(changes):
        repo = f"{REPOS}/ann/n{number:02}-wrong"
        origin.edit(repo + path if path.startswith(".") else f"{repo}/{path}", change)


def check_only_whole(client: Client, origin: Origin, fake: Fake, count: int) -> None:
    """A mirror has all but the ``count`` prompts that are wrong, and says so."""
    done = mirror(client, fake)
    assert done.status == 6 and f"{count} prompts are not what the list of prompts" in done.err
    assert "such as ann/n00-wrong" in done.err
    wanted = {path: data for path, data in origin.mirrored().items()
              if "-wrong" not in path and path not in (CATALOGUE, "api/v1/hub.json")}  # fmt: skip
    assert tree(client) == wanted


def test_files_of_another_time(client: Client, origin: Origin) -> None:
    """A cache has an older one, or a newer one than the list."""
    write_each(origin, CHANGES)
    with Fake(origin) as fake:
        check_only_whole(client, origin, fake, len(CHANGES))
        origin.changed.clear()
        assert mirror(client, fake).status == 0 and tree(client) == origin.mirrored()


def test_a_prompt_that_goes_meanwhile(client: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        origin.changed[f"{REPOS}/bob/sql/versions/1.0.0.txt"] = error(410, "It was withdrawn.")
        done = mirror(client, fake)
        assert done.status == 6 and "such as bob/sql" in done.err


def test_lists_that_do_not_fit_remove_nothing(client: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        mirror(client, fake)
        before = tree(client)
        for change in (lambda data: data[: data.index(b"\n") + 1], lambda _: b""):
            origin.edit(CATALOGUE, change)
            done = mirror(client, fake)
            assert done.status == 6 and "do not fit together: nothing was removed" in done.err
            assert tree(client) == before


EVIL_LINES: list[dict[str, Any]] = [
    {"owner": ".."}, {"name": ".."}, {"name": "../../../x"}, {"owner": "a/b"}, {"owner": "A"},
    {"owner": "-a"}, {"name": "a--b"}, {"name": ""}, {"owner": None}, {"name": "a" * 65},
    {"latest_version": "../1"}, {"latest_version": "1.0"}, {"latest_version": "01.0.0"},
    {"sha256": "0"}, {"sha256": "../" * 21 + "a"}, {"digest": "x"}, {"digest": "../" * 10 + "aa"},
    {"name": "x\n"}, {"name": 'a"b'}, {"name": "$(touch x)"}, {"name": "a b"},
]  # fmt: skip


def test_lists_with_names_that_no_hub_has(client: Client, origin: Origin) -> None:
    first, *_ = origin.files[CATALOGUE].splitlines()
    another = json.loads(first) | {"name": "another"}
    with Fake(origin) as fake:
        for fields in EVIL_LINES:
            line = json.dumps(another | fields).encode() + b"\n"
            origin.edit(CATALOGUE, lambda data, line=line: data + line)
            done = mirror(client, fake)
            assert done.status == 6 and "has what no hub has" in done.err, fields
            assert "Nothing was changed" in done.err
            assert asked(fake) == {"api/v1/hub.json", CATALOGUE}
            assert tree(client) == {}, fields
            assert [path.name for path in client.work.iterdir()] == ["m"]


def test_a_prompt_that_is_listed_twice(client: Client, origin: Origin) -> None:
    origin.edit(CATALOGUE, lambda data: data + data.splitlines()[0] + b"\n")
    with Fake(origin) as fake:
        assert "has what no hub has: ann/review" in mirror(client, fake).err


NO_NAMES = ("../../../../x", "..", "1.0", "1.0.0/../../x", "", "a b", "$(x)")


def test_other_lists_with_names_that_no_hub_has(client: Client, origin: Origin) -> None:
    def naming(old: bytes, name: str) -> Change:
        new = old.rpartition(b":")[0] + b":" + json.dumps(name).encode()
        return lambda data: data.replace(old, new)

    lists = {"versions.json": b'"version":"1.0.0"', "labels.json": b'"label":"production"'}
    changes = [(path, naming(old, name)) for path, old in lists.items() for name in NO_NAMES]
    write_each(origin, changes)
    for path, reply in origin.changed.items():
        assert reply != answer(origin.files[path])
    with Fake(origin) as fake:
        check_only_whole(client, origin, fake, len(changes))
        assert not [path for path in asked(fake) if ".." in path or "/x" in path]
    assert [path.name for path in client.work.iterdir()] == ["m"]


def small_limits(client: Client, released: str) -> Client:
    """The same with files of at most 4,096 bytes."""
    script = client.folder / "hub"
    text = Path(released).read_text()
    script.write_text(text.replace("\nfile_bytes_max=16777216\n", "\nfile_bytes_max=4096\n"))
    return Client(client.folder, client.shell, client.tools, client.env, str(script))


def check_too_large(client: Client, origin: Origin, released: str, length: bool) -> None:
    large = answer(b"x" * 1_000_000, length=length)
    origin.changed[f"{REPOS}/bob/sql/versions.json"] = large
    with Fake(origin) as fake:
        done = mirror(small_limits(client, released), fake)
        assert done.status in (1, 6) and "xxx" not in done.err
        assert not [path for path in tree(client) if "bob" in path]


def test_files_that_are_too_large(client: Client, origin: Origin, released: str) -> None:
    check_too_large(client, origin, released, length=True)


def test_files_that_do_not_say_how_large_they_are(
    each: Client, origin: Origin, released: str
) -> None:
    """And never end by themselves."""
    check_too_large(each, origin, released, length=False)


def test_a_limit_of_reads_is_waited_for(either: Client, origin: Origin) -> None:
    count = 0

    def limited(request: Request) -> Answer:
        nonlocal count
        count += 1
        return error(429, "Slowly.", Retry_After="7") if count % 9 == 0 else origin(request)

    with Fake(limited) as fake:
        done = mirror(either, fake)
        assert done.status == 0 and tree(either) == origin.mirrored()


STATUSES = {401: 4, 403: 4, 429: 7, 500: 6, 503: 6, 302: 6, 418: 1}


def test_errors_in_the_middle(client: Client, origin: Origin) -> None:
    """One after the other: none leaves anything that the next run minds."""
    with Fake(origin) as fake:
        for status, ends in STATUSES.items():
            origin.changed[f"{REPOS}/bob/sql.json"] = error(status, "This is why.")
            done = mirror(client, fake)
            assert done.status == ends, done.err
            assert CATALOGUE not in tree(client)
        origin.changed.clear()
        assert mirror(client, fake).status == 0 and tree(client) == origin.mirrored()


def test_what_is_no_hub(client: Client) -> None:
    with Fake(lambda _: answer("<!doctype html>")) as fake:
        done = mirror(client, fake)
        assert (done.status, done.err) == (
            6, f"the answer of {fake.url} is not from a hub. Check URL\n"
        )  # fmt: skip
        fake.answers = lambda _: error(404, "Nothing here.")
        assert mirror(client, fake) == (3, b"", "Nothing here.\n")
    with closed_port() as url:
        done = client.run("mirror", url, "m")
        assert done.status == 6 and f"cannot reach {url}" in done.err


def test_an_older_hub(either: Client, origin: Origin) -> None:
    """Its list says no digest."""

    def older(request: Request) -> Answer:
        if request.path[1:] != CATALOGUE:
            return origin(request)
        lines = [json.loads(line) for line in origin.files[CATALOGUE].splitlines()]
        for line in lines:
            del line["digest"]
        return answer("".join(json.dumps(line) + "\n" for line in lines))

    with Fake(older) as fake:
        done = mirror(either, fake)
        assert done.status == 0 and "too old to say what has changed" in done.err
        found = tree(either)
        assert found | {CATALOGUE: b""} == origin.mirrored() | {CATALOGUE: b""}
        write_version(origin.content, "bob", "sql", "1.1.0", "Write {{dialect}}.\n")
        origin.build()
        assert "1 fetched" in mirror(either, fake).err
        fake.answers = origin
        assert "3 fetched" in mirror(either, fake).err and tree(either) == origin.mirrored()


def test_without_a_tool_for_sums(client: Client, origin: Origin, tmp_path: Path) -> None:
    tools = (
        "awk cat cmp cp curl cut grep mkdir mv od printf rm rmdir sed sort tail tr wc xargs sleep"
    ).split()
    bare = client.having_only(link_tools(tmp_path / "bare", *tools))
    with Fake(origin) as fake:
        done = mirror(bare, fake)
        assert done.status == 0 and "no SHA-256 is checked" in done.err
        assert tree(bare) == origin.mirrored()
        assert mirror(bare, fake, "--check").status == 1
    for tool in ("shasum", "openssl"):
        other = bare.having(link_tools(tmp_path / tool, tool))
        with Fake(origin) as fake:
            assert "no SHA-256" not in mirror(other, fake).err


def test_check(either: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        mirror(either, fake)
        review = either.work / "m" / REPOS / "ann/review"
        (review / "versions/1.0.0.txt").write_bytes(b"Other.\n")
        (either.work / "m" / REPOS / "bob/sql.json").unlink()
        before = tree(either)
        done = mirror(either, fake, "--check")
        assert (done.status, done.out) == (1, b"")
        assert done.err == (
            "ann/review is missing or differs\nbob/sql is missing or differs\n"
            f"m is not as {fake.url}. Run `hub mirror {fake.url} m`\n"
        )
        assert tree(either) == before and asked(fake) == {"api/v1/hub.json", CATALOGUE}
        assert "2 fetched" in mirror(either, fake).err
        assert tree(either) == origin.mirrored()
        write_withdrawn(origin.content, "bob/sql")
        origin.build()
        assert "bob/sql is gone from" in mirror(either, fake, "--check").err


def test_a_private_hub(either: Client, origin: Origin) -> None:
    def private(request: Request) -> Answer:
        is_member = request.headers.get("authorization") == f"Bearer {TOKEN}"
        return origin(request) if is_member else error(401, "For members.")

    with Fake(private) as fake:
        done = mirror(either, fake)
        assert done.status == 4 and f"{fake.url} is for members" in done.err
        done = mirror(either.to(fake.url, HUB_TOKEN=TOKEN), fake)
        assert done.status == 0 and tree(either) == origin.mirrored()
        told = ["authorization" in request.headers for request in fake.requests]
        assert told == [False] + [True] * (len(told) - 1)


def test_redirects_take_no_token_along(client: Client, origin: Origin) -> None:
    with Fake(origin) as other:

        def moved(request: Request) -> Answer:
            if "authorization" not in request.headers:
                return error(401)
            is_text = request.path.endswith(".txt")
            there = answer("", 302, Location=other.url + request.path)
            return there if is_text else origin(request)

        with Fake(moved) as fake:
            done = mirror(client.to(fake.url, HUB_TOKEN=TOKEN), fake)
    assert done.status == 6 and not other.requests


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "pass the URL of a hub and the folder"),
        (["http://127.0.0.1:9"], "pass the URL of a hub and the folder"),
        (["http://127.0.0.1:9", "m", "n"], "too many arguments: 'n'"),
        (["http://127.0.0.1:9", ""], "an argument is empty"),
        (["--deep", "http://127.0.0.1:9", "m"], "unknown option --deep"),
        *((["--", url, "m"][1:], "URL is not the address of a hub")
          for url in NO_ADDRESSES if not url.startswith("-")),
    ],
)  # fmt: skip
def test_wrong_uses(words: list[str], told: str, client: Client) -> None:
    done = client.run("mirror", *words)
    assert (done.status, done.out) == (2, b"") and told in done.err
    assert not [*client.work.iterdir()]


def test_folders_that_are_none_of_ours(either: Client, origin: Origin) -> None:
    with Fake(origin) as fake, Fake(origin) as other:
        (either.work / "m").mkdir()
        (either.work / "m/mine").write_text("Mine.")
        done = mirror(either, fake)
        assert done.status == 1 and "m is not empty, and no mirror" in done.err
        assert mirror(either, fake, "--check").status == 1
        (either.work / "m/mine").unlink()
        assert mirror(either, fake).status == 0
        done = mirror(either, other)
        assert done.status == 1 and f"m mirrors {fake.url}. Name another folder" in done.err
        (either.work / "f").write_text("A file.")
        assert either.run("mirror", fake.url, "f").status == 1


def test_two_runs_at_once(either: Client, origin: Origin) -> None:
    with Fake(origin) as fake:
        mirror(either, fake)
        work = either.work / "m/.hub-mirror/run"
        work.mkdir()
        (work / "pid").write_text(f"{os.getpid()}\n")
        done = mirror(either, fake)
        assert done.status == 1 and f"process {os.getpid()} writes to m" in done.err
        for left in ("", "2147483646\n", "nonsense\n"):
            work.mkdir(exist_ok=True)
            (work / "pid").write_text(left)
            assert mirror(either, fake).status == 0 and not work.exists()


def test_a_disk_that_takes_no_more(client: Client, origin: Origin, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "curl").write_text(
        '#!/bin/sh\ncase " $* " in *" --parallel "*) ;; *) exec "$CURL" "$@" ;; esac\n'
        'cat >/dev/null; echo "curl: (23) No space left on device" >&2; exit 23\n'
    )
    (folder / "curl").chmod(0o755)
    with Fake(origin) as fake:
        curl = os.path.realpath(f"{client.tools[0]}/curl")
        done = mirror(client.having(folder).to(fake.url, CURL=curl), fake)
        assert done.status == 1 and "cannot write to m: (23) No space left" in done.err
        assert mirror(client, fake).status == 0 and tree(client) == origin.mirrored()


def test_many_prompts_go_in_batches(client: Client, origin: Origin) -> None:
    for number in range(300):
        write_version(origin.content, f"o{number % 7}", f"p{number}", "1.0.0", f"{number}.\n")
    origin.build()
    with Fake(origin) as fake:
        done = mirror(client, fake)
        assert done.err.startswith("250 of 303 prompts\n") and "303 fetched" in done.err
    assert tree(client) == origin.mirrored()
