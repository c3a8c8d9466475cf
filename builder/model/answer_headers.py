"""Headers that several answers share, on whatever host: CORS, safety, rate limits."""

from builder.model.routes import PAGE_POLICY

# Below this, compression saves less than a packet.
GZIP_BYTES_MIN = 1024
# When to ask again for what is not to be had now.
RETRY_SECONDS = 5

# The rate limit counts in windows of this length, from a client's first read on.
WINDOW_SECONDS = 60
# A client that has one IPv6 address usually has its whole /64.
IPV6_CLIENT_BITS = 64

Headers = list[tuple[bytes, bytes]]

CORS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"ETag, Location, Retry-After, RateLimit, RateLimit-Policy",
    ),
]
# Of what only members read: no other origin may, nor load it as an image or a script.
MEMBERS_ONLY: Headers = [
    (b"vary", b"Authorization, Cookie"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
SAFETY: Headers = [(b"x-content-type-options", b"nosniff")]
PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match",
    ),
    (b"access-control-max-age", b"86400"),
]
PAGE_SAFETY: Headers = [
    # What only a header can say is added to what the page says itself.
    (b"content-security-policy", f"{PAGE_POLICY}; frame-ancestors 'none'".encode()),
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
]
READ_METHODS = "GET, HEAD, OPTIONS"


def policy(limit: int, name: str = "read", minutes: int = 1) -> str:
    """The RateLimit-Policy header of a limit of requests in so many minutes."""
    return f'"{name}";q={limit};w={minutes * WINDOW_SECONDS}'


def exhausted(wait_seconds: int, name: str = "read") -> str:
    """The RateLimit header for a client who is told to wait so long."""
    return f'"{name}";r=0;t={wait_seconds}'
