"""``hubctl serve``."""

import click


@click.command()
def serve() -> None:
    """Soon."""
