"""Links of a page, its fragments, and the scripts that it runs."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Self

# Attributes with an address, and meta tags that have one in "content".
_ADDRESSES = ("href", "src", "action", "formaction", "poster", "cite", "data")
_METAS = ("og:url", "og:image", "twitter:image")


class Markup(HTMLParser):
    """``links``: every address; ``ids``: what a fragment may name; ``inline``: scripts, styles and
    event handlers that are not in files of their own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.inline: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Self:
        self = cls()
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        return self

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.links += [values[name] for name in _ADDRESSES if name in values]
        if tag == "meta" and (values.get("property") or values.get("name")) in _METAS:
            self.links.append(values["content"])
        if "id" in values:
            self.ids.append(values["id"])
        is_inline = tag == "style" or (tag == "script" and "src" not in values)
        if is_inline or any(name == "style" or name.startswith("on") for name in values):
            self.inline.append(self.get_starttag_text() or tag)
