"""Each log line is one line of JSON, whatever is logged. Messages of foreign errors stay out."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import OperatorError, RequestError
from builder.pipeline.build import Built
from publisher.log import JsonFormatter, configure_logging, log_build, log_event

MARKER = "MARMALADE"
REPORT = Built(
    repos=2, versions=3, rendered=1, written=0, unchanged=9, removed=0, indexed=1, is_settled=True,
    behind_seconds=0.0, seconds=0.0125,
)  # fmt: skip


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """The output of the loggers ``hub.*``; restores them afterwards."""
    log = logging.getLogger("hub")
    before = log.handlers, log.level, log.propagate
    written = io.StringIO()
    configure_logging(written)
    yield written
    log.handlers, log.level, log.propagate = before


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def caught(act: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as found:
        act()
    return found.value


def logged(error: BaseException) -> tuple[str, list[dict]]:
    """The line of an error, and what it says of the error."""
    log = logging.getLogger("hub.test")
    info = (type(error), error, error.__traceback__)
    line = JsonFormatter().format(log.makeRecord("hub.test", 40, "", 0, "failed", (), info))
    return line, json.loads(line)["exception"]


def test_a_line(stream: io.StringIO):
    before = datetime.now(UTC).replace(microsecond=0)
    log_event(logging.getLogger("hub.any"), logging.INFO, "done", status=201, token=None)
    (line,) = lines(stream)
    assert list(line) == ["time", "level", "event", "status", "token"]
    assert line | {"time": ""} == {
        "time": "", "level": "info", "event": "done", "status": 201, "token": None,
    }  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert datetime.fromisoformat(line["time"]) >= before


def test_lines_of_those_who_know_nothing_of_fields(stream: io.StringIO):
    log = logging.getLogger("hub.serve")
    log.error("cannot answer %s\n%s", "GET", "it broke")
    log.debug("not written")
    logging.getLogger("elsewhere").error("not ours")
    (line,) = lines(stream)
    assert line["event"] == "cannot answer GET\nit broke" and line["level"] == "error"


def test_configured_twice_each_line_is_written_once(stream: io.StringIO):
    configure_logging(stream)
    logging.getLogger("hub.any").info("done")
    assert len(lines(stream)) == 1


@given(st.text() | st.text(st.characters(categories=["Cs", "Cc", "Zl", "Zp"])) | st.binary())
def test_whatever_is_logged_stays_one_line(value: object):
    log = logging.getLogger("hub.test")
    record = log.makeRecord("hub.test", 20, "", 0, "x", (), None, extra={"fields": {"a": value}})
    line = JsonFormatter().format(record)
    assert line.isascii() and line.isprintable()
    read = json.loads(line)["a"]
    assert as_utf16(read) == as_utf16(str(value))


def as_utf16(text: str) -> bytes:
    """Two halves of a surrogate pair are one character in JSON."""
    return text.encode("utf-16", "surrogatepass")


def test_causes_are_reported():
    def fail() -> None:
        try:
            raise OSError(28, MARKER)
        except OSError as error:
            raise RequestError("storage_unavailable", "Free disk space.") from error

    line, (outer, cause) = logged(caught(fail))
    assert (outer["type"], outer["message"]) == ("RequestError", "Free disk space.")
    assert cause["type"] == "OSError" and "message" not in cause and cause["stack"]
    assert MARKER not in line


def test_an_error_while_another_is_handled():
    def fail(is_hidden: bool) -> None:
        try:
            raise KeyError(MARKER)
        except KeyError:
            if is_hidden:
                raise OperatorError("Mend it.") from None
            raise OperatorError("Mend it.")  # noqa: B904

    assert [error["type"] for error in logged(caught(lambda: fail(False)))[1]] == [
        "OperatorError", "KeyError",
    ]  # fmt: skip
    assert [error["type"] for error in logged(caught(lambda: fail(True)))[1]] == ["OperatorError"]


def test_causes_have_an_end():
    error, other = ValueError(), KeyError()
    error.__cause__, other.__cause__ = other, error
    assert len(logged(error)[1]) == 5


def test_builds(stream: io.StringIO):
    log_build(REPORT)
    assert lines(stream) == []  # nothing has changed
    log_build(REPORT._replace(written=4, removed=1))
    log_build(OperatorError("Make the folder."))
    built, failed = lines(stream)
    assert built | {"time": ""} == {
        "time": "", "level": "info", "event": "build", "repos": 1, "files": 4, "removed": 1,
        "milliseconds": 12.5,
    }  # fmt: skip
    assert failed["level"] == "error" and failed["exception"][0]["message"] == "Make the folder."
