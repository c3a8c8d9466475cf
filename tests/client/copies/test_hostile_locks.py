"""Lock files of strangers: hub refuses paths and lines that do harm, and takes all others."""

import pytest

from tests.client.copies.lock_files import (
    PINNED,
    REVIEW,
    STORY,
    TALE,
    files,
    write_lock,
)
from tests.client.fake import Fake
from tests.client.shells import Client
from tests.client.site import TWO, Site, sha256

SUM = sha256(TWO)
PATHS = [
    "/etc/passwd", "../up.md", "a/../../up.md", "a/..", "..", ".", "./a.md", "a/./b.md", "a//b.md",
    "a/", "~/../../a", "..\\up.md", "a\\b", ".git/hooks/pre-commit", "a/.GIT/config",
    "prompts.lock", "Prompts.LOCK", "\u202egnp.md", "a\x1b[31m.md", "a\x07", "a\tb", "a\x00b",
    "\udcff.md", "\x9b.md",
]  # fmt: skip
LINES = {
    "ann/review": "not OWNER/NAME REF PATH", "review production a.md": "not OWNER/NAME",
    "Ann/review production": "not OWNER/NAME", "ann/re*w production": "not OWNER/NAME",
    "ann/review@production a.md": "not OWNER/NAME", "../x production": "not OWNER/NAME",
    "ann/review/x production": "not OWNER/NAME", "ann/review -production": "not OWNER/NAME",
    "ann/review a/b": "not OWNER/NAME", "ann/review 1.0": "not OWNER/NAME",
    "ann/review 01.0.0 a.md": "not OWNER/NAME", f"ann/review {'x' * 37}": "not OWNER/NAME",
    "ann/review $(id)": "not OWNER/NAME", '"ann/review" production': "not OWNER/NAME",
    "ann/review production 1.1.0 a.md": "version without its SHA-256",
    f"ann/review production 1.1.0 {SUM[:-1]} a.md": "version without its SHA-256",
    f"ann/review production 1.1.0 {SUM.upper()} a.md": "version without its SHA-256",
    f"ann/review production a{'a' * 1100}": "longer than 1100 bytes",
    f"{PINNED}{TALE[:-2]}x\n{TALE[:-2]}x": "line 3: path of another line: prompts/ann/story.mx",
    f"{PINNED}{PINNED}": "line 2: path of another line: old.md",
    f"{PINNED}{PINNED.replace(' old', ' OLD')}": "line 2: path that differs from another in case",
    **{
        f"ann/review production {path}": f"path that Windows cannot have: {path}. Use another PATH"
        for path in (
            "nul", "NUL.txt", "a/Con/b.md", "prompts/com0.md", "LPT9.a.md", "a./b.md", "a.md.",
            "a /b.md", "a:b.md", 'a"b.md', "a?.md", "a*", "a<b", "a>b", "a|b.md", "c:/a.md",
        )
    },
    "ann/aux production": "path that Windows cannot have: prompts/ann/aux.md",
}  # fmt: skip


def check_refused(client: Client, host: Fake, why: str, lock: bytes, *commands: str) -> None:
    host.requests.clear()
    for command in commands or ("lock", "sync"):
        done = client.run(*command.split())
        assert (done.status, done.out) == (1, b""), (command, done.err)
        assert why in done.err, (command, done.err)
        assert done.err.count("\n") == 1 and done.err.rstrip("\n").isprintable()
    assert not host.requests and files(client) == {}
    assert (client.work / "prompts.lock").read_bytes() == lock


def test_which_commands_refuse(to: Client, host: Fake) -> None:
    commands = ("lock", "update", "sync", "sync --check", "sync --force")
    for line in ("ann/review", f"ann/review production 1.1.0 {SUM} ../up.md"):
        lock = write_lock(to, f"{line}\n").read_bytes()
        check_refused(to, host, "prompts.lock: line 1: ", lock, *commands)


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_paths_that_are_refused(path: str, to: Client, host: Fake) -> None:
    lock = f"ann/review production 1.1.0 {SUM} {path}\n".encode(errors="surrogateescape")
    (to.work / "prompts.lock").write_bytes(lock)
    check_refused(to, host, "prompts.lock", lock)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:40])
def test_lines_that_are_refused(line: str, to: Client, host: Fake) -> None:
    write_lock(to, line + "\n")
    check_refused(to, host, LINES[line], f"{line}\n".encode())


def test_refusals_under_each_shell_and_awk(pair: Client, host: Fake) -> None:
    to = pair.to(host.url)
    step = 1 if to.shell == "dash" else 2
    for line, why in [*LINES.items()][:: 3 * step]:
        write_lock(to, line)
        done = to.run("lock")
        assert done.status == 1 and why in done.err, line
    for path in PATHS[:: 2 * step]:
        line = f"ann/review production 1.1.0 {SUM} {path}"
        (to.work / "prompts.lock").write_bytes(line.encode(errors="surrogateescape"))
        assert to.run("sync").status == 1, path
    assert files(to) == {} and not host.requests


