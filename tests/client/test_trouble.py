"""Answers that are errors, wrong, cut off or late: what the client says, and what it tries."""

import hashlib
import json
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from tests.client.fake import (
    TEXT,
    Answer,
    Fake,
    Request,
    Reset,
    answer,
    closed_port,
    error,
    hub,
    in_turn,
    record,
)
from tests.client.shells import TOKEN, Client, Done

OLD = b"What was there before.\n"
CREATED = answer('{"data":{"owner":"ada","name":"x","version":"1.0.0","warnings":[]}}', 201)
STATUSES = {
    400: 5, 401: 4, 403: 4, 404: 3, 405: 1, 409: 5, 410: 3, 412: 5, 413: 5, 415: 5, 418: 1, 422: 5,
    429: 7, 500: 6, 501: 6, 502: 6, 503: 6, 504: 6,
}  # fmt: skip
HTML = answer("<!doctype html><title>Welcome</title>", Content_Type="text/html")


def with_old(client: Client) -> Path:
    target = client.work / "PROMPT.md"
    target.write_bytes(OLD)
    return target


def push(client: Client, fake: Fake) -> Done:
    return client.to(fake.url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")


@pytest.mark.parametrize("status", STATUSES)
def test_statuses(status: int, client: Client) -> None:
    target = with_old(client)
    with Fake(lambda _: error(status, "This is why.")) as fake:
        # A read at 401 is of a private hub: see test_safety.
        commands = [["pull", "ann/story", "--force"]] if status != 401 else []
        if status in (404, 410, 429, 503):  # they read as the others do
            commands += [["versions", "ann/story"], ["search", "story"]]
        publisher = client.to(fake.url, HUB_TOKEN=TOKEN)
        label = ("label", "ann/x", "a")
        for done in (
            push(client, fake),
            publisher.run(*label, "1.0.0"),
            publisher.run(*label, "--remove"),
            *(client.to(fake.url).run(*each) for each in commands),
        ):
            assert (done.status, done.out) == (STATUSES[status], b""), done.err
            assert done.err.removeprefix("standard input: error: ") == "This is why.\n"
    assert target.read_bytes() == OLD


def test_a_status_without_a_message(either: Client) -> None:
    with Fake(lambda _: answer("<h1>Bad gateway</h1>", 502)) as fake:
        assert either.to(fake.url).run("cat", "ann/story").err == f"{fake.url} answers 502\n"
        assert (
            push(either, fake).err
            == f"{fake.url} does not accept publications: it answers 502. Check HUB_URL\n"
        )
        fake.answers = lambda _: answer("", 404)
        done = either.to(fake.url).run("cat", "ann/story")
        assert done == (3, b"", f"no ann/story at {fake.url}: it answers 404\n")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_is_tried_again(status: int, client: Client) -> None:
    with Fake(in_turn(error(status), error(status), CREATED)) as fake:
        assert push(client, fake).out == b"ada/x 1.0.0\n"
        assert len(fake.requests) == 3
        fake.requests.clear()
        fake.answers = in_turn(error(status))
        assert push(client, fake).status == STATUSES[status]
        assert len(fake.requests) == 4
    assert client.sleeps == ["1", "2", "1", "2", "4"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 501])
def test_what_is_not_tried_again(status: int, client: Client) -> None:
    with Fake(lambda _: error(status)) as fake:
        push(client, fake)
        assert len(fake.requests) == 1
    assert client.sleeps == []


def test_all_tries_have_one_key(client: Client) -> None:
    with Fake(in_turn(Reset(), Reset(CREATED[:40]), error(503), CREATED)) as fake:
        assert push(client, fake).out == b"ada/x 1.0.0\n"
        assert len({request.headers["idempotency-key"] for request in fake.requests}) == 1
        assert len({request.body for request in fake.requests}) == 1
        assert len(fake.requests) == 4
        first = fake.requests[0].headers["idempotency-key"]
        push(client, fake)
        second = fake.requests[-1].headers["idempotency-key"]
    assert first != second and len(first) == len("hub-") + 32


