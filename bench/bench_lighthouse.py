"""Lighthouse's scores of kinds of pages, on a phone and on a desktop.

The sample catalogue on the embedded server. Accessibility, best practices and SEO are the same in
every round, so the lowest is printed. Performance depends on the machine, so its median is printed,
with the lowest and the highest. Lighthouse slows network and processor down by its own model of a
cheap phone. Needs `make build/lighthouse`, which also installs Chromium and Node.
"""

import argparse
import json
import os
import shutil
import subprocess

from processes import ROOT, environment
from report import median, print_machine, print_table, scratch_folder, spread
from servers import hub

PROGRAMS = f"{ROOT}/tests/node/node_modules/.bin"
LIGHTHOUSE = f"{ROOT}/build/lighthouse/node_modules/.bin/lighthouse"
SECONDS_MAX = 180

PROMPT = "/mara-okafor/sql-review"
PAGES = {
    "home": "/", "list": "/top", "owner": "/mara-okafor", "tags": "/tags", "tag": "/tags/sql",
    "connect": "/connect", "docs": "/docs",
    "search": "/search?q=review", "prompt": PROMPT, "version": f"{PROMPT}/1.0.0",
    "versions": f"{PROMPT}/versions", "compare": f"{PROMPT}/compare",
}  # fmt: skip
# The second is Lighthouse's default.
DEVICES = {"desk": ["--preset=desktop"], "phone": []}
STEADY = ("accessibility", "best-practices", "seo")
AIM, AIM_PERFORMANCE = 100, 95
TOLD = ("largest-contentful-paint", "cumulative-layout-shift", "total-blocking-time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join(PAGES)
    parser.add_argument("pages", nargs="*", default=[*PAGES], metavar="PAGE", help=f"[all] {names}")
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if unknown := set(options.pages) - set(PAGES):
        parser.error(f"No page {', '.join(sorted(unknown))}. Choose from {names}.")
    chromium = shutil.which("chromium")
    if not chromium or not os.path.exists(LIGHTHOUSE):
        parser.exit(1, "Install first: make build/lighthouse\n")
    rows, remarks = [], set()
    with scratch_folder(options.scratch) as folder:
        shutil.copytree(f"{ROOT}/content", f"{folder}/content")
        with hub(folder, None, 0) as server:
            for page in options.pages:
                for device, flags in DEVICES.items():
                    rounds = [
                        _report(server.url + PAGES[page], flags, chromium, folder)
                        for _ in range(options.rounds)
                    ]
                    rows.append(_row(f"{page}, {device}", rounds))
                    remarks.update(_remarks(rounds))
        print_table(
            f"Lighthouse's scores, {options.rounds} rounds",
            ("", *STEADY, "performance", "", "paint ms", "shift", "blocked ms"), rows,
        )  # fmt: skip
        print(f"\nThe aim is {AIM}, and {AIM_PERFORMANCE} for performance.")
        for remark in sorted(remarks):
            print(f"Below it: {remark}")
        print_machine(folder)


def _report(url: str, flags: list[str], chromium: str, folder: str) -> dict:
    command = [
        LIGHTHOUSE, url, "--quiet", "--output=json", "--no-enable-error-reporting",
        f"--only-categories={','.join((*STEADY, 'performance'))}",
        "--chrome-flags=--headless=new --no-sandbox", *flags,
    ]  # fmt: skip
    variables = {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "CHROME_PATH": chromium, "HOME": folder,
    }  # fmt: skip
    done = subprocess.run(
        command, env={**environment(), **variables}, capture_output=True, text=True,
        timeout=SECONDS_MAX,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"Lighthouse could not look at {url}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _row(name: str, rounds: list[dict]) -> list[object]:
    performance = [_score(one, "performance") for one in rounds]
    return [
        name,
        *(min(_score(one, category) for one in rounds) for category in STEADY),
        round(median(performance)),
        spread(performance, 0),
        *(median([one["audits"][audit]["numericValue"] for one in rounds]) for audit in TOLD),
    ]


def _score(report: dict, category: str) -> int:
    return round(100 * report["categories"][category]["score"])


def _remarks(rounds: list[dict]) -> set[str]:
    """The audits that lower a steady score."""
    return {
        f"{category}: {audit['title']} ({report['requestedUrl']})"
        for report in rounds
        for category in STEADY
        for one in report["categories"][category]["auditRefs"]
        if one["weight"] and (audit := report["audits"][one["id"]])["score"] not in (None, 1)
    }


if __name__ == "__main__":
    main()
