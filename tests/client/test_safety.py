"""The token goes to the hub and nowhere else; nothing is left behind, whenever the client ends."""

import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from tests.client.fake import TEXT, Fake, Request, answer, error, hub
from tests.client.shells import SHELLS, TOKEN, Client, run_traced, share
from tests.support.servers import DEADLINE_SECONDS, wait_until

CREATED = answer('{"data":{"owner":"ada","name":"x","version":"1.0.0","warnings":[]}}', 201)
# Notes its requests, and refuses them.

SAFE = [
    "https://hub.example", "https://hub.example:8443/path", "http://localhost",
    "http://localhost:8000/path", "http://127.0.0.1", "http://127.255.3.4:80", "http://[::1]",
    "http://[::1]:8000/path/",
]  # fmt: skip
UNSAFE = [
    "http://hub.example", "http://localhost.evil.example", "http://localhost.evil.example:80",
    "http://127.0.0.1.evil.example", "http://127.evil.example", "http://127.1.evil/",
    "http://127.0.0.1.5", "http://127.0.0", "http://127.0.0.1.", "http://127..0.1",
    "http://[::1].evil.example", "http://[::1]evil", "http://[::2]", "http://localhost:80.evil",
    "http://localhost:", "http://evil.example/localhost", "http://evil.example/[::1]",
    "http://LOCALHOST", "http://0x7f.0.0.1", "http://localhost:8000:80",
]  # fmt: skip
NO_ADDRESSES = [
    "http://user@hub.example", "http://localhost@evil.example", "http://localhost:80@evil.example",
    "https://hub_token@evil.example", "http://localhost\\@evil.example", "http://localhost#@evil",
    "http://localhost?@evil", "http://localhost\n.evil.example", "http://localhost .evil", "ftp://x",
    "localhost", "http://", "http:///evil.example", "HTTPS://x", "-K", "http://{a,b}.example",
    "http://héb.example", 'http://x"\nurl=y',
]  # fmt: skip


