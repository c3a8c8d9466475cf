"""Proposes the name of a new prompt."""

import itertools
import os
import re

from builder.model import names
from builder.text.plain_words import plain_words
from builder.text.prompts import parse_document
from builder.text.summary import title_of
from publisher.web.editor.fields import front_fields
from publisher.web.editor.writing import Writing

# The name for a title without letters, and the suffix after a reserved name.
_NAMELESS = "prompt"
_TITLE_WORDS = 5


def propose_name(root: str, owner: str, writing: Writing) -> str:
    """Returns a name that the owner has not used, from the title, the heading or the first words of
    a text. A typed name is only corrected to a valid one, because it may name an existing prompt on
    purpose.
    """
    if writing.name:
        typed = writing.name.removeprefix(f"{owner}/")
        return plain_words(typed, names.REPO_CHARS_MAX, "-") or typed
    document = parse_document(writing.content)
    given = front_fields(document).get("title") or writing.title or title_of(document.body)
    title = given or " ".join(document.body.split()[:_TITLE_WORDS])
    # Room for a number.
    slug = plain_words(title, names.REPO_CHARS_MAX - 5, "-")
    if not re.search("[a-z]", slug) or names.why_reserved("prompt", slug):
        slug = f"{slug}-{_NAMELESS}".lstrip("-")
    numbered = (f"{slug}-{number}" for number in itertools.count(2))
    candidates = itertools.chain([slug], numbered)
    return next(one for one in candidates if not os.path.exists(f"{root}/{owner}/{one}"))
