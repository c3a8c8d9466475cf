"""The filled-in text of a version, for readers without scripts and for programs.

Values arrive by POST: they may be private and long, and addresses are logged and limited in length.
Nothing is stored, and the log gets no value. The site's own files have the form.
"""

from flask import Response, request

from builder.model.answers import Version
from builder.model.errors import RequestError
from builder.model.routes import BY_NAME, TEXT
from builder.model.service_urls import FILL_URL
from builder.model.settings import READS_PER_MINUTE
from builder.render.pages import pages_of
from builder.render.prompt_text import FIELD_PREFIX, form
from builder.text.filling import FILLED_CHARS_MAX, fit, known_names
from builder.text.hidden_chars import Marks
from builder.text.prompts import fill, filled_chars
from publisher.web.pages.frame import Frame, go_to
from publisher.web.published import is_browser, read_version

_ADVICE = {
    "missing": "Enter a value.",
    "enum": "Choose one of the options.",
    "integer": "Enter a whole number, such as 12.",
    "number": "Enter a number, such as 0.5.",
    "boolean": "Enter true or false.",
    "array": 'Enter a list in JSON, such as ["a", "b"].',
    "object": 'Enter an object in JSON, such as {"a": 1}.',
}


def add_to(frame: Frame) -> None:
    """Adds this page."""
    reason = "Too many prompts were filled in from your address"
    frame.add_for_readers(FILL_URL, filled, READS_PER_MINUTE, "fill", reason, "GET", "POST")


def filled(frame: Frame, owner: str, name: str, version: str) -> Response:
    """Returns the filled-in text: as a page for a browser, otherwise as text. Values that do not
    fit are answered with the form, or with a line for each.
    """
    one = read_version(frame.service.settings, owner, name, version)
    if request.method == "GET":  # a page that was left open, or a link to the result
        page = BY_NAME["version_page"].url_for(owner=owner, name=name, version=version)
        return go_to(frame.service.settings.base_path + page)
    sent = _sent(one)
    texts, missing, misfits = fit(one.body, one.variables, _given(one, sent))
    reasons = dict.fromkeys(missing, "missing") | misfits
    wrong = {key: _ADVICE[reason] for key, reason in reasons.items()}
    if not wrong and filled_chars(one.body, texts) > FILLED_CHARS_MAX:
        raise RequestError(
            "content_too_large",
            f"The filled-in text would have more than {FILLED_CHARS_MAX:,} characters. Go back, "
            "and shorten the values.",
        )
    text = "" if wrong else fill(one.body, texts)
    status = 422 if wrong else 200
    if not is_browser():
        lines = "".join(f"{key}: {advice}\n" for key, advice in wrong.items())
        return Response(lines or text, status, content_type=TEXT)
    fields = form(pages_of(frame.service.settings), one, version, Marks(), sent, wrong)
    return frame.render("filled.html", status, one=one, text=text, form=fields, wrong=wrong)


def _sent(one: Version) -> dict[str, str]:
    """The values as sent, by variable. Raises RequestError ``invalid_parameter`` for a name that
    the prompt does not have.
    """
    # Browsers send the line breaks of a text as CR LF.
    sent = {
        key.removeprefix(FIELD_PREFIX): value.replace("\r\n", "\n")
        for key, value in request.form.items()
        if key.startswith(FIELD_PREFIX)
    }
    known = known_names(one.body, one.variables)
    if not sent.keys() <= {*known}:
        named = ", ".join(known[:10]) or "none"
        raise RequestError(
            "invalid_parameter",
            f"{one.owner}/{one.name} {one.version} has no such variable. It has: {named}.",
        )
    return sent


def _given(one: Version, sent: dict[str, str]) -> dict[str, str]:
    """The values without empty fields, unless an empty text is a value of the variable."""
    optional_texts = {
        variable.name
        for variable in one.variables
        if not variable.required and variable.type == "string" and not variable.enum
    }
    return {key: value for key, value in sent.items() if value or key in optional_texts}
