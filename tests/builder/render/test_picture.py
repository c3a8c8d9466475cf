"""The picture beside links is a whole PNG with the name of the hub, whatever the name is."""

import struct
import zlib

import pytest

from builder.render.picture import HEIGHT, WIDTH, picture


def lines_of(png: bytes) -> list[bytes]:
    """The lines of pixels. Checks each chunk, as a decoder does."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert png[at + 8 + size : at + 12 + size] == struct.pack(">I", zlib.crc32(kind + data))
        chunks[kind] = data
        at += 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (WIDTH, HEIGHT) and chunks[b"IEND"] == b""
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == HEIGHT * (WIDTH + 1)
    return [raw[y * (WIDTH + 1) + 1 : (y + 1) * (WIDTH + 1)] for y in range(HEIGHT)]


def inked(png: bytes) -> tuple[int, int]:
    """The left and the right edge of the name."""
    columns = [x for line in lines_of(png)[340:] for x, shade in enumerate(line) if shade]
    return (min(columns), max(columns)) if columns else (0, 0)


@pytest.mark.parametrize("name", ["", " \n\x7f", "\u200b"])
def test_a_name_without_letters_leaves_the_mark(name: str):
    assert lines_of(picture(name)) == lines_of(picture(""))


@pytest.mark.parametrize("name", ["i", "Harbor", "Отдел поддержки", "x" * 300, "many words " * 40])
def test_a_name_is_in_the_middle_and_within_the_picture(name: str):
    left, right = inked(picture(name))
    assert 60 < left < right < WIDTH - 60 and abs(left + right - WIDTH) < 30
    assert picture(name) == picture(name) != picture("")