@pytest.mark.parametrize(
    ("asked", "waited"),
    [("1", ["1"]), ("7", ["7"]), ("0", ["0"]), ("120", ["120"]), ("121", []), ("99999999", []),
     ("Wed, 21 Oct 2015 07:28:00 GMT", ["1"]), ("-1", ["1"]), ("$(id)", ["1"]), ("", ["1"])],
)  # fmt: skip
def test_retry_after(asked: str, waited: list[str], client: Client) -> None:
    with Fake(in_turn(error(429, retry_after=asked), CREATED)) as fake:
        done = push(client, fake)
    assert client.sleeps == waited
    assert done.status == (0 if waited else 7)
    assert ("before trying again" in done.err) == (asked in ("7", "120"))


def test_real_waiting(client: Client, tmp_path: Path) -> None:
    """With the machine's own sleep."""
    folder = tmp_path / "sleep"
    folder.mkdir()
    (folder / "sleep").symlink_to(shutil.which("sleep"))
    with Fake(in_turn(error(429, Retry_After="1"), CREATED)) as fake:
        assert push(client.having(folder), fake).out == b"ada/x 1.0.0\n"


def test_refused_at_first(client: Client, tmp_path: Path) -> None:
    """The server starts while the client waits."""
    with closed_port() as url:
        port = int(url.rpartition(":")[2])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    folder = tmp_path / "sleep"
    folder.mkdir()
    (folder / "sleep").write_text(f'#!/bin/sh\ncat "{tmp_path}/up" >/dev/null\n')
    (folder / "sleep").chmod(0o755)
    os.mkfifo(tmp_path / "up")

    def serve() -> None:
        with (tmp_path / "up").open("w"):  # opens when the client waits
            listener.listen()
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(CREATED)

    thread = threading.Thread(target=serve)
    thread.start()
    done = client.having(folder).to(f"http://127.0.0.1:{port}", HUB_TOKEN=TOKEN).run(
        "push", "ada/x", "-", stdin=b"Hi."
    )  # fmt: skip
    thread.join()
    listener.close()
    assert done.out == b"ada/x 1.0.0\n", done.err


def test_a_server_that_hangs(client: Client) -> None:
    """It is reset in the end; until then the client waits."""
    hanging = threading.Event()

    def hang(request: Request) -> Answer:
        hanging.wait(0.05)
        return Reset(answer(TEXT)[:30])

    target = with_old(client)
    with Fake(hang) as fake:
        done = client.to(fake.url).run("pull", "ann/story", "--force")
    assert done.status == 6 and "cannot reach" in done.err
    assert target.read_bytes() == OLD


def cuts(sent: bytes, step: int) -> list[int]:
    return [*range(0, len(sent), step), len(sent) - 1]


@pytest.mark.parametrize("way", ["closed", "reset", "no length"])
@pytest.mark.parametrize("suffix", [".json", ".txt"])
def test_answers_cut_off(suffix: str, way: str, client: Client) -> None:
    whole = hub()
    target = with_old(client)
    path = f"story{'' if suffix == '.json' else '/versions/1.0.0'}{suffix}"
    body = record().encode() if suffix == ".json" else TEXT
    sent = answer(body, length=way != "no length")
    # The client needs nothing after the last member of a record.
    last = len(sent) - len("}\n") if (suffix, way) == (".json", "no length") else len(sent)
    with Fake(whole) as fake:
        to = client.to(fake.url)
        for at in cuts(sent[:last], 67):

            def cut(request: Request, at: int = at) -> Answer:
                if not request.path.endswith(path):
                    return whole(request)
                return Reset(sent[:at]) if way == "reset" else sent[:at]

            fake.answers = cut
            done = to.run("pull", "ann/story", "--force")
            assert (done.status, done.out) == (6, b""), (at, done.err)
            assert target.read_bytes() == OLD
            assert [file.name for file in client.work.iterdir()] == ["PROMPT.md"]
        fake.answers = whole
        assert to.run("pull", "ann/story", "--force").status == 0
    assert target.read_bytes() == TEXT


def test_a_publication_whose_answer_is_cut_off(client: Client) -> None:
    with Fake(in_turn(CREATED[:-9], CREATED[:20], CREATED)) as fake:
        assert push(client, fake).out == b"ada/x 1.0.0\n"
        fake.answers = in_turn(Reset(CREATED[:-9]), CREATED)
        assert push(client, fake).out == b"ada/x 1.0.0\n"


