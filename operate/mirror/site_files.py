"""Reads files of another hub's site over HTTP, with limits and retries, and without redirects."""

import time

import requests

from publisher.outside.fetch import FetchError, TooLarge, bounded, cause_of
from publisher.outside.private_way import is_private_way

CATALOGUE_BYTES_MAX = 256 * 1024 * 1024
FILE_BYTES_MAX = 16 * 1024 * 1024
ANSWER_SECONDS_MAX = 300
ATTEMPTS = 5
# Attempts that end with 429, after which a file counts as unreadable. Many, since a prompt takes
# four or more reads, and hosts of hub allow 120 a minute.
WAITS_MAX = 200
WAIT_SECONDS_MAX = 120


class SiteFiles:
    """Reads the files of the site at ``url``. A private hub gets ``token`` once it requires one."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._headers = {"Cache-Control": "no-cache"}
        self._sessions: dict[int, requests.Session] = {}

    def read(self, file: str, bytes_max: int = FILE_BYTES_MAX) -> bytes | None:
        """The bytes of a file; None if the site does not have it. Threads may share this.

        Raises FetchError.
        """
        failures = waits = seconds = 0
        while failures < ATTEMPTS and waits < WAITS_MAX:
            time.sleep(seconds)
            try:
                answer = self._get(f"{self.url}/{file}", bytes_max)
            except TooLarge as error:
                raise FetchError(f"more than {bytes_max:,} bytes, so it is no hub's") from error
            except requests.RequestException as error:
                reason = cause_of(error)
            else:
                if answer.status_code == 200:
                    return answer.content
                if answer.status_code in (404, 410):
                    return None
                reason = f"HTTP {answer.status_code}"
                if answer.status_code == 429:
                    retry_after = answer.headers.get("Retry-After", "")
                    seconds = (
                        min(int(retry_after), WAIT_SECONDS_MAX) if retry_after.isdecimal() else 1
                    )
                    waits += 1
                    continue
                if answer.status_code < 500:
                    place = answer.headers.get("Location")
                    raise FetchError(f"{reason}{f', a redirect to {place}' if place else ''}")
            seconds, failures = 2**failures, failures + 1
        raise FetchError(reason)

    def _get(self, url: str, bytes_max: int) -> requests.Response:
        has_asked = "Authorization" in self._headers
        if bytes_max not in self._sessions:
            self._sessions[bytes_max] = bounded(requests.Session(), ANSWER_SECONDS_MAX, bytes_max)
        answer = self._sessions[bytes_max].get(url, headers=self._headers, allow_redirects=False)
        if answer.status_code != 401 or has_asked:
            return answer
        if not self._token:
            raise FetchError("HTTP 401: the hub is private. Set HUB_TOKEN to a token of it")
        if not is_private_way(self.url):
            raise FetchError("HTTP 401: over plain http, others could read the token. Use https")
        self._headers = self._headers | {"Authorization": f"Bearer {self._token}"}
        return self._get(url, bytes_max)
