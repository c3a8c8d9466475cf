"""The settings of a site: those of a service that runs on its folders, or of its last build."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator

from builder.model.settings import Settings
from builder.store.locks import lock_file, try_lock
from builder.store.privacy import is_marked
from builder.store.state import last_settings

_FILE = "service.lock"
FOLDERS = ("content", "out", "state")


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[None]:
    """Let other processes build with these settings while a service runs. The processes of one
    service share the lock. Raises OperatorError.
    """
    noted = json.dumps(settings._asdict() | {"out": os.path.realpath(settings.out)})
    with lock_file(settings.state, _FILE) as file:
        file.seek(0)
        if file.read() != noted:
            file.truncate(0)
            file.write(noted)
            file.flush()
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def service_settings(content: str, out: str, state: str) -> Settings | None:
    """The settings of the service that serves the site ``out``; None if none runs."""
    if not os.path.exists(f"{state}/{_FILE}"):
        return None
    with lock_file(state, f"{_FILE}.turn") as turn, lock_file(state, _FILE) as file:
        # One process checks at a time, because a second one would take the first for a service.
        fcntl.flock(turn, fcntl.LOCK_EX)
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
