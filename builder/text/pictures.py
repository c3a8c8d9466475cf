"""Width and height of a picture, from the first bytes of its file. Pure; decodes no pixels.

PNG: W3C, 11.2.1. GIF89a: 18. JPEG: ITU T.81, B.2.2. WebP: RFC 9649, 2.5 to 2.7.
"""

from struct import error as TooShort
from struct import unpack_from

# JPEG's markers without a length, and those of frames, which have the size.
_BARE = {0x01, *range(0xD0, 0xD8)}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
# A picture with more segments before its size is not read.
_SEGMENTS_MAX = 1_000


def picture_size(extension: str, data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a file whose name has this extension, in lower case; None for
    another format, and for bytes that do not begin as the extension promises.
    """
    read = _READERS.get(extension)
    try:
        size = read(data) if read else None
    except TooShort:
        return None
    return size if size and all(size) else None


def is_picture(path: str) -> bool:
    """True if the name of a file promises a picture."""
    return path.rpartition(".")[2] in _READERS


def _png(data: bytes) -> tuple[int, int] | None:
    return unpack_from(">II", data, 16) if data.startswith(b"\x89PNG\r\n\x1a\n") else None


def _gif(data: bytes) -> tuple[int, int] | None:
    return unpack_from("<HH", data, 6) if data[:6] in (b"GIF87a", b"GIF89a") else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2 if data.startswith(b"\xff\xd8\xff") else len(data)
    for _ in range(_SEGMENTS_MAX):
        start, marker = unpack_from(">BB", data, at)
        if start != 0xFF:
            return None
        if marker in _FRAMES:
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        else:
            at += 2 if marker in _BARE else 2 + unpack_from(">H", data, at + 2)[0]
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        low, high, low_height, high_height = unpack_from("<HBHB", data, 24)
        return (low | high << 16) + 1, (low_height | high_height << 16) + 1
    return None


_READERS = {"gif": _gif, "jpeg": _jpeg, "jpg": _jpeg, "png": _png, "webp": _webp}