def test_lines_that_are_not_locked(to: Client, host: Fake) -> None:
    for line in (
        "ann/review production", "ann/review 1.1.0 a.md", f"ann/review 1.0.0 1.1.0 {SUM} a.md",
    ):  # fmt: skip
        write_lock(to, TALE, line)
        for options in ([], ["--check"]):
            done = to.run("sync", *options)
            assert done == (1, b"", "prompts.lock: line 2: not locked. Run `hub lock`\n")
    assert not host.requests


ODD = [
    "{a,b}", "[a].md", "$(id)", "`id`", "a'b;c", "-rf", "~", "#a", "a b  c", "é/👩.md", "%s", "1.0",
    "&;", "..a", "con2", "a.nul", ".github/prompts/a.md", "a=b", "!x",
]  # fmt: skip


def test_any_other_path(each: Client, host: Fake) -> None:
    to = each.to(host.url)
    locked = (f"ann/review 1.1.0 1.1.0 {SUM} {path}\n" for path in ODD[1:])
    lock = write_lock(to, f"ann/review production {ODD[0]}\n", *locked)
    assert to.run("lock").status == 0
    assert to.run("sync").status == 0
    assert files(to) == dict.fromkeys(ODD, TWO)
    assert to.run("lock", "ann/story", "new '$(id)").status == 0
    assert lock.read_text().endswith(" new '$(id)\n")
    assert to.run("sync", "--check").status == 1


@pytest.mark.parametrize("path", [*PATHS[:12], "a\nann/story latest b.md"], ids=repr)
def test_paths_that_are_not_added(path: str, to: Client, host: Fake) -> None:
    lock = write_lock(to, REVIEW)
    done = to.run("lock", "ann/story", path)
    assert done.status in (1, 2) and done.err and not host.requests
    assert lock.read_text() == REVIEW


def test_the_most_lines(to: Client, host: Fake) -> None:
    lines = [f"ann/review 1.1.0 1.1.0 {SUM} many/{number:03}.md\n" for number in range(1000)]
    lock = write_lock(to, *lines)
    assert to.run("lock").status == 0
    lock.write_text(lock.read_text() + TALE)
    for command in (["lock"], ["sync"], ["update"]):
        done = to.run(*command)
        assert done.status == 1 and "more than 1000 prompts" in done.err
    write_lock(to, *lines[1:])
    assert to.run("lock", "ann/story").status == 0
    done = to.run("lock", "ann/story", "b.md")
    assert done.status == 1 and "more than 1000 prompts" in done.err
    write_lock(to, *lines[:100])
    host.requests.clear()
    assert to.run("sync").status == 0
    assert len(files(to)) == 100 and len(host.requests) == 2
    assert to.run("sync", "--check").status == 0


def test_the_longest_line(awk: Client, site: Site, host: Fake) -> None:
    to = awk.to(host.url)
    repo, label = f"{'o' * 39}/{'n' * 64}", "l" * 36
    site.publish(repo, "999999999.999999999.999999999", STORY, {"x" * 200: STORY})
    site.move(repo, label, "999999999.999999999.999999999")
    path = "/".join(["d" * 200] * 4)[:700]
    write_lock(to, f"{repo} {label} {path}\n")
    assert to.run("lock").status == 0 and to.run("sync").status == 0
    assert files(to) == {path: STORY}
    skill = "/".join(["d" * 200] * 4)[:691] + "/SKILL.md"
    write_lock(to, f"{repo} {label} {skill}\n")
    assert to.run("lock").status == 0 and to.run("sync").status == 0
    assert len(files(to)) == 3 and to.run("sync", "--check").status == 0
    for line, why in (
        (f"{repo} {label} {path}x", "path that no prompt may have"),
        (f"{REVIEW[:-1]}{' ' * (1101 - len(REVIEW))}", ""),
        (f"{REVIEW[:-1]}{' ' * (1102 - len(REVIEW))}", "longer than 1100 bytes"),
    ):
        write_lock(to, line)
        done = to.run("lock")
        assert done.status == (1 if why else 0) and why in done.err


def test_a_file_that_is_far_too_large(to: Client) -> None:
    lock = to.work / "prompts.lock"
    with lock.open("wb") as file:
        file.truncate(1 << 40)
    for command in ("lock", "update", "sync"):
        done = to.run(command)
        assert done.status == 1 and "is too large" in done.err
    lock.unlink()
    lock.symlink_to("/dev/zero")
    assert to.run("sync").status == 1
