"""``lock=``: prompts that are read at exactly the version and hash of a lock file."""

import hashlib
import json
import queue
import time
from pathlib import Path

import pytest
from hub_prompts import (
    WITHDRAWALS,
    WITHDRAWALS_SECONDS,
    Got,
    Hub,
    LockError,
    Unavailable,
    Withdrawn,
)

from tests.clients.python.fake import LATEST, PINNED, Clock, FakeHub, answer, record
from tests.support.servers import DEADLINE_SECONDS

SHA256 = record()["sha256"]


def lock(folder: Path, *lines: str) -> Path:
    path = folder / "prompts.lock"
    path.write_bytes("\n".join(["# A comment", "", *lines, ""]).encode())
    return path


@pytest.mark.parametrize(
    ("line", "reference"),
    [
        (f"ada/hello production 1.0.0 {SHA256} prompts/hello.md", "ada/hello@production"),
        (f"ada/hello latest 1.0.0 {SHA256} prompts/hello.md\r", "ada/hello"),
        (f"  ada/hello   latest  1.0.0 {SHA256}", "ada/hello@latest"),
        (f"ada/hello 1.0.0 1.0.0 {SHA256} with spaces.md", "ada/hello@1.0.0"),
        # A skill, whose own hash is for its file alone.
        (f"ada/hello latest 1.0.0 {SHA256} {'0' * 64} hello/SKILL.md", "ada/hello"),
        # The only existing version.
        (f"ada/hello production 1.0.0 {SHA256} x.md", "ada/hello"),
        (f"ada/hello production 1.0.0 {SHA256} x.md", "ada/hello@1.0.0"),
    ],
)
def test_a_locked_prompt_is_read_at_its_version(
    fake: FakeHub, tmp_path: Path, line: str, reference: str
):
    fake.has(PINNED, answer())
    prompt = Hub(fake.url, lock=lock(tmp_path, line)).get(reference)
    assert (prompt.version, prompt.sha256, fake.paths) == ("1.0.0", SHA256, [PINNED])


def test_another_text_is_refused_wherever_it_comes_from(fake: FakeHub, tmp_path: Path):
    fake.has(PINNED, answer("Obey.\n"))
    Hub(fake.url).get("ada/hello@1.0.0")  # which keeps a copy
    path = lock(tmp_path, f"ada/hello latest 1.0.0 {SHA256} x.md")
    with pytest.raises(Unavailable, match="with the expected SHA-256"):
        Hub(fake.url, lock=path).get("ada/hello")


FILES = [
    {"path": "b.md", "size": 1, "sha256": "b" * 64, "executable": False},
    {"path": "a/run.sh", "size": 1, "sha256": "a" * 64, "executable": True},
]
# What sha256sum prints, hashed.
SUMS = f"{SHA256}  -\n{'a' * 64} *a/run.sh\n{'b' * 64}  b.md\n"
WHOLE = hashlib.sha256(SUMS.encode()).hexdigest()


@pytest.mark.parametrize("rest", ["x.md", f"{'0' * 64} hello/SKILL.md"])
def test_the_files_of_a_locked_version_are_the_locked_ones(
    fake: FakeHub, tmp_path: Path, rest: str
):
    path = lock(tmp_path, f"ada/hello latest 1.0.0 {SHA256} files:{WHOLE} {rest}")
    fake.has(PINNED, answer(files=FILES, content_sha256=WHOLE))
    assert Hub(fake.url, lock=path, disk=False).get("ada/hello").version == "1.0.0"
    for others in ([], FILES[:1], [FILES[0] | {"executable": True}, FILES[1]], [1]):
        fake.has(PINNED, answer(files=others, content_sha256=WHOLE))
        with pytest.raises(Unavailable, match="with the expected SHA-256"):
            Hub(fake.url, lock=path, disk=False).get("ada/hello")
    # Lines of older clients have the hash of the text alone.
    path = lock(tmp_path, f"ada/hello latest 1.0.0 {SHA256} x.md")
    assert Hub(fake.url, lock=path, disk=False).get("ada/hello").version == "1.0.0"


def test_prompts_that_are_not_in_the_file_are_read_as_ever(fake: FakeHub, tmp_path: Path):
    fake.has(LATEST, answer())
    path = lock(tmp_path, f"ada/other latest 1.0.0 {SHA256} x.md")
    assert Hub(fake.url, lock=path).get("ada/hello").version == "1.0.0"


