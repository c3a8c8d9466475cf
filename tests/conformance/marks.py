"""Marks of the suite's tests: what of the contract they hold, and what they are repeated for."""

import pytest

from builder.model.routes import Route
from tests.conformance.catalogue import FILES

area = pytest.mark.area


def each_route(what: str, *routes: Route) -> pytest.MarkDecorator:
    """Repeat a test for each of these routes; without any, for all that readers may request.

    ``what`` is the method, with which a test's name begins.
    """
    return pytest.mark.parametrize(
        "route", routes or FILES, ids=lambda route: f"{what} {route.query or route.url}"
    )


def each_path(*templates: str) -> pytest.MarkDecorator:
    """Repeat a test for each of these paths, which Catalogue.fill completes."""
    return pytest.mark.parametrize("template", templates, ids=lambda text: f"GET {text}"[:90])
