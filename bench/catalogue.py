"""Generates catalogues of any size that look like real ones; a seed always gives the same bytes.

Defines the synthetic content: words, lengths, repos for each owner. The format is the builder's own
(``builder.model.records``), so ``hubctl check`` finds no faults. Words, tags and owners follow
Zipf's law, sizes a log-normal one. Imports only the builder's records and names from the project;
never reads a catalogue.
"""

import argparse
import hashlib
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from builder.model.names import OWNER_CHARS_MAX, REPO_CHARS_MAX, RESERVED_OWNERS, Version  # noqa: E402
from builder.model.records import OwnerFile, Variable, VersionFile  # noqa: E402
from builder.text.prompts import variable_names  # noqa: E402

VOCABULARY_WORDS = 8_000
TAGS = 300
REPOS_PER_OWNER = 8
OWNER_EXPONENT = 0.7
WORD_EXPONENT = 1.05
TAG_EXPONENT = 0.9
SIZE_MEDIAN_BYTES = 1_050  # with SIZE_SIGMA, a mean of about 1,500
SIZE_SIGMA = 0.7
SIZE_BYTES = (80, 60_000)
FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
CREATED_WITHIN_DAYS = 700
DAYS_PER_VERSION_MAX = 10
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

# The words of ranks 1 to about 160, common in prompts.
_COMMON = """
the and to a of in you for is that with as it or not be on your are this if an by from one each
do at what use write which only no have give then list all first when any into than user text
answer question step name example two more but say how may must its there they will who was
before after make keep word short line data point reason result code state time under without
rule order case check sentence task output format input language role tone reader summary
explain review describe translate compare find plan choose return include avoid follow start end
customer team product email report table value change test error system model context prompt
story idea topic source fact risk goal cost date number person problem solution between about
never always exactly briefly clearly act interviewer teacher editor analyst assistant expert
""".split()
_TAGS = """
writing coding review data sql python summary email support research translation marketing
education interview planning testing security design product legal health finance travel cooking
story poetry history science math statistics devops docker git api docs search agents tools
json chat roleplay career hiring sales seo social video image music game children language
""".split()
_ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p ph pl pr qu r s sc sh sl sp st str t th tr v w".split()  # noqa: E501
_VOWELS = "a e i o u ai ea ee ie oa ou".split()
_CODAS = [
    "",
    "",
    "",
    "b",
    "ck",
    "d",
    "l",
    "ll",
    "m",
    "n",
    "nd",
    "nt",
    "p",
    "r",
    "rm",
    "s",
    "st",
    "t",
]
_ENDINGS = ["", "", "", "", "s", "ed", "ing", "er", "ion", "al", "able", "ment", "ly"]
_VARIABLES = """
topic text language audience tone length question code data name role goal context examples
format schema product style limit date country level source notes title customer input task
""".split()
_LICENSES = ["MIT", "CC-BY-4.0", "CC0-1.0", "Apache-2.0", None, None]
_CHANGES = [
    "Clearer wording.", "Shorter.", "Adds an example.", "Fixes the order of steps.",
    "States what to do when the input is empty.", "Asks before it assumes.",
]  # fmt: skip
_MODELS = ["small-1", "large-1", "large-2"]


class RepoPlan(NamedTuple):
    """A repo, and the random state from which its texts are generated."""

    owner: str
    name: str
    title: str
    seed: str


