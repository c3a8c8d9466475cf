"""Reads the published site's own files, for pages that the service answers."""

from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import msgspec
from flask import Response, abort, request

from builder.model.answers import File, ListedVersion, Version
from builder.model.errors import RequestError
from builder.model.matching import fits, version_file
from builder.model.missing import MESSAGES, withdrawn
from builder.model.routes import BY_NAME
from builder.model.settings import Settings


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
    return _decode_record(_read(settings, "version", "version_page", at)).data


def read_versions(settings: Settings, owner: str, name: str) -> list[ListedVersion]:
    """All versions of a prompt, newest first. Raises as ``read_version``: ``repo_not_found``."""
    at = {"owner": owner, "name": name}
    return _decode_list(_read(settings, "versions", "repo_page", at)).data


def read_file(settings: Settings, one: Published, file: File) -> bytes:
    """The bytes of a version's file."""
    place = version_file(one.owner, one.name, one.version, file.path)
    return Path(settings.out, place.file).read_bytes()


def is_browser() -> bool:
    return "text/html" in request.headers.get("Accept", "")


def _read(settings: Settings, route: str, page: str, at: dict[str, str]) -> bytes:
    """A file of a route; ``page`` is the route for people, whose reason a browser gets."""
    code = "version_not_found" if "version" in at else "repo_not_found"
    shown = {key: value[:80] for key, value in at.items()}
    missing = RequestError(code, MESSAGES[code].format_map(shown))
    if not all(map(fits, at, at.values())):
        raise missing
    try:
        return Path(settings.out, BY_NAME[route].file_for(**at)).read_bytes()
    except FileNotFoundError:
        told = BY_NAME[page if is_browser() else route]
        for template in withdrawn(told):
            file = Path(settings.out, template.format_map(at))
            with suppress(FileNotFoundError):
                abort(Response(file.read_bytes(), HTTPStatus.GONE, content_type=told.media))
        raise missing from None
