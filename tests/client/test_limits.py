"""No answer makes the client read, write or work without end: each has limits, which it names."""

import itertools
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fake import TEXT, Fake, Request, Stream, answer, hub
from tests.client.shells import Client
from tests.client.site import compact
from tests.support.servers import DEADLINE_SECONDS

HEAD = b"HTTP/1.1 200 OK\r\n"
LINE = b"X-Header: " + b"a" * 8000 + b"\r\n"
# More than the buffers of both sockets plus the client's reads hold.
BUFFERED_BYTES_MAX = 32 * 1024 * 1024


def limited(client: Client, released: str, **values: int) -> Client:
    """The same client with other limits."""
    script = Path(released).read_text()
    for name, value in values.items():
        (line,) = [one for one in script.splitlines() if one.startswith(f"{name}=")]
        script = script.replace(f"\n{line}\n", f"\n{name}={value}\n")
    path = client.folder / "hub"
    path.write_text(script)
    return Client(client.folder, client.shell, client.tools, client.env, str(path))


@pytest.mark.parametrize("begin", [b"", b"Content-Encoding: identity\r\n", b"X-A: 1\r\n"])
def test_an_endless_body(begin: bytes, each: Client, released: str) -> None:
    small = limited(each, released, answer_bytes_max=100_000)
    endless = Stream(itertools.chain([HEAD + begin + b"\r\n{"], itertools.repeat(b" " * 65536)))
    with Fake(lambda _: endless) as fake:
        done = small.to(fake.url).run("cat", "ann/story")
        assert done.status == 6 and "the answer has more than 100000 bytes" in done.err
        assert len(fake.requests) == 1 and fake.sent_bytes < BUFFERED_BYTES_MAX
    assert not list(each.tmp.iterdir())


def test_each_kind_of_answer_has_a_limit_of_its_own(client: Client) -> None:
    """A text has as many bytes as a prompt may have, and not one more."""
    for size, status in ((262_144, 0), (262_145, 6)):
        text = b"x" * size
        with Fake(hub(text)) as fake:
            done = client.to(fake.url).run("cat", "ann/story")
        assert done.status == status and len(done.out) == (size if status == 0 else 0)
        assert (f"more than {size - 1} bytes" in done.err) == (status != 0)


@pytest.mark.parametrize("length", [True, False])
def test_lists_may_be_longer_than_texts(length: bool, client: Client, released: str) -> None:
    small = limited(client, released, list_bytes_max=300_000)
    for size, status in ((299_000, 0), (301_000, 6)):
        entry = {"version": "1.0.0", "published_at": "", "size": 1, "sha256": ""}
        meta = {"page": 1, "pages": 1, "total": 1}
        data = compact([entry | {"changelog": "x" * size}], meta=meta)
        with Fake(lambda _, data=data: answer(data, length=length)) as fake:
            done = small.to(fake.url).run("versions", "ann/story")
        assert done.status == status, done.err
        assert ("more than 300000 bytes" in done.err) == (status == 6)


def test_headers_without_end(either: Client, released: str) -> None:
    small = limited(either, released, answer_bytes_max=100_000)
    endless = Stream(
        itertools.chain([HEAD], itertools.repeat(b"X-Header: " + b"a" * 8000 + b"\r\n"))
    )
    with Fake(lambda _: endless) as fake:
        done = small.to(fake.url).run("cat", "ann/story")
        assert done.status == 6 and "has more than 100000 bytes" in done.err
        assert fake.sent_bytes < BUFFERED_BYTES_MAX


def test_a_redirect_that_leads_to_itself(either: Client) -> None:
    def again(request: Request) -> bytes:
        return answer(status=302, Location=request.path)

    with Fake(again) as fake:
        done = either.to(fake.url).run("cat", "ann/story")
        assert done.status == 6 and "redirect" in done.err and len(fake.requests) == 6


@pytest.mark.parametrize("limit", ["stall_seconds_max", "answer_seconds_max"])
def test_a_body_that_does_not_come(limit: str, either: Client, released: str) -> None:
    ended = threading.Event()

    def parts() -> Iterator[bytes]:
        yield HEAD + b"\r\n{"
        ended.wait(DEADLINE_SECONDS)

    with Fake(lambda _: Stream(parts())) as fake:
        done = limited(either, released, **{limit: 1}).to(fake.url).run("cat", "ann/story")
        assert done.status == 6 and len(fake.requests) == 1, "it is not asked for again"
        told = "Less than 100 bytes/sec" if limit.startswith("stall") else "timed out"
        assert told in done.err
        ended.set()


def test_errors_that_repeat_a_key(client: Client) -> None:
    """One read of the body ends soon; a read for each key would take longer than a run may."""
    keys = b'"message":"' * 400_000
    for body in (b'{"error":{"code":"x",' + keys, b"{" + keys + b'x"}', keys):
        with Fake(lambda _, body=body: answer(body, 400)) as fake:
            assert client.to(fake.url).run("cat", "ann/story").status in (1, 5)


# Files that are there already -------------------------------------------------------------------


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_of_a_file_is_kept(mode: int, either: Client) -> None:
    target = either.work / "PROMPT.md"
    with Fake(hub()) as fake:
        to = either.to(fake.url)
        target.write_bytes(b"Mine.\n")
        target.chmod(mode)
        assert to.run("pull", "ann/story", "--force").status == 0
        assert (target.read_bytes(), mode_of(target)) == (TEXT, mode)
        lock = either.work / "prompts.lock"
        assert to.run("lock", "ann/story").status == 0
        lock.chmod(mode)
        assert to.run("lock", "ann/story@1.0.0", "other.md").status in (0, 3)
        assert mode_of(lock) == mode


def test_files_of_a_lock_file(either: Client, host: Fake) -> None:
    to = either.to(host.url)
    for words in (("lock", "ann/story", "a.md"), ("lock", "ann/review@1.0.0", "b.md"), ("sync",)):
        assert to.run(*words).status == 0
    for one in ("a.md", "b.md"):
        (to.work / one).write_bytes(b"Tell a story.\r\n")
    done = to.run("sync")
    assert done.status == 1
    second, first = done.err.splitlines()
    assert "a.md has your own changes, or is another text than ann/story" in first
    assert "b.md has your own changes, or is another text than ann/review" in second
    assert to.run("sync", "--force").status == 0


# What is closed, and where nothing can be written -----------------------------------------------


def test_closed_output(each: Client) -> None:
    with Fake(hub()) as fake:
        command = " ".join(each.to(fake.url).command("cat", "ann/story"))
        done = subprocess.run(
            ["sh", "-c", f"exec {command} >&-"], capture_output=True, cwd=each.work,
            env=each.to(fake.url).environment(), executable="/bin/sh",
        )  # fmt: skip
        assert done.returncode == 1 and not fake.requests
    assert done.stderr == b"hub: standard output is closed. Open it, or send it to /dev/null\n"


def test_a_folder_that_is_not_there(either: Client) -> None:
    with Fake(hub()) as fake:
        done = either.to(fake.url).run("lock", "--file", "no/x.lock", "ann/story")
        assert done.status == 1
        assert done.err == "no folder ./no. Create it, or pass another --file\n"
        done = either.to(fake.url).run("pull", "ann/story", "-o", "new/folder/a.md")
    assert done == (0, b"", "saved ann/story 1.0.0 as new/folder/a.md\n")
    assert (either.work / "new/folder/a.md").read_bytes() == TEXT
