"""The publish service on its own: ``gunicorn --threads 16 cli.wsgi:app``.

It takes its settings from environment variables and ``hub.toml``, as ``hubctl`` does, by the names
of the options of ``publish_service``. Run one worker with threads. A publication waits for the
disk, and each worker counts metrics for itself, and limits too without HUB_LIMITS. With
HUB_METRICS, a second worker cannot start, not even for a reload. Do not use ``--preload``: the
thread that builds would not survive the fork. Raises OperatorError at start if a setting is wrong
or a folder cannot be used.
"""

import atexit
import os
from contextlib import ExitStack

import click

from builder.model.errors import OperatorError
from cli.config import find_file, read_config
from cli.hubctl import main
from cli.publish_service import publish_service

_running = ExitStack()
atexit.register(_running.close)
_file = os.environ.get("HUB_CONFIG") or find_file(os.curdir)
try:
    app = publish_service.main(
        [],
        publish_service.name,
        standalone_mode=False,
        obj=_running,
        default_map=read_config(_file, main).get(publish_service.name) if _file else None,
    )
except click.UsageError as error:
    raise OperatorError(error.format_message()) from error
