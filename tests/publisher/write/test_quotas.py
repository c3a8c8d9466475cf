"""No owner gets more than the quota: not in parallel, not after imports, not after a restart."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from builder.model.errors import HubError, RequestError
from builder.model.metrics import LIMITS_HIT
from cli.service_options import Publishing, publishing_options
from operate.content_check import check
from publisher.accounts.database import Database
from publisher.limits import OPEN_SIGNUP_QUOTAS, default_quotas
from publisher.write.idempotency import IdempotencyKey
from publisher.write.quotas import NO_QUOTAS, QuotaKeeper, Quotas
from tests.publisher.write import acts
from tests.support.calls import at, watched

THREADS = 8


@pytest.fixture(params=[False, True], ids=["counted", "kept"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A content folder. Its files are all too young to keep counts of, or all old enough."""
    monkeypatch.setattr("builder.store.content.CLOCK_GRAIN_NS", 0 if request.param else 10**18)
    return str(tmp_path)


def put(keeper: QuotaKeeper | None, root: str, repo: str = "ann/story", text: str = "One.", **more):
    return acts.put(root, text, repo, quotas=keeper, **more)


def refusal(*args: object, **more: object) -> dict[str, str]:
    """The remainder of each full quota, by field."""
    error = acts.refusal(put, *args, **more)
    assert error.code == "validation_failed" and "larger quota" in str(error)
    return dict(error.details)


def used_bytes(root: str, owner: str = "ann") -> int:
    return sum(
        path.stat().st_size
        for path in Path(root, owner).glob("*/**/*")
        if path.is_file() and not path.name.startswith(".")
    )


def test_repos(root: str):
    keeper = QuotaKeeper(root, Quotas(repos=2))
    for repo in ("ann/a", "ann/b"):
        put(keeper, root, repo)
    before = dict(LIMITS_HIT.samples())["quota",]
    left = refusal(keeper, root, "ann/c")
    assert left == {"quota_repos": "0 of 2 left, 1 needed"}
    assert dict(LIMITS_HIT.samples())["quota",] == before + 1
    assert sorted(os.listdir(f"{root}/ann")) == ["a", "b", "owner.json"]
    assert put(keeper, root, "ann/a", "Two.").version == "1.0.1"
    assert put(keeper, root, "bob/c").version == "1.0.0"


def test_versions(root: str):
    keeper = QuotaKeeper(root, Quotas(versions=3))
    put(keeper, root, "ann/a", "One.")
    put(keeper, root, "ann/a", "Two.")
    put(keeper, root, "ann/b")
    left = {"quota_versions": "0 of 3 left, 1 needed"}
    assert refusal(keeper, root, "ann/a", "Three.") == left
    assert refusal(keeper, root, "ann/c") == left
    # Nothing is written, so nothing is refused.
    assert put(keeper, root, "ann/a", "Two.").unchanged


def test_bytes(root: str):
    put(None, root, text="x" * 1000)
    put(None, root, "ann/other", text="x" * 1000)
    first = used_bytes(root)
    keeper = QuotaKeeper(root, Quotas(bytes=2 * first))
    put(keeper, root, text="y" * 1000)
    used = used_bytes(root)
    assert used > first + 1000
    (message,) = refusal(keeper, root, text="z" * first).values()
    assert message.startswith(f"{2 * first - used:,} of {2 * first:,} left, ")
    assert used_bytes(root) == used


@pytest.mark.parametrize("paths", [[], ["run.sh"], ["a/b/c.md", "a/d.md"]])
def test_exactly_the_quota_of_bytes(
    root: str, tmp_path_factory: pytest.TempPathFactory, paths: list[str]
):
    elsewhere = str(tmp_path_factory.mktemp("content"))
    files = [{"path": path, "content": path * 1000} for path in paths]
    put(None, elsewhere, files=files)
    size = used_bytes(elsewhere)
    refusal(QuotaKeeper(root, Quotas(bytes=size - 1)), root, files=files)
    assert not Path(root, "ann").exists()
    keeper = QuotaKeeper(root, Quotas(bytes=2 * size))
    put(keeper, root, files=files)
    assert used_bytes(root) == size
    # The files that a version keeps are copies, and count again.
    left = refusal(keeper, root, text="More than one.")["quota_bytes"]
    assert left.startswith(f"{size:,} of {2 * size:,} left")


def test_what_else_changes_the_content_counts(root: str):
    keeper = QuotaKeeper(root, Quotas(repos=2, versions=4))
    put(keeper, root, "ann/a")
    for text in ("One.", "Two."):
        put(None, root, "ann/b", text)  # as `hubctl import` and other processes do
    assert put(keeper, root, "ann/b", "Three.").version == "1.0.2"
    full = {"quota_repos": "0 of 2 left, 1 needed", "quota_versions": "0 of 4 left, 1 needed"}
    assert refusal(keeper, root, "ann/c") == full
    assert refusal(QuotaKeeper(root, Quotas(2, 4)), root, "ann/c") == full
    for path in Path(root, "ann/b").iterdir():
        path.unlink()
    assert put(keeper, root, "ann/c").version == "1.0.0"


