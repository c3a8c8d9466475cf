"""Renders a template once for each shape of its values, and fills texts into the result.

Most of a page is the same for all prompts, and running a template costs as much for that part as
for
the rest. A *frame* is a template's output for holes instead of texts. Filling one only joins
strings. Texts are escaped as in templates.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from markupsafe import Markup, escape

# Noncharacters of Unicode, which filters of templates keep.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
# Most texts have none of these, and the search takes a third of the time of escaping.
_needs_escape = re.compile("[&<>\"']").search
_hole = re.compile(f"{_OPEN}(\\w+){_CLOSE}")


class _Hole:
    """Stands for a text that is not empty. It can be printed, joined and tested. All else fails,
    because the text is unknown.
    """

    def __init__(self, name: str) -> None:
        self._mark = f"{_OPEN}{name}{_CLOSE}"

    def __str__(self) -> str:
        return self._mark

    def __eq__(self, other: object) -> bool:
        raise TypeError("a text that is not known yet cannot be compared")


class _Frame(NamedTuple):
    """``pieces``: HTML, with the name of a hole at each odd place; ``encoded``: the same in UTF-8.
    ``holes``: the names in order, with repeats; ``names``: each once.
    """

    pieces: list[str]
    encoded: list[bytes]
    holes: list[str]
    names: frozenset[str]


class Frames:
    """The frames of templates, by shape: which texts are empty, and which flags are set.

    ``render`` renders a template with values. A template may test texts and flags, so it has a
    frame for each combination in use. A list must be rendered to a text first.
    """

    def __init__(self, render: Callable[[str, dict[str, Any]], str]) -> None:
        self._render = render
        self._frames: dict[tuple[str | bool, ...], _Frame] = {}

    def fill(self, template: str, **values: str | bool) -> Markup:
        """The template with these texts and flags; texts that are not Markup are escaped. A
        template always gets values of the same names and types, in the same order.
        """
        frame = self._escape(template, values)
        pieces = frame.pieces.copy()
        pieces[1::2] = map(values.__getitem__, frame.holes)
        # Equals Markup(…), but skips its check for ``__html__``.
        return str.__new__(Markup, "".join(pieces))

    def fill_page(self, template: str, **values: str | bool) -> bytes:
        """As ``fill``, in UTF-8. Texts beside "…" would take longer to join, and then to encode."""
        frame = self._escape(template, values)
        pieces = frame.encoded.copy()
        pieces[1::2] = [values[name].encode() for name in frame.holes]
        return b"".join(pieces)

    def _escape(self, template: str, values: dict[str, str | bool]) -> _Frame:
        """The frame for these values, in which texts are escaped."""
        shape = (template, *map(bool, values.values()))
        frame = self._frames.get(shape)
        if frame is None:
            frame = self._frames[shape] = self._make(template, values)
        texts = map(values.__getitem__, frame.names)
        if _needs_escape("".join([text for text in texts if text.__class__ is not Markup])):
            for name in frame.names:
                values[name] = escape(values[name])
        return frame

    def _make(self, template: str, values: dict[str, str | bool]) -> _Frame:
        with_holes = {
            name: _Hole(name) if value and isinstance(value, str) else value
            for name, value in values.items()
        }
        if not all(isinstance(value, str | bool) for value in values.values()):
            raise TypeError(f"{template} gets a value that is neither a text nor a flag")
        pieces = _hole.split(self._render(template, with_holes))
        is_torn = any(mark in piece for mark in (_OPEN, _CLOSE) for piece in pieces[::2])
        if is_torn or not values.keys() >= {*pieces[1::2]}:
            raise ValueError(f"{template} changes or takes apart a text that is not known yet")
        encoded = [piece.encode() for piece in pieces]
        return _Frame(pieces, encoded, pieces[1::2], frozenset(pieces[1::2]))
