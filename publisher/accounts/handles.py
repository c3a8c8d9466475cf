"""The handles that a new owner may take: none that is taken, reserved, or looks like one of
these.
"""

from collections.abc import Iterable

from builder.model import names
from builder.model.errors import Detail, RequestError

# Characters that are easily confused in a sans or monospace font, each replaced by the narrower
# one, so that `vw` and `wv` are the same. A hyphen is easily overlooked.
_LOOKS_LIKE = str.maketrans(
    {
        "-": "",
        "0": "o",
        "1": "l",
        "i": "l",
        "2": "z",
        "5": "s",
        "6": "b",
        "9": "g",
        "q": "g",
        "m": "rn",
        "w": "vv",
        "d": "cl",
    }
)


def skeleton(handle: str) -> str:
    """Returns the look of a handle: the same for handles that are easily confused.

    The accounts database stores it for every owner, so a change of the rule needs a migration.
    """
    return handle.translate(_LOOKS_LIKE)


_RESERVED = {skeleton(handle): handle for handle in sorted(names.RESERVED_OWNERS)}


def check_free_handle(handle: str, taken: Iterable[str]) -> str:
    """Returns ``handle`` if a new owner may take it. ``taken``: the handles of existing owners.

    Raises RequestError ``invalid_name``, ``name_reserved``; ``validation_failed``, with the field
    ``handle`` as its detail, if it is taken, or looks like one that is taken or reserved.
    """
    names.check_new_owner(handle)
    look = skeleton(handle)
    if look in _RESERVED:
        raise _refusal(
            f"{handle} looks like {_RESERVED[look]}, which the site uses itself. Choose "
            "another handle."
        )
    alike = {other for other in taken if skeleton(other) == look}
    if handle in alike:
        raise _refusal(f"{handle} is taken. Choose another handle.")
    if alike:
        raise _refusal(
            f"{handle} looks too much like {min(alike)}, which is taken. Choose another handle."
        )
    return handle


def _refusal(message: str) -> RequestError:
    return RequestError("validation_failed", message, [Detail("handle", message)])
