"""GitHub Pages: serves the files as they are, by their paths, if `.nojekyll` exists."""

from builder.hosts.rules import HostedSite


def files(site: HostedSite) -> dict[str, str]:
    """An empty `.nojekyll`: with it, GitHub Pages also serves files and folders that begin with
    `_`.

    GitHub Pages serves `404.html` and pages without their extension by itself.
    """
    return {".nojekyll": ""}
