"""Screenshots of every state of the account pages, light and dark, on a phone and on a desktop.

python -m tests.publisher.web.pages.screenshots DIR [STATE…]
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from tests.publisher.web.pages.conftest import Page, people_in
from tests.publisher.web.pages.states import failure_states, full_member, states
from tests.site.browser import chromium
from tests.site.screenshots import take_sizes


def main() -> None:
    parser = argparse.ArgumentParser(prog="screenshots", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="STATE", help="[all] such as login, tokens")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        root = Path(stack.enter_context(TemporaryDirectory()))
        for name, state in all_states(stack, root):
            if name in (options.names or (name,)):
                take(browser, state, options.folder, f"account-{name}")


def all_states(stack: ExitStack, root: Path) -> Iterator[tuple[str, Page]]:
    people = stack.enter_context(people_in(root / "open", "--open-signup"))
    yield from states(people, full_member(people))
    yield from failure_states(stack.enter_context(people_in(root / "failing")))
    visitor = stack.enter_context(people_in(root / "private", "--private")).visitor()
    for name in ("login", "invitation"):
        yield f"private-{name}", visitor.get(f"/account/{name}")
    yield "private-unavailable", visitor.get("/503")


def take(browser: Browser, state: Page, folder: Path, name: str) -> None:
    """Screenshots of an answer, in a browser that has its visitor's cookies."""
    url = state.response.url
    context = browser.new_context()
    context.add_cookies(
        [
            {"name": name, "value": value, "url": f"{url.partition('/account')[0]}/account"}
            for name, value in state.cookies.items()
        ]
    )
    page = context.new_page()
    # The address again: the answer to a form, or the page at another time.
    page.route(
        url,
        lambda route: (
            route.fulfill(body=state.html, content_type="text/html")
            if route.request.is_navigation_request()
            else route.continue_()
        ),
    )
    page.goto(url)
    take_sizes(page, folder, name)
    context.close()


if __name__ == "__main__":
    main()
