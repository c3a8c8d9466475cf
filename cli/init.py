import click
@click.command()
def init(): "x"
