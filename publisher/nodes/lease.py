"""One node of many does what must not be done twice at a time: it has the lease.

A lease is generations, ``leases/{what}/{number:012}.json``, each created by put-if-absent alone.
The holder creates the next one long before the time of the last is over. Another node takes over by
creating the next one when it has seen nothing new for longer than that time. Clocks of machines are
never compared: each node measures for itself, the holder from before it sent its generation, the
others from after they found it, so the holder's time always ends first.

Only the newest generation says anything. After each creation the holder looks whether its own is
the newest: the name of an old one that was deleted meanwhile can be created again.
"""

import logging
import re
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from builder.model.background import Background
from builder.model.errors import OperatorError
from publisher.log import log_event
from publisher.nodes.deadline import Deadline, now
from publisher.nodes.objects import Objects

TTL_SECONDS = 30.0
# Of the time of a generation: when the next one is created, how often others look, and how much
# longer they wait, as clocks of machines run at rates that differ a little.
RENEWAL, LOOK, PATIENCE = 1 / 3, 1 / 10, 1.25
# Of the newest ones; those before are deleted.
KEPT = 2
# A node that stops waits so long for the store to take its last generation.
RELEASE_SECONDS = 5.0
_BYTES_MAX = 4096

log = logging.getLogger("hub.lease")

_number = re.compile(r"(\d{12})\.json")


class Generation(msgspec.Struct):
    """What an object of a lease says. ``holder``: random, another one at each start of a node;
    ``ttl``: seconds; ``noted``: see ``Lease.note``.
    """

    node: str
    holder: str
    ttl: float
    released: bool = False
    noted: int = 0


class Lease(Background):
    """While entered, tries to get a lease and to keep it; released at the end.

    ``node``: this node's name, for people. ``ttl``: seconds that a generation of this node lasts.
    ``deadline``: until when this node may work, for all its processes. ``on_change`` is called
    without arguments, in another thread, when this node got the lease or lost it.
    """

    def __init__(self, objects: Objects, what: str, node: str, ttl: float = TTL_SECONDS) -> None:
        super().__init__(f"lease of {what}")
        self.ttl = ttl
        self.deadline = Deadline()
        self.on_change: Callable[[], None] = lambda: None
        self._objects = objects
        self._what = what
        self._prefix = f"leases/{what}/"
        self._node = node
        self._holder = secrets.token_hex(8)
        # The newest generation, as far as it is known to be this node's; the first of the row.
        self._mine: int | None = None
        self._tenure: int | None = None
        # The newest of another node, and since when it is known.
        self._seen: tuple[int, float] = (0, 0.0)
        self._noted = 0
        self._has_failed = False

    def __exit__(self, *_: object) -> None:
        self._stop(RELEASE_SECONDS)
        if not self._thread.is_alive():
            self.deadline.close()

    def tenure(self) -> int | None:
        """A number that is this node's for as long as it holds the lease without another in
        between; None: it does not hold it now.
        """
        return self.deadline.tenure()

    def note(self, number: int) -> None:
        """Have generations tell the greatest of these, also to later holders."""
        self._noted = max(self._noted, number)

    def noted(self) -> int:
        """The greatest number that a holder has noted, as of its last generation that was seen."""
        return self._noted

    # The thread

    def _run(self) -> None:
        while True:
            pause = self.ttl * LOOK
            try:
                if self._hold():
                    pause = self.ttl * RENEWAL
                self._has_failed = False
            except Exception as error:
                # The edge of the thread: whatever it was, it is told, and tried again.
                if not self._has_failed:
                    self._tell(logging.WARNING, "unknown", error)
                self._has_failed = True
            with self._changed:
                if self._changed.wait_for(lambda: self._is_stopping, pause):
                    break
        self._release()

    def _hold(self) -> bool:
        """Create the next generation, if it is this node's turn, and say whether it holds the lease
        now. Raises StoreUnavailable, OperatorError.
        """
        number, self._mine = self._mine, None  # not known, until it is created and looked at
        if number is None:
            number = self._find()
            if number is None:
                return False
        sent_at = now()
        if not self._create(number + 1):
            return False  # by another, or by this node, whose answer was lost
        numbers = self._numbers()
        if max(numbers) != number + 1:
            return False
        self._mine = number + 1
        is_new = self._tenure is None
        self._tenure = self._tenure or self._mine
        self.deadline.extend(self._tenure, sent_at + self.ttl)
        if is_new:
            self._tell(logging.INFO, "held")
            self.on_change()
        self._objects.delete(map(self._key, (one for one in numbers if one <= self._mine - KEPT)))
        return True

    def _find(self) -> int | None:
        """The newest generation, if this node may create the next one. 0: there is none yet."""
        newest = max(self._numbers(), default=0)
        if not newest:
            return 0
        found = self._read(newest)
        if not found:
            return None  # there is a newer one by now
        self._noted = max(self._noted, found.noted)
        if found.holder == self._holder:
            return newest
        if self._tenure is not None:
            self._tenure = None
            self.deadline.drop()
            self._tell(logging.WARNING, "lost", holder=found.node)
            self.on_change()
        if newest != self._seen[0]:
            self._seen = newest, now()
        if found.released or now() >= self._seen[1] + found.ttl * PATIENCE:
            return newest
        return None

    def _release(self) -> None:
        """Say that nobody needs to wait. Nothing that needs the lease may be done any more."""
        self.deadline.drop()
        if self._mine is not None:
            try:
                self._create(self._mine + 1, released=True)
            except Exception as error:
                # The end of the thread; others only have to wait longer.
                self._tell(logging.WARNING, "unknown", error)

    # The store

    def _create(self, number: int, released: bool = False) -> bool:
        told = Generation(self._node, self._holder, self.ttl, released, self._noted)
        return self._objects.create(self._key(number), msgspec.json.encode(told))

    def _read(self, number: int) -> Generation | None:
        data = self._objects.get(self._key(number), _BYTES_MAX)
        try:
            return data and msgspec.json.decode(data, type=Generation)
        except msgspec.DecodeError:
            raise OperatorError(
                f"{self._key(number)} in the store is no lease. Something else has written it: "
                "delete it."
            ) from None

    def _numbers(self) -> list[int]:
        keys = (key.removeprefix(self._prefix) for key in self._objects.keys(self._prefix))
        return [int(found[1]) for key in keys if (found := _number.fullmatch(key))]

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:012}.json"

    def _tell(self, level: int, status: str, error: Exception | None = None, **fields: Any) -> None:
        log_event(
            log, level, "lease", error, what=self._what, status=status, node=self._node, **fields
        )
