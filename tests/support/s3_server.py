"""Moto's S3 server at a port, as a program: ``python -m tests.support.s3_server PORT``.

For each request, Moto lists its services' folders and tries their patterns. Here it does so once
for each host.
"""

import functools
import sys
import threading

from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.moto_server.werkzeug_app import DomainDispatcherApplication


def main(port: int) -> None:
    DomainDispatcherApplication.get_backend_for_host = functools.cache(
        DomainDispatcherApplication.get_backend_for_host
    )
    ThreadedMotoServer("127.0.0.1", port, verbose=False).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
