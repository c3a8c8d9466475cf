"""Secrets that programs make up: random text, and what is stored of it.

With 190 bits of chance in it, a secret cannot be found by trying; so its plain SHA-256 is enough,
which is no password's.
"""

import hashlib
import secrets
import string

# The digits of base62, in their order.
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARS = 32


def make_secret() -> str:
    """A new secret: 32 digits of base62."""
    return "".join(secrets.choice(DIGITS) for _ in range(SECRET_CHARS))


def hash_secret(secret: str) -> bytes:
    """What is stored of a secret; of anything that a client may send in its place, too."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
