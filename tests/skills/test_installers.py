"""The `skills` command of npm and Claude Code install, update and refuse what a build wrote.

No service of ours runs: Python's file server has the site. Claude Code wants https and a host that
is not called localhost, so it gets the machine's own name and a certificate for it.
"""

import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.render.skills import plugin_name
from tests.node import PACKAGES, PROGRAMS
from tests.support.catalogues import (
    settings_in,
    write_label,
    write_small_catalogue,
    write_version,
    write_withdrawn,
)
from tests.support.servers import in_thread

pytestmark = pytest.mark.usefixtures("installed_tools")

REVIEW = "ann/review"
_colour = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Hub:
    """A hub of plain files, and a program that reads it, with a home and a project of its own."""

    def __init__(self, settings: Settings, folder: Path, command: list[str], **extra: str) -> None:
        self.settings = settings
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.home.mkdir()
        self._command = command
        quiet = {"DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "DISABLE_AUTOUPDATER": "1",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CI": "1"}  # fmt: skip
        path = f"{PROGRAMS}:{os.environ['PATH']}"
        self._environment = {"HOME": str(self.home), "PATH": path} | quiet | extra
        self.build()

    def build(self) -> None:
        build(self.settings, index=False)

    def publish(self, version: str, text: str, files: dict[str, bytes] | None = None) -> None:
        write_version(self.settings.content, *REVIEW.split("/"), version, text, files)
        self.build()

    def label(self, number: int, version: str) -> None:
        write_label(self.settings.content, REVIEW, number, "production", version)
        self.build()

    def withdraw(self, version: str | None = None) -> None:
        write_withdrawn(self.settings.content, REVIEW, version)
        self.build()

    def url(self, path: str) -> str:
        return f"{self.settings.base_url}/{path}"

    def run(self, *arguments: str, status: int | None = 0) -> str:
        """Runs the program, and returns its output. ``status``: the expected one; None: any."""
        done = subprocess.run(
            [*self._command, *arguments], cwd=self.project, env=self._environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        output = _colour.sub("", done.stdout)
        assert status is None or done.returncode == status, output
        return output


def certificate(folder: Path, host: str) -> tuple[str, str]:
    """The files of a certificate for a host, and of its key."""
    files = f"{folder}/cert.pem", f"{folder}/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-out",
         files[0], "-keyout", files[1], "-subj", f"/CN={host}", "-addext",
         f"subjectAltName=DNS:{host}"],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def serve(site: Path, host: str) -> http.server.ThreadingHTTPServer:
    return http.server.ThreadingHTTPServer((host, 0), partial(Files, directory=site))


@pytest.fixture
def skills(tmp_path: Path) -> Iterator[Hub]:
    """The `skills` command, over http."""
    server = serve(tmp_path / "site", "127.0.0.1")
    with in_thread(server):
        settings = settings_in(tmp_path, f"http://127.0.0.1:{server.server_port}")
        write_small_catalogue(settings.content)
        node = [str(PROGRAMS / "node"), str(PACKAGES / "skills/bin/cli.mjs")]
        yield Hub(settings, tmp_path, node)


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Hub]:
    """Claude Code, over https."""
    host = socket.gethostname()
    server = serve(tmp_path / "site", host)
    pem, key = certificate(tmp_path, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with in_thread(server):
        settings = settings_in(tmp_path, f"https://{host}:{server.server_port}")
        write_small_catalogue(settings.content)
        program = next(PACKAGES.glob("@anthropic-ai/claude-code-linux-*/claude"))
        hub = Hub(settings, tmp_path, [str(program), "plugin"], NODE_EXTRA_CA_CERTS=pem)
        hub.run("marketplace", "add", hub.url("ann/marketplace.json"))
        yield hub


# The skills command of npm


def add(skills: Hub, path: str, status: int | None = 0) -> str:
    return skills.run("add", skills.url(path), "-y", "--agent", "codex", status=status)


def skill(skills: Hub) -> str:
    """The text of the skill that is installed in the project."""
    return (skills.project / ".agents/skills/review/SKILL.md").read_text()


def test_a_prompt_is_added_listed_and_updated_after_a_publication(skills: Hub) -> None:
    output = add(skills, REVIEW)
    assert "Found 1 skill\n" in output
    site = Path(skills.settings.out)
    assert skill(skills) == (site / REVIEW / "SKILL.md").read_text()
    assert "review ./.agents/skills/review" in skills.run("list")
    lock = json.loads((skills.project / "skills-lock.json").read_text())
    assert lock["skills"]["review"]["sourceUrl"] == skills.url(REVIEW)
    assert "Updated review" not in skills.run("update", "-y")
    skills.publish("1.2.0", "Review {{code}} twice.\n")
    assert "Updated review" in skills.run("update", "-y")
    assert "Review {{code}} twice." in skill(skills)


FILES = {
    "scripts/deep/run.sh": b"#!/bin/sh\necho hi\n",
    "data/logo.png": bytes(range(256)) * 50,
    "data/empty.txt": b"",
}


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()
    }


