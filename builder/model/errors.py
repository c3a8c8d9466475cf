"""The one tree of errors.

    HubError
    ├── RequestError    the request cannot be answered; has a code of the public contract
    └── OperatorError   only the operator can fix this; ends a command with exit status 1
        ├── ContentError    the content folder has faults; lists each with its file
        └── PullsError      the pull counts cannot be read

A message says what happened and what to do next. ``STATUS`` is the only place that maps codes to
HTTP statuses.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from builder.model.plural import counted

_CODES = {
    400: "invalid_json invalid_label invalid_name invalid_parameter invalid_version",
    401: "missing_token invalid_token token_expired",
    403: "insufficient_scope not_owner",
    404: "label_not_found not_found page_not_found repo_not_found tag_not_found"
    " user_not_found version_not_found",
    405: "method_not_allowed",
    409: "last_maintainer version_conflict version_withdrawn",
    410: "withdrawn",
    412: "base_version_mismatch label_moved",
    413: "content_too_large",
    415: "unsupported_media_type",
    422: "idempotency_key_reused name_reserved secret_detected validation_failed",
    429: "rate_limited",
    431: "headers_too_large",
    500: "internal_error",
    503: "storage_unavailable unavailable",
}
STATUS = {code: status for status, codes in _CODES.items() for code in codes.split()}

# The only codes of responses in Langfuse's format.
LANGFUSE_NOT_FOUND = "LangfuseNotFoundError"
LANGFUSE_INVALID = "InvalidRequestError"
LANGFUSE_STATUS = {LANGFUSE_INVALID: 400, LANGFUSE_NOT_FOUND: 404}


# The most messages in a response, and the most characters of each. Further messages are only
# counted; longer ones are cut.
MESSAGES_MAX = 20
MESSAGE_CHARS_MAX = 500
# The path of a file fits, as files[PATH].
FIELD_CHARS_MAX = 210


class HubError(Exception):
    """Base of all errors that the project raises on purpose; ``str()`` is the message."""


class Detail(NamedTuple):
    """The fault of one field of a request."""

    field: str
    message: str


class RequestError(HubError):
    """A request that cannot be answered. ``code`` is a key of STATUS or LANGFUSE_STATUS."""

    def __init__(self, code: str, message: str, details: list[Detail] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = (LANGFUSE_STATUS if code in LANGFUSE_STATUS else STATUS)[code]
        self.details = details or []


def bounded(messages: Sequence[str]) -> list[str]:
    """The first ``MESSAGES_MAX`` messages, each cut to ``MESSAGE_CHARS_MAX`` characters. Where
    there are more, the last one says how many.
    """
    shown = [cut(message, MESSAGE_CHARS_MAX) for message in messages[:MESSAGES_MAX]]
    if len(messages) > MESSAGES_MAX:
        shown[-1] = f"And {len(messages) - MESSAGES_MAX + 1:,} more."
    return shown


def validation_failed(*details: Detail) -> RequestError:
    """The error for fields with wrong values; shows as many as ``bounded`` does."""
    messages = bounded([message for _, message in details])
    shown = [
        Detail(cut(detail.field, FIELD_CHARS_MAX), message)
        for detail, message in zip(details, messages, strict=False)
    ]
    listed = "; ".join(f"{field}: {message}" for field, message in shown)
    return RequestError("validation_failed", f"Correct the request: {listed}.", shown)


def cut(text: str, chars_max: int) -> str:
    """``text``, shortened to ``chars_max`` characters with an ellipsis at the end."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


class OperatorError(HubError):
    """The operator has to change a folder, file or setting first."""


@contextlib.contextmanager
def explained(what: str, path: str, then: str, *, is_inside: bool = False) -> Iterator[None]:
    """Turn an OSError of the block into an OperatorError: ``what`` failed for ``path``, the reason,
    and ``then``, what to do. ``is_inside``: prefer the path that the OSError itself names.
    """
    try:
        yield
    except OSError as error:
        named = (is_inside and error.filename) or path
        raise OperatorError(f"Cannot {what} {named}: {error.strerror or error}. {then}") from error


class PullsError(OperatorError):
    """The operator has to repair the database of pulls first."""


class Fault(NamedTuple):
    """One fault of the content tree; ``path`` is relative to the content folder.

    ``is_warning``: the site shows the version nevertheless.
    """

    path: str
    reason: str
    is_warning: bool = False

    def __str__(self) -> str:
        # A file name need not be UTF-8.
        return f"{self.path}: {self.reason}".encode(errors="backslashreplace").decode()


class ContentError(OperatorError):
    """The content folder cannot be built. ``faults`` has at least one entry."""

    def __init__(self, faults: list[Fault]) -> None:
        shown = "\n".join(f"  {fault}" for fault in faults[:20])
        more = f"\n  … and {len(faults) - 20:,} more" if len(faults) > 20 else ""
        super().__init__(
            f"{counted(len(faults), 'fault')} in the content folder:\n"
            f"{shown}{more}\nFix or remove these files. `hubctl check` lists every fault."
        )
        self.faults = faults


class Faults(list[Fault]):
    """Collects faults. A ContentError that ends a ``with`` block is suppressed and its faults are
    added. So work continues with the other files, and ``check`` reports all faults at once.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, ContentError):
            return False
        self += error.faults
        return True

    def check(self) -> None:
        """Raises ContentError if there are any faults."""
        if self:
            raise ContentError(sorted(self))
