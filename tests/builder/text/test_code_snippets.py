"""The snippets of a prompt's page: they are code that works, whatever an author has named."""

import re
from typing import Any

import hub_prompts
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from builder.model.answers import Version
from builder.model.records import Variable
from builder.text.code_snippets import python_snippet, script_snippet
from builder.text.messages import parse_messages

URL = "https://hub.example/prompts"

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True) | st.sampled_from(
    ["class", "None", "self", "prompt", "__proto__", "function", "n" * 64]
)
variables = st.lists(
    st.builds(
        Variable,
        name=names,
        type=st.sampled_from(["string", "integer", "number", "boolean", "array", "object"]),
        required=st.booleans(),
        default=st.none() | st.just("x"),
    ),
    max_size=12,
    unique_by=lambda one: one.name,
)


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


@given(variables)
def test_python_runs_and_gives_each_variable_a_value_of_its_type(declared):
    body = "".join(f"{{{{{one.name}}}}}" for one in declared)
    snippet = python_snippet(URL, "ada/hello@1.0.0", version_of(body, declared))
    assert isinstance(run_python(snippet, body, declared)["text"], str)
    assert all(len(line) < 110 for line in snippet.splitlines())


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
    version = version_of("Hello.", declared)
    assert python_snippet(URL, "ada/hello", version) == (
        f'from hub_prompts import Hub\n\nhub = Hub("{URL}")\nprompt = hub.get("ada/hello")\n'
        + python
    )
    assert script_snippet(URL, "ada/hello", version) == (
        f'import {{ Hub }} from "./hub.js";\n\nconst hub = new Hub("{URL}");\n'
        f'const prompt = await hub.get("ada/hello");\n{script}'
    )


def test_an_author_writes_no_code():
    enum = ['"; import os; "', "a\nb", "{evil}", "\\", "${x}", {"a": 1}, 'x"', 7]
    version = version_of("{{a}}", [Variable("a", enum=enum)])
    for snippet in (python_snippet, script_snippet):
        assert re.search(r"fill\((a=7|\{ a: 7 \})\);?$", snippet(URL, "ada/hello", version))
