"""The locks pin every dependency that pyproject.toml names, each by the hashes of its files."""

import re
import tomllib
from collections import defaultdict

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.servers import PROJECT

LOCKS = {
    None: "requirements.lock",
    "test": "tests/requirements.lock",
    "bench": "bench/requirements.lock",
}
_pin = re.compile(
    r"(?P<name>\S+)==(?P<version>\S+)(?: ; (?P<where>.+?))? \\\n"
    r"(?:    --hash=sha256:[0-9a-f]{64} \\\n)*"
    r"    --hash=sha256:[0-9a-f]{64}\n"
)


def read_pins(path: str) -> dict[str, frozenset[str]]:
    """The version of each package in a lock, in which there is nothing but pins with hashes; there
    are several where Pythons need different ones.
    """
    with open(f"{PROJECT}/{path}", encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("#"))
    assert _pin.sub("", text) == ""
    pins = defaultdict(list)
    for found in _pin.finditer(text):
        pins[found["name"]].append((found["version"], found["where"]))
    for name, versions in pins.items():
        assert len(versions) == 1 or all(
            "python_full_version" in (one[1] or "") for one in versions
        ), name
    return {name: frozenset(version for version, _ in found) for name, found in pins.items()}


@pytest.mark.parametrize("extra", LOCKS)
def test_locks_have_what_the_project_needs(extra: str | None):
    with open(f"{PROJECT}/pyproject.toml", "rb") as file:
        about = tomllib.load(file)
    needed = about["project"]["dependencies"] + (
        about["project"]["optional-dependencies"][extra]
        if extra
        else about["build-system"]["requires"]
    )
    pins = read_pins(LOCKS[extra])
    for requirement in map(Requirement, needed):
        for version in pins[canonicalize_name(requirement.name)]:
            assert version in requirement.specifier, f"{requirement} is locked at {version}"
    shared = read_pins(LOCKS[None])
    assert pins.items() >= {name: shared[name] for name in pins.keys() & shared.keys()}.items()


def test_the_installer_is_pinned():
    assert read_pins("installer.lock").keys() == {"uv"}
