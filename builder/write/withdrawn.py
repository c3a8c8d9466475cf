"""Writes why versions and repos are gone, and removes all files with their texts.

Files are removed at once, not one build later, because a withdrawn text must not be found after its
withdrawal.
"""

from collections.abc import Sequence

from builder.model.answers import ErrorBody, Withdrawal, WithdrawnLine
from builder.model.matching import match_file, version_file
from builder.model.routes import BY_NAME, ROUTES, Scope
from builder.model.withdrawn import WithdrawnParts, WithdrawnVersion, public, tell
from builder.render import envelopes
from builder.render.envelopes import json_bytes
from builder.render.pages import Pages
from builder.store.site import Site
from builder.write import langfuse_files


def files_of(scope: Scope, **params: str) -> list[str]:
    """The files that an object of a scope may have; for ``withdrawn``, those that
    ``params`` fill.
    """
    return [
        route.file_for(**params)
        for route in ROUTES
        if route.scope == scope
        and (scope != "withdrawn" or ("version" in params) == ("{version}" in route.file))
    ]


def files_of_version(repo_id: str, version: str, paths: Sequence[str]) -> list[str]:
    """The files on the site for the files of a version, which have these paths."""
    if not paths:
        return []
    owner, name = repo_id.split("/")
    at = {"owner": owner, "name": name, "version": version}
    return [BY_NAME["version_plugin"].file_for(**at)] + [
        version_file(**at, path=path).file for path in paths
    ]


def folders_left(site: Site, owner: str, name: str, version: str | None = None) -> list[str]:
    """The files on the site for the files of one version, or of all versions of a repo, even those
    that the state does not have.
    """
    at = {"owner": owner, "name": name, "version": version}
    plugin, file = BY_NAME["version_plugin"], BY_NAME["version_file"].file
    if version is not None:
        folder = file.partition("/{file_path}")[0].format_map(at)
        return [plugin.file_for(**at), *site.files(folder)]
    folder = file.partition("/{version}")[0].format_map(at)
    found = ((file, match_file(file)) for file in site.files(folder))
    return [
        file
        for file, match in found
        if match and (match.route.scope == "files" or match.route.name == "version_skill_archive")
    ]


def labels_left(site: Site, owner: str, name: str) -> list[str]:
    """The files of a repo's labels that are on the site, whatever the state has of them."""
    found = [BY_NAME["labels"].file_for(owner=owner, name=name)]
    for route in ("label", "label_skill"):
        before = BY_NAME[route].file.partition("/{label}")[0]
        found += site.files(before.format(owner=owner, name=name))
    return found


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


class WithdrawnFiles:
    """The files about one repo's withdrawals."""

    def __init__(self, site: Site, pages: Pages, owner: str, name: str) -> None:
        self._site = site
        self._pages = pages
        self._at = {"owner": owner, "name": name}

    def write_version(self, one: WithdrawnVersion) -> None:
        """Write why a version is gone, and remove its files."""
        at = self._at | {"version": str(one.version)}
        message = tell("{owner}/{name} {version}".format_map(at), one.withdrawal)
        message = f"{message} {BY_NAME['versions'].url_for(**self._at)} lists the versions."
        self._write("version", at, message, public(one.withdrawal), version=str(one.version))
        self._site.remove(*files_of("version", **at), *folders_left(self._site, **at))

    def write_repo(self, parts: WithdrawnParts) -> None:
        """Write why the whole repo is gone, and remove all its files."""
        repo = "{owner}/{name}".format_map(self._at)
        last = parts.versions[-1] if parts.versions else None
        withdrawal = parts.whole or last.withdrawal
        if parts.whole:
            message, version = tell(repo, parts.whole), ""
        else:
            message = tell(f"{repo} has no version left: {last.version}", withdrawal)
            version = str(last.version)
        self._write("repo", self._at, message, public(withdrawal), version=version)
        self._site.remove(*files_of("repo", **self._at), *files_of("versions", **self._at))
        for one in parts.versions:
            at = self._at | {"version": str(one.version)}
            self._site.remove(*files_of("version", **at), *files_of("withdrawn", **at))
        self._site.remove(*folders_left(self._site, **self._at))
        self._site.remove(*labels_left(self._site, **self._at))
        self._site.remove(*langfuse_files.files_left(self._site, **self._at))

    def _write(
        self, what: str, at: dict[str, str], message: str, withdrawal: Withdrawal, version: str
    ) -> None:
        body = envelopes.error_envelope(ErrorBody("withdrawn", message))
        page = self._pages.render(
            "withdrawn.html",
            **self._at,
            withdrawal=withdrawal,
            is_repo=what == "repo",
            version=version,
        )
        self._site.write(BY_NAME[f"withdrawn_{what}_page"].file_for(**at), page)
        self._site.write(BY_NAME[f"withdrawn_{what}"].file_for(**at), body)
