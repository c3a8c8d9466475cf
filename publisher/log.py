"""The log: one line of JSON for each event, for machines to read.

Keys are ``time`` (RFC 3339 UTC, milliseconds), ``level``, ``event``, then the event's own. A line
never holds a token or the text of a prompt, and text that a client sends never starts a new line.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from traceback import walk_tb
from typing import Any, TextIO

from builder.model.errors import HubError
from builder.pipeline.rebuild import Outcome

# A logged error has at most this many errors of its chain of causes.
_CAUSES_MAX = 5


def log_event(
    log: logging.Logger, level: int, event: str, error: BaseException | None = None, **fields: Any
) -> None:
    """Logs ``event`` with these fields, and with the error that it ended in."""
    log.log(level, event, exc_info=error, extra={"fields": fields})


def configure_logging(stream: TextIO | None = None) -> None:
    """Writes the records of the loggers ``hub.*`` to ``stream``, by default standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("hub")
    log.handlers = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


def log_build(outcome: Outcome) -> None:
    """Logs the result of a build that did anything."""
    log = logging.getLogger("hub.build")
    if isinstance(outcome, Exception):
        log_event(log, logging.ERROR, "build", outcome)
    elif outcome.written or outcome.removed:
        log_event(
            log,
            logging.INFO,
            "build",
            repos=outcome.rendered,
            files=outcome.written,
            removed=outcome.removed,
            milliseconds=round(outcome.seconds * 1000, 1),
        )


class JsonFormatter(logging.Formatter):
    """Formats records as lines of JSON; ``fields`` given through ``extra`` become keys."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
        line = {
            "time": moment.isoformat(timespec="milliseconds") + "Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["exception"] = _describe(record.exc_info[1])
        return json.dumps(line, default=str)


def _describe(error: BaseException) -> list[dict[str, Any]]:
    """Returns the error and its causes: type and places in the code."""
    causes = []
    cause: BaseException | None = error
    while cause and len(causes) < _CAUSES_MAX:
        entry: dict[str, Any] = {"type": type(cause).__qualname__}
        # Other messages may quote text that a client has sent.
        if isinstance(cause, HubError):
            entry["message"] = str(cause)
        entry["stack"] = [
            f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
            for frame, line in walk_tb(cause.__traceback__)
        ]
        causes.append(entry)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return causes
