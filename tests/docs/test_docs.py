"""The documents say what the code does: generated parts are fresh, examples work."""

import re
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest

from builder.model.records import LabelFile, VersionFile, WithdrawalFile, WithdrawnFile
from builder.store import content
from cli.hubctl import main as hubctl
from operate.content_check import check

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("bench/**/*.md")),
]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_generated_parts_are_as_the_code_says():
    check = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_and_environment_variable_is_documented():
    text = (ROOT / "docs/reference/hubctl.md").read_text()
    settings = (ROOT / "docs/operate/own-hub.md").read_text()
    context = click.Context(hubctl)
    for name in hubctl.list_commands(context):
        for parameter in hubctl.get_command(context, name).params:
            is_hidden = getattr(parameter, "hidden", False)
            for option in () if is_hidden else parameter.opts:
                assert option in text or parameter.param_type_name == "argument"
            if getattr(parameter, "envvar", None):
                assert parameter.envvar in (settings if is_hidden else text)


def without_code(document: Path) -> str:
    return re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", without_code(document), flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    text = without_code(document)
    for target in re.findall(r"\]\(([^):]+)\)|src=\"([^\":]+)\"", text):
        path, _, anchor = "".join(target).partition("#")
        place = document.parent / path if path else document
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    for document in ROOT.glob("docs/*/*.md"):
        assert f"({document.relative_to(ROOT / 'docs')})" in index, document


def test_places_named_in_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("## Where things live")[1].split("\n## ")[0]
    for row in table.splitlines()[4:]:
        folder = ""
        for name in re.findall(r"`([a-z_/.]+)`", row.split("|")[1]) if row else []:
            folder = name.rpartition("/")[0] if "/" in name.rstrip("/") else folder
            place = name if "/" in name else f"{folder}/{name}"
            assert (
                (ROOT / place).exists()
                or (ROOT / f"{place}.py").exists()
                or (place.rstrip("/") == "var")
            ), place


def test_the_example_records_are_records():
    version, label, withdrawal = blocks("docs/reference/content-format.md", "json")
    assert msgspec.json.decode(version, type=VersionFile).variables[0].required
    assert msgspec.json.decode(label, type=LabelFile).note
    assert msgspec.json.decode(withdrawal, type=WithdrawnFile).versions["1.2.0"].size


def test_the_record_table_names_every_key():
    text = (ROOT / "docs/reference/content-format.md").read_text()
    kinds = (VersionFile, LabelFile, WithdrawalFile)
    for key in [key for kind in kinds for key in kind.__struct_fields__]:
        assert f"| `{key}` |" in text


def test_a_version_by_hand_in_shell_is_sound(tmp_path):
    script, _ = blocks("docs/reference/content-format.md", "sh")
    subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, check=True)
    root = str(tmp_path / "content")
    assert list(check(root)) == []
    assert content.list_repos(root, "ada") == ["code-review"]
