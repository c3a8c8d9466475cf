"""A browser that takes note of whatever a page should not do."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Request,
    expect,
    sync_playwright,
)  # fmt: skip

# Long enough for a machine with much else to do: a test that passes never waits so long.
TIMEOUT_MS = 20_000

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}

expect.set_options(timeout=TIMEOUT_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    program = shutil.which("chromium")
    assert program, "chromium is not there; install it with: sh tests/install-tools"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


class Visits:
    """Visits to one site, each in a fresh profile. ``faults``: what its pages should not have
    done: a word on the console, an error, a dialog, a request that failed or went elsewhere.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.url = url
        self.origin = "/".join(url.split("/")[:3])
        self.faults: list[str] = []

    def open(
        self, path: str, *, dark: bool = False, viewport: dict[str, int] = DESKTOP, **options: Any
    ) -> Page:
        """A page in a profile of its own; ``options`` are those of Playwright's ``new_context``."""
        context = self._browser.new_context(
            viewport=viewport, color_scheme="dark" if dark else "light", **options
        )
        self._contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=self.origin)
        self._watch(context)
        page = context.new_page()
        page.goto(self.url + path)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _watch(self, context: BrowserContext) -> None:
        note = self.faults.append
        # Where a page itself is not found, the browser says so on the console.
        context.on(
            "console",
            lambda told: (
                (told.location["url"] == told.page.url and "404" in told.text)
                or note(f"console: {told.text} {told.location}")
            ),
        )  # fmt: skip
        context.on("weberror", lambda error: note(f"error: {error.error}"))
        context.on("dialog", lambda dialog: (note(f"dialog: {dialog.message}"), dialog.dismiss()))
        context.on("requestfailed", self._check_failure)
        context.on("request", self._check_request)

    def _check_failure(self, request: Request) -> None:
        # Whoever goes on to another page leaves what is still on its way.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"failed: {request.url} {request.failure}")

    def _check_request(self, request: Request) -> None:
        if not request.url.startswith(f"{self.origin}/"):
            self.faults.append(f"elsewhere: {request.url[:200]}")
