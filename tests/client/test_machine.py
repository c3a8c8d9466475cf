"""On machines that lack something, or on which something cannot be written."""

import hashlib
import os
import resource
import shutil
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.client.conftest import Hub
from tests.client.fake import TEXT, Fake, Request, answer, hub
from tests.client.shells import SHELLS, TOKEN, Client, link_tools, need
from tests.support.servers import DEADLINE_SECONDS

OLD = b"What was there before.\n"


def without(tools: Path, folder: Path, *programs: str) -> Path:
    """All of the tools but these."""
    folder.mkdir()
    for tool in tools.iterdir():
        if tool.name not in programs:
            (folder / tool.name).symlink_to(tool)
    return folder


def put_tool(folder: Path, name: str, lines: str) -> Path:
    """Puts a script into ``folder`` under a program's name; ``REAL`` in it is the path of that
    program.
    """
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + lines.replace("REAL", shutil.which(name) or ""))
    (folder / name).chmod(0o755)
    return folder


def test_no_python(either: Client, tools: Path, publishing: Hub, tmp_path: Path) -> None:
    bare = either.having_only(without(tools, tmp_path / "bare", "python3"))
    to = bare.to(publishing.url, HUB_TOKEN=publishing.token)
    for command in (["search", "x"], ["versions", "ann/review"]):
        done = to.run(*command)
        assert done.status == 1 and "needs python3. Install it" in done.err
    assert to.run("cat", "ann/story").out == b"Tell a story.\n"
    assert to.run("push", f"ada/bare-{either.shell}", "-", stdin=b"Hi.").status == 0


def test_no_curl(client: Client, tools: Path, tmp_path: Path) -> None:
    bare = client.having_only(without(tools, tmp_path / "bare", "curl"))
    assert bare.to("http://x").run("pull", "a/b") == (1, b"", "hub needs curl. Install it\n")


def test_no_tool_for_sha_256(either: Client, tools: Path, tmp_path: Path) -> None:
    """Then no text is compared or kept."""
    bare = either.having_only(without(tools, tmp_path / "bare", "sha256sum"))
    with Fake(hub()) as fake:
        to = bare.to(fake.url)
        assert to.run("pull", "ann/story") == (0, b"", "saved ann/story 1.0.0 as PROMPT.md\n")
        assert (to.work / "PROMPT.md").read_bytes() == TEXT
        assert to.run("cat", "ann/story") == (0, TEXT, "")
    assert not to.cache.exists()


@pytest.mark.parametrize(("tool", "lines"), [
    ("shasum", '[ "$*" = "-a 256" ] && sha256sum'),
    ("openssl", '[ "$*" = "dgst -sha256 -r" ] && sha256sum | sed "s/ .*/ *stdin/"'),
])  # fmt: skip
def test_another_tool_for_sha_256(
    tool: str, lines: str, client: Client, tools: Path, tmp_path: Path
) -> None:
    lines = lines.replace("sha256sum", shutil.which("sha256sum"))
    other = put_tool(tmp_path / "other", tool, lines)
    bare = client.having_only(other, without(tools, tmp_path / "bare", "sha256sum"))
    wrong = "0" * 64
    with Fake(hub()) as fake, Fake(hub(sha256=wrong)) as liar:
        assert bare.to(fake.url).run("cat", "ann/story") == (0, TEXT, "")
        assert bare.to(liar.url).run("cat", "ann/story").status == 6


def test_busybox_and_curl_alone(client: Client, publishing: Hub, tmp_path: Path) -> None:
    need("busybox")
    listed = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True)
    applets = dict.fromkeys(set(listed.stdout.split()) - {"busybox"}, "busybox")
    folder = link_tools(tmp_path / "busybox", "curl", **applets)
    bare = client.under("busybox").having_only(folder)
    to = bare.to(publishing.url, HUB_TOKEN=publishing.token)
    content = b'\x01\xef\xbb\xbf\t"\\\r\n' + "é👩".encode()
    assert to.run("push", "ada/busybox", "-", 'It\'s\n"new"', stdin=content).status == 0
    assert to.run("pull", "ada/busybox").status == 0
    assert (to.work / "PROMPT.md").read_bytes() == content
    assert to.run("push", "ada/busybox", "-", stdin=b"a\xff").status == 5
    assert to.run("pull", "ann/review", "--version", "1.0.0", "-o", "r").status == 0
    assert to.run("pull", "ann/review", "-o", "r").status == 0
    assert to.run("search", "x").status == 1
    assert to.run("lock", "ann/review", "locked.md").status == 0
    assert to.run("sync").status == 0 and to.run("sync", "--check").status == 0
    assert (to.work / "locked.md").read_bytes() == (to.work / "r").read_bytes()