def test_a_skill_has_its_files_as_from_hub(skills: Hub) -> None:
    skills.publish("1.2.0", "Run it.\n", FILES)
    add(skills, REVIEW)
    installed = skills.project / ".agents/skills/review"
    client = Path(skills.settings.out, "cli/hub")
    for shell in (["dash"], ["busybox", "sh"]):
        pulled = skills.home / shell[0]
        command = [*shell, client, "pull", REVIEW, "--as", "skill", "-o", pulled]
        subprocess.run(command, check=True, capture_output=True)
        found = files_in(pulled / "review")
        assert found == files_in(installed) and found.items() > FILES.items()
        executable = {path for path in found if os.access(pulled / "review" / path, os.X_OK)}
        assert executable == {"scripts/deep/run.sh"}
    # The skills command makes none executable.
    skills.publish("1.3.0", "Run it.\n", {"new.txt": b"1"})
    assert "Updated review" in skills.run("update", "-y")
    assert (installed / "new.txt").read_bytes() == b"1"


def test_a_label_is_followed_back_and_forth(skills: Hub) -> None:
    skills.label(1, "1.1.0")
    add(skills, f"{REVIEW}/labels/production")
    for number, version in ((2, "1.0.0"), (3, "1.1.0")):
        skills.label(number, version)
        assert "Updated review" in skills.run("update", "-y")
        assert f'version: "{version}"' in skill(skills)


def test_all_prompts_of_an_owner(skills: Hub) -> None:
    add(skills, "ann")
    assert {*os.listdir(skills.project / ".agents/skills")} == {"review", "story"}


def test_what_is_withdrawn_is_not_found(skills: Hub) -> None:
    add(skills, REVIEW)
    skills.withdraw()
    assert "Failed to check skills" in skills.run("update", "-y", status=None)
    shutil.rmtree(skills.project / ".agents")
    add(skills, REVIEW, status=None)
    assert not (skills.project / ".agents").exists()


# Claude Code


def version_of(claude: Hub) -> str:
    found = re.search(r"review@ann\s+Version: (\S+)", claude.run("list"))
    assert found
    return found[1]


def update(claude: Hub, status: int = 0) -> str:
    claude.run("marketplace", "update", "ann")
    return claude.run("update", "review@ann", status=status)


def test_a_plugin_is_installed_and_updated(claude: Hub) -> None:
    claude.run("install", "review@ann")
    assert version_of(claude) == "1.1.0"
    assert re.search(r"Skills \(1\)\s+review\n", claude.run("details", "review@ann"))
    claude.publish("1.2.0", "Review {{code}} twice.\n")
    assert "updated from 1.1.0 to 1.2.0" in update(claude)
    (text,) = (claude.home / ".claude/plugins/cache").glob("ann/review/1.2.0/SKILL.md")
    assert "Review {{code}} twice." in text.read_text()


def test_a_plugin_goes_back_when_its_latest_version_is_withdrawn(claude: Hub) -> None:
    claude.run("install", "review@ann")
    claude.withdraw("1.1.0")
    assert "updated from 1.1.0 to 1.0.0" in update(claude)
    assert version_of(claude) == "1.0.0"


def test_a_withdrawn_prompt_has_no_plugin(claude: Hub) -> None:
    claude.withdraw()
    claude.run("marketplace", "update", "ann")
    assert "not found" in claude.run("install", "review@ann", status=1)


def test_a_prompt_whose_name_claude_code_keeps_for_its_maker(claude: Hub) -> None:
    write_version(claude.settings.content, "ann", "claude-review", "1.0.0", "Review it.\n")
    claude.build()
    claude.run("validate", f"{claude.settings.out}/ann/marketplace.json")
    claude.run("marketplace", "update", "ann")
    claude.run("install", f"{plugin_name('claude-review')}@ann")
    assert "claude-review" in claude.run("details", f"{plugin_name('claude-review')}@ann")
