"""Counts the prompts in which each word appears, for the words of the catalogue's lines.

    python bench/common_words.py prompts.csv > builder/search/common_words.txt

The release's table is that of prompts.chat (CC0), from the snapshot of 2026-02-22. Each line has a
rarity, then the stems with this rarity: log2(prompts / prompts with the stem), rounded to quarters,
at most 8.
"""

import csv
import math
import sys
from collections import Counter, defaultdict

from builder.search.language import FREQUENT_STEMS, STOP_STEMS
from builder.text.words import part_words

STEMS = 3_000
RARITY_MAX = 8


def main() -> None:
    csv.field_size_limit(1 << 24)
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        texts = [{word.stem for word in part_words(row["prompt"])} for row in csv.DictReader(file)]
    counts = Counter(stem for stems in texts for stem in stems - STOP_STEMS - FREQUENT_STEMS)
    rows: dict[float, list[str]] = defaultdict(list)
    for stem, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:STEMS]:
        rows[min(RARITY_MAX, round(4 * math.log2(len(texts) / count)) / 4)].append(stem)
    print("# Written by bench/common_words.py from the prompts of prompts.chat (CC0), 2026-02-22.")
    for rarity, stems in sorted(rows.items()):
        print(rarity, *sorted(stems))


if __name__ == "__main__":
    main()
