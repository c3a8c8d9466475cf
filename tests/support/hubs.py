"""The publish service inside the test: over real folders and accounts, without builds."""

import contextlib
import io
import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from builder.model.errors import STATUS
from builder.model.settings import Settings
from builder.store import content
from publisher.accounts.database import Database
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.token import Grant
from publisher.accounts.tokens import EXPIRES_DAYS_DEFAULT, Accounts
from publisher.limits import Limits
from publisher.log import configure_logging
from publisher.openid.provider import DEFAULT_SIGN_IN, SignIn
from publisher.web.app import create_app
from tests.support.catalogues import BASE_URL

# The address to which ann publishes her story.
URL = "/api/v1/repos/ann/story/versions"


class FakeRebuilder:
    """Stands in for builds: everything is visible at once, or what a test sets."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.error: BaseException | None = None
        self.is_failing = False
        self.looked = 0
        self.state = {"status": "ok", "serial": 4}

    def make_visible(self, owner: str, name: str) -> int:
        self.requested.append(f"{owner}/{name}")
        if self.error:
            raise self.error
        return 100 + len(self.requested)

    def health(self) -> dict[str, Any]:
        return self.state

    def fails_publications(self) -> bool:
        self.looked += 1
        return self.is_failing


class Hub:
    """The service over a folder of its own, with the owners ann and bob, and ann's token."""

    def __init__(
        self, folder: Path, base_url: str = BASE_URL, sign_in: SignIn = DEFAULT_SIGN_IN,
        **limits: Any,
    ) -> None:  # fmt: skip
        """``limits``: fields of ``Limits``."""
        self.settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/state", base_url)
        Path(self.settings.content).mkdir(parents=True, exist_ok=True)
        self.database = Database(self.settings.state)
        self.accounts = Accounts(self.database)
        for owner in ("ann", "bob"):
            self.accounts.add_owner(owner)
        self.token, self.token_id = self.make_token("ann")
        self.rebuilder = FakeRebuilder()
        self.limits = Limits(**limits)
        self.sign_in = sign_in
        self.restart()

    def restart(self) -> None:
        """Restart as after a crash: only what is on the disk is left."""
        self.database.close()
        self.database = Database(self.settings.state)
        self.accounts = Accounts(self.database)
        self.app: Flask = create_app(
            self.settings, self.rebuilder, self.database, limits=self.limits, sign_in=self.sign_in
        )

    def close(self) -> None:
        self.database.close()

    def make_token(
        self, owner: str, name: str = "ci", *, expires_days: int = EXPIRES_DAYS_DEFAULT,
        now: datetime | None = None, **grant: Any,
    ) -> tuple[str, str]:  # fmt: skip
        """``grant``: fields of ``Grant``."""
        grant = Grant(**grant)
        text, token = self.accounts.create_token(owner, name, grant, expires_days, now)
        return text, token.id

    def post(
        self, body: object = None, path: str = URL, token: str | None = "", **options: Any
    ) -> TestResponse:
        """Publish; ``body`` is bytes, or fields beside a content. A token of None: none."""
        raw = body if isinstance(body, bytes) else json.dumps({"content": "One."} | (body or {}))
        headers = {"Content-Type": "application/json"} | options.pop("headers", {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        headers = {key: value for key, value in headers.items() if value is not None}
        return self.app.test_client().post(path, data=raw, headers=headers, **options)

    def signed_in(self, owner: str) -> FlaskClient:
        """A browser in which an owner is signed in; for a hub on this machine."""
        secret, client = "s" * 43, self.app.test_client()
        Sessions(self.database).begin(owner, secret, address="", agent="")
        client.set_cookie("hub-account", secret, path="/account")
        return client

    def versions(self, repo: str = "ann/story") -> list[str]:
        listing = content.list_versions(self.settings.content, *repo.split("/"))
        return [str(version) for version in listing.versions]


MakeHub = Callable[..., Hub]


@pytest.fixture
def make_hub(tmp_path: Path) -> Iterator[MakeHub]:
    """Starts the service with options, over a folder of the test; closed at its end."""
    with contextlib.ExitStack() as made:

        def make(base_url: str = BASE_URL, **options: Any) -> Hub:
            hub = Hub(tmp_path, base_url, **options)
            made.callback(hub.close)
            return hub

        yield make


@pytest.fixture
def hub(make_hub: MakeHub) -> Hub:
    """The service with the options that it has by default."""
    return make_hub()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Lines that the service logs."""
    logger = logging.getLogger("hub")
    for attribute in ("handlers", "propagate", "level"):
        monkeypatch.setattr(logger, attribute, getattr(logger, attribute))
    stream = io.StringIO()
    configure_logging(stream)
    return stream


def lines_of(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def code_of(answer: TestResponse) -> str:
    """The code of an error; checks that its answer has the form of all errors."""
    error = answer.json["error"]
    assert set(error) - {"details"} == {"code", "message"} and len(error["message"]) > 10
    assert answer.status_code == STATUS[error["code"]]
    assert answer.headers["Content-Type"] == "application/json"
    expected = "public, max-age=10" if answer.status_code == 404 else "no-store"
    assert answer.headers["Cache-Control"] == expected
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ("WWW-Authenticate" in answer.headers) == (answer.status_code == 401)
    assert ("Retry-After" in answer.headers) == (answer.status_code in (429, 503))
    return error["code"]


def fields_of(answer: TestResponse) -> list[str]:
    return [detail["field"] for detail in answer.json["error"]["details"]]


def without_serial(answer: TestResponse) -> dict[str, Any]:
    return {key: value for key, value in answer.json["data"].items() if key != "serial"}
