"""The snippets of a prompt's page: they are code that works, whatever an author has named."""

import re
from typing import Any

import hub_prompts
import pytest
from msgspec import to_builtins

from builder.model.answers import Version
from builder.model.records import Variable
from builder.text.code_snippets import python_snippet, script_snippet
from builder.text.messages import parse_messages

URL = "https://hub.example/prompts"


def version_of(body: str, declared: list[Variable]) -> Version:
    fields = dict.fromkeys(Version.__struct_fields__, "")
    parts = {"content": body, "body": body, "messages": parse_messages(body), "variables": declared}
    return Version(**fields | parts)


def run_python(snippet: str, body: str, declared: list[Variable]) -> dict[str, Any]:
    """The names of a snippet that was run with a hub that has this prompt."""
    requested = []

    class Hub:
        def __init__(self, url: str) -> None:
            requested.append(url)

        def get(self, id: str) -> hub_prompts.Prompt:
            requested.append(id)
            rows = to_builtins(declared)
            return hub_prompts.Prompt("ada/hello", "1.0.0", "", body, body, rows, {})

    code = snippet.replace("from hub_prompts import Hub\n", "")
    found: dict[str, Any] = {"Hub": Hub}
    exec(code, found)
    assert requested == [URL, "ada/hello@1.0.0"]
    return found


def test_a_conversation_gives_messages():
    declared = [Variable("tone", enum=["very <b>", "kind", "stern"])]
    body = '{{role "system"}}\nBe {{tone}}.\n{{role "user"}}\nHello.\n'
    version = version_of(body, declared)
    found = run_python(python_snippet(URL, "ada/hello@1.0.0", version), body, declared)
    assert found["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello."},
    ]
    assert script_snippet(URL, "ada/hello", version).endswith(
        '\nconst messages = prompt.messages({ tone: "kind" });'
    )


@pytest.mark.parametrize(
    ("declared", "python", "script"),
    [
        ([], "text = prompt.fill()", "const text = prompt.fill();"),
        ([Variable("a", default="x"), Variable("b", required=False)],
         "text = prompt.fill()", "const text = prompt.fill();"),
        ([Variable("a"), Variable("b", type="boolean")],
         'text = prompt.fill(a="…", b=True)', 'const text = prompt.fill({ a: "…", b: true });'),
        ([Variable("a", type="number"), Variable("b", type="array"), Variable("c", type="object")],
         "text = prompt.fill(a=1.5, b=[], c={})",
         "const text = prompt.fill({ a: 1.5, b: [], c: {} });"),
        ([Variable("b", type="boolean", enum=[False])], "text = prompt.fill(b=False)",
         "const text = prompt.fill({ b: false });"),
        ([Variable("class")], 'text = prompt.fill(**{"class": "…"})',
         'const text = prompt.fill({ class: "…" });'),
        ([Variable("__proto__")], 'text = prompt.fill(__proto__="…")',
         'const text = prompt.fill({ ["__proto__"]: "…" });'),
        ([Variable("long" * 16), Variable("b", type="integer")],
         f'text = prompt.fill(\n    {"long" * 16}="…",\n    b=1,\n)',
         f'const text = prompt.fill({{\n  {"long" * 16}: "…",\n  b: 1,\n}});'),
    ],
)  # fmt: skip
def test_calls(declared, python, script):
    body = "".join(f"{{{{{one.name}}}}}" for one in declared)
    version = version_of(body, declared)
    snippet = python_snippet(URL, "ada/hello@1.0.0", version)
    assert snippet == (
        f'from hub_prompts import Hub\n\nhub = Hub("{URL}")\n'
        f'prompt = hub.get("ada/hello@1.0.0")\n{python}'
    )
    assert isinstance(run_python(snippet, body, declared)["text"], str)
    assert script_snippet(URL, "ada/hello", version) == (
        f'import {{ Hub }} from "./hub.js";\n\nconst hub = new Hub("{URL}");\n'
        f'const prompt = await hub.get("ada/hello");\n{script}'
    )


def test_an_author_writes_no_code():
    enum = ['"; import os; "', "a\nb", "{evil}", "\\", "${x}", {"a": 1}, 'x"', 7]
    version = version_of("{{a}}", [Variable("a", enum=enum)])
    for snippet in (python_snippet, script_snippet):
        assert re.search(r"fill\((a=7|\{ a: 7 \})\);?$", snippet(URL, "ada/hello", version))
