"""The settings of a site: those of a service that runs on its folders, or of its last build."""

import contextlib
import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from typing import TextIO

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.store.locks import lock_file, not_in_workers, try_lock
from builder.store.privacy import is_marked
from builder.store.shortage import disk_remedy
from builder.store.site import read_hub
from builder.store.state import last_settings

_FILE = "service.lock"
# The longest wait for a service that is about to stop, and the interval between checks.
STOP_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_NOT_NOTED = "Other processes cannot build with the settings of this service"
log = logging.getLogger("hub.serve")

FOLDERS = ("content", "out", "state")


class Service:
    """A service's lock on its state folder: no second service starts there, and other processes
    build with its settings. ``address``: at which it listens.
    """

    def __init__(self, settings: Settings, address: str) -> None:
        self._state = settings.state
        self._noted = json.dumps(
            settings._asdict() | {"out": os.path.realpath(settings.out), "address": address}
        )
        self._is_noted = False
        self._logged = ""
        self._stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raises OperatorError if another service runs on the state folder."""
        with self._stack:
            self._hold(STOP_SECONDS)
            yield

    def tell(self, outcome: object) -> None:
        """After a build: try again what the disk did not allow."""
        if not self._is_noted:
            try:
                self._hold(0)
            except OperatorError as error:
                self._log(str(error))

    def _hold(self, seconds: float) -> None:
        self._stack.close()
        try:
            file = self._stack.enter_context(_open_lock(self._state))
        except (OSError, OperatorError) as error:
            self._log(f"{_NOT_NOTED}: {error}")
            return
        self._stack.enter_context(not_in_workers(file))
        deadline = time.monotonic() + seconds
        while not try_lock(file):
            if time.monotonic() > deadline:
                raise _second_service(file, self._state)
            time.sleep(_LOOK_SECONDS)
        try:
            file.seek(0)
            if file.read() != self._noted:
                # Not buffered: `file.close` would try again, and fail again.
                os.pwrite(file.fileno(), self._noted.encode(), 0)
                os.ftruncate(file.fileno(), len(self._noted))
            self._is_noted = True
        except OSError as error:
            remedy = disk_remedy(self._state) or "Fix that"
            what = f"Cannot write {file.name}: {error.strerror}. {remedy}."
            self._log(f"{_NOT_NOTED}: {what}")

    def _log(self, message: str) -> None:
        if message != self._logged:
            log.error("%s", message)
        self._logged = message


def _second_service(file: TextIO, state: str) -> OperatorError:
    noted = {}
    with contextlib.suppress(OSError, ValueError):
        file.seek(0)
        noted = json.loads(file.read())
    where = noted.get("address") or noted.get("base_url") or "an unknown address"
    return OperatorError(
        f"A service runs on the state folder {state} already, at {where}. Stop it first; for "
        "another hub, pass other folders with --content, --out and --state."
    )


def _open_lock(state: str) -> TextIO:
    """The lock file. A lock needs no write access, so a service also holds it on a disk that cannot
    be written. Raises OSError, OperatorError.
    """
    try:
        return open(f"{state}/{_FILE}", "r+")
    except FileNotFoundError:
        return lock_file(state, _FILE)
    except OSError:
        return open(f"{state}/{_FILE}")


def had_service(state: str, out: str = "") -> bool:
    """True if a service has run on these folders, by what it left in them."""
    hub = read_hub(out) if out else None
    return os.path.exists(f"{state}/{_FILE}") or bool(hub and hub.queries)


def service_settings(content: str, out: str, state: str) -> Settings | None:
    """The settings of the service that serves the site ``out``; None if none runs."""
    if not os.path.exists(f"{state}/{_FILE}"):
        return None
    with contextlib.ExitStack() as stack:
        # One process checks at a time, because a second one would take the first for a service.
        # On a disk that cannot be written, that may happen.
        with contextlib.suppress(OperatorError):
            turn = stack.enter_context(lock_file(state, f"{_FILE}.turn"))
            fcntl.flock(turn, fcntl.LOCK_EX)
        file = stack.enter_context(_open_lock(state))
        if try_lock(file):
            return None
        file.seek(0)
        with contextlib.suppress(ValueError):
            noted = json.loads(file.read())
            if noted["out"] == os.path.realpath(out):
                # A service of another release may have stored other fields.
                known = {key: noted[key] for key in Settings._fields if key in noted}
                return Settings(**known | dict(zip(FOLDERS, (content, out, state), strict=True)))
    return None


def site_settings(content: str, out: str, state: str) -> Settings | None:
    """The settings for building ``out`` after a change of its content; None if no build with this
    state folder has ended. Raises OSError.
    """
    if service := service_settings(content, out, state):
        return service
    last = last_settings(content, out, state)
    return last and last._replace(private=last.private or is_marked(content))
