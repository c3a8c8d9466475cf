"""The pages of a version's files, and the tree that leads to them. Pure, as builder.render.pages.

A file is shown as what its bytes are, whatever its name says: as a picture, as text, or not at all.
No file is part of a page as HTML, SVG or PDF.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import groupby

from markupsafe import Markup, escape

from builder.model.answers import File, Repo, Version
from builder.model.matching import version_file
from builder.model.plural import counted, human_size
from builder.model.routes import BY_NAME
from builder.model.version_files import PATH_PATTERN, folders_of, is_text, text_of
from builder.render.pages import Pages, hashed
from builder.text.hidden_chars import Marks, visible
from builder.text.pictures import picture_size
from builder.text.readable import readable

# A page shows the start of a longer text, and links all of it.
CHARS_MAX = 200_000
LINES_MAX = 5_000
# A browser takes four bytes of memory for each pixel. Larger pictures are linked.
PIXELS_MAX = 25_000_000
# The page of a file in a larger version lists those around it.
LISTED_MAX = 40
# The target of a Markdown link, or inline code. Escaping for HTML changes neither.
_names_file = re.compile(rf"(?<=[(`])((?:\.{{1,2}}/)*(?:{PATH_PATTERN}))(?=[)`# ])")
_place = re.compile(rf"({PATH_PATTERN}):(\d+)")


class Files:
    """The files of a version, with the addresses of their pages."""

    def __init__(self, pages: Pages, one: Repo | Version, number: str) -> None:
        self._pages = pages
        self._one = one
        self._at = {"owner": one.owner, "name": one.name, "version": number}
        self._listed = sorted(one.files or (), key=lambda file: posixpath.split(file.path))
        paths = {file.path.lower() for file in self._listed}
        taken = paths.union(*map(folders_of, paths))
        # The page of `a` is a file `a.html`, at the address of the page of `a.html`. So `a` has
        # none beside a file, or a folder, of that name.
        self._hrefs = {
            file.path: self._raw(file.path)
            if f"{file.path.lower()}.html" in taken
            else pages.root + BY_NAME["file_page"].url_for(**self._at, file_path=file.path)
            for file in self._listed
        }

    def linked(self, text: Markup, folder: str = "") -> Markup:
        """A text in HTML, whose Markdown links and code lead to the files that they name from a
        folder; or else from the top.
        """
        if not self._hrefs:
            return text

        def link(found: re.Match[str]) -> str:
            named = found[1]
            for start in {folder: 0, "": 0}:
                if href := self._hrefs.get(posixpath.normpath(posixpath.join(start, named))):
                    return f'<a href="{href}">{named}</a>'
            return named

        return Markup(_names_file.sub(link, text))

    def places(self, text: str) -> Markup:
        """A text with places such as ``scripts/run.sh:12``, which lead to the lines of files."""

        def link(found: re.Match[str]) -> str:
            href = self._hrefs.get(found[1])
            return f'<a href="{href}#L{found[2]}">{found[0]}</a>' if href else found[0]

        return Markup(_place.sub(link, str(escape(text))))

    def panel(self) -> Markup | str:
        """The tree on the page of the version, which is that of the text; empty without files."""
        if not self._listed:
            return ""
        tree = _marked(self._tree(self._rows), self._rows[0][1])
        is_open = len(self._rows) <= LISTED_MAX
        panel = self._pages.macro("files.html", "file_tree")
        return panel(tree, self._one.content_sha256, is_open)

    def written(self, data: Sequence[tuple[str, bytes, bool]]) -> Iterator[tuple[str, bytes]]:
        """The page of each file that has one, and its path on the site; ``data`` has the bytes."""
        found = {path: raw for path, raw, _ in data}
        whole = self._tree(self._rows) if len(self._rows) <= LISTED_MAX else None
        for at, file in enumerate(self._listed, 1):
            path = file.path
            if self._hrefs[path] != self._raw(path):
                row = self._rows[at][1]
                tree = _marked(self._tree(self._around(at)) if whole is None else whole, row)
                page = BY_NAME["file_page"].file_for(**self._at, file_path=path)
                yield page, self._page(file, found[path], tree)

    def _raw(self, path: str) -> str:
        return f"{self._pages.root}/{version_file(**self._at, path=path).file}"

    @cached_property
    def _version_page(self) -> str:
        return self._pages.root + BY_NAME["version_page"].url_for(**self._at)

    @cached_property
    def _rows(self) -> list[tuple[str, str]]:
        """The folder of each file, and its row in the tree; first the text's."""
        rows = [("", f'<li><a href="{self._version_page}">SKILL.md</a></li>')]
        for file in self._listed:
            folder, _, name = file.path.rpartition("/")
            href = self._hrefs[file.path]
            note = " <small>executable</small>" if file.executable else ""
            saved = f' download="{name}"' if href == self._raw(file.path) else ""
            rows.append((folder, f'<li><a href="{href}"{saved}>{name}{note}</a></li>'))
        return rows

    def _around(self, at: int) -> list[tuple[str, str]]:
        """The rows around one of them, and how many others there are."""
        start = max(0, min(at - LISTED_MAX // 2, len(self._rows) - LISTED_MAX))
        left = len(self._rows) - LISTED_MAX
        others = f'<li><a href="{self._version_page}#files">{left} more</a></li>'
        return [*self._rows[start : start + LISTED_MAX], ("", others)]

    def _tree(self, rows: list[tuple[str, str]]) -> str:
        parts = []
        for folder, listed in groupby(rows, key=lambda row: row[0]):
            below = "".join(row for _, row in listed)
            parts.append(f"<li>{folder}/<ul>{below}</ul></li>" if folder else below)
        return f"<ul>{''.join(parts)}</ul>"

    def _page(self, file: File, raw: bytes, tree: Markup) -> bytes:
        folder, slash, name = file.path.rpartition("/")
        extension = name.rpartition(".")[2].lower()
        size = picture_size(extension, raw)
        text = None if size else text_of(raw)
        is_shown = bool(size) and size[0] * size[1] <= PIXELS_MAX
        facts, note, reading, source = [human_size(file.size), file.media_type], "", "", ""
        if size:
            facts.insert(0, f"{size[0]:,} × {size[1]:,} pixels")
            note = "" if is_shown else "This picture is too large to show here."
        elif text is None:
            note = "The bytes of this file are not text in UTF-8, so they are not shown."
        elif not text:
            note = "This file is empty."
        else:
            count = text.count("\n") + (not text.endswith("\n"))
            facts.insert(0, counted(count, "line"))
            start = "".join(text[:CHARS_MAX].splitlines(True)[:LINES_MAX])
            if start != text:
                note = f"These are the first {len(start):,} of {len(text):,} characters."
            marked = visible(start, Marks())
            source = _numbered(marked)
            if extension in ("md", "markdown"):
                reading = readable(self.linked(marked, folder), [])
        if file.executable:
            facts.append("executable")
        return self._pages.fill_page(
            "file.html",
            **self._at,
            title=self._one.title,
            path=file.path,
            folder=folder + slash,
            file=name,
            facts=" · ".join(facts),
            note=note,
            raw=self._raw(file.path),
            is_text=is_text(file.path),
            width=str(size[0]) if is_shown else "",
            height=str(size[1]) if is_shown else "",
            reading=reading,
            source=source,
            sha256=hashed(file.sha256),
            tree=tree,
        )


def _numbered(text: Markup) -> Markup:
    """A text in HTML with a number before each line, which is the address of the line."""
    lines = str(text).removesuffix("\n").split("\n")
    rows = zip(_numbers(), lines, strict=False)
    return Markup("".join([f"{number}{line}\n</span>" for number, line in rows]))


@cache
def _numbers() -> list[str]:
    """The beginnings of all lines. The keyboard passes over the numbers: Tab would otherwise stop
    at each line of a file.
    """
    lines = range(1, LINES_MAX + 1)
    return [f'<span id="L{at}"><a href="#L{at}" tabindex="-1">{at}</a>' for at in lines]


def _marked(tree: str, row: str) -> Markup:
    """A tree, in which the row is that of its page."""
    here = row.replace("<a ", '<b><a aria-current="page" ').replace("</a>", "</a></b>")
    return Markup(tree.replace(row, here))