def test_a_text_that_is_another(client: Client) -> None:
    target = with_old(client)
    wrong = hashlib.sha256(b"another").hexdigest()
    with Fake(hub(sha256=wrong)) as fake:
        for command in (["pull", "ann/story", "--force"], ["cat", "ann/story"]):
            done = client.to(fake.url).run(*command)
            assert (done.status, done.out) == (6, b"")
            assert (
                f"the text from {fake.url} is not ann/story 1.0.0: its SHA-256 differs." in done.err
            )
    assert target.read_bytes() == OLD
    assert not list(client.cache.rglob("*.txt"))


@pytest.mark.parametrize("page", [
    HTML, answer(""), answer("{}"), answer('{"data":{}}'), answer('["data"]'), answer("\0\0"),
    answer(status=304), answer(status=204),
    answer(record(version="../../../x")), answer(record(sha256="/*\\1")),
], ids=repr)  # fmt: skip
def test_what_is_no_hub_s_answer(page: bytes, client: Client) -> None:
    target = with_old(client)
    with Fake(lambda _: page) as fake:
        done = client.to(fake.url).run("pull", "ann/story", "--force")
        assert done.status in (1, 6) and done.err
        assert client.to(fake.url).run("versions", "ann/story").status in (1, 6)
        assert client.to(fake.url).run("search", "story").status in (1, 6)
    assert target.read_bytes() == OLD
    assert not [path for path in client.cache.rglob("*.txt*")]


@pytest.mark.parametrize("page", [HTML, answer("", 201), answer("{}", 201)], ids=repr)
def test_what_is_no_publication(page: bytes, client: Client) -> None:
    with Fake(lambda _: page) as fake:
        done = push(client, fake)
    assert done == (6, b"", f"the answer of {fake.url} is not from a hub. Check HUB_URL\n")


def test_a_list_that_ignores_the_question(client: Client) -> None:
    """A hub that was copied to a host of files says that it searches, and cannot."""
    line = {"owner": "ann", "name": "story", "title": "", "description": "Tales", "tags": []}
    line |= {"latest_version": "1.0.0", "sha256": "0"}
    meta = {"page": 1, "pages": 1, "total": 1, "sort": None, "tag": None, "q": None}

    def copied(request: Request) -> bytes:
        if request.path.endswith("hub.json"):
            return answer('{"data":{"queries":true}}')
        if request.path.endswith("catalogue.jsonl"):
            return answer(json.dumps(line) + "\n")
        return answer(json.dumps({"data": [line, line], "meta": meta}))

    with Fake(copied) as fake:
        done = client.to(fake.url).run("search", "tales")
        assert done.out == b"ann/story\t1.0.0\t\t\tTales\n"
        assert "is plain files: searching names" in done.err
        meta["q"] = "tales"
        assert client.to(fake.url).run("search", "tales").text.count("\n") == 2


@pytest.mark.parametrize("has_list", [True, False])
def test_a_search_that_fails_is_made_in_the_list(client: Client, has_list: bool) -> None:
    line = {"owner": "ann", "name": "story", "title": "", "description": "Tales", "tags": []}
    line |= {"latest_version": "1.0.0", "sha256": "0"}

    def down(request: Request) -> bytes:
        if request.path.endswith("hub.json"):
            return answer('{"data":{"queries":true}}')
        if request.path.endswith("catalogue.jsonl") and has_list:
            return answer(json.dumps(line) + "\n")
        return answer("{}", 503, Retry_After="0")

    with Fake(down) as fake:
        done = client.to(fake.url).run("search", "tales")
        asked = [request for request in fake.requests if "q=" in request.path]
        assert len(asked) == 1, "it is not worth waiting for"
        if has_list:
            assert done.out == b"ann/story\t1.0.0\t\t\tTales\n"
            assert "answers 503: searching names" in done.err
        else:
            assert done.status == 6 and done.out == b""
            assert "plain files" not in done.err and "--offline" not in done.err


def test_reads_follow_the_hub_to_its_new_place(client: Client) -> None:
    with (
        Fake(hub()) as new,
        Fake(lambda request: answer("", 301, Location=new.url + request.path)) as old,
    ):
        assert client.to(old.url).run("cat", "ann/story") == (0, TEXT, "")
        old.answers = lambda request: answer("", 302, Location=old.url + request.path)
        assert client.to(old.url).run("cat", "ann/other").status == 6
        old.answers = lambda _: answer("", 302, Location="file:///etc/passwd")
        assert client.to(old.url).run("cat", "ann/other").status == 6
