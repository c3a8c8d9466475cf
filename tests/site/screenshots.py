"""Pictures of every kind of page, light and dark, on a phone and on a desk, for people to look at.

python -m tests.site.screenshots DIR
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.site.browser import DESKTOP, PHONE, Visits, chromium
from tests.site.catalogue import PAGES, write_more
from tests.support.servers import sample_settings, serving

# A screen's worth; the picture of a prompt of 144 KB would be several metres long.
HEIGHT_MAX = 3000


def main() -> None:
    parser = argparse.ArgumentParser(prog="screenshots", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"[all] {', '.join(PAGES)}")
    options = parser.parse_args()
    unknown = set(options.kinds) - set(PAGES)
    if unknown:
        parser.error(f"there is no kind {', '.join(sorted(unknown))}")
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, chromium() as browser:
        settings = sample_settings(Path(folder))
        write_more(settings.content)
        with serving(settings) as server:
            visits = Visits(browser, server.url)
            for kind in options.kinds or PAGES:
                take(visits, kind, options.folder)
            faults = visits.end()
            visits.close()
    for fault in faults:
        print(fault)


def take(visits: Visits, kind: str, folder: Path) -> None:
    """Pictures of one kind of page: on a desk and on a phone, light and dark."""
    name = kind.replace(", ", "-").replace(" ", "-").lower()
    page = visits.open(PAGES[kind])
    page.wait_for_load_state("networkidle")
    for size, viewport in (("desk", DESKTOP), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(viewport)
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({**viewport, "height": min(height, HEIGHT_MAX)})
            page.screenshot(path=folder / f"{name}-{size}-{scheme}.png")
            print(folder / f"{name}-{size}-{scheme}.png")


if __name__ == "__main__":
    main()
