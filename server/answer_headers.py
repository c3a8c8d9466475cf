"""Headers that several responses share on every host: CORS, safety, rate limits."""

from builder.model.routes import BYTES, HTML, PAGE_POLICY

# Below this size, compression saves less than a packet.
GZIP_BYTES_MIN = 1024
# After this time, a client retries a request that failed with 503.
RETRY_SECONDS = 5

# The rate limit counts in windows of this length, which begin with a client's first read.
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
# Headers of content for members: no other origin may read it, nor load it as an image or a script.
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
    # frame-ancestors works only in a header; the rest repeats the policy in the page itself.
    (b"content-security-policy", f"{PAGE_POLICY}; frame-ancestors 'none'".encode()),
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
]
# For files of versions: a browser neither runs nor shows their bytes.
FILE_SAFETY: Headers = [(b"content-security-policy", b"default-src 'none'; sandbox")]
SAFETY_BY_MEDIA = {HTML: PAGE_SAFETY, BYTES: FILE_SAFETY}
READ_METHODS = "GET, HEAD, OPTIONS"


def policy(limit: int, name: str = "read", minutes: int = 1) -> str:
    """The RateLimit-Policy header for a limit of ``limit`` requests in ``minutes`` minutes."""
    return f'"{name}";q={limit};w={minutes * WINDOW_SECONDS}'


def exhausted(wait_seconds: int, name: str = "read") -> str:
    """The RateLimit header for a client that must wait ``wait_seconds``."""
    return f'"{name}";r=0;t={wait_seconds}'
