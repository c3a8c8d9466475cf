"""The units in `deploy/`: what systemd says of them, and what happens when their commands run."""

import json
import re
import shlex
import subprocess
import tarfile
from pathlib import Path

import click
import pytest
import requests

from builder.hosts.configuration import HostedSite
from builder.model.routes import BY_NAME
from cli.hosts import hosts
from cli.serve import serve
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.openid.provider import SECRET_VARIABLE
from tests.conformance.nginx import started_nginx
from tests.support.servers import (
    DEADLINE_SECONDS,
    HUBCTL,
    PROJECT,
    Process,
    clean_environment,
    free_port,
    wait_until,
)

DEPLOY = PROJECT / "deploy"
HERE = "/opt/hub/venv/bin/hubctl"
UNITS = sorted(path.name for path in DEPLOY.glob("*.service") if "@" not in path.name)


def commands(unit: str, key: str) -> list[str]:
    text = (DEPLOY / unit).read_text(encoding="utf-8")
    return re.findall(rf"^{key}=(.*)$", text, re.M)


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_confined(unit: str):
    """At most 3.0 of the 10 points of exposure that systemd counts."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", DEPLOY / unit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stdout


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """The settings of `deploy/hub.env`, with the folders somewhere else."""
    text = (DEPLOY / "hub.env").read_text(encoding="utf-8").replace("/srv/hub", str(folder))
    settings = dict(word.split("=", 1) for word in shlex.split(text, comments=True))
    assert {"HUB_BASE_URL", "HUB_CONTENT", "HUB_OUT", "HUB_STATE"} <= settings.keys()
    return clean_environment(**(settings | changes))


def placed(command: str, folder: Path) -> list[str]:
    """A command of a unit, for this folder; systemd splits it into words as a shell does."""
    command = command.replace(HERE, HUBCTL).replace("/srv/hub", str(folder))
    return ["sh", "-c", f"exec {command}"]


@pytest.mark.usefixtures("installed_tools")
def test_systemd_has_nothing_to_say_of_them(tmp_path):
    for path in DEPLOY.iterdir():
        text = path.read_text(encoding="utf-8").replace(HERE, HUBCTL)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    # A template is verified as its instance.
    (tmp_path / "hub-failed@.service").rename(tmp_path / "hub-failed@hub-backup.service")
    guide = (PROJECT / "docs/operate/monitoring.md").read_text(encoding="utf-8")
    for kind, text in zip(
        ("service", "timer"), re.findall(r"```ini\n(.*?)```", guide, re.S), strict=True
    ):
        (tmp_path / f"hub-doctor.{kind}").write_text(text.replace(HERE, HUBCTL), encoding="utf-8")
    units = [str(path) for path in sorted(tmp_path.glob("*.service"))]
    units += [str(path) for path in sorted(tmp_path.glob("*.timer"))]
    done = subprocess.run(
        ["systemd-analyze", "verify", *units],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS)
def test_the_services_take_their_settings_from_one_file(unit):
    text = (DEPLOY / unit).read_text(encoding="utf-8")
    assert "EnvironmentFile=/etc/hub.env\n" in text
    assert "User=hub\n" in text
    assert "HUB_BASE_URL=" not in text


def test_secrets_are_for_the_service_alone():
    secret = "EnvironmentFile=-/etc/hub-secret.env\n"
    found = [unit for unit in UNITS if secret in (DEPLOY / unit).read_text(encoding="utf-8")]
    assert found == ["hub.service"]
    assert SECRET_VARIABLE not in (DEPLOY / "hub.env").read_text(encoding="utf-8")
    guide = (PROJECT / "docs" / "operate" / "accounts.md").read_text(encoding="utf-8")
    assert f"echo '{SECRET_VARIABLE}=…' > /etc/hub-secret.env" in guide


def test_the_example_of_a_provider_is_one_that_works():
    text = (DEPLOY / "hub.env").read_text(encoding="utf-8")
    found = dict(re.findall(r"^#(HUB_\w+)=(\S.*)$", text, re.M))
    known = {
        option.envvar
        for option in (*serve.params, *hosts.params)
        if isinstance(option, click.Option)
    }  # fmt: skip
    assert len(found) == 12
    assert found.keys() <= known


def test_a_command_gets_the_settings_of_the_services(tmp_path):
    settings, runuser = tmp_path / "hub.env", tmp_path / "runuser"
    settings.write_text((DEPLOY / "hub.env").read_text(encoding="utf-8"), encoding="utf-8")
    runuser.write_text('#!/bin/sh\n[ "$*" != "${*#-u hub -- }" ] && shift 3 && exec "$@"\n')
    runuser.chmod(0o755)
    script = (DEPLOY / "as_hub").read_text(encoding="utf-8")
    done = subprocess.run(
        ["sh", "-c", script.replace("/etc/hub.env", str(settings)), "as_hub",
         "sh", "-c", 'echo "$HUB_STATE" "$1"', "sh", "two  words"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "/srv/hub/var two  words\n"


@pytest.mark.usefixtures("installed_tools")
def test_their_commands_make_a_hub(tmp_path):
    """The service and nginx, a publication through both, and its pulls counted from the log."""
    port, upstream = free_port(), free_port()
    variables = environment(tmp_path, HUB_BASE_URL=f"http://127.0.0.1:{port}")
    for folder in ("content", "nginx", "var"):
        (tmp_path / folder).mkdir()
    with Database(variables["HUB_STATE"]) as database:
        accounts = Accounts(database)
        accounts.add_owner("ada")
        token = accounts.create_token("ada", "test")[0]
    (serve,) = commands("hub.service", "ExecStart")
    service = Process(
        *placed(serve.replace("--port 8000", f"--port {upstream}"), tmp_path), env=variables
    )
    try:
        service.wait_for_line("(stop with Ctrl-C)")
        site = HostedSite(
            variables["HUB_OUT"], variables["HUB_BASE_URL"], listen=f"127.0.0.1:{port}",
            upstream=f"127.0.0.1:{upstream}",
        )  # fmt: skip
        with started_nginx(site, tmp_path / "nginx") as url:
            session = requests.Session()
            published = session.post(
                f"{url}/api/v1/repos/ada/hello/versions", json={"content": "Hello {{name}}."},
                headers={"Authorization": f"Bearer {token}"}, timeout=DEADLINE_SECONDS,
            )  # fmt: skip
            assert published.status_code == 201
            assert session.get(f"{url}/api/v1/repos/ada/hello/raw").text == "Hello {{name}}."
            serial = published.json()["data"]["serial"]
            wait_until(
                lambda: session.get(f"{url}/api/v1/hub.json").json()["data"]["serial"] >= serial,
                "the lists and the index",
            )
            assert session.get(f"{url}/api/v1/repos?q=hello").json()["meta"]["total"] == 1
        (count,) = commands("hub-stats.service", "ExecStart")
        count = count.replace("/var/log/nginx", f"{tmp_path}/nginx").replace(
            "hub.log", "access.log"
        )
        subprocess.run(placed(count, tmp_path), env=variables, check=True)
        repo = Path(variables["HUB_OUT"], BY_NAME["repo"].file_for(owner="ada", name="hello"))
        wait_until(lambda: json.loads(repo.read_bytes())["data"]["pulls"] == 1, "the pull")
        (back_up,) = commands("hub-backup.service", "ExecStart")
        backup = environment(tmp_path, HUB_BACKUP=f"{tmp_path}-backup/")
        subprocess.run(placed(back_up, tmp_path), env=backup, check=True, capture_output=True)
        (tar,) = Path(f"{tmp_path}-backup").iterdir()
        with tarfile.open(tar) as opened:
            assert "state/accounts.sqlite3" in opened.getnames()
    finally:
        service.stop()
