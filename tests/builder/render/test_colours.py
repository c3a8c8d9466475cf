"""Every pair of colours of the style sheet can be read, also with an operator's accent."""

import re
from itertools import product

import pytest

from builder.model.errors import OperatorError
from builder.render.colours import (
    ASSETS,
    CONTRAST_MIN,
    check_accent,
    contrast,
    icon,
    schemes,
    stylesheet,
)  # fmt: skip

GROUNDS = ("ground", "raised", "sunken")
TOO_LIGHT = ["ffcc00", "FF7700", "fdfdfb", "3399ff"]
ACCENTS = ["", "#8a2f6b", "#000000", "#7a5200", "#0000ff", "#5a5a5a"]


def hexes(css: str, name: str) -> tuple[str, str]:
    """The last value in light and in dark."""
    return re.findall(rf"--{name}: light-dark\((#[0-9a-f]{{6}}), (#[0-9a-f]{{6}})\)", css)[-1]


def parsed(text: str) -> tuple[int, int, int]:
    return tuple(bytes.fromhex(text[1:]))


@pytest.mark.parametrize("scheme", schemes())
def test_texts_and_edges_can_be_read_on_each_ground(scheme):
    for name, ground in product(("text", "soft", "wrong", "accent"), GROUNDS):
        least = 7 if name == "text" else CONTRAST_MIN
        assert contrast(scheme[name], scheme[ground]) >= least, (name, ground)
    for ground in GROUNDS:
        assert contrast(scheme["edge"], scheme[ground]) >= 3, ground
    for ground in ("mark", "added", "removed"):
        assert contrast(scheme[f"{ground}-text"], scheme[ground]) >= CONTRAST_MIN, ground


@pytest.mark.parametrize("accent", ACCENTS)
def test_an_accent_can_be_read_in_both_schemes(accent):
    css = stylesheet(check_accent(accent) if accent else "").decode()
    found = zip(hexes(css, "accent"), hexes(css, "on-accent"), schemes(), strict=True)
    for shown, on, scheme in found:
        assert contrast(parsed(shown), parsed(on)) >= CONTRAST_MIN
        for ground in GROUNDS:
            assert contrast(parsed(shown), scheme[ground]) >= CONTRAST_MIN, (shown, ground)
    shown = hexes(css, "accent")[0]
    assert shown == (accent or hexes(stylesheet("").decode(), "accent")[0])
    assert shown.encode() in icon(accent)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        *(("The accent {} is too light", f"#{one}") for one in TOO_LIGHT),
        *(("Give a colour as #rrggbb", f"#{one}") for one in ("fff", "8a2f6b;}", "8a2f6g")),
        *(("Give a colour as #rrggbb", one) for one in ("red", "8a2f6b", "")),
    ],
)
def test_what_cannot_be_read_or_is_no_colour_is_refused(reason, text):
    with pytest.raises(OperatorError, match=reason.format(text)):
        check_accent(text)


def test_sizes_and_colours_are_in_the_tokens_alone():
    with open(f"{ASSETS}/style.css", encoding="utf-8") as file:
        rules = re.sub(r"@media print \{.*", "", file.read(), flags=re.DOTALL)
    assert re.findall(r"#[0-9a-f]{3,8}\b(?![\w-]*[^;{}]*\{)|rgb|hsl", rules) == []
    assert len(stylesheet("")) <= 20 * 1024
