"""The steps of a user in the editor, without scripts."""

from builder.model.names import Version
from builder.model.records import VersionFile
from builder.store import content
from tests.publisher.web.pages.conftest import Page, People, Upload, Visitor

MINE = "/account/prompts"
NEW = f"{MINE}/new"
HOSTILE = "<script>alert(1)</script>\N{RIGHT-TO-LEFT OVERRIDE}</textarea>\"'{{a}}"


def fields_of(visitor: Visitor, **changed: str | list[str] | None) -> list[tuple[str, str]]:
    """The fields that the editor's form would send, with some changed."""
    form = next(form for form in visitor.page.forms if "content" in form.names)
    sent = [(name, value) for name, value in form.fields if name not in changed]
    for name, value in changed.items():
        sent += [(name, one) for one in ([value] if isinstance(value, str) else value or [])]
    return sent


def send(
    visitor: Visitor, action: str, /, *uploads: Upload, **changed: str | list[str] | None
) -> Page:
    """Press a button of the editor, with files chosen for upload."""
    form = next(form for form in visitor.page.forms if "content" in form.names)
    sent = [*fields_of(visitor, **changed), ("action", action)]
    return visitor.post(form.action, sent, uploads)


def set_variable(visitor: Visitor, name: str, **cells: str) -> dict[str, list[str]]:
    """The changed columns of the variables' forms on the page."""
    sent = fields_of(visitor)
    names = [value for field, value in sent if field == "variable-name"]
    columns = {}
    for cell, value in cells.items():
        column = [one for field, one in sent if field == f"variable-{cell}"]
        column[names.index(name)] = value
        columns[f"variable-{cell}"] = column
    return columns


def publish(visitor: Visitor, **changed: str | list[str] | None) -> Page:
    """Preview, then publish what it shows."""
    page = send(visitor, "preview", **changed)
    assert page.status == 200, page.words
    page = send(visitor, "publish")
    assert (page.status, page.path.rpartition("/")[2]) == (200, "published"), page.words
    return page


def open_story(visitor: Visitor) -> Page:
    return visitor.get(f"{MINE}/{visitor.handle}/story")


def stored(
    people: People, writer: Visitor, version: str, name: str = "story"
) -> tuple[VersionFile, str]:
    root = people.settings.content
    return content.read_version(root, writer.handle, name, Version.parse(version))
