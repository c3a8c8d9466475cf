"""The repository that a prompt comes from, for authors who would change it in the browser."""

from typing import NamedTuple
from urllib.parse import quote

from publisher.service.parts import Service
from publisher.trusted.issuers import BRANCH_PREFIX, DEFAULT_ISSUERS
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
    trusted = (one for one in service.trusted.of(owner) if one.publishes and one.repo in ("", name))
    found = source or next(trusted, None)
    if not found:
        return Origin("", "", path, "", is_only)
    branch = (source.ref or "").removeprefix(BRANCH_PREFIX) if source else found.branch
    issuer, project = service.issuers.get(found.issuer), quote(found.project)
    url = files = ""
    # A server that finds a folder at the address of a file redirects.
    if issuer == DEFAULT_ISSUERS[0]:
        url, files = f"https://github.com/{project}", "blob"
    elif issuer and issuer.kind == "gitlab":
        url, files = f"{issuer.url}/{project}", "-/tree"
    file_url = url and f"{url}/{files}/{quote(branch or 'HEAD')}/{path}"
    return Origin(found.project, url, path, file_url, is_only)
