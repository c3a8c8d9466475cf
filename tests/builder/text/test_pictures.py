"""The size of a picture is read from its header, and is None for whatever is no such picture."""

from struct import pack

import pytest

from builder.text.pictures import picture_size

PNG = b"\x89PNG\r\n\x1a\n" + pack(">I4sII", 13, b"IHDR", 20_000, 30_000)
GIF = b"GIF89a" + pack("<HH", 7, 5)
_FRAME = pack(">BBHBHH", 0xFF, 0xC2, 11, 8, 5, 7)
JPEG = b"\xff\xd8\xff\xe0" + pack(">H4x", 6) + b"\xff" + _FRAME
WEBP = b"RIFF\0\0\0\0WEBP"
LOSSY = WEBP + b"VP8 " + bytes(10) + pack("<HH", 7, 5 | 0x4000)
LOSSLESS = WEBP + b"VP8L" + bytes(4) + b"\x2f" + pack("<I", 6 | 4 << 14)
EXTENDED = WEBP + b"VP8X" + bytes(8) + b"\x06\0\0\x04\0\0"


@pytest.mark.parametrize(
    ("extension", "data", "size"),
    [
        ("png", PNG, (20_000, 30_000)),
        ("gif", GIF, (7, 5)),
        ("jpg", JPEG, (7, 5)),
        ("jpeg", JPEG, (7, 5)),
        ("webp", LOSSY, (7, 5)),
        ("webp", LOSSLESS, (7, 5)),
        ("webp", EXTENDED, (7, 5)),
        # Of another format than the name says, and with markup where the size is not.
        ("png", GIF, None),
        ("gif", b"<script>", None),
        ("svg", b"<svg width='1' height='1'/>", None),
        ("", PNG, None),
        # Without pixels.
        ("gif", b"GIF89a" + bytes(4), None),
        ("webp", WEBP + b"VP8?" + bytes(20), None),
        # A JPEG whose segments are none, empty, or have no end.
        ("jpg", b"\xff\xd8\xff\xe0\0\2no", None),
        ("jpg", b"\xff\xd8\xff" + b"\xff" * 9, None),
        ("jpg", b"\xff\xd8" + b"\xff\xe0\0\0" * 2_000, None),
        ("jpg", b"\xff\xd8" + b"\xff\xd0" * 2_000 + _FRAME, None),
    ],
)
def test_the_size(extension, data, size):
    assert picture_size(extension, data) == size


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, LOSSY, LOSSLESS, EXTENDED])
def test_a_part_of_a_header_is_no_picture(data):
    for extension in ("png", "gif", "jpg", "webp"):
        for length in range(len(data)):
            assert picture_size(extension, data[:length]) is None
