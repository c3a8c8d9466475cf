"""Errors of a form, shown at the fields that they are about."""

from collections.abc import Iterator
from contextlib import contextmanager

from flask_wtf import FlaskForm
from wtforms import Field

from builder.model.errors import RequestError


@contextmanager
def errors_shown(form: FlaskForm, otherwise: Field) -> Iterator[None]:
    """Shows a RequestError that the block raises, as ``show_errors`` does, and continues after
    it.
    """
    try:
        yield
    except RequestError as error:
        show_errors(form, error, otherwise)


def show_errors(form: FlaskForm, error: RequestError, otherwise: Field) -> None:
    """Shows an error at the fields that it names; at ``otherwise`` where it names none of these.

    An error that is not a fault of the form is raised again.
    """
    if error.status >= 500:
        raise error
    named = [detail for detail in error.details if detail.field in form]
    for detail in named:
        field = form[detail.field]
        field.errors = [*field.errors, _sentence(detail.message)]
    if not named:
        otherwise.errors = [*otherwise.errors, str(error)]


def _sentence(message: str) -> str:
    """Returns a detail's message, which is written for programs, as a sentence for people."""
    return message if message.endswith(".") else f"{message[:1].upper()}{message[1:]}."
