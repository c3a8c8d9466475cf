"""A hub as its readers reach it: one request at a time, each bounded in time and size."""

import contextlib
import functools
import json
import operator
import time
from itertools import islice
from typing import Any, NamedTuple

import requests

from builder.model.records import Hub
from builder.model.routes import BY_NAME, Route
from builder.stats.agents import DOCTOR
from builder.store.site import read_hub
from operate.doctor.findings import Subject
from publisher.outside.fetch import (
    DOCUMENT_BYTES_MAX,
    TIMEOUT_SECONDS,
    TooLarge,
    bounded,
    cause_of,
    send_no_credentials,
)
from publisher.outside.private_way import is_private_way

# As long as a window of the hub's own limit.
WAIT_SECONDS_MAX = 60
# How many prompts are looked through for one with several versions.
_LOOKED_MAX = 50


class Asked:
    """A site behind a base URL, and its files in a folder here. ``token`` is for hubs that ask for
    one; ``is_private``: this one does.
    """

    def __init__(self, subject: Subject, token: str | None = None) -> None:
        self.base_url = subject.settings.base_url
        self.is_private = False
        self.out = subject.settings.out
        self.hub: Hub | None = read_hub(self.out)
        self.sample = find_sample(self.out)
        self._token = token
        self._session = bounded(requests.Session())
        self._session.auth = send_no_credentials
        self._session.headers["User-Agent"] = DOCTOR

    def close(self) -> None:
        self._session.close()

    def become_member(self) -> bool:
        """Send the token from now on; False if there is none, or the way there is not private."""
        self.is_private = bool(self._token) and is_private_way(self.base_url)
        return self.is_private

    def ask(self, method: str, url: str, **headers: str) -> requests.Response:
        """The answer at a URL, or at a path below the base URL. Follows no redirect. Told by a
        rate limit to wait, it waits once. Raises requests.RequestException.
        """
        url = url if "://" in url else self.base_url + url
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self._session.request(method, url, headers=named, allow_redirects=False)
        wait = answer.headers.get("Retry-After", "")
        if answer.status_code != 429 or not wait.isdecimal() or int(wait) > WAIT_SECONDS_MAX:
            return answer
        time.sleep(int(wait))
        return self._session.request(method, url, headers=named, allow_redirects=False)

    def get(self, url: str, **headers: str) -> requests.Response:
        if self.is_private and "://" not in url:
            headers["Authorization"] = f"Bearer {self._token}"
        return self.ask("GET", url, **({"Accept_Encoding": "identity"} | headers))

    def file(self, route: str, **params: str) -> bytes:
        """The site's own bytes. Raises OSError."""
        with open(f"{self.out}/{BY_NAME[route].file_for(**params)}", "rb") as file:
            return file.read()


class Sample(NamedTuple):
    """A prompt to try things with: that of the site with the most versions, among the first."""

    owner: str
    name: str
    versions: tuple[str, ...]


def find_sample(out: str) -> Sample | None:
    """None where the site has no prompt, or cannot be read."""
    found = []
    catalogue = f"{out}/{BY_NAME['catalogue'].file}"
    with contextlib.suppress(OSError, ValueError), open(catalogue, encoding="utf-8") as file:
        for line in islice(file, _LOOKED_MAX):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                found.append(_sample(out, json.loads(line)))
    return max(found, key=lambda sample: len(sample.versions), default=None)


def _sample(out: str, line: dict[str, Any]) -> Sample:
    owner, name = line["owner"], line["name"]
    path = f"{out}/{BY_NAME['versions'].file_for(owner=owner, name=name)}"
    with open(path, encoding="utf-8") as file:
        versions = json.load(file)["data"]
    return Sample(owner, name, tuple(one["version"] for one in versions if "raw_url" in one))


def media_of(answer: requests.Response) -> str:
    return answer.headers.get("Content-Type", "")


def is_same_media(answer: requests.Response, route: Route) -> bool:
    """Whether an answer has the media type of a route, whatever its spelling."""

    def parts(text: str) -> list[str]:
        return sorted(part.strip().lower() for part in text.split(";"))

    return parts(media_of(answer)) == parts(route.media)


def value_in(answer: requests.Response, *keys: str) -> Any:
    """What an answer in JSON has under these keys, one in another; None where it has nothing."""
    try:
        return functools.reduce(operator.getitem, keys, answer.json())
    except (ValueError, KeyError, TypeError):
        return None


def reason(error: requests.RequestException) -> str:
    """Why there is no answer, as the end of a sentence."""
    if isinstance(error, TooLarge):
        return f"more than {DOCUMENT_BYTES_MAX:,} bytes"
    if isinstance(error, requests.Timeout):
        return f"no answer in {TIMEOUT_SECONDS} seconds"
    return cause_of(error)
