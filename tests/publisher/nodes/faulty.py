"""A store in a folder whose requests can be made to fail."""

from collections.abc import Callable

from publisher.nodes.objects import Objects, StoreUnavailable


class FaultyObjects(Objects):
    """``before`` and ``after`` are called around each request that changes or reads an object, with
    its kind and key; what they raise, the caller gets: before it was sent, or with its answer lost.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before: Callable[[str, str], None] = lambda kind, key: None
        self.after: Callable[[str, str], None] = lambda kind, key: None
        self.seen: list[tuple[str, str]] = []

    def put(self, key: str, data: bytes) -> None:
        self._note("put", key, self.before)
        super().put(key, data)
        self.after("put", key)

    def create(self, key: str, data: bytes) -> bool:
        self._note("create", key, self.before)
        is_new = super().create(key, data)
        self.after("create", key)
        return is_new

    def get(self, key: str, bytes_max: int) -> bytes | None:
        self._note("get", key, self.before)
        data = super().get(key, bytes_max)
        self.after("get", key)
        return data

    def _note(self, kind: str, key: str, then: Callable[[str, str], None]) -> None:
        self.seen.append((kind, key))
        then(kind, key)


def fail_once(kind: str, start: str) -> Callable[[str, str], None]:
    """Fails the first request of a kind whose key begins so."""
    left = [True]

    def fail(asked: str, key: str) -> None:
        if left and asked == kind and key.startswith(start):
            left.clear()
            raise StoreUnavailable("The store did not answer.")

    return fail


def fail_to_put(kind: str, key: str) -> None:
    """Fails what replaces objects, which is how texts are removed."""
    if kind == "put":
        raise StoreUnavailable("It is gone.")
