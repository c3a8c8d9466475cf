"""Moto's S3 server at a port, as a program: ``python -m tests.support.s3_server PORT``.

Moto looks whether an object is there, and then puts it, from many threads. Two that create one
name could both win, which no real S3 allows; here one put is done after another. And for each
request it lists its services' folders and tries their patterns; here once for each host.
"""

import functools
import sys
import threading
from typing import Any

from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.responses import S3Response

_putting = threading.Lock()
_put_object = S3Response.put_object


def _put_one_at_a_time(response: S3Response) -> Any:
    with _putting:
        return _put_object(response)


def main(port: int) -> None:
    S3Response.put_object = _put_one_at_a_time
    DomainDispatcherApplication.get_backend_for_host = functools.cache(
        DomainDispatcherApplication.get_backend_for_host
    )
    ThreadedMotoServer("127.0.0.1", port, verbose=False).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
