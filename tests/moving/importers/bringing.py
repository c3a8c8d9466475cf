"""Imports files into a content folder, and reads what came of them."""

from pathlib import Path
from typing import Any

from builder.model.records import VersionFile
from builder.store import content
from moving.importers.run import Options, Outcome, import_source
from operate.content_check import check
from publisher.write.durable import FolderStore


def bring(root: str, source: Path, **options: Any) -> Outcome:
    outcome = import_source(str(source), FolderStore(root), Options(**options), lambda *_: None)
    if outcome.created or not options.get("dry_run"):
        assert all(fault.is_warning for fault in check(root))
    return outcome


def bring_text(root: str, name: str, text: str | bytes, **options: Any) -> Outcome:
    """Import one file with this text."""
    source = Path(root).parent / name
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    return bring(root, source, **options)


def latest(root: str, repo: str) -> tuple[VersionFile, str]:
    owner, name = repo.split("/")
    return content.read_version(
        root, owner, name, content.list_versions(root, owner, name).versions[-1]
    )


def paths(root: str, repo: str) -> list[str]:
    """The paths of the files of the latest version."""
    return [one.path for one in latest(root, repo)[0].files or ()]


def reasons(outcome: Outcome) -> dict[str, str]:
    return dict(outcome.rejected)


DOTPROMPT = """---
model: vendor/model-1
config:
  temperature: 0.4
  maxOutputTokens: 100
input:
  schema:
    topic: string, what about
    count?: integer
    kind(enum, of text): [poem, story]
    rest?(array, more of it): string
    (*): any
  default:
    topic: fish
output:
  format: json
---
{{topic}} {{count}} {{kind}} {{rest}}
"""


PROMPTY = """---
name: Basic Prompt
description: Answers.
authors: [Ann, Bob]
tags: [Getting Started]
model:
  api: chat
  configuration:
    name: gpt-x
    api_key: ${env:KEY}
    azure_endpoint: https://team.example
  parameters:
    max_tokens: 10
inputs:
  question:
    type: string
    description: What is asked
  first: Jane
sample:
  question: Why?
---
system:
{{question}} {{first}}
"""


MESSAGES = """name: Summary
description: Sums up.
model: vendor/model-2
modelParameters:
  topP: 0.5
messages:
  - role: system
    content: Be brief.
  - role: user
    content: |
      Sum up {{input}}.
testData:
  - input: x
"""


SKILL = """---
name: pdf-forms
description: Fills in forms.
license: MIT
metadata:
  author: Ann
  version: "1.0"
---
# Forms
"""


def write_all(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder
