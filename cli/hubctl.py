"""``hubctl``: builds, serves and manages a hub."""

import os
import signal
import sys
from importlib import import_module
from typing import Any

import click

from builder import DISTRIBUTION
from builder.model.errors import HubError
from cli.config import find_file, read_config
from cli.standard_error import lose_what_cannot_be_written

# Each command is the function of its name in the module of its name, except those of MODULES.
# Modules load on demand: the server's libraries take longer to load
# than a small build takes.
COMMANDS = (
    "backup build check deploy doctor export hosts import init label owner publish "
    "restore serve stats store team token withdraw".split()
)
# Python reserves the word ``import``.
MODULES = {"import": "imports", "restore": "backup"}


class _Group(click.Group):
    """Turns the project's own errors into a message and exit status 1."""

    def main(self, *args: Any, **options: Any) -> Any:
        # The kernel gives the first process of a container only the signals that it handles.
        # Without a handler, a stop during the loading of libraries would be lost, and end in a
        # kill.
        if os.getpid() == 1:
            signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        lose_what_cannot_be_written()
        try:
            return super().main(*args, **options)
        except ImportError as error:
            # An upgrade without its libraries, or over files of another release.
            sys.exit(
                f"Error: This installation of hub is incomplete: {error}. Install the release "
                "again, with its libraries."
            )

    def list_commands(self, context: click.Context) -> list[str]:
        return COMMANDS

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = MODULES.get(name, name)
        return getattr(import_module(f"cli.{module}"), "imports" if name == "import" else name)

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except HubError as error:
            raise click.ClickException(str(error)) from error


def _use_config(context: click.Context, option: click.Option, file: str | None) -> None:
    """Let each command take its defaults from ``file``, or from the ``hub.toml`` that is found."""
    if context.resilient_parsing:
        return
    try:
        file = find_file(os.curdir) if file is None else file
        if file:
            context.default_map = read_config(file, context.command)
    except HubError as error:
        raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    metavar="FILE",
    envvar="HUB_CONFIG",
    show_envvar=True,
    expose_value=False,
    callback=_use_config,
    help="File of settings; '' uses none. [default: the nearest hub.toml, here or in a folder "
    "above]",
)
@click.version_option(package_name=DISTRIBUTION, prog_name="hubctl")
def main() -> None:
    """Build, serve and manage a hub: a catalogue of prompts in plain files.

    Flags override environment variables, and these override hub.toml.

    Exit status: 0 success, 1 failure or faults found, 2 wrong usage.

    \b
      hubctl init my-hub
      hubctl publish ann/story story.md
      hubctl serve
    """


if __name__ == "__main__":
    main()
