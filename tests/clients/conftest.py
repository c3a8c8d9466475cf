"""A hub with a prompt of a team, which one of its writers published."""

from collections.abc import Iterator

import pytest

from tests.support.catalogues import settings_in
from tests.support.servers import Server, add_team, serving


@pytest.fixture(scope="session")
def team_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It has ``support/triage`` 1.0.0 at the label staging."""
    settings = settings_in(tmp_path_factory.mktemp("team"))
    headers = {"Authorization": f"Bearer {add_team(settings, 'support')}"}
    with serving(settings) as server:
        body = {"content": "Sort {{ticket}}.", "labels": ["staging"]}
        url = "/api/v1/repos/support/triage/versions"
        made = server.request("POST", url, json=body, headers=headers)
        assert made.status_code == 201 and made.json()["data"]["publisher"] == "walter"
        yield server