class Catalogue:
    """A catalogue of ``repos`` repos with ``versions`` versions each."""

    def __init__(self, repos: int, versions: int = 1, seed: int = 1) -> None:
        self.repos = repos
        self.versions = versions
        self.seed = seed
        chance = random.Random(f"{seed}")
        self.words = _make_words(chance, VOCABULARY_WORDS, _COMMON)
        self._word_weights = _zipf(len(self.words), WORD_EXPONENT)
        self.tags = (_TAGS + [word for word in self.words[800:] if len(word) < 12])[:TAGS]
        self._tag_weights = _zipf(len(self.tags), TAG_EXPONENT)
        self.owners = self._make_owners(chance)

    def _make_owners(self, chance: random.Random) -> list[str]:
        count = max(1, self.repos // REPOS_PER_OWNER)
        taken = set(RESERVED_OWNERS)
        owners = []
        names = self.words[len(_COMMON) :]
        while len(owners) < count:
            handle = "-".join(chance.choices(names, k=chance.choice((1, 2, 2))))
            if handle not in taken and len(handle) <= OWNER_CHARS_MAX:
                taken.add(handle)
                owners.append(handle)
        return owners

    def plans(self) -> Iterator[RepoPlan]:
        """Every repo, in the same order each time."""
        chance = random.Random(f"{self.seed}/plans")
        weights = _zipf(len(self.owners), OWNER_EXPONENT)
        taken: set[str] = set()
        for number in range(self.repos):
            owner = chance.choices(self.owners, cum_weights=weights)[0]
            title = " ".join(self._draw(chance, chance.randint(2, 5)))
            name = title.replace(" ", "-")[: REPO_CHARS_MAX - 8].rstrip("-")
            if f"{owner}/{name}" in taken:
                name = f"{name}-{number}"
            taken.add(f"{owner}/{name}")
            yield RepoPlan(owner, name, title.capitalize(), f"{self.seed}/{number}")

    def write(self, root: str) -> None:
        """Write the whole catalogue below ``root``, which must not exist yet."""
        os.makedirs(root)
        made = set()
        for plan in self.plans():
            if plan.owner not in made:
                made.add(plan.owner)
                self._write_owner(root, plan.owner)
            os.mkdir(f"{root}/{plan.owner}/{plan.name}")
            for version, record, text in self._versions(plan):
                write_version(root, plan.owner, plan.name, version, record, text)

    def _write_owner(self, root: str, owner: str) -> None:
        chance = random.Random(f"{self.seed}/{owner}")
        profile = OwnerFile(
            name=owner.replace("-", " ").title(),
            joined_at=FIRST_DAY.strftime(TIME_FORMAT),
            bio=self._sentence(chance, chance.randint(6, 20)),
            url=f"https://example.org/{owner}",
        )
        os.mkdir(f"{root}/{owner}")
        _write(f"{root}/{owner}/owner.json", _pretty(profile))

    def _versions(self, plan: RepoPlan) -> Iterator[tuple[Version, VersionFile, str]]:
        chance = random.Random(plan.seed)
        tags = chance.choices(self.tags, cum_weights=self._tag_weights, k=chance.randint(1, 5))
        description = self._sentence(chance, chance.randint(6, 22))
        license = chance.choice(_LICENSES)
        parameters: dict[str, Any] = {}
        if chance.random() < 0.4:
            parameters = {
                "model": chance.choice(_MODELS),
                "temperature": chance.randint(0, 10) / 10,
                "max_tokens": chance.choice((256, 512, 1024, 4096)),
            }
        names = chance.sample(_VARIABLES, chance.randint(0, 4))
        hints = {name: self._sentence(chance, 5) for name in names}
        lines = self._lines(chance, plan.title, names)
        published = FIRST_DAY + timedelta(seconds=chance.randrange(CREATED_WITHIN_DAYS * 86_400))
        version = Version(1, 0, 0)
        for number in range(self.versions):
            changelog = "First version."
            if number:
                self._revise(chance, lines)
                changelog = chance.choice(_CHANGES)
                version = version.bump(chance.choice(("major", "minor", "patch", "patch")))
                published += timedelta(seconds=chance.randrange(1, DAYS_PER_VERSION_MAX * 86_400))
            text = "\n".join(lines) + "\n"
            record = VersionFile(
                publisher=plan.owner,
                published_at=published.strftime(TIME_FORMAT),
                changelog=changelog,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                title=plan.title,
                description=description,
                tags=list(dict.fromkeys(tags)),
                license=license,
                variables=[
                    Variable(name, description=hints.get(name, "")) for name in variable_names(text)
                ],
                parameters=parameters,
            )
            yield version, record, text

    def _lines(self, chance: random.Random, title: str, variables: list[str]) -> list[str]:
        """A prompt as people write them: a heading, paragraphs, lists, variables."""
        size = chance.lognormvariate(0.0, SIZE_SIGMA) * SIZE_MEDIAN_BYTES
        left = min(max(size, SIZE_BYTES[0]), SIZE_BYTES[1])
        lines = [f"# {title}", ""] if chance.random() < 0.5 else []
        while left > 0:
            kind = chance.random()
            if kind < 0.15:
                block = ["", "## " + " ".join(self._draw(chance, 3)).capitalize(), ""]
            elif kind < 0.5:
                block = ["- " + self._sentence(chance, chance.randint(4, 16))]
            elif kind < 0.6:
                block = ["1. " + self._sentence(chance, chance.randint(4, 16))]
            else:
                block = [self._sentence(chance, chance.randint(8, 40)), ""]
            if not block[0] and not (lines and lines[-1]):
                del block[0]
            lines += block
            left -= sum(map(len, block)) + len(block)
        for name in variables:
            lines.insert(chance.randint(1, len(lines)), f"{name.capitalize()}: {{{{{name}}}}}")
        while not lines[-1]:
            lines.pop()
        return lines

    def _revise(self, chance: random.Random, lines: list[str]) -> None:
        """Change, add and drop a few lines, and no variable."""
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(lines))
            if "{{" in lines[at]:
                continue
            kind = chance.random()
            if kind < 0.6:
                lines[at] = self._sentence(chance, chance.randint(4, 16))
            elif kind < 0.85 or len(lines) < 4:
                lines.insert(at, "- " + self._sentence(chance, chance.randint(4, 16)))
            else:
                del lines[at]
        lines.append(self._sentence(chance, chance.randint(4, 12)))

    def _sentence(self, chance: random.Random, words: int) -> str:
        return " ".join(self._draw(chance, words)).capitalize() + "."

    def _draw(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self.words, cum_weights=self._word_weights, k=count)


