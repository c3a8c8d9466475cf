"""The rules of hosts agree with the table of routes, also at the limits of names."""

import re

import pytest

from builder.hosts.rules import rules
from builder.model.matching import match_url
from builder.model.routes import CHARS_MAX, PATHS, Route

PARAMS = {
    "owner": "ann", "name": "story", "tag": "sql", "version": "1.0.0", "label": "live",
    "ref": "live", "sort": "new", "page": "2",
    "text_path": "notes/a.md", "file_path": "images/a.png",
}  # fmt: skip
RULES = [*rules("?P<{}>", limits=True)]
# Hosts do not limit the paths of versions' files: no file has a longer one.
LIMITS = {key: limit for key, limit in CHARS_MAX.items() if key not in PATHS}
LIMITED = dict.fromkeys(
    (rule.route, key) for rule in RULES for key in LIMITS if f"{{{key}}}" in rule.route.url
)


@pytest.mark.parametrize(("route", "key"), LIMITED, ids=lambda one: getattr(one, "name", one))
def test_a_name_is_as_long_as_its_limit_allows(route: Route, key: str):
    for more, is_path in ((0, True), (1, False)):
        for template in (route.url, f"/{route.file}"):
            path = template.format_map(PARAMS | {key: "x" * (LIMITS[key] + more)})
            patterns = [rule.pattern for rule in RULES if rule.route == route]
            assert any(re.fullmatch(pattern, path) for pattern in patterns) == is_path, path
            found = match_url(path)
            assert (found is not None and found.route == route) == is_path, path
