"""The templates of configurations: Jinja templates in this folder, without HTML escaping."""

import textwrap

import jinja2

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("builder.hosts", ""),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_environment.filters["indented"] = lambda text, tabs: textwrap.indent(text, tabs * "\t").strip()


def fill(template: str, **values: object) -> str:
    """The text of a template with these values."""
    return _environment.get_template(template).render(values)
