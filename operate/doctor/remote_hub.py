"""A hub as its readers reach it: one request at a time, each bounded in time and size."""

import contextlib
import functools
import json
import operator
import time
from itertools import islice
from typing import Any, NamedTuple

import requests

from builder.model.answers import Hub
from builder.model.matching import Match, version_file
from builder.model.routes import BY_NAME
from builder.stats.agents import DOCTOR
from builder.store.site import read_hub
from operate.doctor.findings import Subject
from publisher.outside.fetch import bounded
from publisher.outside.private_way import is_private_way

# The longest wait for a rate limit: the hub's own window.
WAIT_SECONDS_MAX = 60
# The number of prompts among which the sample is chosen.
_SEARCHED_MAX = 50


class RemoteHub:
    """A site behind a base URL, and its files in a folder on this machine. ``is_private``: it
    is for members alone. ``get`` sends a token only after ``become_member``.
    """

    def __init__(self, subject: Subject) -> None:
        self.base_url = subject.settings.base_url
        self.is_private = subject.is_private
        self.is_member = False
        self.out = subject.settings.out
        self.hub: Hub | None = read_hub(self.out)
        self.sample = find_sample(self.out)
        self._token = subject.token
        self._session = bounded(requests.Session())
        self._session.headers["User-Agent"] = DOCTOR

    def close(self) -> None:
        self._session.close()

    @property
    def has_service(self) -> bool:
        return bool(self.hub and self.hub.queries)

    def become_member(self) -> bool:
        """Send the token from now on. Returns False without a token, or if others could read it on
        its way.
        """
        self.is_private = True
        self.is_member = bool(self._token) and is_private_way(self.base_url)
        return self.is_member

    def ask(self, method: str, path: str, **headers: str) -> requests.Response:
        """The answer at a path below the base URL. Follows no redirect, and waits once for a rate
        limit. Raises requests.RequestException.
        """
        send = functools.partial(
            self._session.request,
            method,
            self.base_url + path,
            allow_redirects=False,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )
        answer = send()
        wait = answer.headers.get("Retry-After", "")
        if answer.status_code != 429 or not wait.isdecimal() or int(wait) > WAIT_SECONDS_MAX:
            return answer
        time.sleep(int(wait))
        return send()

    def get(self, path: str, **headers: str) -> requests.Response:
        """As ``ask``, with the headers of a reader."""
        if self.is_member:
            headers["Authorization"] = f"Bearer {self._token}"
        return self.ask("GET", path, **({"Accept_Encoding": "identity"} | headers))

    def file(self, route: str, **params: str) -> bytes:
        """The site's own bytes. Raises OSError."""
        with open(f"{self.out}/{BY_NAME[route].file_for(**params)}", "rb") as file:
            return file.read()


class Sample(NamedTuple):
    """The prompt for the checks: the one with the most versions among the first of the site.
    ``file``: a file of any of these prompts, if one has files.
    """

    owner: str
    name: str
    versions: list[str]
    file: Match | None = None


def find_sample(out: str) -> Sample | None:
    """The sample; None if the site has no prompt, or cannot be read."""
    found: list[Sample] = []
    files: list[Match] = []
    with (
        contextlib.suppress(OSError, ValueError, KeyError, TypeError),
        open(f"{out}/{BY_NAME['catalogue'].file}", encoding="utf-8") as lines,
    ):
        for line in map(json.loads, islice(lines, _SEARCHED_MAX)):
            at = {key: line[key] for key in ("owner", "name")}
            with open(f"{out}/{BY_NAME['versions'].file_for(**at)}", encoding="utf-8") as file:
                versions = [one["version"] for one in json.load(file)["data"] if "raw_url" in one]
            found.append(Sample(**at, versions=versions))
            at["version"] = line["latest_version"]
            with open(f"{out}/{BY_NAME['version'].file_for(**at)}", encoding="utf-8") as file:
                for one in json.load(file)["data"].get("files", ()):
                    files.append(version_file(**at, path=one["path"]))
    sample = max(found, key=lambda sample: len(sample.versions), default=None)
    return sample and sample._replace(file=files[0] if files else None)


def value_in(answer: requests.Response, *keys: str) -> Any:
    """The value under these keys of nested JSON objects; None if one is missing."""
    try:
        return functools.reduce(operator.getitem, keys, answer.json())
    except (ValueError, KeyError, TypeError):
        return None
