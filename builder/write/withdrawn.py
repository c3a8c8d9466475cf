"""The files that say why versions and repos are gone."""

from collections.abc import Iterator

from builder.model.answers import ErrorBody, WithdrawnLine
from builder.model.routes import BY_NAME
from builder.model.withdrawn import WithdrawnParts, WithdrawnVersion, public, tell
from builder.render import envelopes
from builder.render.envelopes import json_bytes
from builder.render.pages import Pages


def lines_of(owner: str, name: str, parts: WithdrawnParts) -> bytes:
    """A repo's lines of ``withdrawn.jsonl``, in order of version."""
    found = [
        (str(one.version), one.withdrawal)
        for one in parts.versions
        if one.withdrawal != parts.whole
    ] + ([(None, parts.whole)] if parts.whole else [])
    lines = (
        WithdrawnLine(owner, name, version, gone.at, gone.reason, gone.note)
        for version, gone in found
    )
    return b"".join(json_bytes(line) + b"\n" for line in lines)


def files_of_version(
    pages: Pages, one: WithdrawnVersion, owner: str, name: str
) -> Iterator[tuple[str, bytes]]:
    """Why a version is gone."""
    message = tell(f"{owner}/{name} {one.version}", one.withdrawal)
    url = BY_NAME["versions"].url_for(owner=owner, name=name)
    given = {"withdrawal": public(one.withdrawal), "is_repo": False, "version": str(one.version)}
    page = pages.render("withdrawn.html", owner=owner, name=name, **given)
    yield "withdrawn_version_page", page
    yield "withdrawn_version", _note(f"{message} {url} lists the versions.")


def files_of_repo(
    pages: Pages, parts: WithdrawnParts, owner: str, name: str
) -> Iterator[tuple[str, bytes]]:
    """Why a repo without readable versions is gone."""
    repo = f"{owner}/{name}"
    if parts.whole:
        withdrawal, version, message = parts.whole, "", tell(repo, parts.whole)
    else:
        last = parts.versions[-1]
        withdrawal, version = last.withdrawal, str(last.version)
        message = tell(f"{repo} has no version left: {version}", withdrawal)
    given = {"withdrawal": public(withdrawal), "is_repo": True, "version": version}
    yield "withdrawn_repo_page", pages.render("withdrawn.html", owner=owner, name=name, **given)
    yield "withdrawn_repo", _note(message)


def _note(message: str) -> bytes:
    return envelopes.error_envelope(ErrorBody("withdrawn", message))
