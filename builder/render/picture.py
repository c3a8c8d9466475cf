"""The picture of a hub beside its links: the mark, and the hub's name. Pure.

No library draws letters. ``letters.png`` has those of ASCII in one row, four bits a pixel, drawn
once by a browser; its first line marks where each begins. ``picture.png`` has the mark, and the
same sixteen shades first in its palette. No line of either is filtered (PNG, 9.2), so composing
them copies bytes.
"""

import struct
import zlib
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from anyascii import anyascii

from builder.render.colours import read_asset

WIDTH, HEIGHT = 1200, 630
# The lines of the name: their number, the edge of the first, and the room for letters.
LINES_MAX, TOP, ROOM = 2, 370, 1040


class _Image(NamedTuple):
    """A PNG: its chunks before the pixels, and its lines, each after the byte of its filter."""

    head: bytes
    lines: list[bytes]


def picture(name: str) -> bytes:
    """The picture as a PNG. Other scripts are transliterated; a name that is too long is cut."""
    head, lines = _read("picture.png")
    pixels = [bytearray(line) for line in lines]
    printable = "".join(one if " " <= one <= "~" else " " for one in anyascii(name))
    for number, text in enumerate(_wrapped(printable.split())):
        letters = [_letters()[ord(one) - 32] for one in text]
        left = 1 + (WIDTH - sum(len(one[0]) for one in letters)) // 2
        for y, row in enumerate(zip(*letters, strict=True), TOP + number * len(letters[0])):
            joined = b"".join(row)
            pixels[y][left : left + len(joined)] = joined
    return head + _chunk(b"IDAT", zlib.compress(b"".join(pixels), 9)) + _chunk(b"IEND", b"")


def _wrapped(words: list[str]) -> list[str]:
    """The lines of a name."""
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and _width(joined) > ROOM:
            lines.append(word)
        else:
            lines[-1] = joined
    if len(lines) > LINES_MAX:
        lines[LINES_MAX - 1] += "..."
    return [_cut(line) for line in lines[:LINES_MAX] if line]


def _cut(line: str) -> str:
    while _width(line) > ROOM:
        line = line.removesuffix("...")[:-1] + "..."
    return line


def _width(text: str) -> int:
    return sum(len(_letters()[ord(one) - 32][0]) for one in text)


@cache
def _letters() -> list[list[bytes]]:
    """The lines of pixels of each letter from the space on."""
    first, *lines = (
        line.hex()[2:].translate(_SHADES).encode() for line in _read("letters.png").lines
    )
    starts = [at for at, shade in enumerate(first) if shade]
    return [[line[a:b] for line in lines] for a, b in pairwise([*starts, len(first)])]


_SHADES = str.maketrans({f"{shade:x}": chr(shade) for shade in range(16)})


def _read(asset: str) -> _Image:
    data = read_asset(asset)
    at = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[at - 4 : at])
    raw = zlib.decompress(data[at + 4 : at + 4 + size])
    (height,) = struct.unpack(">I", data[20:24])
    width = len(raw) // height
    return _Image(data[: at - 4], [raw[y * width : (y + 1) * width] for y in range(height)])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
