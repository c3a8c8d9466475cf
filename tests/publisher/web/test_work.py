"""Work that anyone may request: it waits for publications, and each client has a budget."""

import threading
from functools import partial

import pytest

from builder.model.errors import RequestError
from publisher.service import work
from publisher.service.work import RUNNING_MAX, Work
from publisher.web import publishing
from publisher.write.check import check
from tests.publisher.web.test_check import CHECK
from tests.support.hubs import Hub
from tests.support.servers import DEADLINE_SECONDS

PLENTY = DEADLINE_SECONDS


def refuse(waits: list[int], wait_seconds: int) -> None:
    waits.append(wait_seconds)
    raise RequestError("rate_limited", "")


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU time of every thread, as a test sets it."""
    spent = [0.0]
    monkeypatch.setattr(work.time, "thread_time", lambda: spent[0])
    return spent


def test_a_failed_request_counts_too(cpu: list[float]):
    one, waits = Work(), []
    with pytest.raises(ValueError, match="wrong"), one.turn("a", partial(refuse, waits)):
        cpu[0] += 100
        raise ValueError("wrong")
    with pytest.raises(RequestError), one.turn("a", partial(refuse, waits)):
        raise AssertionError("it has no turn")


def test_work_waits_for_publications(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(work, "PATIENCE_SECONDS", PLENTY)
    one, order = Work(), []

    def check() -> None:
        with one.turn("a", refuse):
            order.append("check")

    thread = threading.Thread(target=check)
    with one.publication():
        with one.publication():
            thread.start()
        thread.join(0.05)
        order.append("publication")
    thread.join(PLENTY)
    assert order == ["publication", "check"]


def test_work_waits_only_so_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(work, "PATIENCE_SECONDS", 0)
    one = Work()
    with one.publication(), one.turn("a", refuse):
        pass


def test_few_requests_run_at_a_time():
    one, running, most = Work(), [], []
    begun, go = threading.Semaphore(0), threading.Event()

    def check(number: int) -> None:
        with one.turn(str(number), refuse):
            running.append(number)
            most.append(len(running))
            begun.release()
            go.wait(PLENTY)
            running.remove(number)

    threads = [threading.Thread(target=check, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(RUNNING_MAX):
        assert begun.acquire(timeout=PLENTY)
    go.set()
    for thread in threads:
        thread.join(PLENTY)
    assert len(most) == 6 and max(most) == RUNNING_MAX


def test_checks_over_the_budget_are_refused(
    hub: Hub, cpu: list[float], monkeypatch: pytest.MonkeyPatch
):
    def slow(*given: object, **options: object):
        cpu[0] += 100
        return check(*given, **options)

    def status(address: str) -> int:
        answers.append(post(CHECK, json={"content": "One."}, environ_base={"REMOTE_ADDR": address}))
        return answers[-1].status_code

    answers, post = [], hub.app.test_client().post
    monkeypatch.setattr(publishing, "check_draft", slow)
    assert [status("192.0.2.1"), status("192.0.2.1"), status("192.0.2.2")] == [200, 429, 200]
    assert 0 < int(answers[1].headers["Retry-After"]) <= 60
    assert "took too much time" in answers[1].json["error"]["message"]
