"""A small catalogue with its whole expected site.

``content`` is written by hand and holds what goes wrong easily: markup in every field, a byte
order mark, CRLF, no final newline, front matter, other scripts. ``site`` is what a build makes
of it, byte for byte; its ``assets`` are those of the source. After a wanted change
``python -m tests.golden`` makes it again; read the difference before you commit it.
"""

import os

from builder.model.settings import Settings

HERE = os.path.dirname(os.path.abspath(__file__))
CONTENT = f"{HERE}/content"
SITE = f"{HERE}/site"


def golden_settings(out: str, state: str) -> Settings:
    """A base URL with a path, so that a link that forgets it shows."""
    return Settings(CONTENT, out, state, "https://example.org/prompts", "Golden Hub")