# Targets -----------------------------------------------------------------------------------------


def test_targets_that_are_no_files(either: Client) -> None:
    (either.work / "folder").mkdir()
    (either.work / "link").symlink_to("else")
    (either.work / "else").write_bytes(OLD)
    with Fake(hub()) as fake:
        to = either.to(fake.url)
        done = to.run("pull", "ann/story", "-o", "folder")
        assert done == (1, b"", "folder is a folder. Name a file with -o\n")
        for target in ("else/file", "/proc/nobody"):
            done = to.run("pull", "ann/story", "-o", target)
            assert done.status == 1 and f"cannot write to the folder of {target}" in done.err
        for force in ((), ("--force",)):
            done = to.run("pull", "ann/story", "-o", "link", *force)
            assert done.status == 1 and "link is or goes through a symbolic link" in done.err
        assert (either.work / "else").read_bytes() == OLD
        # Devices stay devices.
        assert to.run("pull", "ann/story", "-o", "/dev/null").status == 0
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        assert to.run("pull", "ann/story", "-o", "/dev/full").status == 1
        assert to.run("pull", "ann/story", "-o", "/dev/stdout").out == TEXT
    assert sorted(path.name for path in either.work.iterdir()) == ["else", "folder", "link"]


def test_a_new_file_has_the_modes_of_the_user(each: Client) -> None:
    with Fake(hub()) as fake:
        before = os.umask(0o027)
        try:
            each.to(fake.url).run("pull", "ann/story")
        finally:
            os.umask(before)
    assert stat.S_IMODE((each.work / "PROMPT.md").stat().st_mode) == 0o640


@pytest.mark.parametrize(("tool", "lines"), [
    ("mv", "exit 1"),
    ("mkdir", 'case $* in *PROMPT*) exit 1 ;; esac; exec REAL "$@"'),
    ("cat", 'case $* in */text-0) echo half; exit 1 ;; esac; exec REAL "$@"'),
])  # fmt: skip
def test_writing_fails(tool: str, lines: str, either: Client, tmp_path: Path) -> None:
    target = either.work / "PROMPT.md"
    target.write_bytes(OLD)
    broken = put_tool(tmp_path / "broken", tool, lines)
    with Fake(hub()) as fake:
        done = either.having(broken).to(fake.url).run("pull", "ann/story", "--force")
    assert done.status == 1 and "cannot write" in done.err
    assert target.read_bytes() == OLD
    assert [path.name for path in either.work.iterdir()] == ["PROMPT.md"]


# Not zsh: it lets programs have the signal again that comes with this limit, not with a full disk.
LIMITED = [shell for shell in SHELLS if shell != "zsh"]


@pytest.fixture
def limited(request: pytest.FixtureRequest, client: Client) -> Client:
    """A client under a shell that ``limit`` works with."""
    return client.under(request.param)


def limits(*dash_only: int, every: tuple[int, ...]) -> pytest.MarkDecorator:
    """Limits under each of these shells, and more of them under dash."""
    values = [(shell, bytes_max) for shell in LIMITED for bytes_max in every]
    values += [("dash", bytes_max) for bytes_max in dash_only]
    return pytest.mark.parametrize(("limited", "bytes_max"), values, indirect=["limited"])


def limit(bytes_max: int) -> dict[str, Any]:
    """Options for a process: its files may have so many bytes, and a write of more fails."""

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))

    return {"preexec_fn": prepare, "restore_signals": False}


@limits(50_000, every=(0, 200))
def test_a_full_disk(bytes_max: int, limited: Client) -> None:
    target = limited.work / "PROMPT.md"
    target.write_bytes(OLD)
    with Fake(hub(b"Long.\n" * 20_000)) as fake:
        to = limited.to(fake.url)
        for text_is_kept in (False, True):
            if text_is_kept:
                assert to.run("cat", "ann/story").status == 0
            process = to.start("pull", "ann/story", "--force", **limit(bytes_max))
            out, err = process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode == 1 and out == b"", err
            assert b"cannot " in err
            assert target.read_bytes() == OLD
            assert not list(limited.tmp.iterdir())
            assert [path.name for path in limited.work.iterdir()] == ["PROMPT.md"]


