"""The kinds of prompts, as lists show them."""

from typing import NamedTuple

from builder.model.answers import Repo


class Kind(NamedTuple):
    """``glyph`` stands for the name in lists, and ``key`` in the state of builds."""

    key: str
    name: str
    glyph: str


PROMPT, SKILL, CHAT = KINDS = (
    Kind("/prompt", "Prompt", "{}"),
    Kind("/skill", "Skill", "/"),
    Kind("/chat", "Chat", "“”"),
)


def kind_of(repo: Repo) -> Kind:
    """A chat has messages; a skill has files."""
    return CHAT if repo.messages else SKILL if repo.files else PROMPT
