"""Frames give what their templates give, and refuse templates that they cannot stand for."""

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from builder.render.pages import Frames

TEMPLATE = (
    "{% if title %}<h1 title=\"{{ 'Of ' ~ title }}\">{{ title }}</h1>{% endif %}"
    "{{ 'flagged' if flag }}{{ html }}{{ '/{}/x'.format(title) }}"
)

texts = st.text(st.sampled_from("a&<>\"'{}%\\\ue000é\n")) | st.text()


def environment(**templates: str) -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.DictLoader(templates), autoescape=True)


def frames_of(one: jinja2.Environment) -> Frames:
    return Frames(lambda name, values: one.get_template(name).render(values))


one = environment(page=TEMPLATE)
frames = frames_of(one)


@given(title=texts, flag=st.booleans(), html=texts.map(Markup))
def test_a_frame_gives_what_its_template_gives(title, flag, html):
    values = {"title": title, "flag": flag, "html": html}
    filled = frames.fill("page", **values)
    assert type(filled) is Markup
    assert filled == one.get_template("page").render(values)
    assert frames.fill_page("page", **values) == filled.encode()


def test_a_template_is_rendered_once_for_each_shape():
    shapes = []
    counted = Frames(lambda name, values: shapes.append(name) or "")
    for title in ("", "a", "b"):
        for flag in (False, True, True):
            counted.fill("page", title=title, flag=flag)
    assert len(shapes) == 4


@pytest.mark.parametrize(
    ("body", "value", "reason"),
    [
        ("{{ title|upper }}", "a", None), ("{{ title[:2] }}", "a", None),
        ("{{ title == 'a' }}", "a", "known yet"),
        ("{{ ('x' ~ title)[:4] }}", "a", "takes apart a text"),
        ("{{ title }}", 1, "neither a text nor a flag"),
    ],
)  # fmt: skip
def test_what_needs_to_know_a_text_fails(body, value, reason):
    with pytest.raises((TypeError, ValueError), match=reason):
        frames_of(environment(page=body)).fill("page", title=value)
