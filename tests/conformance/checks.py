"""Compares answers with the contract. A test continues after a deviation, so a report lists all."""

import json
import re
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from builder.model import answers
from builder.model.caching import CACHE_CONTROL
from builder.model.errors import STATUS
from builder.model.routes import JSON
from tests.conformance.client import Answer, header_list, shorten

SHOWN_MAX = 5

EXPOSED = {"etag", "location", "retry-after", "ratelimit", "ratelimit-policy"}

# Headers that HEAD and GET have in common.
HEADERS_OF_READS = [
    "Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "ETag", "Vary",
    "Last-Modified", "X-Content-Type-Options", "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers", "Content-Security-Policy", "Referrer-Policy", "Location",
    "Allow", "Retry-After",
]  # fmt: skip

Record = TypeVar("Record")


class Single(Struct, Generic[Record], forbid_unknown_fields=True):
    """The envelope of one object."""

    data: Record


class Rows(Struct, Generic[Record], forbid_unknown_fields=True):
    """The envelope of a list."""

    data: list[Record]
    meta: answers.ListMeta


class Deviation(NamedTuple):
    """An answer that is not what the contract says."""

    answer: Answer
    says: str
    came: str

    def __str__(self) -> str:
        return (
            f"{self.answer.request}\n    expected {shorten(self.says, 300)}\n"
            f"    came     {shorten(self.came, 300)}\n    {self.answer.curl}"
        )


class NotConforming(AssertionError):
    """Some answers are not what the contract says."""


class Check:
    """Counts what held in one test, and keeps what did not."""

    def __init__(self) -> None:
        self.held = 0
        self.deviations: list[Deviation] = []

    def that(self, answer: Answer, holds: object, says: str, came: str = "") -> bool:
        """Note whether something holds. ``says`` is what should have come, ``came`` what did; left
        out, the start of the answer.
        """
        if holds:
            self.held += 1
        else:
            self.deviations.append(Deviation(answer, says, came or answer.brief))
        return bool(holds)

    def refused(self, answer: Answer, status: int, code: str) -> None:
        """Check that a body is refused, and a wrong field named."""
        if self.error(answer, status, code) and code == "validation_failed":
            details = answer.json["error"].get("details") or []
            self.that(answer, details, "details that name the field")

    def equal(self, answer: Answer, what: str, came: object, wanted: object) -> bool:
        """Note whether a value, ``what``, is the wanted one."""
        return self.that(answer, came == wanted, f"{what} {wanted!r}", f"{what} {came!r}")

    def shown(self) -> list[str]:
        """The deviations to report: one of each kind, then more of them, and their number."""
        kinds = {deviation.says: deviation for deviation in reversed(self.deviations)}
        first_ones = list(reversed(kinds.values()))
        others = [one for one in self.deviations if one not in first_ones]
        shown = [str(deviation) for deviation in (first_ones + others)[:SHOWN_MAX]]
        more = len(self.deviations) - SHOWN_MAX
        return [*shown, f"… and {more} more in this test"] if more > 0 else shown

    def finish(self) -> None:
        """Raises NotConforming."""
        if self.deviations:
            raise NotConforming("\n".join(self.shown()))

    # Checks of any answer

    def status(self, answer: Answer, *statuses: int) -> bool:
        wanted = " or ".join(map(str, statuses))
        return self.that(answer, answer.status in statuses, f"status {wanted}")

    def header(self, answer: Answer, name: str, value: str) -> bool:
        came = answer.headers.get(name)
        return self.that(
            answer, came == value, f"{name}: {value}", f"{answer.status}, {name}: {came}"
        )

    def same_body(self, answer: Answer, other: Answer, what: str) -> bool:
        """True if two answers are the same, byte for byte."""
        return self.that(
            answer,
            (answer.status, answer.body) == (other.status, other.body),
            f"the same bytes as {what}: {other.brief}",
        )

    def empty_body(self, answer: Answer) -> bool:
        return self.that(answer, not answer.body, "no body")

    def cors(self, answer: Answer) -> None:
        self.header(answer, "Access-Control-Allow-Origin", "*")
        exposed = header_list(answer, "Access-Control-Expose-Headers")
        self.that(
            answer,
            exposed >= EXPOSED,
            f"Access-Control-Expose-Headers with {', '.join(sorted(EXPOSED))}",
            f"{answer.status}, Access-Control-Expose-Headers: {', '.join(sorted(exposed))}",
        )

    def page_headers(self, answer: Answer) -> None:
        """Check that a page has the headers with which browsers protect it."""
        policy = answer.headers.get("Content-Security-Policy", "")
        for directive in ("default-src 'none'", "frame-ancestors 'none'"):
            self.that(
                answer, directive in policy, f"Content-Security-Policy with {directive}",
                f"{answer.status}, Content-Security-Policy: {policy}",
            )  # fmt: skip
        self.that(answer, answer.headers.get("Referrer-Policy"), "a Referrer-Policy")

    def same_headers(self, head: Answer, get: Answer) -> None:
        """Check that HEAD has the headers of GET. A length may be left out."""
        for name in HEADERS_OF_READS:
            came, wanted = head.headers.get(name), get.headers.get(name)
            if name == "Content-Length" and came is None:
                continue
            self.that(head, came == wanted, f"{name}: {wanted}, as GET says", f"{name}: {came}")

    # Checks of JSON

    def single(self, answer: Answer, kind: type[Record], status: int = 200) -> Record | None:
        """The one object in an answer's envelope; None if it has none of its kind."""
        if not self.status(answer, status):
            return None
        what = f"a {kind.__name__} in its envelope"
        found = self._decode(answer, answer.body, Single[kind], what)
        return found and found.data

    def rows(self, answer: Answer, kind: type[Record]) -> Rows[Record] | None:
        """The list in an answer; None if it has none of its kind."""
        if not self.status(answer, 200):
            return None
        what = f"a list of {kind.__name__}, with its meta"
        return self._decode(answer, answer.body, Rows[kind], what)

    def whole_list(self, answer: Answer, found: Rows) -> None:
        """Check the meta of a list that is all on one page."""
        meta, count = found.meta, len(found.data)
        is_whole = (meta.page, meta.pages, meta.total) == (1, 1, count)
        says = f"meta of one page with all {count} rows, without filters"
        filters = (meta.sort, meta.tag, meta.q)
        self.that(answer, is_whole and not any(filters), says, f"{meta}")

    def record(self, answer: Answer, data: bytes, kind: type[Record]) -> Record | None:
        """A part of an answer as a record."""
        return self._decode(answer, data, kind, f"a {kind.__name__}")

    def _decode(self, answer: Answer, data: bytes, kind: Any, what: str) -> Any:
        try:
            found = msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.that(answer, False, what, f"{error}: {answer.brief}")
            return None
        self.held += 1
        again = msgspec.json.encode(found)
        if data != again:
            # Numbers may be written in several ways; the order of keys is the contract's.
            came, wanted = (json.loads(text, object_pairs_hook=list) for text in (data, again))
            self.that(
                answer, came == wanted, f"{what} with all its keys in the contract's order, and "
                "no others", f"{first_difference(came, wanted)}: {answer.brief}",
            )  # fmt: skip
            self.that(answer, is_compact(data), "compact JSON that is not ASCII-escaped")
        return found

    # Checks of errors

    def error(self, answer: Answer, status: int, *codes: str) -> bool:
        """True if this is an error of the API, in its envelope and with its headers.

        A 404 may say ``not_found`` where the contract has a finer code: the report notes that.
        """
        says = f"{status} {' or '.join(codes)} in the error envelope"
        accepted = {*codes, "not_found"} if status == 404 else set(codes)
        if not self.that(answer, answer.status == status and answer.code in accepted, says):
            return False
        if answer.code not in codes:
            self.note(f"says not_found where the contract has {' or '.join(codes)}")
        self.envelope(answer)
        return True

    def envelope(self, answer: Answer) -> None:
        """True if an answer with a status of 400 or more is an error of the API."""
        self.header(answer, "Content-Type", JSON)
        found = self._decode(answer, answer.body, answers.ErrorEnvelope, "an error's envelope")
        if found:
            self.that(answer, found.error.message.strip(), "a message that says what to do")
            self.that(
                answer, STATUS.get(found.error.code) == answer.status,
                f"a code of the contract for status {answer.status}",
            )  # fmt: skip
        if answer.status == 404:
            self.header(answer, "Cache-Control", CACHE_CONTROL["not_found"])
        else:
            # RFC 9111 §5.2.2.5: it still holds beside the directives of a file at the same address.
            came = answer.headers.get_all("Cache-Control", [])
            self.that(
                answer, CACHE_CONTROL["none"] in came, "Cache-Control: no-store",
                f"{answer.status}, Cache-Control: {came}",
            )  # fmt: skip
        self.cors(answer)