@pytest.mark.parametrize("reference", ["ada/hello@staging", "ada/hello@1.1.0", "ada/hello"])
def test_a_ref_that_is_not_in_the_file_is_refused(fake: FakeHub, tmp_path: Path, reference: str):
    path = lock(
        tmp_path,
        f"ada/hello production 1.0.0 {SHA256} a.md",
        f"ada/hello canary 1.2.0 {SHA256} b.md",
        f"ada/hello canary 1.2.0 {SHA256} c.md",
    )
    hub = Hub(fake.url, lock=path)
    with pytest.raises(LockError, match=f"not have {reference}. Run `hub lock {reference}`"):
        hub.get(reference)
    assert fake.asked == [] and hub.get(reference, fallback="x").content == "x"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ada/hello latest x.md", "line 3 is not locked"),
        ("ada/hello", "line 3 is not locked"),
        ("ada/hello latest 1.0.0 x.md", "line 3 is not locked"),
        (f"ada/hello latest 1.0.0 {SHA256[:-1]} x.md", "line 3 is not locked"),
        (f"ada/hello\tlatest\t1.0.0\t{SHA256}\tx.md", "line 3 is not locked"),
        (f"Ada/hello latest 1.0.0 {SHA256} x.md", "line 3 is not locked"),
        (f"ada/hello 1.1.0 1.0.0 {SHA256} x.md", "line 3 is not locked"),
        (f"ada/hello a 1.0.0 {SHA256} x\nada/hello a 1.0.1 {SHA256} y", "line 4 is not locked"),
        ("\0" * 10, "line 3 is not locked"),
    ],
)
def test_a_file_that_cannot_be_followed_is_refused(tmp_path: Path, line: str, told: str):
    with pytest.raises(LockError, match=told):
        Hub("http://127.0.0.1:1", lock=lock(tmp_path, line))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("none", "binary", "."):
        with pytest.raises(LockError, match="Cannot read"):
            Hub("http://127.0.0.1:1", lock=tmp_path / name)


def gone(name: str, version: str | None, reason: str = "secret", note: str = "") -> bytes:
    """A line of the list of withdrawals."""
    at = "2026-11-28T09:00:00Z"
    fields = {"owner": "ada", "name": name, "version": version, "at": at}
    return json.dumps(fields | {"reason": reason, "note": note}).encode() + b"\n"


def test_locked_versions_that_were_withdrawn_are_reported_once(
    fake: FakeHub, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
):
    reported: queue.Queue[Got] = queue.Queue()

    def on_get(got: Got) -> None:
        if got.source == "withdrawn":
            reported.put(got)

    fake.has(PINNED, answer())
    note = "Use 1.0.1.\n\x1b[31m"
    fake.has(WITHDRAWALS, gone("hello", "1.0.0", "error", note) + gone("other", "9.0.0"))
    path = lock(
        tmp_path,
        f"ada/hello production 1.0.0 {SHA256} a.md",
        f"ada/other latest 1.0.0 {SHA256} b.md",
    )
    hub = Hub(fake.url, lock=path, on_get=on_get)
    hub.get("ada/hello")
    got = reported.get(timeout=DEADLINE_SECONDS)
    why = "ada/hello 1.0.0 was withdrawn on 2026-11-28 (error). Use 1.0.1.[31m"
    assert (got.repo, got.version, str(got.error)) == ("ada/hello@1.0.0", "1.0.0", why)
    assert isinstance(got.error, Withdrawn) and why in caplog.text
    # A prompt that the program has not read, withdrawn whole.
    fake.has(WITHDRAWALS, gone("hello", "1.0.0") + gone("other", None, "legal"))
    clock.added += WITHDRAWALS_SECONDS + 1
    hub.get("ada/hello")
    got = reported.get(timeout=DEADLINE_SECONDS)
    assert str(got.error) == "ada/other 1.0.0 was withdrawn on 2026-11-28 (legal)."
    assert reported.empty()


@pytest.mark.parametrize("body", [b"{", b"[]\n", b'{"owner":1}\n', b"\xff"])
def test_a_broken_list_of_withdrawals_disturbs_nothing(fake: FakeHub, tmp_path: Path, body: bytes):
    fake.has(PINNED, answer())
    fake.has(WITHDRAWALS, body)
    hub = Hub(fake.url, lock=lock(tmp_path, f"ada/hello latest 1.0.0 {SHA256} x.md"))
    assert hub.get("ada/hello").version == "1.0.0"
    while WITHDRAWALS not in [path for path, _ in fake.asked]:
        time.sleep(0.01)
    assert hub.get("ada/hello").version == "1.0.0"
