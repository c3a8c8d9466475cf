"""An object store as nodes see it: what it does, and what they are told when it does not."""

import contextlib
import itertools
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from builder.model.errors import OperatorError
from publisher.nodes import objects
from publisher.nodes.objects import Objects, StoreUnavailable
from tests.support.fault_proxy import FaultProxy, Rule
from tests.support.object_stores import ObjectStore
from tests.support.servers import free_port, in_thread


def opened(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Objects:
    for key, value in store.environment.items():
        monkeypatch.setenv(key, value)
    return Objects(store.url)


@pytest.fixture
def each(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Objects:
    """Each of the stores in turn."""
    return opened(object_store, monkeypatch)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library gives up soon: tests wait for nothing but its errors."""
    monkeypatch.setattr(objects, "CONNECT_SECONDS", 1)
    monkeypatch.setattr(objects, "REQUEST_SECONDS", 1)


@pytest.fixture
def proxy(served_store: ObjectStore) -> Iterator[FaultProxy]:
    with FaultProxy(served_store.server) as proxy:
        yield proxy


@pytest.fixture
def behind(
    served_store: ObjectStore, proxy: FaultProxy, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> Objects:
    """Each of the stores that are servers, through the proxy."""
    return opened(served_store.through(proxy.address), monkeypatch)


# What a store does


def test_an_object_is_created_once(each: Objects) -> None:
    assert each.get("log/1", 10) is None
    assert each.create("log/1", b"first")
    assert not each.create("log/1", b"other")
    assert each.get("log/1", 5) == b"first"
    assert each.create("log/2", b"")
    assert each.get("log/2", 0) == b""


def test_an_object_is_replaced(each: Objects) -> None:
    each.put("log/1", b"first")
    each.put("log/1", b"")
    assert each.get("log/1", 0) == b""
    assert not each.create("log/1", b"again")
    each.put("log/2", b"other")
    assert dict(each.sizes("log/")) == {"log/1": 0, "log/2": 5}


def test_work_is_in_order_and_without_end(each: Objects) -> None:
    found = each.each(str, itertools.count())
    assert [next(found) for _ in range(200)] == [*map(str, range(200))]
    found.close()


def test_one_of_many_creates_it(each: Objects) -> None:
    for key in ("race/1", "race/2", "race/3"):
        texts = [b"%d" % number for number in range(objects.JOBS)]
        won = [*each.each(lambda text, key=key: each.create(key, text), texts)]
        assert sum(won) == 1
        assert each.get(key, 10) == texts[won.index(True)]


def test_an_object_of_too_many_bytes(each: Objects) -> None:
    each.create("log/1", b"123456")
    with pytest.raises(StoreUnavailable, match=r"log/1 in the store \S+ has 6 bytes, but 5 is"):
        each.get("log/1", 5)


def test_a_prefix_apart(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hubs in one bucket see nothing of each other, though one's name begins the other's."""
    ours = opened(object_store, monkeypatch)
    theirs = Objects(f"{object_store.url}-2/")
    assert ours.create("log/1", b"ours") and theirs.create("log/1", b"theirs")
    assert ours.get("log/1", 10) == b"ours"
    assert [*ours.keys("log/")] == [*theirs.keys("log/")] == ["log/1"]


def test_listing(each: Objects) -> None:
    """Listings have several pages, and what is beside a prefix is none of it."""
    keys = [f"log/{number:012}.json" for number in range(1, 1102)]
    others = ["logs/1", "blobs/ann/story/x", "blobs/ann/story-2/x"]
    for _ in each.each(lambda key: each.put(key, b"x"), [*keys, *others]):
        pass
    assert sorted(each.keys("log/")) == keys
    assert sorted(each.keys("log/", after=keys[1000])) == keys[1001:]
    assert sorted(each.keys("log/", after="log/000000000999")) == keys[998:]
    assert [*each.keys("log/", after=keys[-1])] == []
    assert [*each.keys("blobs/ann/story/")] == ["blobs/ann/story/x"]
    assert [*each.keys("leases/")] == []


def test_deleting(each: Objects) -> None:
    each.create("a/1", b"x")
    each.create("a/2", b"x")
    each.delete(["a/1", "a/none"])
    assert [*each.keys("a/")] == ["a/2"]
    assert each.get("a/1", 1) is None
    assert each.create("a/1", b"again")


def test_probe(each: Objects) -> None:
    """It passes, and leaves nothing."""
    each.probe()
    assert [*each.keys("")] == []


# Addresses


@pytest.mark.parametrize("url", [
    "content", "/srv/store", "http://127.0.0.1/x", "s3:/bucket", "s3://", "ftp://bucket/x",
    "s3://key:secret@bucket/x", "s3://bucket/x?region=us", "s3://bucket/x#y", "s3://bucket/a b", "",
])  # fmt: skip
def test_no_address_of_a_store(url: str) -> None:
    with pytest.raises(OperatorError) as caught:
        Objects(url)
    assert str(caught.value).startswith(f"--store {url!r} is no address of a store. Give one such ")


# A store that does not coordinate


class Careless:
    """A server that does what it is asked, and does not read conditions. ``look`` makes it read
    them, but look first and put later.
    """

    def __init__(self, look: bool) -> None:
        self.kept: dict[str, bytes] = {}
        kept = self.kept
        meeting = threading.Barrier(2)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["If-None-Match"] == "*"
                is_there = self.path in kept
                if look and not is_there and self.path.endswith("-race"):
                    # Two at once look before either puts; who is left alone goes on.
                    with contextlib.suppress(threading.BrokenBarrierError):
                        meeting.wait(1)
                if look and is_there:
                    self.answer(412)
                    return
                kept[self.path] = body
                self.answer(200)

            def do_GET(self) -> None:
                found = kept.get(self.path)
                self.answer(200 if found is not None else 404, found or b"")

            def do_POST(self) -> None:
                """Several deletions at once."""
                asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
                bucket = self.path.partition("?")[0].rstrip("/")
                keys = re.findall("<Key>(.+?)</Key>", asked)
                for key in keys:
                    kept.pop(f"{bucket}/{key}")
                deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
                self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

            def answer(self, status: int, body: bytes = b"") -> None:
                self.send_response(status)
                self.send_header("ETag", '"x"')
                self.send_header("Last-Modified", "Sat, 31 Jan 2026 09:30:00 GMT")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True


@pytest.mark.parametrize(("look", "what"), [
    (False, "created the same object twice"), (True, r"let [2-8] of 8 callers win a race"),
])  # fmt: skip
def test_a_store_that_ignores_conditions(
    look: bool, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = Careless(look)
    with in_thread(careless.server):
        url = f"http://127.0.0.1:{careless.server.server_port}"
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
        store = ObjectStore("s3://bucket", {"AWS_ENDPOINT_URL": url, **keys})
        with pytest.raises(OperatorError) as caught:
            opened(store, monkeypatch).probe()
    assert re.fullmatch(
        rf"The store s3://bucket {what}, so it ignores `If-None-Match: \*`, and nodes would "
        "overwrite each other's publications. Use one that honours it, such as .+",
        str(caught.value),
    )  # fmt: skip
    assert not isinstance(caught.value, StoreUnavailable)
    assert careless.kept == {}


# A store that cannot be reached, or does not answer


def test_nobody_there(
    served_store: ObjectStore, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(served_store.through(f"127.0.0.1:{free_port()}"), monkeypatch)
    for work, what in [
        (lambda: store.create("log/1", b"x"), "create log/1"),
        (lambda: store.get("log/1", 1), "read log/1"),
        (lambda: [*store.keys("log/")], "list log/"),
        (lambda: store.delete(["log/1"]), "delete log/1"),
        (store.probe, "create probe/.*"),
    ]:
        with pytest.raises(
            StoreUnavailable, match=f"The store {store.url} did not {what}: .+"
        ) as e:
            work()
        assert e.value.code == "storage_unavailable"


@pytest.mark.parametrize("fault", ["cut", "hang", "busy"])
def test_no_answer(fault: str, behind: Objects, proxy: FaultProxy) -> None:
    """It ends within the limits, has not been done, and is done once the store is back."""
    proxy.set_rules(Rule(fault))
    for work in (lambda: behind.create("log/1", b"x"), lambda: behind.get("log/1", 1)):
        with pytest.raises(StoreUnavailable, match=r"did not (create|read) log/1: .+"):
            work()
    with pytest.raises(StoreUnavailable, match=r"did not list log/: .+"):
        [*behind.keys("log/")]
    proxy.set_rules()
    assert behind.get("log/1", 1) is None
    assert behind.create("log/1", b"y")


def test_one_fault_is_nothing(behind: Objects, proxy: FaultProxy) -> None:
    proxy.set_rules(Rule("busy", every=2))
    assert behind.create("log/1", b"x")
    assert behind.get("log/1", 1) == b"x"
    assert [*behind.keys("log/")] == ["log/1"]
    behind.delete(["log/1"])
    assert "busy" in [seen.fault for seen in proxy.take_seen()]
    assert behind.get("log/1", 1) is None


def test_a_lost_answer(behind: Objects, proxy: FaultProxy) -> None:
    """The caller hears that it is not known, or that the object is there: never that it created it
    when it did not.
    """
    proxy.set_rules(Rule("lost", "PUT", times=1))
    with contextlib.suppress(StoreUnavailable):
        assert not behind.create("log/1", b"ours")
    assert behind.get("log/1", 9) == b"ours"
    proxy.set_rules(Rule("lost", "PUT"))
    with contextlib.suppress(StoreUnavailable):
        assert not behind.create("log/2", b"ours")
    assert behind.get("log/2", 9) == b"ours"
    proxy.set_rules(Rule("lost", "GET", times=1))
    assert behind.get("log/1", 9) == b"ours"


def test_a_late_creation_loses(behind: Objects, proxy: FaultProxy) -> None:
    """A request that was given up arrives after another one's: the object stays."""
    proxy.set_rules(Rule("late", "PUT", "log/1", seconds=0.5))
    with pytest.raises(StoreUnavailable):
        behind.create("log/1", b"late")
    late = sum(seen.fault == "late" for seen in proxy.take_seen())
    assert late
    proxy.set_rules()
    created = behind.create("log/1", b"soon")
    kept = behind.get("log/1", 9)
    assert kept == (b"soon" if created else b"late")
    assert not behind.create("log/1", b"again")
    assert behind.get("log/1", 9) == kept


def test_probe_with_lost_answers(behind: Objects, proxy: FaultProxy) -> None:
    """It may not find out, but does not blame a store that keeps to the conditions."""
    for rule in (Rule("lost", "PUT", every=2), Rule("busy", every=3), Rule("cut", every=4)):
        proxy.set_rules(rule)
        with contextlib.suppress(StoreUnavailable):
            behind.probe()
        assert rule.fault in [seen.fault for seen in proxy.take_seen()]


def test_wrong_credentials(served_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(served_store.with_wrong_key(), monkeypatch)
    for work in (lambda: store.create("log/1", b"x"), lambda: store.get("log/1", 1), store.probe):
        with pytest.raises(StoreUnavailable) as caught:
            work()
        told = str(caught.value)
        assert told.startswith(f"The store {store.url} refused to ") and "\n" not in told
        assert told.endswith("credentials and their rights: they must list, get, put and delete.")
        assert len(told) < 600


def test_no_such_bucket(s3_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(s3_store._replace(url="s3://nobodys-bucket/x"), monkeypatch)
    with pytest.raises(StoreUnavailable, match=r"could not create log/1: there is no such buck"):
        store.create("log/1", b"x")
