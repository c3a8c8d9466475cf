"""The configuration for GitHub Pages."""

from builder.hosts import github
from builder.hosts.rules import HostedSite


def test_github_pages_serves_every_file_as_it_is():
    assert github.files(HostedSite("/site", "/state")) == {".nojekyll": ""}
