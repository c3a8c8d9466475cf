"""The read side: content in, site out. Imports nothing else of the project.

The packages follow the way of the data: ``store`` reads the content, ``render`` turns records into
bytes, ``write`` puts them on the site, ``pipeline`` decides what and when. ``model.routes`` holds
every URL, file name and header rule.
"""

from functools import cache
from importlib import metadata

DISTRIBUTION = "prompt-hub"
# Of the public interface: of the client ``hub``, of the API's document and of the tools.
VERSION = "1.0.0"


@cache
def installed_version() -> str:
    """The version of this installation, which setuptools-scm takes from git."""
    return metadata.version(DISTRIBUTION)