def test_who_gets_the_token(curl: tuple[Client, Path]) -> None:
    client, seen = curl
    for url in share(client.shell, SAFE):
        done = client.to(url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
        assert seen.exists(), (url, done.err)
        assert f'header = "Authorization: Bearer {TOKEN}"\n' in seen.read_text(), url
        seen.unlink()
    for url in share(client.shell, [*UNSAFE, *NO_ADDRESSES]):
        done = client.to(url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
        assert done.status == (2 if url in NO_ADDRESSES else 4), (url, done.err)
        assert not seen.exists(), url
    for value, status in (("1", 6), ("0", 4), ("", 4)):
        insecure = client.to(UNSAFE[0], HUB_TOKEN=TOKEN, HUB_INSECURE=value)
        assert insecure.run("push", "ada/x", "-", stdin=b"Hi.").status == status
    assert TOKEN in seen.read_text()


@pytest.mark.parametrize("token", ["hub_a b", 'hub_"', "hub_\\n", "hub_\nurl=http://x", "hub_é"])
def test_what_is_no_token(token: str, curl: tuple[Client, Path]) -> None:
    client, seen = curl
    done = client.to("https://hub.example", HUB_TOKEN=token).run("push", "a/b", "-", stdin=b"x")
    assert done.status == 4 and "is not a token" in done.err and token not in done.err
    assert not seen.exists()


def test_reads_do_without_the_token(curl: tuple[Client, Path]) -> None:
    client, seen = curl
    for command in (["pull", "a/b"], ["cat", "a/b"], ["versions", "a/b"], ["search", "x"]):
        client.to("https://hub.example", HUB_TOKEN=TOKEN).run(*command)
    assert seen.exists() and TOKEN not in seen.read_text()


def private(request: Request) -> bytes:
    """A hub that requires the token only for texts."""
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return error(401, "This hub is for members.", WWW_Authenticate="Bearer")
    return hub()(request)


def test_a_private_hub_gets_the_token_that_it_asks_for(each: Client, tmp_path: Path) -> None:
    with Fake(private) as fake:
        done = each.to(fake.url).run("cat", "ann/story")
        assert done.status == 4 and f"{fake.url} is for members" in done.err
        assert "HUB_TOKEN" in done.err
        fake.requests.clear()
        to = each.to(fake.url, HUB_TOKEN=TOKEN)
        done, calls = run_traced(to, tmp_path / "trace", "cat", "ann/story")
        assert done.stdout == TEXT and TOKEN.encode() not in done.stderr
        told = ["authorization" in asked.headers for asked in fake.requests]
        assert told == [False, True, True], "asked once, then remembered"
    assert not [call for call in calls if TOKEN in call and " execve(" in call][1:]
    kept = [path for path in each.cache.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if path.stat().st_mode & 0o077]


def test_a_read_s_token_is_for_the_hub_alone(client: Client) -> None:
    with Fake(lambda _: answer(b"{}")) as other:

        def redirects(request: Request) -> bytes:
            if "authorization" not in request.headers:
                return error(401)
            return answer("", 302, Location=other.url + request.path)

        with Fake(redirects) as fake:
            done = client.to(fake.url, HUB_TOKEN=TOKEN).run("cat", "ann/story")
    assert done.status == 6 and f"redirects to {other.url}" in done.err and not other.requests


def test_no_program_gets_the_token(each: Client, tmp_path: Path) -> None:
    """Neither as an argument nor in the environment; and only a pipe gets it as data."""
    moved = answer('{"data":{"label":"a","version":"1.0.0"}}')
    for created, words, says in (
        (CREATED, ("push", "ada/x", "-"), b"ada/x 1.0.0\n"),
        (moved, ("label", "ada/x", "a", "1.0.0"), b"ada/x@a 1.0.0\n"),
    ):
        with Fake(lambda _, created=created: created) as fake:
            to = each.to(fake.url, HUB_TOKEN=TOKEN, token="there already")
            done, calls = run_traced(to, tmp_path / "trace", *words)
        assert done.stdout == says, done.stderr
        assert f"main {words[0]}".encode() in done.stderr and TOKEN.encode() not in done.stderr
        assert len([call for call in calls if " execve(" in call]) > 10
        told = [call for call in calls if TOKEN in call]
        assert " execve(" in told.pop(0)  # the shell itself
        assert told
        for call in told:
            assert re.search(r" (write|writev|sendto|sendmsg)\(\d+<(pipe|socket|TCP)", call)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_get_the_token(status: int, client: Client) -> None:
    with (
        Fake(lambda _: CREATED) as other,
        Fake(lambda asked: answer("", status, Location=other.url + asked.path)) as fake,
    ):
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
    assert done.status == 6 and f"redirects to {other.url}" in done.err
    assert not other.requests and len(fake.requests) == 1


def test_a_proxy_does_not_get_what_stays_on_this_machine(client: Client) -> None:
    with Fake(lambda _: error(500)) as proxy, Fake(lambda _: CREATED) as fake:
        to = client.to(fake.url, HUB_TOKEN=TOKEN, http_proxy=proxy.url, ALL_PROXY=proxy.url)
        assert to.run("push", "ada/x", "-", stdin=b"Hi.").status == 0
    assert not proxy.requests


def test_settings_of_curl_are_not_used(client: Client) -> None:
    with Fake(lambda _: error(500)) as other, Fake(lambda _: CREATED) as fake:
        (client.folder / "home" / ".curlrc").write_text(f'url = "{other.url}"\nverbose\n')
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
    assert done == (0, b"ada/x 1.0.0\n", "") and not other.requests


class Held(Fake):
    """A hub that sends half of a text, and no more until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.is_holding = threading.Event()
        super().__init__(self._hold)

    def _hold(self, request: Request) -> bytes:
        if request.path.endswith(".txt"):
            self.is_holding.set()
            self.let_go.wait(DEADLINE_SECONDS)
        return hub()(request)

    def close(self) -> None:
        self.let_go.set()
        super().close()


def processes_with(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        if word in command:
            found.append(command)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_in_a_download(number: int, each: Client) -> None:
    """To the client alone: what it has started ends too, and at once."""
    target = each.work / "PROMPT.md"
    target.write_bytes(b"Old.")
    with Held() as held:
        process = each.to(held.url).start("pull", "ann/story", "--force")
        assert held.is_holding.wait(DEADLINE_SECONDS)
        (folder,) = each.tmp.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        process.send_signal(number)
        _, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert not held.let_go.is_set()
        assert process.returncode == 128 + number and b"hub:" not in err
        wait_until(lambda: not processes_with(held.url), "curl to end")
    assert not list(each.tmp.iterdir())
    assert [path.name for path in each.work.iterdir()] == ["PROMPT.md"]
    assert target.read_bytes() == b"Old."


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_in_a_wait(number: int, each: Client, tmp_path: Path) -> None:
    folder = tmp_path / "sleep"
    folder.mkdir()
    (folder / "sleep").symlink_to(shutil.which("sleep"))
    with Fake(lambda _: error(429, Retry_After="119")) as fake:
        process = each.having(folder).to(fake.url).start("cat", "ann/story")
        err = process.stderr.readline()
        assert err == b"hub: waiting 119 s before trying again, as the server asks\n"
        process.send_signal(number)
        process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + number
    assert not list(each.tmp.iterdir())


def test_nobody_reads_the_output(each: Client) -> None:
    with Fake(hub(b"Long.\n" * 40_000)) as fake:
        process = each.to(fake.url).start("cat", "ann/story")
        process.stdout.close()
        process.stdin.close()
        process.stderr.close()
        process.wait(DEADLINE_SECONDS)
    assert process.returncode != 0
    assert not list(each.tmp.iterdir())


def start_planted(client: Client, plant: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run after ``plant``, a command that knows the client's process id as $$."""
    command = shlex.join(client.command(*arguments))
    return subprocess.run(
        ["dash", "-c", f"{plant}; exec {command}"], cwd=client.work, capture_output=True,
        env=client.environment() | {"PATH": os.environ["PATH"]}, timeout=DEADLINE_SECONDS,
    )  # fmt: skip


def test_names_that_another_user_took_before(either: Client, tmp_path: Path) -> None:
    """In a folder that all write to, others may guess names. Nothing goes where they lead."""
    victim = tmp_path / "victim"
    victim.mkdir()
    with Fake(hub()) as fake:
        to = either.to(fake.url)
        done = start_planted(to, f'ln -s {victim} "$TMPDIR/hub-$$-0"', "pull", "ann/story")
        assert done.returncode == 0, done.stderr
        assert (to.work / "PROMPT.md").read_bytes() == TEXT
        (to.work / "PROMPT.md").unlink()
        for plant in (f'ln -s {victim}/x "PROMPT.md.hub-$$"', 'mkdir "PROMPT.md.hub-$$"'):
            done = start_planted(to, plant, "pull", "ann/story")
            assert done.returncode == 1 and b"cannot write to the folder of" in done.stderr
            (left,) = to.work.iterdir()
            assert left.is_symlink() or left.is_dir()
            left.unlink() if left.is_symlink() else left.rmdir()
    assert not list(victim.iterdir())


def positions(script: bytes) -> list[int]:
    """Positions to cut: spread evenly, at the end of each function, and at each byte of the last
    line.
    """
    ends = [match.end() for match in re.finditer(rb"\n\}\n", script)]
    last = script.rindex(b"\n", 0, -1)
    return sorted({*range(0, last, 9973), *ends[::9], ends[-1], *range(last, len(script) - 1)})


def test_a_client_cut_off_does_nothing(curl: tuple[Client, Path], tmp_path: Path) -> None:
    client, seen = curl
    script = Path(client.script).read_bytes()
    assert script.endswith(b'\nmain "$@"\n')
    cut = tmp_path / "cut"
    places = [*positions(script)]
    for at in places:
        if script[:at].endswith(b'\nmain "$@"'):
            continue  # whole, but for a newline
        cut.write_bytes(script[:at])
        subprocess.run(
            [*SHELLS[client.shell], cut, "pull", "ann/story"], cwd=client.work,
            env=client.environment() | {"HUB_URL": "https://hub.example", "PATH":
                f"{client.environment()['PATH']}:{os.environ['PATH']}"},
            capture_output=True, timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        assert not seen.exists(), at
        for folder in (client.work, client.tmp, client.folder / "home"):
            assert not list(folder.iterdir()), at
    # The whole of it does ask.
    client.run("pull", "ann/story")
    assert seen.exists()