def publish(root: str, owner: str, name: str, line: str) -> Version:
    """Add a version to a repo that differs from its latest one by ``line``.

    Writes without syncing, since its cost is not the build's.
    """
    folder = f"{root}/{owner}/{name}"
    latest = max(
        Version.parse(file.removesuffix(".json"))
        for file in os.listdir(folder)
        if file.endswith(".json")
    )
    with open(f"{folder}/{latest}.json", "rb") as file:
        record = msgspec.json.decode(file.read(), type=VersionFile)
    with open(f"{folder}/{latest}.md", encoding="utf-8", newline="") as file:
        text = file.read() + line + "\n"
    record.sha256 = hashlib.sha256(text.encode()).hexdigest()
    record.changelog = "Adds a line."
    now = datetime.now(UTC).strftime(TIME_FORMAT)
    record.published_at = max(now, record.published_at)
    version = latest.bump("patch")
    write_version(root, owner, name, version, record, text)
    return version


def write_version(
    root: str, owner: str, name: str, version: Version, record: VersionFile, text: str
) -> None:
    """Write a version's two files into its repo's folder, the record last."""
    stem = f"{root}/{owner}/{name}/{version}"
    _write(f"{stem}.md", text.encode())
    _write(f"{stem}.json", _pretty(record))


def _pretty(record: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _make_words(chance: random.Random, count: int, common: list[str]) -> list[str]:
    """``count`` different words, the common ones first; the others can be pronounced."""
    words = dict.fromkeys(common)
    common = list(words)
    while len(words) < count:
        syllables = (
            chance.choice(_ONSETS) + chance.choice(_VOWELS) + chance.choice(_CODAS)
            for _ in range(chance.choice((1, 2, 2, 3)))
        )
        word = "".join(syllables) + chance.choice(_ENDINGS)
        if re.fullmatch("[a-z]{3,16}", word):
            words[word] = None
    # Frequent words are usually short.
    made = sorted(list(words)[len(common) :], key=lambda word: len(word) + chance.random() * 6)
    return common + made


def _zipf(count: int, exponent: float) -> list[float]:
    """Cumulated weights of ranks 1 to ``count`` by the law of Zipf and Mandelbrot."""
    return list(accumulate((rank + 1.7) ** -exponent for rank in range(1, count + 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic catalogue, the same each time.")
    parser.add_argument("--repos", type=int, default=1_000, metavar="N")
    parser.add_argument("--versions", type=int, default=3, metavar="M", help="of each repo")
    parser.add_argument("--out", required=True, metavar="DIR", help="must not be there yet")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.path.exists(options.out):
        parser.error(f"{options.out} is there already")
    started = time.perf_counter()
    Catalogue(options.repos, options.versions, options.seed).write(options.out)
    seconds = time.perf_counter() - started
    print(f"{options.repos:,} repos, {options.versions:,} versions each: {seconds:.1f} seconds")


if __name__ == "__main__":
    main()
