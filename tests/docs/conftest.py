"""A hub that trusts the jobs of the document, and projects whose CI runs them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.ci import TrustedProject, Trusting, numbers
from tests.support.catalogues import settings_in
from tests.support.issuer import issuer
from tests.support.servers import add_publisher, serving


@pytest.fixture(scope="session")
def trusting(tmp_path_factory: pytest.TempPathFactory, installed_tools: None) -> Iterator[Trusting]:
    missing = [
        each for each in ("bash", "dash", "busybox", "curl", "git") if not shutil.which(each)
    ]
    assert not missing, f"Install these, as tests/install-tools does: {', '.join(missing)}"
    settings = settings_in(tmp_path_factory.mktemp("trusting"))
    with issuer() as github, issuer() as gitlab:
        options = (f"github={github.url}", f"gitlab={gitlab.url}")
        with serving(
            settings, *(word for each in options for word in ("--trusted-issuer", each))
        ) as server:
            yield Trusting(server, github, gitlab)


@pytest.fixture
def trusted(trusting: Trusting, tmp_path: Path) -> TrustedProject:
    """A project with jobs that may publish for an owner who has nothing on the hub."""
    number = next(numbers)
    add_publisher(trusting.server.settings, f"ada-{number}")
    project = TrustedProject(tmp_path, trusting, f"ada-{number}", number)
    project.trust()
    return project


@pytest.fixture(params=["github", "gitlab"])
def platform(request: pytest.FixtureRequest) -> str:
    return request.param
