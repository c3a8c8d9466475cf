"""Groups of options that reach a command as one record."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import click


def in_order(*options: Callable) -> Callable:
    """A decorator that adds these options; help shows them in this order."""

    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def grouped(name: str, make: Callable[..., Any], *options: Callable) -> Callable:
    """A decorator that adds these options, and passes the result of ``make`` as ``name``.

    ``make`` takes the options by their names, and may have defaults for some that only other
    commands have.
    """
    parameters = inspect.signature(make).parameters

    def decorate(command: Callable) -> Callable:
        @functools.wraps(command)
        def with_record(*args: Any, **given: Any) -> Any:
            taken = {key: given.pop(key) for key in parameters if key in given}
            return command(*args, **given, **{name: make(**taken)})

        return in_order(*options)(with_record)

    return decorate


class SettingArgument(click.Argument):
    """An argument that can also be set in the environment, by ``envvar``, and so in hub.toml."""

    is_flag = multiple = False

    def __init__(self, *names: Any, help: str, **rest: Any) -> None:
        super().__init__(*names, **rest)
        self.help = help


def setting(flag: str, *names: str, variable: str = "", **rest: Any) -> Callable:
    """An option that can also be set in the environment, as HUB_FLAG unless ``variable`` says so,
    and so in hub.toml. Help shows its default, if it has one. A hidden one is rarely needed: the
    table of settings in docs/operate/own-hub.md lists it, and help does not.
    """
    variable = variable or f"HUB_{flag.strip('-').partition('/')[0].replace('-', '_').upper()}"
    shown = {"show_default": "default" in rest}
    return click.option(flag, *names, envvar=variable, show_envvar=True, **(shown | rest))
