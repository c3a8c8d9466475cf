"""The image and the compose file, against what they name. `tests/containers/try` runs them, which
takes base images that no test fetches.
"""

import fnmatch
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml

from builder.model.settings import Settings
from cli.hubctl import COMMANDS, main
from tests.support.servers import PROJECT, clean_environment, free_port, serving

CONTAINERFILE = (PROJECT / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((PROJECT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
MANY = yaml.safe_load((PROJECT / "deploy/many-nodes.yaml").read_text(encoding="utf-8"))
HEALTH = str(PROJECT / "deploy/container-health")
USER = "10001:10001"


def instruction(name: str) -> str:
    """The words of the only such instruction in the last stage."""
    lines = re.sub(r"^ *#.*\n", "", CONTAINERFILE, flags=re.M).replace("\\\n", "")
    last = lines.rpartition("\nFROM ")[2]
    (found,) = re.findall(rf"^{name} (.*)$", last, re.M)
    return found


def parse(words: list[str]) -> click.Context:
    """Parse the arguments of a command of hubctl. Raises click.UsageError."""
    name, *arguments = words
    command = main.get_command(click.Context(main), name)
    arguments = [re.sub(r"\$\{.*?\}", "hub.example", word) for word in arguments]
    return command.make_context(name, arguments, resilient_parsing=False)


def variables() -> set[str]:
    """The environment variables of all options."""
    found = set()
    for name in COMMANDS:
        params = main.get_command(click.Context(main), name).params
        found |= {getattr(param, "envvar", None) for param in params}
    return found


def ignored(path: str) -> bool:
    """True if a top-level folder or file of the project stays out of the build."""
    is_out = False
    for line in (PROJECT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatch(path, pattern):
            is_out = not line.startswith("!")
    return is_out


def test_the_build_sees_all_that_the_wheel_is_made_of() -> None:
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    packages = {name.partition(".")[0] for name in about["tool"]["setuptools"]["packages"]}
    needed = {*packages, about["project"]["readme"], "LICENSE", "clients", "requirements.lock"}
    # Docker reads the one, Buildah the other.
    assert (PROJECT / ".containerignore").samefile(PROJECT / ".dockerignore")
    assert [path for path in needed if ignored(path) or not (PROJECT / path).exists()] == []
    for secret in (".git", ".env", ".venv", "var", "site_out", "build", "node_modules"):
        assert ignored(secret), secret


def test_what_the_image_copies_is_there() -> None:
    for names in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.M):
        assert all((PROJECT / name).exists() for name in names.split())
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    version = about["tool"]["setuptools_scm"]["fallback_version"]
    assert f"ARG VERSION={version}\n" in CONTAINERFILE


def test_the_image_runs_a_command_that_there_is() -> None:
    words = yaml.safe_load(instruction("CMD"))
    assert parse(words).params["host"] == "0.0.0.0"
    assert yaml.safe_load(instruction("ENTRYPOINT")) == ["hubctl"]
    assert instruction("USER") == USER
    settings = set(re.findall(r"\b(HUB_[A-Z_]+)=", instruction("ENV")))
    assert len(settings) == 3
    assert settings <= variables()


@pytest.mark.parametrize("name", SERVICES)
def test_services_may_do_little(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] == USER
    declared = {mount.partition(":")[0] for mount in service["volumes"]}
    assert declared <= COMPOSE["volumes"].keys()


def test_caddy_sees_no_accounts() -> None:
    mounts = [mount.split(":")[1] for mount in SERVICES["caddy"]["volumes"]]
    assert mounts == ["/hub/site", "/hub/caddy"]
    assert "env_file" not in SERVICES["caddy"]
    assert "/hub/site" in instruction("RUN") and "/hub/caddy" in instruction("RUN")


def test_the_commands_of_the_compose_file() -> None:
    serve = parse(SERVICES["hub"]["command"]).params
    (network,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    assert serve["trusted_proxies"] == (network["subnet"],)
    (script,) = SERVICES["caddy-config"]["command"]
    command, _, file = script.removeprefix("hubctl ").partition(" > ")
    hosts = parse(command.split()).params
    assert (hosts["server"], hosts["upstream"]) == ("caddy", f"hub:{serve['port']}")
    assert file in SERVICES["caddy"]["command"]
    release = SERVICES["caddy"]["image"].partition(":")[2].split(".")
    assert [int(part) for part in release] >= [2, 11, 2]
    assert serve["port"] == int(instruction("EXPOSE"))
    for name in SERVICES["caddy"]["depends_on"]:
        assert name in SERVICES
    for service in SERVICES.values():
        known = {key for key in service.get("environment", {}) if key.startswith("HUB_")}
        assert known <= variables()
        test: Any = service.get("healthcheck", {}).get("test")
        assert test in (None, ["CMD", *yaml.safe_load(instruction("HEALTHCHECK").split("CMD")[1])])


def test_the_nodes_of_the_larger_compose_file() -> None:
    (network,) = MANY["networks"]["default"]["ipam"]["config"]
    nodes = {name: one for name, one in MANY["services"].items() if name.startswith("node")}
    assert len(nodes) == 3
    for name, node in nodes.items():
        assert node["volumes"] == [f"{name}:/hub"] and name in MANY["volumes"]
        assert (node["user"], node["read_only"], node["cap_drop"]) == (USER, True, ["ALL"])
        assert parse(node["command"]).params["trusted_proxies"] == (network["subnet"],)
        assert {key for key in node["environment"] if key.startswith("HUB_")} <= variables()
        used = re.findall(r"//(?:\S+@)?(\w+)[:/]", " ".join(node["environment"].values()))
        assert {"postgres"} <= {*used} & MANY["services"].keys()
        assert f"{name}:8000" in MANY["services"]["balancer"]["command"][0]
        assert node["depends_on"].keys() <= MANY["services"].keys()
    assert (PROJECT / "deploy" / nodes["node1"]["build"]["context"]).samefile(PROJECT)


@pytest.mark.usefixtures("installed_tools")
def test_shellcheck_has_nothing_to_say_of_the_script() -> None:
    script = str(PROJECT / "tests/containers/try")
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("container")
    (folder / "content").mkdir()
    settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/var")
    with serving(settings, "--base-url", "https://hub.example/prompts") as server:
        yield f"http://127.0.0.1:{server.port}/prompts"


def health(port: str, base_url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", HEALTH], capture_output=True, text=True,
        env=clean_environment(HUB_PORT=port, HUB_BASE_URL=base_url),
    )  # fmt: skip


def test_the_health_check(url: str) -> None:
    port = url.split(":")[2].partition("/")[0]
    assert health(port, "https://hub.example/prompts").returncode == 0
    for wrong in (
        health(str(free_port()), "https://hub.example/prompts"),
        health(port, "https://hub.example"),  # 404: not this hub's address
    ):
        assert wrong.returncode == 1
        assert "/healthz: " in wrong.stderr