def test_a_publication_that_dies_counts_for_nothing(root: str):
    keeper = QuotaKeeper(root, Quotas(repos=1, versions=1))
    for number in range(1, 200):
        owner, died = f"ann-{number}", []

        def die(died: list[bool] = died) -> None:
            died.append(True)
            raise OSError(5, "Input/output error")

        with watched(at(number, die)), contextlib.suppress(HubError, OSError):
            put(keeper, root, f"{owner}/story")
        there = acts.versions_of(root, f"{owner}/story")
        assert put(keeper, root, f"{owner}/story").unchanged == bool(there)
        assert refusal(keeper, root, f"{owner}/more")
        if not died:
            break
    assert not died and number > 20


def test_a_refused_request_leaves_its_key_free(root: str, tmp_path_factory):
    keeper = QuotaKeeper(root, Quotas(versions=1))
    put(keeper, root)
    with Database(str(tmp_path_factory.mktemp("state"))) as database:
        key = IdempotencyKey(database, "ann", "k", b"mark")
        assert refusal(keeper, root, text="Two.", idempotency_key=key)
        assert database.execute("SELECT count(*) FROM answer") == [(0,)]


@pytest.mark.parametrize(
    ("quotas", "repos", "let_through"),
    [
        (Quotas(repos=3), [f"ann/story-{number}" for number in range(THREADS)], 3),
        (Quotas(versions=3), ["ann/story"] * THREADS, 3),
        (Quotas(versions=5), [f"ann/story-{number % 4}" for number in range(THREADS)], 5),
        (Quotas(bytes=10_000), [f"ann/story-{number}" for number in range(THREADS)], 2),
    ],
)
def test_at_once(root: str, quotas: Quotas, repos: list[str], let_through: int):
    # Each thread has a keeper of its own, as processes do.
    gate = threading.Barrier(THREADS)

    def work(number: int) -> bool:
        keeper = QuotaKeeper(root, quotas)
        gate.wait()
        try:
            put(keeper, root, repos[number], f"{number}" * 4000)
        except RequestError as error:
            assert error.details[0].field.startswith("quota_")
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(work, range(THREADS))) == let_through
    assert len(list(Path(root, "ann").glob("*/*.json"))) == let_through
    assert list(check(root)) == []


def test_only_changed_repos_are_listed_again(tmp_path: Path, settled: None):
    root = str(tmp_path)
    keeper = QuotaKeeper(root, Quotas(repos=100))
    for number in range(20):
        put(keeper, root, f"ann/story-{number}")
    put(keeper, root, "ann/story-0", "Two.")
    listed: list[str] = []
    with watched(lambda call, args: listed.append(args[0]) if call == "scandir" else None):
        put(keeper, root, "ann/story-0", "Three.")
    # Listed by the publication itself, and once more for the count.
    repo = f"{root}/ann/story-0"
    labels, withdrawn, files = (f"{repo}/{one}" for one in ("labels", "withdrawn", "1.0.0.files"))
    assert {*listed} == {labels, repo, withdrawn, files, f"{root}/ann"}
    assert listed[listed.index(f"{root}/ann") :] == [f"{root}/ann", repo, labels, withdrawn]


def test_nothing_is_counted_without_quotas(tmp_path: Path):
    root = str(tmp_path)
    put(None, root)
    calls: list[str] = []
    with watched(lambda call, args: calls.append(call) if call in ("scandir", "flock") else None):
        put(QuotaKeeper(root, NO_QUOTAS), root, text="Two.")
    # The repo, its two folders, and the files of its latest version.
    assert calls == ["flock", *["scandir"] * 4]


def test_default_quotas():
    assert default_quotas(open_signup=False) == NO_QUOTAS
    assert default_quotas(open_signup=True) == OPEN_SIGNUP_QUOTAS and all(OPEN_SIGNUP_QUOTAS)


@pytest.mark.parametrize(
    ("args", "environ", "quotas"),
    [
        ([], {}, NO_QUOTAS),
        (["--open-signup"], {}, OPEN_SIGNUP_QUOTAS),
        ([], {"HUB_OPEN_SIGNUP": "1"}, OPEN_SIGNUP_QUOTAS),
        ([], {"HUB_QUOTA_VERSIONS": "7", "HUB_QUOTA_BYTES": "0"}, Quotas(versions=7)),
        (["--quota-repos", "5"], {"HUB_QUOTA_REPOS": "6", "HUB_QUOTA_BYTES": "7"}, Quotas(5, 0, 7)),
        (["--open-signup", "--quota-bytes", "0"], {}, OPEN_SIGNUP_QUOTAS._replace(bytes=0)),
    ],
)
def test_quotas_of_the_command_line(args: list[str], environ: dict[str, str], quotas: Quotas):
    given: list[Quotas] = []

    @click.command()
    @publishing_options
    def command(publishing: Publishing) -> None:
        given.append(publishing.limits.quotas)

    assert CliRunner().invoke(command, args, env=environ).exit_code == 0
    assert given == [quotas]
