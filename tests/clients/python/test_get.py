"""Reading: which file is asked for, how long an answer is used, and who shares it."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import hub_prompts
import pytest
from hub_prompts import AsyncHub, Got, Hub, InvalidName, NotFound, Unavailable, Withdrawn

from tests.clients.python.fake import (
    LABELLED,
    LATEST,
    OF_A_LABEL,
    PINNED,
    Clock,
    FakeHub,
    answer,
    record,
    refusal,
)  # fmt: skip
from tests.support.servers import Server, wait_until


@pytest.mark.parametrize(
    ("reference", "path", "label"),
    [
        ("ada/hello", LATEST, None),
        ("ada/hello@latest", LATEST, None),
        ("ada/hello@1.0.0", PINNED, None),
        ("ada/hello@production", LABELLED, "production"),
    ],
)
def test_a_reference_is_a_file_that_every_host_has(
    fake: FakeHub, reference: str, path: str, label: str | None
):
    body = record()
    if label:
        body["label"] = label
    if path == LATEST:
        body["latest_version"] = body.pop("version")
    fake.has(path, hub_prompts.json.dumps({"data": body}).encode())
    prompt = Hub(fake.url).get(reference)
    assert (prompt.id, prompt.version, prompt.sha256) == ("ada/hello", "1.0.0", body["sha256"])
    assert (prompt.content, prompt.parameters) == (body["content"], {"temperature": 0.5})
    assert prompt.fill(name="Bob") == "Hello Bob.\n"
    assert fake.paths == [path]


@pytest.mark.parametrize(
    "reference",
    ["", "ada", "ada/", "/hello", "ada/hello@", "Ada/hello", "ada/hello@1.0.0/..", "../x/y",
     "ada/hello?x", "ada/hello\n", "ada/hello@-x", "a" * 300 + "/b", None, b"ada/hello", ["ada"]],
)  # fmt: skip
def test_other_references_are_refused_without_a_request(fake: FakeHub, reference: str):
    with pytest.raises(InvalidName, match="is not OWNER/NAME"):
        Hub(fake.url).get(reference)
    with pytest.raises(InvalidName):
        Hub(fake.url).get(reference, fallback="Hi.")
    with pytest.raises(InvalidName):
        asyncio.run(AsyncHub(fake.url).get(reference, fallback="Hi."))
    assert fake.asked == []


def test_what_is_fresh_is_not_asked_for_again(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer(), Cache_Control="max-age=60")
    told: list[Got] = []
    hub = Hub(fake.url, on_get=told.append)
    first = hub.get("ada/hello")
    clock.pass_by(59)
    assert hub.get("ada/hello") is first
    assert len(fake.asked) == 1
    assert [(one.repo, one.version, one.source, one.error) for one in told] == [
        ("ada/hello", "1.0.0", "network", None),
        ("ada/hello", "1.0.0", "memory", None),
    ]
    assert all(one.seconds >= 0 for one in told)


def test_what_is_stale_is_used_while_it_is_checked(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer("Old."), Cache_Control=OF_A_LABEL, ETag='"1"')
    hub = Hub(fake.url)
    hub.get("ada/hello")
    fake.on_request = fake.stall
    clock.pass_by(16)
    # No call waits for the check, and only one runs.
    assert [hub.get("ada/hello").content for _ in range(20)] == ["Old."] * 20
    fake.has(LATEST, answer("New."), Cache_Control=OF_A_LABEL, ETag='"2"')
    fake.let_go.set()
    wait_until(lambda: hub.get("ada/hello").content == "New.", "the new text")
    assert len(fake.asked) == 2
    assert fake.asked[1][1]["If-None-Match"] == '"1"'


def test_a_304_makes_an_entry_fresh_again(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL, ETag='"1"')
    hub = Hub(fake.url)
    prompt = hub.get("ada/hello")
    fake.has(LATEST, b"", 304)
    for _ in range(3):
        clock.pass_by(100)
        assert hub.get("ada/hello") is prompt
        assert hub.get("ada/hello") is prompt
    assert len(fake.asked) == 4


def test_after_that_a_call_waits_for_the_new_text(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer("Old."), Cache_Control=OF_A_LABEL)
    hub = Hub(fake.url)
    hub.get("ada/hello")
    fake.has(LATEST, answer("New."), Cache_Control=OF_A_LABEL)
    clock.pass_by(15 + 61)
    assert hub.get("ada/hello").content == "New."


@pytest.mark.parametrize(
    "told", ["no-store", "no-cache", "max-age=0, stale-while-revalidate=0, stale-if-error=0"]
)
def test_what_may_not_be_kept_is_asked_for_each_time(fake: FakeHub, told: str):
    fake.has(LATEST, answer(), Cache_Control=told)
    hub = Hub(fake.url)
    assert [hub.get("ada/hello").version for _ in range(3)] == ["1.0.0"] * 3
    assert len(fake.asked) == 3
    fake.fails()
    with pytest.raises(Unavailable):
        hub.get("ada/hello")


def test_hosts_without_cache_control_get_the_hub_s_own(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer())
    hub = Hub(fake.url)
    hub.get("ada/hello")
    clock.pass_by(14)
    hub.get("ada/hello")
    assert len(fake.asked) == 1
    clock.pass_by(2)
    hub.get("ada/hello")
    wait_until(lambda: len(fake.asked) == 2, "a check in the background")


def test_threads_share_a_request(fake: FakeHub):
    fake.has(LATEST, answer())
    fake.on_request = fake.stall
    hub = Hub(fake.url, timeout=60)
    began = threading.Barrier(31)

    def get() -> str:
        began.wait()
        return hub.get("ada/hello").version

    with ThreadPoolExecutor(30) as pool:
        found = [pool.submit(get) for _ in range(30)]
        began.wait()
        wait_until(lambda: fake.asked, "a request")
        fake.let_go.set()
        assert {one.result() for one in found} == {"1.0.0"}
    assert len(fake.asked) == 1


def test_tasks_share_a_request_and_one_may_be_cancelled(fake: FakeHub):
    fake.has(LATEST, answer())
    fake.on_request = fake.stall

    async def main() -> None:
        hub = AsyncHub(fake.url, timeout=60)
        tasks = [asyncio.create_task(hub.get("ada/hello")) for _ in range(200)]
        while not fake.asked:
            await asyncio.sleep(0.01)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        fake.let_go.set()
        assert {prompt.version for prompt in await asyncio.gather(*tasks[1:])} == {"1.0.0"}
        assert (await hub.get("ada/hello")).version == "1.0.0"

    asyncio.run(main())
    assert len(fake.asked) == 1


def test_many_prompts_at_once_have_few_threads(fake: FakeHub):
    names = [f"prompt-{number}" for number in range(200)]
    for name in names:
        fake.has(f"/api/v1/repos/ada/{name}.json", answer(name=name))
    most = 0
    before = set(threading.enumerate())

    def send(handler: object) -> None:
        nonlocal most
        new = set(threading.enumerate()) - before
        found = [one for one in new if one.name.startswith("hub-prompts")]
        most = max(most, len(found))
        fake.send(handler)

    async def main() -> list[str]:
        hub = AsyncHub(fake.url, timeout=120)
        found = await asyncio.gather(*(hub.get(f"ada/{name}") for name in names))
        return [prompt.id for prompt in found]

    fake.on_request = send
    assert asyncio.run(main()) == [f"ada/{name}" for name in names]
    assert 1 < most <= 2 * hub_prompts.FLIGHTS_MAX
    assert len(fake.asked) == 200


def test_memory_is_bounded(fake: FakeHub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_prompts, "PROMPTS_MAX", 3)
    hub = Hub(fake.url, disk=False)
    for number in range(5):
        fake.has(f"/api/v1/repos/ada/p{number}.json", answer(name=f"p{number}"))
        hub.get(f"ada/p{number}")
        with pytest.raises(NotFound):
            hub.get(f"ada/none{number}")
    fake.asked.clear()
    for number in (4, 0):
        hub.get(f"ada/p{number}")
    assert fake.paths == ["/api/v1/repos/ada/p0.json"]


@pytest.mark.parametrize(
    ("status", "code", "error"), [(404, "label_not_found", NotFound), (410, "withdrawn", Withdrawn)]
)
def test_what_is_gone_is_not_read_from_a_copy(
    fake: FakeHub, clock: Clock, status: int, code: str, error: type[Exception]
):
    fake.has(LABELLED, answer(label="production"), Cache_Control=OF_A_LABEL)
    hub = Hub(fake.url)
    hub.get("ada/hello@production")
    fake.has(LABELLED, refusal(code, "Gone.\x1b[31m\n"), status)
    clock.pass_by(100)
    for one in (hub, hub, Hub(fake.url)):
        with pytest.raises(error, match=r"^No ada/hello@production: Gone\.\[31m$"):
            one.get("ada/hello@production")
    assert issubclass(error, LookupError) and len(fake.asked) == 3
    # Not remembered for long.
    fake.has(LABELLED, answer(label="production"))
    clock.pass_by(hub_prompts.RETRY_SECONDS + 1)
    assert hub.get("ada/hello@production").version == "1.0.0"


def test_it_is_gone_for_those_who_do_not_wait_too(fake: FakeHub, clock: Clock):
    fake.has(LATEST, answer(), Cache_Control=OF_A_LABEL)
    hub = Hub(fake.url)
    hub.get("ada/hello")
    fake.has(LATEST, refusal("withdrawn"), 410)
    clock.pass_by(20)
    assert hub.get("ada/hello").version == "1.0.0"

    def is_gone() -> bool:
        try:
            hub.get("ada/hello")
        except Withdrawn:
            return True
        return False

    wait_until(is_gone, "the withdrawal")


def test_hosts_of_files_say_not_found_in_their_own_words(fake: FakeHub):
    fake.has(LATEST, b"<h1>Nothing here</h1>", 404)
    with pytest.raises(NotFound, match=f"^No ada/hello: {fake.url}{LATEST}: status 404"):
        Hub(fake.url).get("ada/hello")


def test_on_get_cannot_break_a_read(fake: FakeHub, caplog: pytest.LogCaptureFixture):
    fake.has(LATEST, answer())

    def fail(_: Got) -> None:
        raise RuntimeError("a fault of the caller's")

    assert Hub(fake.url, on_get=fail).get("ada/hello").version == "1.0.0"
    assert "on_get failed" in caplog.text


def test_a_fallback_stands_for_what_cannot_be_read(fake: FakeHub, caplog: pytest.LogCaptureFixture):
    told: list[Got] = []
    hub = Hub(fake.url, on_get=told.append)
    with caplog.at_level(logging.WARNING):
        prompt = hub.get("ada/hello", fallback="Hi {{name}}.")
    assert (prompt.version, prompt.fill(name="Bob", other=1)) == (None, "Hi Bob.")
    assert prompt.messages(name="Bob") == [{"role": "user", "content": "Hi Bob."}]
    assert {(one.source, one.version) for one in told} == {("fallback", None)}
    assert isinstance(told[0].error, NotFound)
    assert caplog.text.count("Using the fallback") == 1

    async def main() -> str:
        return (await AsyncHub(fake.url).get("ada/hello", fallback="Hi.")).content

    assert asyncio.run(main()) == "Hi."


@pytest.mark.parametrize("ref", ["", "@latest", "@1.0.0", "@staging"])
def test_a_prompt_of_a_team_is_read_like_any(team_hub: Server, ref: str):
    prompt = Hub(team_hub.url).get(f"support/triage{ref}")
    assert (prompt.id, prompt.version) == ("support/triage", "1.0.0")
    assert prompt.fill(ticket="a late parcel") == "Sort a late parcel."
