"""An object store: S3, Google Cloud Storage, Azure, or a folder for trials; by obstore.

Only this is asked of it: an object that was put is there, listings know it, and *put-if-absent*
(``If-None-Match: *``) creates it for one caller alone. The only importer of obstore, which is an
optional dependency.
"""

import contextlib
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from os import environ
from typing import TypeVar
from urllib.parse import urlsplit

from builder.model.errors import OperatorError, RequestError

try:
    import obstore
    from obstore import exceptions
    from obstore.store import LocalStore, from_url
except ImportError as error:
    raise OperatorError(
        f"--store needs the obstore library ({error}). Install it with `pip install obstore`."
    ) from None

CONNECT_SECONDS, REQUEST_SECONDS = 5, 20
# Within the library, of one request; whoever asks decides about more.
_RETRIES = {"max_retries": 2, "retry_timeout": timedelta(seconds=REQUEST_SECONDS)}
# Requests at once, where there are many to send.
JOBS = 32
# Also of items whose results nobody has taken yet.
_RUNNING_MAX = 2 * JOBS
_RACERS = 8

_SCHEMES = ("s3", "gs", "az", "file")
_URL = re.compile(rf"(?:{'|'.join(_SCHEMES)})://[^\s?#@]+")
_EXISTS = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
# Trying again does not help.
_REFUSED = (
    exceptions.PermissionDeniedError, exceptions.UnauthenticatedError,
    exceptions.NotSupportedError, exceptions.InvalidPathError,
    exceptions.UnknownConfigurationKeyError,
)  # fmt: skip

_T = TypeVar("_T")
_R = TypeVar("_R")


class StoreUnavailable(RequestError):
    """The store did not answer, or refused; what was to be created may be there or not."""

    def __init__(self, message: str) -> None:
        super().__init__("storage_unavailable", message)


class Objects:
    """The objects below a URL such as ``s3://bucket/prefix``. For any number of threads.

    Raises OperatorError where the URL is none of a store.
    """

    def __init__(self, url: str) -> None:
        if not _URL.fullmatch(url):
            raise OperatorError(
                f"--store {url!r} is no address of a store. Give one such as s3://bucket/prefix, "
                "gs://bucket/prefix, az://container/prefix or, for trials, file:///folder. "
                "Credentials come from the environment."
            )
        self.url = url.rstrip("/")
        try:
            if url.startswith("file://"):
                self._store = LocalStore(urlsplit(self.url).path, mkdir=True)
            else:
                endpoints = (environ.get(name, "") for name in _ENDPOINTS)
                self._store = from_url(
                    self.url,
                    client_options={
                        "timeout": f"{REQUEST_SECONDS}s",
                        "connect_timeout": f"{CONNECT_SECONDS}s",
                        "allow_http": any(one.startswith("http://") for one in endpoints),
                    },
                    retry_config=_RETRIES,
                )
        except (exceptions.BaseError, ValueError, OSError) as error:
            raise OperatorError(
                f"The store {self.url} cannot be used: {_first_line(error)}"
            ) from error

    def put(self, key: str, data: bytes) -> None:
        """Put an object, in the place of what there is. Raises StoreUnavailable; then it may have
        been put nevertheless.
        """
        with self._explained(f"put {key}"):
            obstore.put(self._store, key, data, use_multipart=False)

    def create(self, key: str, data: bytes) -> bool:
        """Put an object where there is none; False: there is one. Raises StoreUnavailable; then it
        may have been created nevertheless.
        """
        with self._explained(f"create {key}"):
            try:
                obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except _EXISTS:
                return False
        return True

    def get(self, key: str, bytes_max: int) -> bytes | None:
        """An object's bytes; None where there is none. Raises StoreUnavailable, also for one of
        more than ``bytes_max`` bytes.
        """
        with self._explained(f"read {key}"):
            try:
                found = obstore.get(self._store, key)
            except (FileNotFoundError, exceptions.NotFoundError):
                return None
            if found.meta["size"] > bytes_max:
                raise StoreUnavailable(
                    f"{key} in the store {self.url} has {found.meta['size']:,} bytes, but "
                    f"{bytes_max:,} is the limit. Something else has written it."
                )
            return bytes(found.bytes())

    def keys(self, prefix: str, after: str = "") -> Iterator[str]:
        """The keys below a prefix, such as ``log/``, that come after another; in any order. Raises
        StoreUnavailable.
        """
        return (key for key, _ in self.sizes(prefix, after))

    def sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """As ``keys``, each with the bytes of its object."""
        with self._explained(f"list {prefix}"):
            # Some stores list from the key itself on.
            for page in obstore.list(self._store, prefix, offset=after or None, chunk_size=1000):
                yield from ((one["path"], one["size"]) for one in page if one["path"] > after)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; such as there are not are fine. Raises StoreUnavailable."""
        for key in keys:
            with (
                self._explained(f"delete {key}"),
                contextlib.suppress(FileNotFoundError, exceptions.NotFoundError),
            ):
                obstore.delete(self._store, key)

    def each(self, work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """``work`` done on all items, many at once; the results in order. Only a few items and
        results are in memory.
        """
        pool = ThreadPoolExecutor(JOBS)
        running: deque[Future[_R]] = deque()
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) == _RUNNING_MAX:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            # After a failure, what has not begun is not begun.
            pool.shutdown(cancel_futures=True)

    def probe(self) -> None:
        """Find out whether put-if-absent works: a second creation of a name is refused, and of
        several at once, one wins. Raises OperatorError where not; StoreUnavailable.
        """
        key = f"probe/{secrets.token_hex(8)}"
        racing = f"{key}-race"
        try:
            # False, where an answer was lost, and the library has tried again.
            self.create(key, b"1")
            if self.create(key, b"2"):
                raise self._not_coordinating("created the same object twice")
            if self.get(key, 1) != b"1":
                raise self._not_coordinating("let a second creation replace the first")
            contenders = [b"%d" % number for number in range(_RACERS)]
            won = [*self.each(lambda data: self.create(racing, data), contenders)]
            if sum(won) > 1:
                raise self._not_coordinating(f"let {sum(won)} of {_RACERS} callers win a race")
        finally:
            with contextlib.suppress(StoreUnavailable):
                self.delete([key, racing])

    def _not_coordinating(self, what: str) -> OperatorError:
        return OperatorError(
            f"The store {self.url} {what}, so it ignores `If-None-Match: *`, and nodes would "
            "overwrite each other's publications. Use one that honours it, such as AWS S3, "
            "Cloudflare R2, Google Cloud Storage, Azure, MinIO or Ceph."
        )

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except _REFUSED as error:
            raise StoreUnavailable(
                f"The store {self.url} refused to {what}: {_first_line(error)}. Check the "
                "credentials and their rights: they must list, get, put and delete."
            ) from error
        except (exceptions.NotFoundError, FileNotFoundError) as error:
            raise StoreUnavailable(
                f"The store {self.url} could not {what}: there is no such bucket. Create it, or "
                "correct --store."
            ) from error
        except (exceptions.BaseError, OSError) as error:
            raise StoreUnavailable(
                f"The store {self.url} did not {what}: {_first_line(error)}. Check its address, "
                "the network and the credentials, then try again."
            ) from error


_ENDPOINTS = (
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT", "GOOGLE_BASE_URL",
)  # fmt: skip


def _first_line(error: Exception) -> str:
    """What an error says, without the library's long forms of itself."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line.rstrip(".") if len(line) <= 300 else line[:299] + "…"
