"""A short prompt on the home page that visitors can fill in. Pure, like builder.render.pages."""

from itertools import islice

from markupsafe import Markup, escape

from builder.model.answers import Repo
from builder.render.pages import Pages
from builder.render.prompt_text import mark_variable, utf16_length
from builder.text.hidden_chars import hidden_characters
from builder.text.prompts import mark_variables, variable_names
from builder.text.summary import is_data
from builder.text.values import as_text

# Visitors would miss the fields of a longer text.
CHARS_MAX = 2_500
VARIABLES_MAX = 4
# The part of a text that is in sight before its box scrolls: lines, and characters of a line.
SEEN_LINES, LINE_CHARS = 10, 48
EARLY_CHARS = 200
# Long enough to say something, and short enough to be read by the way.
TELLING_CHARS = range(150, 1_000)


def trial_rank(repo: Repo) -> int:
    """The rank of a prompt as an example for visitors: greater is better, 0 does not suit.

    Pulls do not count here; they decide among equals.
    """
    if not _suits_trial(repo):
        return 0
    body = repo.body.strip()
    parts = (
        line[at : at + LINE_CHARS]
        for line in body.splitlines()
        for at in range(0, len(line) or 1, LINE_CHARS)
    )
    lines = [*islice(parts, SEEN_LINES + 1)]
    seen = variable_names("".join(lines[:SEEN_LINES]))
    is_all_in_sight = len(seen) == len(repo.variables)
    is_asking = any(one.required for one in repo.variables)
    others = (
        body.find("{{") < EARLY_CHARS,
        len(repo.variables) > 1,
        len(body) in TELLING_CHARS,
        len(body) in TELLING_CHARS and len(lines) <= SEEN_LINES,
        repo.title != repo.name,
        # Code, and placeholders that no field fills.
        not ("[" in body or "```" in body or is_data(body)),
    )
    return 1 + 3 * (is_all_in_sight + is_asking) + sum(others)


def _suits_trial(repo: Repo) -> bool:
    """True for a short text with a few string variables, no messages and no hidden characters."""
    names = {one.name for one in repo.variables}
    return (
        0 < len(names) <= VARIABLES_MAX
        and len(repo.body) <= CHARS_MAX
        and names == {*variable_names(repo.body)}
        and all(one.type == "string" and not one.enum for one in repo.variables)
        and not hidden_characters(repo.body)
        and repo.messages is None
    )


def trial(pages: Pages, repo: Repo) -> Markup:
    """The text, with a field where each variable first appears."""
    left = {one.name: one for one in repo.variables}

    def mark(name: str, placeholder: str) -> str:
        if name not in left:
            return mark_variable(name, placeholder)
        one = left.pop(name)
        default = "" if one.default is None else as_text(one.default)
        return pages.macro("macros.html", "hole")(name, default, one.required)

    at = {"owner": repo.owner, "name": repo.name}
    page = pages.render(
        "trial.html",
        **at,
        title=repo.title,
        raw=pages.file_url("version_raw", **at, version=repo.latest_version),
        skip=utf16_length(repo.content[: len(repo.content) - len(repo.body)]),
        text=Markup(mark_variables(str(escape(repo.body.strip("\r\n"))), mark)),
    )
    return Markup(page.decode())
