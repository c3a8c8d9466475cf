"""Absolute URLs, from the table of routes."""

from typing import NamedTuple

from builder.model.routes import BY_NAME


class Links(NamedTuple):
    """Builds the absolute URLs of records.

    Links for programs name the file with its extension, because that works on every host; ``page``
    is for people.
    """

    base_url: str

    def file(self, route: str, **params: object) -> str:
        return f"{self.base_url}/{BY_NAME[route].file_for(**params)}"

    def page(self, route: str, **params: object) -> str:
        return self.base_url + BY_NAME[route].url_for(**params)
