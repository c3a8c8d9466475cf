"""The settings of a site: those of a service that runs on its folders, or of its last build."""

import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Iterator
from typing import TextIO

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.store.locks import lock_file, try_lock
from builder.store.privacy import is_marked
from builder.store.site import read_hub
from builder.store.state import last_settings

_FILE = "service.lock"
log = logging.getLogger("hub.serve")

FOLDERS = ("content", "out", "state")


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[None]:
    """Let other processes build with these settings while a service runs. The processes of one
    service share the lock. Logs an error if the state folder cannot be written.
    """
    noted = json.dumps(settings._asdict() | {"out": os.path.realpath(settings.out)})
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(_open_lock(settings.state))
            file.seek(0)
            if file.read() != noted:
                file.seek(0)
                file.write(noted)
                file.truncate()
                file.flush()
        except (OSError, OperatorError) as error:
            log.error("Other processes cannot build with the settings of this service: %s", error)
        else:
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


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


def had_service(out: str, state: str) -> bool:
    """True if a service has run on these folders, by what it left in them."""
    hub = read_hub(out)
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
