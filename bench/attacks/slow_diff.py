"""Searches for pairs of texts with a slow difference, and prints the slowest.

Tries a family of texts that repeat some symbols between unique ones, then changes the slowest at
random. Searches for lines and words separately. The seconds are processor time of one difference.
"""

import json
import random
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from victim import hubctl_option

SECONDS_MAX = 60  # for a search
TRIES = 150

# Runs in the other release's environment, and compares one pair of texts a line.
WORKER = """
import json, sys, time
try:
    from builder.text.hunks import readable
    from builder.text.line_diff import LineDiff
except ImportError:  # where older versions have them
    from builder.diff import LineDiff
    from builder.hunks import hunks as readable
for line in sys.stdin:
    began = time.process_time()
    readable(LineDiff(*json.loads(line)))
    print(time.process_time() - began, flush=True)
"""


class Pair(NamedTuple):
    """``old`` and ``new`` have a symbol in each row. ``is_parted``: with a unique symbol after
    each.
    """

    old: list[int]
    new: list[int]
    is_parted: bool
    end: str

    def texts(self) -> tuple[str, str]:
        return self._text(self.old, "x"), self._text(self.new, "y")

    def _text(self, symbols: list[int], unique: str) -> str:
        parts = (
            f"s{symbol}{self.end}" + (f"{unique}{number}{self.end}" if self.is_parted else "")
            for number, symbol in enumerate(symbols)
        )
        return "".join(parts)


def family(end: str) -> list[Pair]:
    pairs = []
    for symbols, times in ((31, 40), (60, 28), (110, 21), (12, 17), (20, 14), (5, 28), (400, 2)):
        in_turns = [*range(symbols)] * times
        for old, new in ((in_turns, in_turns), (sorted(in_turns),) * 2, (in_turns, in_turns[::-1])):
            pairs += [Pair(old, new, is_parted, end) for is_parted in (True, False)]
    return pairs


def changed(pair: Pair, chance: random.Random) -> Pair:
    """The pair with some symbols moved, doubled or left out, in one text or in both."""
    old, new = [*pair.old], [*pair.new]
    for symbols in chance.choice(((old,), (new,), (old, new))):
        start = chance.randrange(len(symbols))
        piece = symbols[start : start + chance.randrange(1, 60)]
        if chance.random() < 0.5:
            del symbols[start : start + len(piece)]
        place = chance.randrange(len(symbols) + 1)
        symbols[place:place] = piece
    return pair._replace(old=old, new=new)


def main() -> None:
    python = str(Path(hubctl_option(__doc__)).with_name("python"))
    chance = random.Random(1)
    with subprocess.Popen(
        [python, "-c", WORKER], cwd="/", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:

        def seconds(pair: Pair) -> float:
            worker.stdin.write(json.dumps(pair.texts()) + "\n")
            worker.stdin.flush()
            return float(worker.stdout.readline())

        for what, end in (("lines", "\n"), ("words", " ")):
            stop = time.monotonic() + SECONDS_MAX
            tried = [(seconds(pair), pair) for pair in family(end)]
            while len(tried) < TRIES and time.monotonic() < stop:
                _, slowest = max(tried)
                pair = changed(slowest, chance)
                tried.append((seconds(pair), pair))
            took, slowest = max(tried)
            sizes = " and ".join(f"{len(text):,}" for text in slowest.texts())
            print(
                f"{what}: of {len(tried)} pairs, the slowest took {took:.3f} s "
                f"(texts of {sizes} characters)."
            )


if __name__ == "__main__":
    main()
