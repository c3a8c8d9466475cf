"""The lists of the home page, by kind, and its commands."""

import re

from tests.support.catalogues import build_files, write_version, write_withdrawn

SKILL = "---\nname: notes\ndescription: Notes.\n---\nRead.\n"
CHAT = '{{role "user"}}\nSay {{what}}.\n'
TITLES = re.compile(r'<h3 dir="auto"><a [^>]*>([^<]*)</a>')


def page(settings) -> str:
    return build_files(settings)["index.html"].decode()


def fill(root) -> None:
    for number in range(8):
        time = f"2025-01-{number + 1:02}T00:00:00Z"
        write_version(root, "ann", f"p-{number}", "1.0.0", "Say it.\n", published_at=time)
    write_version(root, "bob", "notes", "1.0.0", SKILL, {"a.md": b"A"}, title="Notes")
    write_version(root, "bob", "talk", "1.0.0", CHAT, title="Talk")


def test_a_tab_of_each_kind_lists_its_prompts(empty):
    fill(empty.content)
    _, everything, prompts, skills, chats = page(empty).split('<div class="tab">')
    assert TITLES.findall(skills) == ["Notes"] and TITLES.findall(chats) == ["Talk"]
    assert {*TITLES.findall(prompts)} == {f"The p-{number} prompt" for number in range(2, 8)}
    assert TITLES.findall(everything)[:3] == ["Notes", "Talk", "The p-7 prompt"]


def test_each_tab_has_a_name_and_a_number(empty):
    fill(empty.content)
    labels = re.findall(r"<label[^>]*><input[^>]*>(.*?)</label>", page(empty))
    words = [re.sub(r"<code aria-hidden.*?</code>|<[^>]*>", "", one).strip() for one in labels]
    assert words == ["Everything 10", "Prompts 8", "Skills 1", "Chats 1"]


def test_a_hub_of_one_kind_has_no_tabs(empty):
    fill(empty.content)
    assert "<fieldset" in page(empty)
    write_withdrawn(empty.content, "bob/notes")
    write_withdrawn(empty.content, "bob/talk")
    assert "<fieldset" not in page(empty) and 'aria-label="Prompt"' in page(empty)


def test_kinds_are_no_tags(empty):
    fill(empty.content)
    write_version(empty.content, "ann", "tagged", "1.0.0", "Say it.\n", tags=["skill"])
    files = build_files(empty)
    assert b'"data":[{"name":"skill","count":1}]' in files["api/v1/tags.json"]
    assert not [file for file in files if "/prompt" in file and file.startswith("tags")]


def test_new_and_top_are_one_list_if_they_have_the_same_prompts(empty):
    write_version(empty.content, "ann", "story", "1.0.0", "Say {{a}}.")
    assert page(empty).count('<ol class="rows') == 1


def test_commands_name_a_prompt_of_the_hub(empty):
    fill(empty.content)
    assert "\nhub pull bob/notes<" in page(empty)
    write_version(empty.content, "cat", "filled", "1.0.0", "Say {{a}}.")
    shown = page(empty)
    for command in ("hub pull ", "npx skills add https://hub.example/", "curl -fsS https://hub"):
        assert f"\n{command}" in shown
    assert "cat/filled/raw.txt" in shown and "OWNER" not in shown


def test_members_get_no_command_that_sends_no_token(empty):
    fill(empty.content)
    shown = page(empty._replace(private=True, queries=True))
    assert "\nhub pull " in shown and "npx" not in shown and "curl" not in shown


def test_an_empty_hub_shows_first_steps(empty):
    shown = page(empty)
    assert "First steps" in shown and "hub pull" not in shown and "prompts/new" not in shown
    assert "/account/prompts/new" in page(empty._replace(queries=True))
