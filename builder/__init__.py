"""The read side: content in, site out. Imports no other package of the project.

The packages are listed in the order in which data passes them: ``store`` reads the content,
``render`` turns records into bytes, ``emit`` puts them on the site, ``pipeline`` decides what is
built and when. ``model.routes`` holds every URL, file name and header rule.
"""

from functools import cache
from importlib import metadata

DISTRIBUTION = "prompt-hub"
# Version of the public interface: of the client ``hub``, the API's document and the tools.
VERSION = "1.0.0"
# No version is published before this release was made: an earlier clock is wrong.
RELEASED = "2026-11-01T00:00:00Z"


@cache
def installed_version() -> str:
    """The version of this installation, as setuptools-scm takes it from git."""
    return metadata.version(DISTRIBUTION)
