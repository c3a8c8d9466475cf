"""The receiver of messages about deployments, and the signature of a message."""

import base64
import binascii
import hashlib
import hmac
from typing import NamedTuple
from urllib.parse import urlsplit

from builder.model.errors import OperatorError
from publisher.outside.private_way import is_private_way

SECRET_VARIABLE = "HUB_ON_DEPLOYED_SECRET"
SECRET_PREFIX = "whsec_"
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64


class Receiver(NamedTuple):
    """The URL that gets the messages, and the key of their signatures."""

    url: str
    key: bytes


def make_receiver(url: str | None, secret: str | None) -> Receiver | None:
    """The receiver of these settings; None without a URL. Raises OperatorError."""
    if not url:
        return None
    if not is_private_way(url) or urlsplit(url).fragment:
        raise OperatorError(
            f"Cannot send notices to {url!r}. Pass an https URL (http only on this machine) to "
            "--on-deployed."
        )
    try:
        key = base64.b64decode((secret or "").removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise OperatorError(
            f"--on-deployed needs a secret in the environment variable {SECRET_VARIABLE}, or in a "
            f"file that {SECRET_VARIABLE}_FILE names: {SECRET_PREFIX} and {SECRET_BYTES_MIN} to "
            f"{SECRET_BYTES_MAX} random bytes in base64. Create one with "
            f"`echo {SECRET_PREFIX}$(openssl rand -base64 32)`, and give it to the receiver, too."
        )
    return Receiver(url, key)


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header ``webhook-signature`` of a message, by Standard Webhooks."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
