"""The mark of a private hub: a file in the content folder, so that it is in every backup and copy.

Content that has the mark is built and served for members alone, even if the settings do not say so.
The folders of such a hub are open to its user alone, so no web server can serve their files past
the hub.
"""

import contextlib
import logging
import os

from builder.model.content_tree import PRIVATE, PRIVATE_FILE, STORE_FILE
from builder.model.errors import OperatorError, explained
from builder.model.settings import Settings
from builder.store.plain_files import read_file, replace_file
from builder.store.site import read_hub

MARK = b"Only members may read this hub: docs/operate/private.md\n"
# Nodes get the files of the hub from a database, where each file is replaced, never removed.
OPENED = b"Everyone may read this hub.\n"
_PRIVATE_MODE, _PUBLIC_MODE = 0o700, 0o755

log = logging.getLogger("hub.build")


def is_marked(content: str) -> bool:
    """True if only members may read the content. Raises OSError if the folder cannot be read."""
    try:
        return read_file(f"{content}/{PRIVATE_FILE}", PRIVATE.bytes_max) != OPENED
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        os.lstat(f"{content}/{PRIVATE_FILE}")
        return True  # whatever it is: a file of this name marks the content


def is_private(content: str, out: str) -> bool:
    """True if only members may read: by the mark in the content, or by the site in ``out``, which
    decides alone where the content cannot be read.
    """
    with contextlib.suppress(OSError):
        if is_marked(content):
            return True
    hub = read_hub(out)
    return bool(hub and hub.private)


def close_to_others(settings: Settings) -> None:
    """Mark the content, and open the folders to this user alone. Logs what fails."""
    content = settings.content
    try:
        os.makedirs(settings.out, _PRIVATE_MODE, exist_ok=True)
        # A node gets the mark from its database.
        if not is_marked(content) and not os.path.lexists(f"{content}/{STORE_FILE}"):
            replace_file(f"{content}/{PRIVATE_FILE}", MARK)
        for folder in settings.folders.values():
            if os.path.isdir(folder) and os.stat(folder).st_mode & 0o077:
                os.chmod(folder, _PRIVATE_MODE)
    except OSError as error:
        log.warning(
            "This hub is private, but %s cannot be marked or closed to other users: %s. Run as its "
            "owner: chmod 700 %s",
            error.filename,
            error.strerror,
            " ".join(settings.folders.values()),
        )


def open_to_all(settings: Settings) -> bool:
    """Remove the mark, and let web servers read the site. True if there was a mark. Raises
    OperatorError.
    """
    with explained("open the private hub", settings.content, "Fix that, then try again."):
        if not is_marked(settings.content):
            return False
        os.unlink(f"{settings.content}/{PRIVATE_FILE}")
        if os.path.isdir(settings.out):
            os.chmod(settings.out, _PUBLIC_MODE)
    return True


def check(settings: Settings) -> None:
    """Raises OperatorError for a public site of marked content."""
    with explained("read", settings.content, "Let the user who runs hubctl read it."):
        if not settings.private and is_marked(settings.content):
            raise OperatorError(
                f"{settings.content} is marked as private ({PRIVATE_FILE}), and this hub is served "
                "to everyone. Restart the service: it then serves members alone. To open the hub "
                "instead, stop the service and start it once with --no-private."
            )
