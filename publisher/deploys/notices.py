"""Tells a URL what each deployment has changed, for the purge of a CDN.

Signed as Standard Webhooks says (https://www.standardwebhooks.com): HMAC-SHA256 over id, time and
body. What could not be delivered is part of the next notice, so each change is told of at least
once. A file in the state folder outlives the process as long as something is to be told: a service
that finds it at its start does not know what that was, and tells of everything.
"""

import contextlib
import json
import logging
import os
import random
import secrets
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

from builder.model.records import format_time
from builder.model.routes import match_file
from publisher.deploys.receiver import Receiver, signature
from publisher.log import log_event
from publisher.outside.fetch import FetchError, post_json

# In a notice. A deployment that changes more has changed "everything".
PATHS_MAX = 1_000
ATTEMPTS = 8
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 60.0

log = logging.getLogger("hub.deploy")


class Notices:
    """While entered, tells the receiver what has been deployed, in a thread of its own.
    ``base_url``: the site's, whose path each told path begins with.
    """

    def __init__(self, receiver: Receiver, state: str, base_url: str) -> None:
        self._receiver = receiver
        self._mark = f"{state}/deploy-notice-due"
        self._base_url = base_url
        self._changed = threading.Condition()
        # What is to be told, and what is being told: True for a path that is there, False for one
        # that was deleted.
        self._paths: dict[str, bool] = {}
        self._under_way: dict[str, bool] = {}
        self._is_everything = os.path.exists(self._mark)
        self._is_deploying = False
        self._is_telling_everything = False
        self._is_due = False
        self._is_stopping = False
        self._serial: int | None = None
        self._delivered_at: str | None = None
        self._failing_since: str | None = None
        self._last_error: str | None = None
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join()

    def begin(self) -> None:
        """A deployment begins; from now on something may be to tell."""
        with self._changed:
            self._is_deploying = True
            self._keep_mark()

    def deployed(
        self, changed: Iterable[str] | None, deleted: Iterable[str] | None, serial: int | None
    ) -> None:
        """A deployment has changed and deleted these files of the site; None for any."""
        with self._changed:
            self._note(changed, deleted)
            self._serial = serial
            self._is_due = self._is_everything or bool(self._paths)
            self._changed.notify_all()

    def failed(self, changed: Iterable[str] | None, deleted: Iterable[str] | None) -> None:
        """A deployment may have changed and deleted these files before it failed; None for any."""
        with self._changed:
            self._note(changed, deleted)

    def status(self) -> dict[str, Any]:
        """``waiting``: paths that are still to be told, None for everything."""
        with self._changed:
            is_known = not (self._is_everything or self._is_telling_everything)
            return {
                "waiting": len(self._under_way | self._paths) if is_known else None,
                "delivered_at": self._delivered_at,
                "failing_since": self._failing_since,
                "last_error": self._last_error,
            }

    def _note(self, changed: Iterable[str] | None, deleted: Iterable[str] | None) -> None:
        base_path = urlsplit(self._base_url).path
        self._is_everything = self._is_everything or changed is None
        for files, is_there in ((changed, True), (deleted, False)):
            for file in files or ():
                url = match_file(file).url
                for path in (url, f"/{file}"):
                    self._paths[base_path + path] = is_there
        self._is_deploying = False
        self._bound()
        self._keep_mark()

    def _bound(self) -> None:
        self._is_everything = self._is_everything or len(self._paths) > PATHS_MAX
        if self._is_everything:
            self._paths = {}

    def _keep_mark(self) -> None:
        is_everything = self._is_everything or self._is_telling_everything
        try:
            if self._is_deploying or is_everything or self._under_way or self._paths:
                with open(self._mark, "w"):
                    pass
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._mark)
        except OSError as error:
            log_event(log, logging.ERROR, "deployment_notice", error)

    # The thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_due or self._is_stopping)
                if self._is_stopping:
                    return
                self._is_due = False
                self._under_way, self._paths = self._paths, {}
                self._is_telling_everything, self._is_everything = self._is_everything, False
                message = self._message()
            is_delivered = self._deliver(message)
            with self._changed:
                if not is_delivered:
                    # What has come up since then is newer.
                    self._paths = self._under_way | self._paths
                    self._is_everything = self._is_everything or self._is_telling_everything
                    self._bound()
                self._under_way, self._is_telling_everything = {}, False
                self._keep_mark()

    def _message(self) -> bytes:
        paths = self._under_way.items()
        data = {
            "base_url": self._base_url,
            "serial": self._serial,
            "everything": self._is_telling_everything,
            "changed": [path for path, is_there in paths if is_there],
            "deleted": [path for path, is_there in paths if not is_there],
        }
        told = {"type": "site.deployed", "timestamp": format_time(datetime.now(UTC)), "data": data}
        return json.dumps(told).encode()

    def _deliver(self, body: bytes) -> bool:
        """Send a message until it is taken; False where that took too many attempts, or the service
        stops.
        """
        message_id = f"msg_{secrets.token_urlsafe(18)}"
        for attempt in range(ATTEMPTS):
            timestamp = int(time.time())
            headers = {
                "webhook-id": message_id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signature(self._receiver.key, message_id, timestamp, body),
                "User-Agent": "hub",
            }
            try:
                post_json(self._receiver.url, body, headers)
            except FetchError as error:
                self._note_failure(error)
            else:
                with self._changed:
                    self._delivered_at = format_time(datetime.now(UTC))
                    self._failing_since = self._last_error = None
                return True
            wait = min(RETRY_SECONDS_MAX, RETRY_SECONDS_MIN * 2**attempt)
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopping, wait * random.uniform(0.5, 1.0))
                if self._is_stopping:
                    return False
        return False

    def _note_failure(self, error: FetchError) -> None:
        with self._changed:
            self._failing_since = self._failing_since or format_time(datetime.now(UTC))
            self._last_error = str(error)
        log_event(log, logging.WARNING, "deployment_notice", error)
