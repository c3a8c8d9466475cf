"""A browser that records everything that a page should not do."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)  # fmt: skip

# Long enough for a machine with much else to do: a test that passes never waits so long. A link
# that is missing fails a test first, then what a script does not show, then a page that stays away.
TIMEOUT_MS = 30_000
RESULT_TIMEOUT_MS = 60_000
PAGE_TIMEOUT_MS = 120_000

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}

expect.set_options(timeout=RESULT_TIMEOUT_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, without a window: its headless shell, where that is installed."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert program, "chromium is not there; install it with: sh tests/install-tools"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


def keep_notes(page: Page) -> None:
    """Keep messages that the page shows for a few seconds, such as "Copied".

    A busy machine may look later. No other code of the scripts for prompts uses timers.
    """
    page.evaluate("() => { globalThis.setTimeout = () => 0; }")


class Visits:
    """Visits to one site. ``faults``: what its pages should not have done since the last ``end``:
    a word on the console, an error, a dialog, a request that failed or went elsewhere.

    Tabs are used again, for a new profile takes three times as long as most pages do.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._busy: list[Tab] = []
        self._idle: list[Tab] = []
        self.url = url
        self.origin = "/".join(url.split("/")[:3])
        self.faults: list[str] = []

    def open(
        self, path: str, *, dark: bool = False, viewport: dict[str, int] = DESKTOP,
        scripts: bool = True, fresh: bool = False,
    ) -> Page:  # fmt: skip
        """A page in a tab that nothing else uses before ``end``; ``fresh``: in a new profile."""
        idle = [] if fresh else [tab for tab in self._idle if tab.scripts == scripts]
        if idle:
            tab = idle[0]
            self._idle.remove(tab)
        else:
            tab = self._new_tab(scripts)
        self._busy.append(tab)
        tab.page.set_viewport_size(viewport)
        tab.page.emulate_media(color_scheme="dark" if dark else "light", media="null")
        tab.page.goto(self.url + path)
        return tab.page

    def end(self) -> list[str]:
        """Leave all pages; returns the faults."""
        for tab in self._busy:
            tab.page.goto("about:blank")
        self._idle += self._busy
        self._busy = []
        faults, self.faults = self.faults, []
        return faults

    def close(self) -> None:
        for tab in self._busy + self._idle:
            tab.page.context.close()

    def _new_tab(self, scripts: bool) -> "Tab":
        context = self._browser.new_context(java_script_enabled=scripts)
        context.set_default_timeout(TIMEOUT_MS)
        context.set_default_navigation_timeout(PAGE_TIMEOUT_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=self.origin)
        context.on("console", self._check_console)
        context.on("weberror", lambda error: self.faults.append(f"error: {error.error}"))
        context.on("dialog", self._check_dialog)
        context.on("requestfailed", self._check_failure)
        context.on("request", self._check_request)
        return Tab(context.new_page(), scripts)

    def _check_console(self, message: ConsoleMessage) -> None:
        # The browser reports on the console that a page itself is missing or withdrawn, or shows a
        # form with faults, and that the service has no such comparison.
        is_status = any(status in message.text for status in ("404", "410", "422"))
        url = message.location["url"]
        if not (is_status and (url == message.page.url or "/account/compare/" in url)):
            self.faults.append(f"console: {message.text} {message.location}")

    def _check_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _check_failure(self, request: Request) -> None:
        # A visit to another page aborts requests that are still running.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"failed: {request.url} {request.failure}")

    def _check_request(self, request: Request) -> None:
        if not request.url.startswith(f"{self.origin}/"):
            self.faults.append(f"elsewhere: {request.url[:200]}")


class Tab(NamedTuple):
    """A page with a profile of its own."""

    page: Page
    scripts: bool
