"""The kinds of prompts, as lists show them."""

from typing import NamedTuple

from builder.model.answers import Repo


class Kind(NamedTuple):
    """``glyph`` stands for the name in lists, ``about`` explains it there, and ``key`` stands for
    it in the state of builds.
    """

    key: str
    name: str
    glyph: str
    about: str


PROMPT, SKILL, CHAT = KINDS = (
    Kind("/prompt", "Prompt", "{}", "A prompt: one text"),
    Kind("/skill", "Skill", "/", "A skill: a prompt with files"),
    Kind("/chat", "Chat", "“”", "A chat: a prompt of several messages"),
)


def kind_of(repo: Repo) -> Kind:
    """A chat has messages; a skill has files."""
    return CHAT if repo.messages else SKILL if repo.files else PROMPT
