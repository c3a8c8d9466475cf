"""`hubctl` in this process: a process of its own takes longer than what it does."""

from typing import IO

from click.testing import CliRunner, Result

from cli.hubctl import main


def run(*args: object, stdin: str | bytes | IO | None = None, **environ: str) -> Result:
    done = CliRunner().invoke(main, [*map(str, args)], input=stdin, env=environ)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done
