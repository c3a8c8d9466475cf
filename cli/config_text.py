"""Writes a ``hub.toml`` that explains every setting."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.config import FILE_NAME, Schema, Setting

WIDTH = 100
HEAD = f"""\
# Settings of this hub, for all commands of hubctl. They find this file from any folder below it.
# An option of a command overrides its environment variable, which overrides its setting here.
# Relative paths start at the folder of this file. Secrets do not belong here: {FILE_NAME} is often
# in git. To set something, remove the # before its key, and replace the value, which is the default
# or shows what can stand there.
"""
# Settings that a reader looks for first.
USUAL = "site-name default-owner base-url search rate-limit publish-limit open-signup".split()
EXAMPLES = {
    "database": "postgresql://hub@db.example.org/hub",
    "base-url": "https://prompts.example.org",
    "default-owner": "ada",
    "accent": "#8a2f6b",
    "metrics": "127.0.0.1:9108",
    "upstream": "127.0.0.1:8000",
}


def config_text(schema: Schema, chosen: Mapping[str, Any]) -> str:
    """A file of settings that sets those that are ``chosen``, by their keys, and shows the rest."""
    parts = [HEAD]
    table: tuple[str, ...] = ()
    for words, setting in listed(schema):
        if words != table:
            parts.append(f"\n[{'.'.join(words)}]\n")
            table = words
        explained = textwrap.fill(
            setting.option.help or "",
            WIDTH,
            initial_indent="# ",
            subsequent_indent="# ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        is_chosen = not words and setting.key in chosen
        value = chosen[setting.key] if is_chosen else shown_value(setting)
        parts.append(f"\n{explained}\n{'' if is_chosen else '# '}{setting.key} = {toml(value)}\n")
    return "".join(parts)


def listed(schema: Schema) -> Iterator[tuple[tuple[str, ...], Setting]]:
    """Each setting after the table where it usually stands: at the top if it has one default for
    several commands, there the usual ones first; then those of `hubctl serve`.
    """
    top = [
        settings[0]
        for where, settings in schema.known.items()
        if len(where) == 1 and len({toml(shown_value(each)) for each in settings}) == 1
    ]
    order = {key: number for number, key in enumerate(USUAL)}
    for setting in sorted(top, key=lambda one: order.get(one.key, len(order))):
        yield (), setting
    shared = {setting.shared_as for setting in top}
    for setting in sorted(schema.settings, key=lambda one: one.words != ("serve",)):
        if setting.shared_as not in shared:
            yield setting.words, setting


def shown_value(setting: Setting) -> Any:
    """The default, or an example of a valid value."""
    option = setting.option
    if setting.key in EXAMPLES:
        return EXAMPLES[setting.key]
    if option.is_flag:
        return option.default is True
    if option.multiple:
        return [*option.default] if isinstance(option.default, list | tuple) else []
    if option.nargs != 1:
        return (option.metavar or "").split()
    if isinstance(option.default, str | int | float):
        return option.default
    return 0 if isinstance(option.type, click.types.IntParamType) else option.metavar


def toml(value: Any) -> str:
    """A text, number, truth value, or list of texts, as TOML has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
