"""The style sheet and the icon of a site, in the operator's colour. Pure.

Text has a contrast of at least 4.5:1 (WCAG 2.2, 1.4.3) in both colour schemes.
"""

import os
import re
from functools import cache

from builder.model.errors import OperatorError

ASSETS = os.path.join(os.path.dirname(__file__), "assets")
CONTRAST_MIN = 4.5
# The share of the accent in the ground of chosen and filled-in elements; see tokens.css.
TINT = 0.09
# The share of white in the accent of dark pages. With it, every accent that can be read on light
# pages can be read there, too.
DARK_WHITE = 0.6

Colour = tuple[int, int, int]

_colour = re.compile(r"#[0-9a-fA-F]{6}")
_declaration = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")


def check_accent(text: str) -> str:
    """Check the colour of links. Raises OperatorError."""
    if not _colour.fullmatch(text):
        raise OperatorError(f"Invalid accent {text!r}. Give a colour as #rrggbb, such as #8a2f6b.")
    accent = _parse(text)
    light = [schemes()[0][name] for name in ("ground", "sunken", "raised")]
    # The tint is mixed with the last ground.
    least = min(contrast(accent, one) for one in [*light, _mix(light[-1], accent, TINT)])
    if least < CONTRAST_MIN:
        raise OperatorError(
            f"The accent {text} is too light to read: its contrast is {least:.1f}:1, and texts "
            f"need {CONTRAST_MIN}:1. Choose a darker colour."
        )
    return text.lower()


def stylesheet(accent: str) -> bytes:
    """The whole style sheet with this accent, or with the default one if it is empty."""
    sheet = b"\n".join(read_asset(name) for name in ("tokens.css", "style.css"))
    if not accent:
        return sheet
    dark = _mix(_parse(accent), (255, 255, 255), DARK_WHITE)
    pairs = {"accent": (accent, _hex(dark)), "on-accent": ("#ffffff", "#000000")}
    rules = [f"--{name}: light-dark({light}, {dark});" for name, (light, dark) in pairs.items()]
    return sheet + f"\n/* The operator's colour */\n:root {{ {' '.join(rules)} }}\n".encode()


def icon(accent: str) -> bytes:
    """The icon, which has one colour in both schemes."""
    own = _hex(schemes()[0]["accent"])
    return read_asset("icon.svg").replace(b"ACCENT", (accent or own).encode())


@cache
def schemes() -> tuple[dict[str, Colour], dict[str, Colour]]:
    """The colours of light and of dark pages, by their names."""
    names, *schemes = zip(*_declaration.findall(read_asset("tokens.css").decode()), strict=True)
    return tuple(dict(zip(names, map(_parse, one), strict=True)) for one in schemes)


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of WCAG 2.2."""
    darker, lighter = sorted(map(_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    parts = [part / 255 for part in colour]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mix(one: Colour, other: Colour, share: float) -> Colour:
    """``one`` with this share of ``other``, as ``color-mix(in srgb, …)``."""
    return tuple(round(a + (b - a) * min(share, 1)) for a, b in zip(one, other, strict=True))


def _parse(text: str) -> Colour:
    return tuple(bytes.fromhex(text[1:]))


def _hex(colour: Colour) -> str:
    return f"#{bytes(colour).hex()}"


def read_asset(name: str) -> bytes:
    """The bytes of a file of the folder of assets, or at an absolute path."""
    with open(os.path.join(ASSETS, name), "rb") as file:
        return file.read()
