"""``hubctl``: builds, serves and looks after a hub."""

import click

from builder.errors import HubError
from cli.build import build
from cli.check import check
from cli.imports import imports
from cli.publish import publish
from cli.serve import serve


class _Group(click.Group):
    """Turns the project's own errors into a message and exit status 1."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except HubError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="prompt-hub", prog_name="hubctl")
def main() -> None:
    """Build, serve and look after a hub: a catalogue of prompts that is plain files.

    Exit status: 0 done, 1 it could not be done or there are faults, 2 wrong use.
    """


for command in (build, serve, check, publish, imports):
    main.add_command(command)


if __name__ == "__main__":
    main()
