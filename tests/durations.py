"""Records how long the modules of tests take, by which the Makefile divides them into parts.

After `make test-all`, this writes ``tests/durations.txt``:

    .venv/bin/python -m tests.durations

A part is a folder whose tests take ``PART_SECONDS``, without those of parts below it.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

PART_SECONDS = 30
# Faster modules have no line, except the slowest of a part.
SHOWN_SECONDS = 1
RUN = Path("build/durations")
FILE = Path("tests/durations.txt")
HEAD = """\
# Seconds of the modules of tests, by part: the folders that `make test` (short) and the second half
# of `make test-all` (rest) run as processes of their own. After `make test-all`, update this with:
# .venv/bin/python -m tests.durations
"""


def read_run(folder: Path) -> Counter[Path]:
    """The seconds of each module below tests/, from the reports that pytest wrote."""
    seconds: Counter[Path] = Counter()
    for report in folder.rglob("*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            seconds[Path(case.attrib["file"]).relative_to("tests")] += float(case.attrib["time"])
    return seconds


def parts_of(seconds: Counter[Path]) -> dict[str, list[Path]]:
    """The modules of each part, longest first; ``others`` are in no folder that is a part."""
    below: dict[Path, list[Path]] = {}
    for module in seconds:
        below.setdefault(module.parent, []).append(module)
    parts = {}
    while below:
        folder = max(below, key=lambda folder: (len(folder.parts), folder))
        modules = below.pop(folder)
        if folder == Path():
            parts["others"] = modules
        elif sum(map(seconds.get, modules)) >= PART_SECONDS:
            parts[str(folder)] = modules
        else:
            below.setdefault(folder.parent, []).extend(modules)
    return dict(sorted(parts.items(), key=lambda part: -sum(map(seconds.get, part[1]))))


def main() -> None:
    lines = [HEAD]
    for kind in ("short", "rest"):
        seconds = read_run(RUN / kind)
        if not seconds:
            sys.exit(f"No reports in {RUN / kind}. Run `make test-all`, then this again.")
        for part, modules in parts_of(seconds).items():
            modules.sort(key=lambda module: (-seconds[module], module))
            lines += [
                f"{kind} {part} {module} {seconds[module]:.0f}\n"
                for module in modules
                if module is modules[0] or seconds[module] >= SHOWN_SECONDS
            ]
    FILE.write_text("".join(lines))


if __name__ == "__main__":
    main()
