"""Reads the published site's own files, for pages that the service answers."""

from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import msgspec
from flask import Response, abort, request

from builder.model.answers import File, ListedVersion, Version
from builder.model.errors import RequestError
from builder.model.matching import Match, fits, version_file
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from server.missing import MESSAGES, withdrawn


class Published(Version, kw_only=True):
    """A version as published."""

    @property
    def front_matter_bytes(self) -> int:
        return len(self.content.encode()) - len(self.body.encode())


class _Record(msgspec.Struct):
    data: Published


class _List(msgspec.Struct):
    data: list[ListedVersion]


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_list = msgspec.json.Decoder(_List).decode


def read_version(settings: Settings, owner: str, name: str, version: str) -> Published:
    """A version. Raises RequestError ``version_not_found``, or an answer that says why it was
    withdrawn.
    """
    at = {"owner": owner, "name": name, "version": version}
    return _decode_record(_read(settings, Match(BY_NAME["version"], at), "version_page")).data


def read_versions(settings: Settings, owner: str, name: str) -> list[ListedVersion]:
    """All versions of a prompt, newest first. Raises as ``read_version``: ``repo_not_found``."""
    listed = Match(BY_NAME["versions"], {"owner": owner, "name": name})
    return _decode_list(_read(settings, listed, "repo_page")).data


def read_file(settings: Settings, one: Published, file: File) -> bytes:
    """The bytes of a version's file. Raises as ``read_version``."""
    place = version_file(one.owner, one.name, one.version, file.path)
    return _read(settings, place, "version_page")


def is_browser() -> bool:
    return "text/html" in request.headers.get("Accept", "")


def _read(settings: Settings, place: Match, page: str) -> bytes:
    """The bytes of a file. ``page``: the route whose reason a browser gets if it was withdrawn."""
    route, at = place
    code = "version_not_found" if "version" in at else "repo_not_found"
    shown = {key: value[:80] for key, value in at.items()}
    missing = RequestError(code, MESSAGES[code].format_map(shown))
    if not all(map(fits, at, at.values())):
        raise missing
    try:
        return Path(settings.out, place.file).read_bytes()
    except FileNotFoundError:
        route = BY_NAME[page] if is_browser() else route
        for template in withdrawn(route):
            file = Path(settings.out, template.format_map(at))
            with suppress(FileNotFoundError):
                abort(Response(file.read_bytes(), HTTPStatus.GONE, content_type=route.media))
        raise missing from None
