"""``hubctl import --from`` for PromptLayer and GitHub Models: the whole way, twice."""

from pathlib import Path

from click.testing import Result

from builder.store import content
from builder.store.labels import read_labels
from tests.cli.command import run
from tests.moving.importers.test_git_history import Work
from tests.moving.vendors.test_github_models import SUMMARIZER, TRIALS
from tests.moving.vendors.test_promptlayer import KEY, SNIPPET, TITLES, PromptLayer
from tests.support.fake_api import fake_api


def import_twice(*args: str, **environ: str) -> Result:
    """The first outcome, after a second run that changes nothing."""
    first, second = (run("import", *args, "--owner", "ada", **environ) for _ in range(2))
    assert second.stdout.startswith("0 prompts created, 0 updated, "), second.output
    assert "published" not in second.stdout
    assert run("check").exit_code == 0
    return first


def versions(name: str) -> list[tuple[object, ...]]:
    """Ordinal, time, changelog, title and text of each version."""
    found = []
    for version in content.list_versions("content", "ada", name).versions:
        record, text = content.read_version("content", "ada", name, version)
        found.append((record.ordinal, record.published_at, record.changelog, record.title, text))
    return found


def test_promptlayer(folder: Path):
    with fake_api(PromptLayer(*TITLES, SNIPPET)) as api:
        first = import_twice("--from", "promptlayer", api.url, PROMPTLAYER_API_KEY=KEY)
    assert first.exit_code == 0, first.output
    assert first.stdout == (
        "2 prompts created, 0 updated, 0 unchanged, 0 rejected, 0 refused\n"
        "4 versions published, 2 labels moved\n"
    )
    title = "support/Page title"
    text = '{{role "system"}}\nBe %s.\n\n{{role "user"}}\nAbout {{topic}}\n'
    assert versions("support-page-title") == [
        (1, "2025-03-15T10:30:01Z", "Change 1", title, text[text.index('{{role "user') :]),
        (2, "2025-03-15T10:30:02Z", "Change 2", title, text % "brief"),
        (4, "2025-03-15T10:30:04Z", "Change 4", title, text % "clear"),
    ]
    assert read_labels("content", "ada", "support-page-title").versions() == {
        "prod": "1.0.1", "staging-area": "1.0.2",
    }  # fmt: skip
    assert versions("tone")[0][2:] == ("Imported from PromptLayer", "tone", "Be kind, {{ name }}.")
    kept = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any(KEY in text for text in kept) and KEY not in first.output


def test_github_models(folder: Path):
    work = Work(folder / "work")
    work.commit("Add it", **{"prompts/summarize.prompt.yml": SUMMARIZER})
    work.commit("Try it", **{"prompts/summarize.prompt.yml": SUMMARIZER + TRIALS})
    brief = SUMMARIZER.replace("a text", "a brief")
    work.commit("Be brief", **{"prompts/summarize.prompt.yml": brief + TRIALS})
    first = import_twice("--from", "github-models", "work")
    assert first.exit_code == 0, first.output
    assert [one[1:4] for one in versions("summarize")] == [
        ("2025-06-15T15:06:41Z", "Add it", "Text Summarizer"),
        ("2025-06-15T15:06:43Z", "Be brief", "Text Summarizer"),
    ]
    assert "You are a brief summarizer." in versions("summarize")[1][-1]
    assert "Left out testData and evaluators: prompts have none here (1 file)." in first.stderr
    work.commit("Be clear", **{"prompts/summarize.prompt.yml": SUMMARIZER.replace("text s", "s")})
    assert "1 version published" in run("import", "--from", "github-models", "work",
                                        "--owner", "ada").stdout  # fmt: skip
    assert [one[2] for one in versions("summarize")] == ["Add it", "Be brief", "Be clear"]
