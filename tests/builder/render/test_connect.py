"""Instructions for MCP clients: snippets to paste as they are."""

import html
import json
import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder import VERSION
from builder.model.errors import OperatorError
from builder.model.service_urls import MCP_URL
from builder.model.settings import Settings, parse_base_url
from builder.render import connect
from builder.render.api_page import Examples
from builder.render.pages import pages_of
from tests.support.catalogues import build_files
from tests.support.depth import searching

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"

# Every client accepts this as the name of a server.
CLIENT_NAME = re.compile("[a-z0-9]+(-[a-z0-9]+)*")


def is_base_url(text: str) -> bool:
    try:
        return parse_base_url(text) == text
    except OperatorError:
        return False


hosts = st.sampled_from(
    ["127.0.0.1", "localhost", "[::1]", "[::]", "[2001:db8::a]", "Prompts.Example.ORG", "a_b.c~d",
     "xn--bcher-kva.example", "-", "a" * 300, "a." * 126 + "example"]
) | st.from_regex("[a-z0-9]([a-z0-9.-]{0,40}[a-z0-9])?", fullmatch=True)  # fmt: skip
base_urls = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https"]),
    hosts,
    st.just("") | st.integers(1, 65535).map(":{}".format),
    st.just("") | st.from_regex(r"(/[A-Za-z0-9._~:\[\]-]{1,10}){1,3}", fullmatch=True),
).filter(is_base_url)
hostile = st.text("\"'\\&<>`$!#;|{}[]()\n\t\0 –aZ9éßЖ字🚀", max_size=60)
site_names = hostile | st.text(st.characters(exclude_categories=["Cs"]), max_size=250)
settings = st.builds(Settings, base_url=base_urls, site_name=site_names, queries=st.booleans())
with_mcp = settings.map(lambda drawn: drawn._replace(queries=True, private=False))


def page(of: Settings) -> str:
    """The rendered page."""
    return (
        pages_of(of)
        .render("connect.html", snippets=connect.snippets(of), example=Examples().connect())
        .decode()
    )


def pasted(text: str) -> list[str]:
    """Snippets of a page as readers copy them, in order."""
    found = re.findall(r'<pre class="snippet">\n(.*?)</pre>', text, flags=re.DOTALL)
    return [html.unescape(snippet) for snippet in found]


@searching(30)
@given(with_mcp)
def test_every_snippet_of_the_page_says_the_name_and_the_address(drawn):
    name, url = connect.client_name(drawn), drawn.base_url + MCP_URL
    (
        claude_code, cursor, vscode_command, vscode, codex_command, codex,
        gemini_command, gemini, address, *of_the_shell_client,
    ) = pasted(page(drawn))  # fmt: skip
    assert of_the_shell_client
    add = ["mcp", "add", "--transport", "http", name, url]
    assert address == url
    assert shlex.split(claude_code) == ["claude", *add]
    assert json.loads(cursor) == {"mcpServers": {name: {"url": url}}}
    code, option, value = shlex.split(vscode_command)
    assert (code, option) == ("code", "--add-mcp")
    assert json.loads(value) == {"name": name, "type": "http", "url": url}
    assert json.loads(vscode) == {"servers": {name: {"type": "http", "url": url}}}
    assert shlex.split(codex_command) == ["codex", "mcp", "add", name, "--url", url]
    assert tomllib.loads(codex) == {"mcp_servers": {name: {"url": url}}}
    assert shlex.split(gemini_command) == ["gemini", *add]
    assert json.loads(gemini) == {"mcpServers": {name: {"httpUrl": url}}}
    # Characters that a shell would expand, as in [::1] and ~, are quoted too.
    for command in (claude_code, vscode_command, codex_command, gemini_command):
        assert shlex.join(shlex.split(command)) == command


