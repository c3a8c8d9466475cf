"""Secrets that programs create: random text, and the hash that is stored.

A secret with 190 random bits cannot be found by trying. So a plain SHA-256 is enough, which would
not protect a password.
"""

import hashlib
import secrets
import string

# The digits of base62, in their order.
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARS = 32


def make_secret() -> str:
    """Returns a new secret: 32 digits of base62."""
    return "".join(secrets.choice(DIGITS) for _ in range(SECRET_CHARS))


def hash_secret(secret: str) -> bytes:
    """Returns the hash to store for a secret, or for any text that a client sends in its place."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
