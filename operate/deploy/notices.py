"""Sends a URL the paths that each deployment has changed, to purge a CDN.

Messages are signed as in Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over id,
time and body. An undelivered change is part of the next message, so each is sent at least once.
While changes wait, a file in the state folder outlives the process. A service that finds this file
at its start does not know the changes, so its first message says "everything".
"""

import json
import logging
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from builder.model.matching import match_file
from builder.model.records import format_time
from builder.pipeline.background import Background, Failures, pause_seconds
from operate.deploy.receiver import Receiver, signature
from publisher.log import log_event
from publisher.outside.fetch import FetchError, post_json

# The most paths in a notice. After more changes, it says "everything".
PATHS_MAX = 1_000
ATTEMPTS = 8
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 60.0

# For each file or path: True if it exists now, False if it was deleted. None: any may have changed.
Changed = dict[str, bool] | None

log = logging.getLogger("hub.deploy")


class Notices(Background):
    """While entered, sends deployed changes to the receiver, in a thread of its own. ``base_url``:
    the site's; its path is the start of each path sent.
    """

    def __init__(self, receiver: Receiver, state: str, base_url: str) -> None:
        super().__init__("notices")
        self._receiver = receiver
        self._mark = Path(state, "deploy-notice-due")
        self._base_url = base_url
        # The changes of the next message, and of the message under way.
        self._waiting: Changed = None if self._mark.exists() else {}
        self._under_way: Changed = {}
        self._is_deploying = False
        self._can_send = False
        self._serial: int | None = None
        self._delivered_at: str | None = None
        self._failures = Failures()

    def begin(self) -> None:
        """Note that a deployment begins, so files can change."""
        with self._changed:
            self._is_deploying = True
            self._keep_mark()

    def deployed(self, files: Changed, serial: int | None) -> None:
        """Note that a deployment has changed these files of the site."""
        with self._changed:
            self._note(files)
            self._serial = serial
            self._can_send = self._waiting != {}
            self._changed.notify_all()

    def failed(self, files: Changed) -> None:
        """Note that a failed deployment may have changed these files."""
        with self._changed:
            self._note(files)

    def status(self) -> dict[str, Any]:
        """The status. ``waiting``: the number of paths to send, None for everything."""
        with self._changed:
            paths = _merged(self._under_way, self._waiting)
            return {
                "waiting": None if paths is None else len(paths),
                "delivered_at": self._delivered_at,
                **self._failures.status(),
            }

    def _note(self, files: Changed) -> None:
        base_path = urlsplit(self._base_url).path
        paths = files and {
            base_path + path: exists
            for file, exists in files.items()
            for path in (match_file(file).url, f"/{file}")
        }
        self._waiting = _merged(self._waiting, paths)
        self._is_deploying = False
        self._keep_mark()

    def _keep_mark(self) -> None:
        try:
            if self._is_deploying or _merged(self._under_way, self._waiting) != {}:
                self._mark.touch()
            else:
                self._mark.unlink(missing_ok=True)
        except OSError as error:
            log_event(log, logging.ERROR, "deployment_notice", error)

    # Methods of the thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._can_send or self._is_stopping)
                if self._is_stopping:
                    return
                self._can_send = False
                self._under_way, self._waiting = self._waiting, {}
                message = self._message()
            is_delivered = self._deliver(message)
            with self._changed:
                if not is_delivered:
                    self._waiting = _merged(self._under_way, self._waiting)
                self._under_way = {}
                self._keep_mark()

    def _message(self) -> bytes:
        paths = self._under_way or {}
        data = {
            "base_url": self._base_url,
            "serial": self._serial,
            "everything": self._under_way is None,
            "changed": [path for path, exists in paths.items() if exists],
            "deleted": [path for path, exists in paths.items() if not exists],
        }
        now = format_time(datetime.now(UTC))
        return json.dumps({"type": "site.deployed", "timestamp": now, "data": data}).encode()

    def _deliver(self, body: bytes) -> bool:
        """Send a message until the receiver accepts it; False after too many attempts, or at the
        end of the service.
        """
        message_id = f"msg_{secrets.token_urlsafe(18)}"
        for attempt in range(1, ATTEMPTS + 1):
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
                log_event(log, logging.WARNING, "deployment_notice", error)
                with self._changed:
                    self._failures.add(str(error))
                    pause = pause_seconds(attempt, RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
                    if self._changed.wait_for(lambda: self._is_stopping, pause):
                        return False
            else:
                with self._changed:
                    self._delivered_at = format_time(datetime.now(UTC))
                    self._failures.clear()
                return True
        return False


def _merged(older: Changed, newer: Changed) -> Changed:
    if older is None or newer is None:
        return None
    paths = older | newer
    return paths if len(paths) <= PATHS_MAX else None
