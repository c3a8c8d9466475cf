"""Client addresses, to compare how a host counts them with ``throttle.network``."""

import ipaddress
import random
from collections.abc import Iterable
from typing import Any

from server.throttle import network


def made_up_addresses(count: int) -> list[str]:
    """Addresses in every spelling, some with the same key; the same list each time."""
    chance = random.Random(64)
    found: list[str] = []
    for _ in range(count):
        four = ipaddress.IPv4Address(chance.getrandbits(32))
        six = chance.getrandbits(128)
        for group in range(8):
            # Addresses with zeros have a shorter form. 0x0A is a line break.
            six &= ~(chance.choice((0, 0, 0xFFFF)) << 16 * group)
        numbers = (six, six ^ 1 << chance.randrange(64), six ^ 1 << chance.randrange(64, 128))
        sixes = [*map(ipaddress.IPv6Address, (*numbers, 0x0A0A << 112 | six >> 16))]
        found += [str(four), f"::ffff:{four}", f"::ffff:{int(four) >> 16:x}:{int(four) & 65535:x}"]
        for one in sixes:
            found += [one.compressed, one.exploded, one.compressed.upper()]
    return found


def check_clients(addresses: Iterable[str], keys: Iterable[Any]) -> None:
    """Check that two addresses have the same key exactly where ``throttle.network`` says so."""
    pairs = {(network(address), key) for address, key in zip(addresses, keys, strict=True)}
    assert len({client for client, _ in pairs}) == len({key for _, key in pairs}) == len(pairs)
