"""Checks at rest: compares the database and the folders of nodes with a history."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from builder.store import content
from builder.store.withdrawn_files import read_parts
from operate.content_check import check
from publisher.write.moves import read_moves
from tests.nodes.client import Published, number_of, version_of
from tests.support.linearizability import UNKNOWN, Operation


class Repo(NamedTuple):
    """A prompt: the SHA-256 of its texts by number, also of ``withdrawn`` ones; notes of all
    changes of labels, in order, and of withdrawals.
    """

    texts: dict[int, str]
    withdrawn: frozenset[int]
    notes: list[str]
    ordinals: list[int]


def read_repo(root: str, repo: str) -> Repo:
    owner, _, name = repo.partition("/")
    listing = content.list_versions(root, owner, name)
    parts = read_parts(root, repo, listing.withdrawn)
    texts, ordinals = {}, []
    for version in listing.versions:
        record = content.read_record(root, owner, name, version)
        texts[number_of(str(version))] = record.sha256
        ordinals.append(record.ordinal)
    for gone in parts.versions:
        texts[number_of(str(gone.version))] = gone.remains.sha256
        ordinals.append(gone.remains.ordinal)
    moves = sorted(read_moves(root, owner, name, listing), key=lambda move: move.number)
    notes = [move.note for move in moves]
    notes += [gone.withdrawal.note for gone in parts.versions]
    withdrawn = frozenset(number_of(str(gone.version)) for gone in parts.versions)
    return Repo(texts, withdrawn, notes, sorted(ordinals))


def faults(root: str, repos: Iterable[str], published: Iterable[Published]) -> list[str]:
    """Faults of a node's content folder: acknowledged work that is missing, duplicates, or skipped
    numbers.
    """
    found = [str(fault) for fault in check(root)]
    by_repo = {repo: read_repo(root, repo) for repo in repos}
    for name, repo in by_repo.items():
        expected = [*range(1, len(repo.texts) + 1)]
        if sorted(repo.texts) != expected or repo.ordinals != expected:
            found.append(f"{name} has the numbers {sorted(repo.texts)}, {repo.ordinals}")
        if len({*repo.texts.values()}) != len(repo.texts):
            found.append(f"{name} has a text twice")
    for one in published:
        if one.number not in by_repo[one.repo].texts:
            found.append(f"{one.repo} has lost {version_of(one.number)}, serial {one.serial}")
    return found


def order_faults(rows: Iterable[tuple[int, str, str]], published: Iterable[Published]) -> list[str]:
    """Faults in the order of a database; ``rows`` has the serial, prompt and version of each
    version.

    The order has to be that of the versions, and nothing may be acknowledged before it was stored.
    """
    found: list[str] = []
    committed: dict[tuple[str, int], int] = {}
    last: dict[str, int] = {}
    for serial, repo, version in rows:
        number = number_of(version)
        if number != last.get(repo, 0) + 1:
            found.append(f"{serial} is {repo} {version}")
        committed[repo, number] = serial
        last[repo] = number
    for one in published:
        if committed.get((one.repo, one.number), math.inf) > one.serial:
            found.append(f"{one}: it is {committed.get((one.repo, one.number))}")
    return found


def resolved(history: Iterable[Operation], root: str) -> list[Operation]:
    """The history without what is not known: what can be seen at rest has happened, sooner or
    later, and nothing else has.
    """
    operations = [*history]
    repos = {name: read_repo(root, name) for name in {one.key for one in operations}}
    found = []
    for one in operations:
        repo = repos[one.key]
        if one.result is not UNKNOWN:
            found.append(one)
            continue
        result = None
        if one.kind == "publish":
            numbers = [number for number, text in repo.texts.items() if text == one.arguments[0]]
            result = numbers[0] if numbers else None
        elif one.note in repo.notes:
            result = "moved" if one.kind == "move" else "withdrawn"
        if result is not None:
            found.append(one._replace(result=result, returned=math.inf))
    return found
