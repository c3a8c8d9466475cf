"""The repository that a prompt comes from, for authors who would change it in the browser."""

from typing import NamedTuple
from urllib.parse import quote

from publisher.service.parts import Service
from publisher.trusted.issuers import BRANCH_PREFIX, DEFAULT_ISSUERS, Issuer
from publisher.web.editor.writing import Base

# The field with which an author says yes.
OVERRIDE = "override"
ASK = "Tick this first: the repository does not get what you publish here."


class Origin(NamedTuple):
    """``project`` (GROUP/NAME) is empty if none is known. ``path`` is the usual one of the prompt
    in it. The addresses of their pages are empty if the issuer's are unknown. ``is_only``: the
    prompt accepts only trusted publishers.
    """

    project: str
    url: str
    path: str
    file_url: str
    is_only: bool


def origin_of(service: Service, owner: str, name: str, latest: Base | None) -> Origin | None:
    """Returns the origin of a prompt whose latest version a job published, or that accepts only
    trusted publishers; None for others.
    """
    is_only = name in service.accounts.trusted_only(owner)
    source = latest.record.source if latest else None
    if not source and not is_only:
        return None
    path = f"prompts/{name}" if latest and latest.files else f"prompts/{name}.md"
    if source:
        branch = (source.ref or "").removeprefix(BRANCH_PREFIX)
        issuer, project = source.issuer, source.project
    else:
        trusted = [one for one in service.trusted.of(owner) if one.repo in ("", name)]
        entry = next((one for one in trusted if one.publishes), None)
        if not entry:
            return Origin("", "", path, "", is_only)
        issuer, project, branch = entry.issuer, entry.project, entry.branch
    url, to_files = _pages(service.issuers.get(issuer), quote(project))
    file_url = f"{to_files}/{quote(branch or 'HEAD')}/{path}" if url else ""
    return Origin(project, url, path, file_url, is_only)


def _pages(issuer: Issuer | None, project: str) -> tuple[str, str]:
    """Returns the addresses of a project and of its files, or empty ones. A server that finds a
    folder at the address of a file redirects.
    """
    if issuer == DEFAULT_ISSUERS[0]:
        url = f"https://github.com/{project}"
        return url, f"{url}/blob"
    if issuer and issuer.kind == "gitlab":
        url = f"{issuer.url}/{project}"
        return url, f"{url}/-/tree"
    return "", ""
