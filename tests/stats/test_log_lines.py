"""Lines of logs as entries, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.stats.log_lines import LogLine, parse_line, parse_time
from tests.stats.logs import NOW, line


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ('203.0.113.5 - - [21/Nov/2026:13:00:00 +0100] "GET /a?b=1 HTTP/1.1" 200 9 "-" "curl/8"',
         LogLine("203.0.113.5", "21/Nov/2026:13:00:00 +0100", "GET", "/a?b=1", 200, "curl/8")),
        ('::1 - - [21/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "x" "10.0.0.1" 0.003',
         LogLine("::1", "21/Nov/2026:13:00:00 +0000", "GET", "/", 200, "x")),
        ('1.2.3.4 - John [x] Doe [21/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "x"',
         LogLine("1.2.3.4", "21/Nov/2026:13:00:00 +0000", "GET", "/", 200, "x")),
        ('1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET /\\x22\\xC3\\xA9 HTTP/1" 404 1 "-" "-"',
         LogLine("1.2.3.4", "21/Nov/2026:13:00:00 +0000", "GET", '/"Ã©', 404, "-")),
        ('1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "\\x16\\x03\\x01" 400 150 "-" "-"',
         LogLine("1.2.3.4", "21/Nov/2026:13:00:00 +0000", "", "", 400, "-")),
        ('1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "" 400 0 "-" "-"',
         LogLine("1.2.3.4", "21/Nov/2026:13:00:00 +0000", "", "", 400, "-")),
        ('1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET /a b HTTP/1.1" 400 0 "-" "-"',
         LogLine("1.2.3.4", "21/Nov/2026:13:00:00 +0000", "", "", 400, "-")),
        ('1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET /a" 200 0 "-" "-"',
         LogLine("1.2.3.4", "21/Nov/2026:13:00:00 +0000", "GET", "/a", 200, "-")),
    ],
)  # fmt: skip
def test_combined(line, entry):
    assert parse_line(line.encode() + b"\n") == entry
    assert parse_line(line.encode() + b"\r\n") == entry
    assert parse_line(line.encode()) == entry


def test_what_a_client_sends_cannot_pass_for_another_field():
    forged = '/x\\" 200 9 \\"-\\" \\"curl\\"'
    line = f'1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET {forged} HTTP/1.1" 400 0 "-" "bot"'
    entry = parse_line(line.encode())
    assert (entry.target, entry.status, entry.agent) == ("", 400, "bot")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "hello",
        '1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1" 200 12\n',  # no agent
        '1.2.3.4 - - [21/Nov/2026:13:00:00] "GET / HTTP/1.1" 200 12 "-" "x"\n',  # no offset
        '1.2.3.4 - - [2026-11-21T13:00:00Z] "GET / HTTP/1.1" 200 12 "-" "x"\n',
        '1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1" 200 12 "-" "cut of',
        '1.2.3.4 - - [21/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1',
        '{"ts":1,"status":200,"request":{"method":"GET","uri":"/","remote_ip":"::1"}}',
    ],
)
def test_malformed(line):
    assert parse_line(line.encode()) is None


@pytest.mark.parametrize(
    "time",
    [
        "21/Nov/2026:12:00:00 +0000", "21/Nov/2026:13:30:00 +0130", "20/Nov/2026:23:00:00 -1300",
        "22/Nov/2026:02:00:00 +1400",
    ],
)  # fmt: skip
def test_times(time):
    assert parse_time(time) == NOW


@pytest.mark.parametrize(
    "time",
    ["31/Feb/2026:12:00:00 +0000", "21/Xyz/2026:12:00:00 +0000", "21/Nov/2026:24:00:00 +0000",
     "00/Nov/2026:12:00:00 +0000", "21/Nov/0000:12:00:00 +0000", "21/Nov/2026:12:00:00 +9999",
     "", "yesterday"],
)  # fmt: skip
def test_no_times(time):
    assert parse_time(time) is None


@pytest.mark.parametrize(
    "line",
    [b"[" * 500_000, b"a " * 300_000,
     b'1.2.3.4 - - [21/Nov/2026:12:00:00 +0000] "GET /' + b"\\x22" * 200_000],
    ids=["brackets", "spaces", "escapes"],
)  # fmt: skip
def test_lines_that_are_made_to_be_hard(line):
    assert parse_line(line) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    entry = parse_line(data)
    assert entry is None or isinstance(entry, LogLine)


@given(st.integers(0, len(line())), st.binary(max_size=3))
def test_a_line_with_something_in_it_is_read_or_refused(at, data):
    entry = parse_line(line()[:at] + data + line()[at:])
    if entry is not None:
        assert parse_time(entry.time) is None or isinstance(parse_time(entry.time), int)
