"""Copies of what was fetched: they save requests and bad days, and are never believed blindly."""

import hashlib
import re
import stat
import subprocess
from pathlib import Path

import pytest

from tests.client.fake import (
    TEXT,
    Answers,
    Fake,
    Request,
    answer,
    closed_port,
    error,
    hub,
    in_turn,
    record,
    tag,
)
from tests.client.shells import Client, link_tools

HTML = answer("<!doctype html><title>Log in to the network</title>", Content_Type="text/html")
OTHER = b"Something else.\n"


def statuses(fake: Fake) -> list[str]:
    """The statuses of the requests so far, which it then forgets."""
    asked = [
        f"{'If-None-Match ' if 'if-none-match' in request.headers else ''}{request.path}"
        for request in fake.requests
    ]
    fake.requests.clear()
    return [path.replace("/api/v1/repos/ann/", "") for path in asked]


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_second_pull_costs_a_304(client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        assert to.run("cat", "ann/story").out == TEXT
        assert statuses(fake) == ["story.json", "story/versions/1.0.0.txt"]
        for _ in range(2):
            assert to.run("cat", "ann/story") == (0, TEXT, "")
            assert statuses(fake) == ["If-None-Match story.json"]
        fake.answers = hub(OTHER, "1.0.1")
        assert to.run("cat", "ann/story") == (0, OTHER, "")
        assert statuses(fake) == ["If-None-Match story.json", "story/versions/1.0.1.txt"]


def test_the_last_copy_when_the_server_is_away(either: Client) -> None:
    fake = Fake(hub())
    to = either.to(fake.url)
    to.run("cat", "ann/story")
    fake.close()
    done = to.run("cat", "ann/story")
    assert (done.status, done.out) == (0, TEXT)
    assert f"cannot reach {fake.url}" in done.err and "using the last fetched copy" in done.err
    assert to.run("cat", "ann/story", "--offline") == (0, TEXT, "")
    done = to.run("cat", "ann/other")
    assert done.status == 6 and "cannot reach" in done.err
    done = to.run("cat", "ann/other", "--offline")
    assert done.status == 6 and "no copy of ann/other" in done.err
    done = to.run("cat", "ann/story", "--version", "9.0.0", "--offline")
    assert done.status == 6 and "no copy of ann/story 9.0.0" in done.err


def test_offline_asks_nobody(client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("pull", "ann/story")
        statuses(fake)
        (to.work / "PROMPT.md").write_bytes(b"Mine.")
        assert to.run("pull", "ann/story", "--offline").status == 1
        assert (to.work / "PROMPT.md").read_bytes() == b"Mine."
        assert to.run("pull", "ann/story", "--offline", "--force").status == 0
        assert (to.work / "PROMPT.md").read_bytes() == TEXT
        assert not fake.requests


def test_an_older_version_is_known_offline(client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("pull", "ann/story")
        fake.answers = hub(OTHER, "1.0.1")
        to.run("cat", "ann/story")
        assert to.run("pull", "ann/story", "--offline").status == 0
        assert (to.work / "PROMPT.md").read_bytes() == OTHER


@pytest.mark.parametrize("trouble", [error(500), error(503), error(502), HTML], ids=repr)
def test_trouble_does_not_cost_the_copy(trouble: bytes, client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        fake.answers = in_turn(trouble)
        done = to.run("cat", "ann/story")
        assert (done.status, done.out) == ((6, b"") if trouble is HTML else (0, TEXT))
        assert done.err
        # A page that answered for the hub has left nothing behind.
        assert to.run("cat", "ann/story", "--offline").out == TEXT
        fake.answers = hub()
        assert to.run("cat", "ann/story") == (0, TEXT, "")


def test_a_new_record_without_its_text_does_not_cost_the_copy(client: Client) -> None:
    def half(request: Request) -> bytes:
        return error(503) if request.path.endswith(".txt") else hub(OTHER, "1.0.1")(request)

    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        fake.answers = half
        assert to.run("cat", "ann/story").status == 6
        assert to.run("cat", "ann/story", "--offline").out == TEXT


# States of a file in the cache after a crash or an edit: empty, cut, other bytes.
DAMAGES = {
    "gone": None, "empty": b"", "torn": lambda data: data[:-1],
    "another": lambda data: data.replace(b"1", b"2").replace(b"Twice", b"Never"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [
    "story.json", "story.json.etag", "1.0.0.txt", "1.0.0.txt.etag",
])  # fmt: skip
def test_a_damaged_copy_is_fetched_again(name: str, damage: str, client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        (path,) = to.cache.rglob(name)
        whole = path.read_bytes()
        statuses(fake)

        def spoil() -> None:
            change = DAMAGES[damage]
            path.unlink() if change is None else path.write_bytes(change and change(whole))
            assert not path.exists() or path.read_bytes() != whole

        spoil()
        done = to.run("cat", "ann/story", "--offline")
        assert (done.status, done.out) == (6, b"") and "no copy of" in done.err
        assert to.run("cat", "ann/story") == (0, TEXT, "")
        record, text = "story.json", "story/versions/1.0.0.txt"
        assert statuses(fake) == (
            [record] if "story" in name else [f"If-None-Match {record}", text]
        )  # fmt: skip
        assert to.run("cat", "ann/story", "--offline") == (0, TEXT, "")
        spoil()
    if damage == "another":  # without the hub it is no copy either
        done = to.run("cat", "ann/story")
        assert (done.status, done.out) == (6, b"")


def test_a_text_that_was_replaced_with_its_sum(client: Client) -> None:
    """The record tells what the text is to be, not what is noted beside the copy."""
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        (path,) = to.cache.rglob("1.0.0.txt")
        note = Path(f"{path}.etag")
        path.write_bytes(OTHER)
        note.write_text(note.read_text().replace(sha256(TEXT), sha256(OTHER)))
        statuses(fake)
        assert to.run("cat", "ann/story") == (0, TEXT, "")
        # Unconditionally: the hub would confirm the copy with 304.
        assert statuses(fake) == ["If-None-Match story.json", "story/versions/1.0.0.txt"]
        assert path.read_bytes() == TEXT


def test_changes_are_not_taken_for_a_damaged_copy(client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        fake.answers = hub(OTHER, "1.0.1")
        to.run("cat", "ann/story")
    (path,) = to.cache.rglob("1.0.0.txt")
    path.write_bytes(b"Mine.")
    (to.work / "PROMPT.md").write_bytes(b"Mine.")
    done = to.run("pull", "ann/story", "--offline")
    assert done.status == 1 and "has your own changes" in done.err
    assert (to.work / "PROMPT.md").read_bytes() == b"Mine."


def test_a_tag_is_of_one_copy(client: Client) -> None:
    """If two clients end at the same moment, one may store its copy, and the other its tag."""
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        (old,) = (path for path in files(to.cache) if path.name == "story.json")
        old_copy = old.read_bytes()
        fake.answers = hub(OTHER, "1.0.1")
        to.run("cat", "ann/story")
        old.write_bytes(old_copy)
        assert to.run("cat", "ann/story").out == OTHER


def test_clients_at_once(client: Client) -> None:
    texts = [TEXT, OTHER]
    answers = [hub(TEXT, "1.0.0"), hub(OTHER, "1.0.1")]

    def flicker(request: Request) -> bytes:
        """A hub with half of its edges out of date."""
        if request.path.endswith(".txt"):
            return answers["1.0.1" in request.path](request)
        return answers[len(fake.requests) % 2](request)

    with Fake(flicker) as fake:
        to = client.to(fake.url)
        for _ in range(5):
            started = [to.start("cat", "ann/story") for _ in range(6)]
            for process in started:
                out, err = process.communicate()
                assert process.returncode == 0 and out in texts, err
        fake.answers = answers[0]
        assert to.run("cat", "ann/story") == (0, TEXT, "")
        fake.answers = answers[1]
        assert to.run("cat", "ann/story") == (0, OTHER, "")
    assert not [path for path in files(to.cache) if path.suffix not in (".json", ".txt", ".etag")]


def test_each_hub_has_its_own_copies(client: Client) -> None:
    with Fake(hub()) as one, Fake(hub(OTHER)) as two:
        assert client.to(one.url).run("cat", "ann/story").out == TEXT
        assert client.to(two.url).run("cat", "ann/story").out == OTHER
        assert client.to(one.url).run("cat", "ann/story", "--offline").out == TEXT


def through_proxy(answers: Answers) -> Answers:
    """The answer of a proxy in place of a hub."""
    return lambda asked: answers(asked._replace(path=asked.path[asked.path.index("/api/v1/") :]))


# The same CRC-32 by cksum, and the same length.
REAL = "http://prompts.company.example"
HOSTILE = "http://evil.example/aabevjan0y"


def test_a_hostile_hub_plants_nothing(client: Client) -> None:
    """It sends its own record under the tag of the real one, which the real hub confirms."""
    real_tag = tag(record().encode())

    def hostile(request: Request) -> bytes:
        if request.path.endswith(".txt"):
            return answer(OTHER)
        return answer(record(OTHER, "9.0.0"), ETag=real_tag)

    with Fake(through_proxy(hostile)) as fake:
        proxied = {"http_proxy": fake.url}
        assert client.to(HOSTILE, **proxied).run("cat", "ann/story").out == OTHER
        fake.answers = through_proxy(hub())
        assert client.to(REAL, **proxied).run("cat", "ann/story", "--offline").status == 6
        assert client.to(REAL, **proxied).run("cat", "ann/story") == (0, TEXT, "")


URLS = [
    f"http://hub.example{path}" for path in (
        "", "/x", "/X", "/x//", "//x", "/x_", "/x~", "/x:", "/x.", "/x-", "/-x", "/x[]", "/1",
        "/_1", "/x/1", "/x_1", "/a/b", "/a_b", "/ab", "/aB", "/A/b", "/api", "/.hub", "/..",
    )
] + ["http://HUB.example", "http://hub.example:80"]  # fmt: skip


@pytest.mark.parametrize("sed", ["sed", "busybox"])
def test_the_folder_of_each_address(sed: str, client: Client, tmp_path: Path) -> None:
    """Its own one, also where file names ignore case, and below the folder of all."""
    having = client.having(link_tools(tmp_path / "sed", sed=sed))
    names: list[str] = []
    urls = URLS if sed == "sed" else URLS[::4]
    with Fake(through_proxy(hub())) as fake:
        for url in urls:
            assert having.to(url, http_proxy=fake.url).run("cat", "ann/story").out == TEXT
            (made,) = {path.name for path in client.cache.iterdir()} - {*names}
            names.append(made)
    assert len({name.lower() for name in names}) == len(urls)
    assert all(re.fullmatch(r"http[0-9a-z=.-]+", name) for name in names), names
    assert {path.name for path in client.cache.parent.iterdir()} == {"hub"}


def test_an_address_too_long_for_a_folder(client: Client) -> None:
    url = f"http://hub.example/{'x' * 300}"
    with Fake(through_proxy(hub())) as fake:
        to = client.to(url, http_proxy=fake.url)
        for _ in range(2):
            assert to.run("cat", "ann/story") == (0, TEXT, "")
        assert len(fake.requests) == 4
    assert not files(to.cache)


def test_copies_of_earlier_releases_are_not_read(client: Client) -> None:
    with Fake(hub()) as fake:
        to = client.to(fake.url)
        to.run("cat", "ann/story")
        (folder,) = to.cache.iterdir()
        crc, length, *_ = subprocess.check_output(["cksum"], input=fake.url.encode()).split()
        folder.rename(to.cache / f"{crc.decode()}-{length.decode()}")
        assert to.run("cat", "ann/story", "--offline").status == 6


def test_only_the_owner_reads_copies(each: Client, tmp_path: Path) -> None:
    with Fake(hub()) as fake:
        each.to(fake.url, XDG_CACHE_HOME=str(tmp_path / "xdg")).run("cat", "ann/story")
        folder = tmp_path / "xdg"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert files(folder / "hub") and not each.cache.exists()
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in folder.rglob("*")} == {0}


@pytest.mark.parametrize("variables", [{"XDG_CACHE_HOME": "relative"}, {"XDG_CACHE_HOME": ""}])
def test_what_is_no_cache_folder(variables: dict[str, str], client: Client) -> None:
    with Fake(hub()) as fake:
        assert client.to(fake.url, **variables).run("cat", "ann/story").out == TEXT
        assert client.cache.exists() and not list(client.work.iterdir())


@pytest.mark.parametrize("where", ["/dev/null", "/proc/nobody", "/dev/full"])
def test_a_cache_that_cannot_be_written(where: str, each: Client) -> None:
    with Fake(hub()) as fake:
        to = each.to(fake.url, XDG_CACHE_HOME=where)
        assert to.run("cat", "ann/story") == (0, TEXT, "")


def test_no_home(each: Client) -> None:
    with Fake(hub()) as fake:
        to = each.to(fake.url).without("HOME")
        assert to.run("cat", "ann/story") == (0, TEXT, "")
        assert to.run("cat", "ann/story", "--offline").status == 6


def test_a_search_without_a_server_looks_through_the_copy(client: Client) -> None:
    line = (
        '{"owner":"ann","name":"story","title":"A","description":"Tales","tags":[],'
        '"latest_version":"1.0.0","sha256":"0"}\n'
    )

    def plain(request: Request) -> bytes:
        is_hub = request.path.endswith("hub.json")
        return answer('{"data":{"queries":false}}' if is_hub else line)

    with Fake(plain) as fake:
        to = client.to(fake.url)
        assert to.run("search", "tales").out == b"ann/story\t1.0.0\tA\t\tTales\n"
    done = to.run("search", "tales")
    assert (
        done.out == b"ann/story\t1.0.0\tA\t\tTales\n" and "using the last fetched copy" in done.err
    )


def test_an_empty_catalogue(client: Client) -> None:
    def empty(request: Request) -> bytes:
        return answer('{"data":{"queries":false}}' if request.path.endswith("hub.json") else "")

    with Fake(empty) as fake:
        done = client.to(fake.url).run("search", "tales")
    assert (done.status, done.out) == (0, b"") and "no prompts found" in done.err


def test_a_server_that_comes_back_is_asked_again(client: Client) -> None:
    with closed_port() as url:
        assert client.to(url).run("cat", "ann/story").status == 6
    assert client.sleeps == ["1", "2", "4"]