_string = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_escape = re.compile(rb"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def is_compact(data: bytes) -> bool:
    """True if JSON has white space only in strings, and no unnecessary escapes."""
    if re.search(rb"\s", _string.sub(b"", data)):
        return False
    return all(
        len(found) == 1 or int(found[1:], 16) < 0x20
        for string in _string.findall(data)
        for found in _escape.findall(string)
    )


def first_difference(came: Any, wanted: Any, where: str = "$") -> str:
    """The first difference of two JSON values; objects are lists of pairs."""
    if isinstance(came, list) and isinstance(wanted, list):
        keys = [[pair[0] for pair in one if isinstance(pair, tuple)] for one in (came, wanted)]
        if keys[0] != keys[1]:
            return f"at {where} the keys {', '.join(keys[0])} and not {', '.join(keys[1])}"
        for number, (one, other) in enumerate(zip(came, wanted, strict=False)):
            if one != other:
                if isinstance(one, tuple) and isinstance(other, tuple):
                    return first_difference(one[1], other[1], f"{where}.{one[0]}")
                return first_difference(one, other, f"{where}[{number}]")
    return f"at {where} {shorten(json.dumps(came), 80)} and not {shorten(json.dumps(wanted), 80)}"


def spread(items: Iterable[Record], count: int) -> list[Record]:
    """``count`` of these, from first to last; all of them where it is 0."""
    found = list(items)
    if not count or len(found) <= count:
        return found
    if count == 1:
        return found[:1]
    return [found[round(place * (len(found) - 1) / (count - 1))] for place in range(count)]