@limits(100, 1500, 1880, every=(0, 700, 1950))
def test_a_full_disk_loses_no_line_of_a_lock_file(bytes_max: int, limited: Client) -> None:
    lock = limited.work / "prompts.lock"
    sha256 = hashlib.sha256(TEXT).hexdigest()
    lines = [f"ann/story 1.0.0 1.0.0 {sha256} {number:02}.md\n" for number in range(20)]
    with Fake(hub(b"Hi.", "1.0.1")) as fake:
        to = limited.to(fake.url)
        for comments in (["# Why.\n"], ["# Why.\n"] * 60):
            lock.write_text("".join([*comments, *lines, "ann/story latest\n"]))
            old = lock.read_text()
            process = to.start("lock", **limit(bytes_max))
            out, err = process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode == 1 and b"cannot " in err and out == b"", err
            assert lock.read_text() == old
    assert [path.name for path in limited.work.iterdir()] == ["prompts.lock"]


@limits(every=(0, 100))
def test_half_a_text_is_not_published(bytes_max: int, limited: Client) -> None:
    with Fake(lambda _: answer(status=500)) as fake:
        to = limited.to(fake.url, HUB_TOKEN=TOKEN)
        (to.work / "text").write_bytes(b"Long.\n" * 20)
        for name in ("text", "-"):
            process = to.start("push", "ada/x", name, "c" * 150, **limit(bytes_max))
            _, err = process.communicate(b"Long.\n" * 20, timeout=DEADLINE_SECONDS)
            assert process.returncode == 1 and err
        assert not fake.requests


def test_output_that_cannot_be_written(either: Client, publishing: Hub) -> None:
    for command in (["cat", "ann/review"], ["search", "care"], ["versions", "ann/review"]):
        with open("/dev/full", "wb") as full:
            process = either.to(publishing.url).start(*command, stdout=full)
            _, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 1 and err and b"Traceback" not in err


def test_no_folder_for_temporary_files(either: Client) -> None:
    done = subprocess.run(
        either.command("pull", "ann/story"), cwd=either.work, capture_output=True, text=True,
        env=either.environment() | {"TMPDIR": "/proc/nobody", "HUB_URL": "http://x"},
    )  # fmt: skip
    assert done.returncode == 1
    assert (
        done.stderr == "hub: cannot create a folder in /proc/nobody. Set TMPDIR to another folder\n"
    )


def test_what_cannot_be_published(client: Client) -> None:
    (client.work / "folder").mkdir()

    def nobody(_: Request) -> bytes:
        raise AssertionError("nobody is to be asked")

    with Fake(nobody) as fake:
        to = client.to(fake.url, HUB_TOKEN=TOKEN)
        for name, fault in (
            ("folder", "has no SKILL.md or PROMPT.md. Write the prompt into one of them"),
            ("nowhere", "is not a file. Check the path"),
            ("/dev/zero", "is not a file. Check the path"),
        ):
            assert to.run("push", "ada/x", name) == (1, b"", f"'{name}' {fault}\n")
        assert to.run("push", "ada/x", "-") == (
            5,
            b"",
            "standard input is empty. A prompt needs at least one character\n",
        )
        assert not fake.requests


def test_a_file_that_is_a_pipe(client: Client, publishing: Hub) -> None:
    os.mkfifo(client.work / "pipe")
    process = client.to(publishing.url, HUB_TOKEN=publishing.token).start(
        "push", "ada/piped", "pipe"
    )
    (client.work / "pipe").write_bytes(b"Hi.")
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert out == b"ada/piped 1.0.0\n", err


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_locales(locale: str, each: Client, publishing: Hub) -> None:
    check_locale(locale, each, publishing)


def test_a_locale_that_there_is_not(client: Client, publishing: Hub) -> None:
    check_locale("nonsense", client, publishing)


def check_locale(locale: str, client: Client, publishing: Hub) -> None:
    to = client.to(publishing.url, HUB_TOKEN=publishing.token, LC_ALL=locale, LANG=locale)
    repo = f"ada/locale-{client.shell}-{locale.lower().replace('.', '-')}"
    content = "é👩\x80".encode() + bytes(range(1, 32))
    assert to.run("push", repo, "-", "Größer é", stdin=content).status == 0
    assert to.run("cat", repo).out == content
    assert "Größer é" in to.run("versions", repo).text
