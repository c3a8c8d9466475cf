"""Peak memory and time of a large cold build, over the whole tree of its processes.

*sum* is the peak of all processes together, with shared pages counted once (sampled twenty times a
second); *single* is the peak of one process, as recorded by the kernel. The site's files on tmpfs
use memory too, but not the build's, so they are not counted.
"""

import argparse
import sys

from bench_build import build, cold, count_files
from catalogue import Catalogue
from processes import Run, TreeMemory
from report import print_machine, print_table, scratch_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repos", type=int, default=100_000, metavar="N")
    parser.add_argument("--versions", type=int, default=1, metavar="M", help="of each repo")
    parser.add_argument("--index", action="store_true", help="also with the search index: minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        parser.exit(1, "Memory is read from /proc, which Linux has.\n")
    with scratch_folder(options.scratch) as folder:
        Catalogue(options.repos, options.versions, options.seed).write(f"{folder}/content")
        rows = [_row("without the index", folder, "--no-index")]
        if options.index:
            rows.append(_row("with the index", folder, "--index"))
        print_table(
            f"Memory of a cold build of {options.repos:,} repos × {options.versions}",
            ("", "files", "seconds", "CPU seconds", "processes", "sum MB", "single MB"),
            rows,
        )
        print_machine(folder)


def _row(name: str, folder: str, option: str) -> list[object]:
    memory = TreeMemory()
    done: Run = cold(folder, lambda: build(folder, option, memory=memory))
    return [
        name, count_files(f"{folder}/site"), done.seconds, done.cpu_seconds,
        memory.processes_max, memory.peak_bytes / 1e6, done.single_bytes / 1e6,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
