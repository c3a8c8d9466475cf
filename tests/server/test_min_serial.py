"""Reads that want nothing older than a serial, over real HTTP."""

from pathlib import Path

import pytest
import requests

from builder.model.errors import RequestError
from builder.model.settings import Settings
from builder.pipeline.build import build
from server.min_serial import MinSerial, TooOld
from tests.support.catalogues import write_version
from tests.support.servers import Server, serving, wait_until

PATHS = (
    "/api/v1/repos", "/api/v1/repos?sort=new", "/api/v1/repos?q=sql",
    "/api/v1/repos?tag=sql,review", "/api/v1/hub.json", "/api/v1/repos/sam-ferreira/diff-review",
    "/api/v1/repos/sam-ferreira/diff-review/raw",
    "/api/v1/repos/sam-ferreira/diff-review/raw?version=1.0.0", "/", "/sam-ferreira",
    "/assets/style.css",
)  # fmt: skip


def with_min(path: str, value: object) -> str:
    return f"{path}{'&' if '?' in path else '?'}min_serial={value}"


@pytest.fixture(scope="module")
def serial(live: Server) -> int:
    return live.get("/api/v1/hub.json").json()["data"]["serial"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_is_there_is_answered_as_ever(
    live: Server, serial: int, path: str, method: str
) -> None:
    plain = live.request(method, path)
    assert plain.status_code == 200
    for value in (0, serial, f"{serial:012}"):
        answer = live.request(method, with_min(path, value))
        assert (answer.status_code, answer.content) == (200, plain.content)
        for name in ("ETag", "Cache-Control", "Content-Type", "Content-Length"):
            assert answer.headers[name] == plain.headers[name]
    condition = {"If-None-Match": plain.headers["ETag"]}
    assert live.request(method, with_min(path, serial), headers=condition).status_code == 304
    path, _, query = with_min(path, serial).partition("?")
    coded = query.replace("min_serial", "min%5Fserial")
    assert live.request(method, f"{path}?{coded}").content == plain.content


@pytest.mark.parametrize("path", [*PATHS, "/api/v1/repos/ann/not-yet", "/ann/not-yet"])
def test_what_is_not_there_yet_is_unavailable(live: Server, serial: int, path: str) -> None:
    answer = live.get(with_min(path, serial + 1))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "unavailable")
    assert f"up to serial {serial}, not yet {serial + 1}." in error["message"]
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Cache-Control"] == "no-store"
    head = live.request("HEAD", with_min(path, serial + 1))
    assert (head.status_code, head.content, head.headers["Retry-After"]) == (503, b"", "1")
    condition = {"If-None-Match": "*"}
    assert live.get(with_min(path, "9" * 12), headers=condition).status_code == 503


@pytest.mark.parametrize(
    "value", ["", "-1", "+1", "1.0", "x", "9" * 13, "%D9%A3", "0x1", "1&min_serial=1"]
)
def test_what_is_no_serial(live: Server, value: str) -> None:
    for path in ("/api/v1/repos", "/api/v1/repos/sam-ferreira/diff-review", "/"):
        answer = live.get(with_min(path, value.replace("+", "%2B")))
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "invalid_parameter")
        assert "min_serial" in error["message"]


def test_other_parameters_stay_as_they_are(live: Server, serial: int) -> None:
    for path in ("/api/v1/repos?page=0", "/api/v1/repos?page=1&page=1", "/api/v1/repos?q=..."):
        plain = live.get(path)
        assert plain.status_code == 400
        assert live.get(with_min(path, serial)).content == plain.content
    missing = live.get("/api/v1/repos/ann/none")
    assert live.get("/api/v1/repos/ann/none?min_serial=0").content == missing.content
    # A value, and a part of another name.
    for query in ("q=min_serial", "my_min_serial=x", "min_serial_of=x"):
        assert live.get(f"/api/v1/repos?{query}").status_code == 200


def test_a_build_brings_what_was_waited_for(small: Settings) -> None:
    build(small)
    with serving(small, "--watch") as server:
        path = "/api/v1/repos/ann/story?min_serial=5"
        assert server.get(path).status_code == 503
        write_version(small.content, "ann", "story", "1.0.1", "Longer.\n")
        answer: requests.Response = wait_until_answered(server, path)
        assert answer.json()["data"]["latest_version"] == "1.0.1"
        listed = server.get("/api/v1/repos?sort=top&min_serial=5").json()["data"]
        assert {row["name"]: row["latest_version"] for row in listed}["story"] == "1.0.1"


def wait_until_answered(server: Server, path: str) -> requests.Response:
    def answered() -> requests.Response | None:
        answer = server.get(path)
        assert answer.status_code in (200, 503)
        return answer if answer.status_code == 200 else None

    return wait_until(answered, path)


def test_hub_json_is_read_when_it_changes(small: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = MinSerial(small.out)
    with pytest.raises(TooOld, match="being built"):
        reads.check(b"min_serial=1")
    build(small)
    assert reads.check(b"q=x&min_serial=4&sort=new") == b"q=x&sort=new"
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", None)
        assert reads.check(b"min_serial=4") == b""
        with pytest.raises(TooOld, match="up to serial 4, not yet 5"):
            reads.check(b"min_serial=5")
    write_version(small.content, "ann", "story", "1.0.1", "Longer.\n")
    build(small)
    assert reads.check(b"min_serial=5") == b""
    Path(small.out, "api/v1/hub.json").unlink()
    with pytest.raises(RequestError, match="being built"):
        reads.check(b"min_serial=0")
