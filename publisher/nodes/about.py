"""What a store says of itself: ``store.json``, which is made once."""

import secrets
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from builder.model.errors import OperatorError
from builder.model.records import format_time
from publisher.nodes.entries import encode
from publisher.nodes.objects import Objects

ABOUT_FILE = "store.json"
_ABOUT_BYTES_MAX = 4096
_FORMAT = 1


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """What ``store.json`` says of a store. ``serial``: what the numbers of its entries are added
    to, for readers.
    """

    id: str
    format: int
    created_at: str
    serial: int = 0


def identify(objects: Objects, *, make: bool = True, serial: int = 0) -> About:
    """What a store is; it is made if it is new, with this ``serial``. Raises OperatorError where
    it cannot be used by this release, or by anybody; StoreUnavailable.
    """
    data = objects.get(ABOUT_FILE, _ABOUT_BYTES_MAX)
    if data is None and make:
        objects.probe()
        now = format_time(datetime.now(UTC))
        objects.create(ABOUT_FILE, encode(About(secrets.token_hex(16), _FORMAT, now, serial)))
        data = objects.get(ABOUT_FILE, _ABOUT_BYTES_MAX)
    if data is None:
        raise OperatorError(f"{objects.url} has no hub: there is no {ABOUT_FILE}.")
    try:
        about = msgspec.json.decode(data, type=About)
    except msgspec.DecodeError as error:
        raise OperatorError(
            f"{ABOUT_FILE} in the store {objects.url} is no hub's ({error}). Pass another prefix."
        ) from error
    if about.format != _FORMAT:
        raise OperatorError(
            f"The store {objects.url} has the format {about.format}, but this release knows "
            f"{_FORMAT}. Upgrade this node."
        )
    return about
