"""The format of access tokens; does not know their owners.

``hub_``, 32 random base62 characters, and 6 that check them: the CRC-32 (as in zlib) of the 36
characters before, as a number in base62, most significant digit first, padded with zeros. The
digits of base62 are 0-9, A-Z, a-z, in this order. So a secret scanner recognises a token, and a
typo is found without a look into the database.
"""

import re
import zlib

from publisher.accounts.secret_text import DIGITS, SECRET_CHARS, make_secret

_PREFIX = "hub_"
_CHECK_CHARS = 6

_token = re.compile(f"{_PREFIX}[0-9A-Za-z]{{{SECRET_CHARS + _CHECK_CHARS}}}")


def make_token() -> str:
    """Returns a new token, with 190 random bits."""
    body = _PREFIX + make_secret()
    return body + _check_of(body)


def is_token(text: str) -> bool:
    """True if ``text`` has the form of a token, and its check is right."""
    body, check = text[:-_CHECK_CHARS], text[-_CHECK_CHARS:]
    return _token.fullmatch(text) is not None and check == _check_of(body)


def find_token(text: str) -> str | None:
    """Returns the first valid token anywhere in ``text``; None if it has none."""
    return next((found for found in _token.findall(text) if is_token(found)), None)


def _check_of(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(_CHECK_CHARS):
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits
