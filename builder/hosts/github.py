"""GitHub Pages: it serves the files as they are, by their paths, if it is told to."""

from builder.hosts.rules import HostedSite


def files(site: HostedSite) -> dict[str, str]:
    """`.nojekyll`, which is empty: with it GitHub Pages serves folders that begin with `_`, too.

    It serves `404.html` by itself, and a page without its extension.
    """
    return {".nojekyll": ""}
