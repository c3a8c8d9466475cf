"""A short prompt on the home page that visitors can fill in. Pure, like builder.render.pages."""

from markupsafe import Markup, escape

from builder.model.answers import Repo
from builder.render.pages import Pages
from builder.render.prompt_text import mark_variable, utf16_length
from builder.text.hidden_chars import visible
from builder.text.prompts import mark_variables, variable_names
from builder.text.values import as_text

# Visitors would miss the fields of a longer text.
CHARS_MAX = 2_500
VARIABLES_MAX = 4


def suits_trial(repo: Repo) -> bool:
    """True for a short text with a few string variables, no messages and no hidden characters."""
    names = {one.name for one in repo.variables}
    return (
        0 < len(names) <= VARIABLES_MAX
        and len(repo.body) <= CHARS_MAX
        and names == {*variable_names(repo.body)}
        and all(one.type == "string" and not one.enum for one in repo.variables)
        and visible(repo.body) == escape(repo.body)
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
        raw=pages.file_url("version_raw", **at, version=repo.latest_version),
        skip=utf16_length(repo.content[: len(repo.content) - len(repo.body)]),
        text=Markup(mark_variables(str(escape(repo.body.strip("\r\n"))), mark)),
    )
    return Markup(page.decode())
