"""An owner's profile, ``content/{owner}/owner.json``: what its owner says there, durable.

All of it is public. Knows nothing of HTTP or of who may change it; does not build the site.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from builder.content import OWNER_FILE, read_owner
from builder.errors import ContentError, Detail, RequestError
from builder.records import OwnerFile
from publisher.durable import _FOLDER_FLAGS, _LOCK_ATTEMPTS, _REMEDIES, _sync_folder
from publisher.fields import validation_failed
from publisher.tokens import find_token

# Its name starts with a dot, so it is nobody's business; the next one who writes removes it.
_TEMPORARY = ".owner.tmp"

_decode = msgspec.json.Decoder(OwnerFile).decode


def chars_max(field: str) -> int:
    """How many characters a field of a profile may have."""
    info = next(one for one in msgspec.inspect.type_info(OwnerFile).fields if one.name == field)
    kinds = getattr(info.type, "types", (info.type,))
    return next(kind.max_length for kind in kinds if isinstance(kind, msgspec.inspect.StrType))


def parse_profile(name: str, bio: str, url: str, joined_at: str) -> OwnerFile:
    """The profile with what somebody has written; an empty ``url`` is none.

    Raises RequestError ``validation_failed`` and ``secret_detected``, whose details name these
    parameters.
    """
    given = {"name": " ".join(name.split()), "bio": bio.strip(), "url": url.strip()}
    leaks = [
        Detail(field, "has a token of the hub in it, and everybody could read it here; revoke it")
        for field, text in given.items()
        if find_token(text)
    ]
    if leaks:
        raise RequestError("secret_detected", "A profile is public, and has a token in it.", leaks)
    faults = [*_faults(**given)]
    if faults:
        raise validation_failed(*faults)
    return OwnerFile(given["name"], joined_at, given["bio"], given["url"] or None)


def read_profile(root: str, owner: str) -> OwnerFile | None:
    """An owner's profile; None where there is none yet.

    Raises RequestError ``unavailable`` where the file is not as it should be.
    """
    try:
        return read_owner(root, owner)
    except ContentError as error:
        told = "; ".join(map(str, error.faults))
        raise RequestError(
            "unavailable",
            f"The file of your profile has a fault, and is left as it is: {told}. Whoever runs "
            "this hub has to mend it, or to remove it; then write your profile here.",
        ) from error


def write_profile(root: str, owner: str, profile: OwnerFile) -> None:
    """Put a profile in the place of the one before, for good when this returns.

    Readers find the one or the other, whole; of two at once the last one stays. Makes the owner's
    folder. Raises RequestError ``storage_unavailable``.
    """
    data = msgspec.json.format(msgspec.json.encode(profile), indent=2) + b"\n"
    _decode(data)  # what could not be read again must not get there
    temporary = f"{root}/{owner}/{_TEMPORARY}"
    with _telling(), contextlib.ExitStack() as locked, contextlib.ExitStack() as failing:
        folder = _lock_folder(root, owner)
        locked.callback(os.close, folder)
        _unlink(temporary)  # a crash's rest
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        failing.callback(_unlink, temporary)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, f"{root}/{owner}/{OWNER_FILE}")
        failing.pop_all()
        os.fsync(folder)
        _sync_folder(root)  # the owner's folder may be new


def _faults(name: str, bio: str, url: str) -> Iterator[Detail]:
    if not (name and len(name) <= chars_max("name") and name.isprintable()):
        yield Detail("name", f"is a line of 1 to {chars_max('name')} characters that can be seen")
    if len(bio) > chars_max("bio"):
        yield Detail("bio", f"has {len(bio):,} characters; {chars_max('bio'):,} is the most")
    if url and not (len(url) <= chars_max("url") and _is_web_address(url)):
        told = f"begins with https:// or http://, and has at most {chars_max('url')} characters"
        yield Detail("url", told)


def _is_web_address(url: str) -> bool:
    try:
        host = urlsplit(url).hostname
    except ValueError:  # half a bracket of an IPv6 address
        return False
    is_one_word = url.isprintable() and len(url.split()) == 1
    return bool(host) and is_one_word and url.startswith(("https://", "http://"))


def _lock_folder(root: str, owner: str) -> int:
    """The descriptor of the owner's folder: until it is closed, nobody else writes the profile."""
    path = f"{root}/{owner}"
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        with contextlib.ExitStack() as opened, contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, _FOLDER_FLAGS | os.O_NOFOLLOW)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # A first publication that fails removes the folder again, while it is empty.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                opened.pop_all()
                return descriptor
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno, "Look after its disk")
        raise RequestError(
            "storage_unavailable",
            f"Cannot write to the content folder: {os.strerror(error.errno or errno.EIO)}. "
            f"{remedy}, then store the profile again.",
        ) from error


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