@searching(10)
@given(with_mcp)
def test_the_snippets_of_a_private_hub_have_the_header(drawn):
    drawn = drawn._replace(private=True)
    found = SimpleNamespace(**connect.snippets(drawn))
    name, url = connect.client_name(drawn), drawn.base_url + MCP_URL
    header = "Authorization: Bearer $HUB_TOKEN"
    add = ["mcp", "add", "--transport", "http"]
    assert shlex.split(found.claude_code) == ["claude", *add, name, url, "--header", header]
    assert shlex.split(found.gemini_command) == ["gemini", *add, "--header", header, name, url]
    for command in (found.claude_code, found.gemini_command):
        assert f'"{header}"' in command  # for the shell to put the token in
    assert shlex.split(found.codex_command)[-2:] == ["--bearer-token-env-var", "HUB_TOKEN"]
    codex = {"url": url, "bearer_token_env_var": "HUB_TOKEN"}
    assert tomllib.loads(found.codex) == {"mcp_servers": {name: codex}}
    vscode = json.loads(found.vscode)
    token = vscode["servers"][name]["headers"]["Authorization"].partition(" ")[2]
    (field,) = vscode["inputs"]
    assert (token, field["password"]) == (f"${{input:{field['id']}}}", True)
    assert json.loads(shlex.split(found.vscode_command)[-1]) == {
        "name": name, **vscode["servers"][name], "inputs": vscode["inputs"],
    }  # fmt: skip
    for text, token in ((found.cursor, "${env:HUB_TOKEN}"), (found.gemini, "$HUB_TOKEN")):
        server = json.loads(text)["mcpServers"][name]
        assert server["headers"] == {"Authorization": f"Bearer {token}"}
    assert found.claude_code in pasted(page(drawn))
    assert "no key and no account" not in page(drawn)


@given(settings)
def test_the_name_is_one_that_every_client_takes(drawn):
    name = connect.client_name(drawn)
    assert CLIENT_NAME.fullmatch(name)
    assert 2 <= len(name) <= 32


@pytest.mark.parametrize(
    ("site_name", "name"),
    [
        ("Hub", "hub"), ("Ada's Prompts & Co.", "adas-prompts-co"), ("Größe", "grosse"),
        ("", "hub"), ("–", "hub"), ("X", "hub"), ("  A 1  ", "a-1"), ("--evil", "evil"),
        ("the quick brown fox jumps over a dog", "the-quick-brown-fox-jumps-over-a"),
        ("the quick brown fox jumped over a dog", "the-quick-brown-fox-jumped-over"),
    ],
)  # fmt: skip
def test_the_name_comes_from_the_site_s(site_name, name):
    assert connect.client_name(Settings(site_name=site_name)) == name


@searching(30)
@example(Settings(site_name="<b>\"It's & <i>"))
@given(settings)
def test_the_page_has_no_markup_of_the_site_s_name(drawn):
    plain = page(drawn._replace(site_name="Hub"))
    tags = re.compile("<[^>]*>")
    assert len(tags.findall(page(drawn))) == len(tags.findall(plain))


def test_a_host_of_files_alone_offers_no_address(small):
    text = build_files(small)["connect.html"].decode()
    assert not any(MCP_URL in snippet for snippet in pasted(text))
    assert connect.mcp_url(small) not in text
    assert "serves files only" in text
    assert "hubctl serve" in text


@pytest.mark.parametrize("queries", [True, False])
def test_the_first_command_works_on_this_host(queries):
    text = page(Settings(queries=queries))
    ids = re.findall('<h2 id="(.*?)"', text)
    assert (ids[0] if queries else ids[-1]) == "assistants"
    assert re.findall('<li><a href="#(.*?)"', text) == ids
    first = shlex.split(pasted(text)[0])
    assert first[:2] == (["claude", "mcp"] if queries else ["npx", "skills"])


@pytest.mark.parametrize("tool", ["search_prompts", "get_prompt", "list_versions", "list_tags"])
@pytest.mark.parametrize("queries", [True, False])
def test_the_page_tells_of_every_tool(tool, queries):
    assert f"<code>{tool}</code>" in page(Settings(queries=queries))


def test_versions_count_from_the_release_whose_interface_this_is(small):
    assert tomllib.loads(PYPROJECT.read_text())["tool"]["setuptools_scm"] == {
        "fallback_version": VERSION
    }
    files = build_files(small)
    hub = json.loads(files["api/v1/hub.json"])["data"]
    assert hub["version"] == metadata.version("prompt-hub")
