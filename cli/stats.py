"""``hubctl stats``: counts pulls from access logs, and shows the counts."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

import click
import msgspec

from builder.model import names
from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.model.records import DAY_SECONDS
from builder.stats.ingest import Outcome, ingest
from builder.stats.pulls import PULLS_FILE, Pulls
from builder.store.site import read_hub
from cli.options import base_url_option, out_option, state_option
from cli.progress import Progress
from cli.standard_error import say, say_waiting
from cli.table import echo_table

SHOWN_DAYS = 30
SHOWN_REPOS = 20
HINT = "`hubctl serve` shows the counts within seconds. Without it, run `hubctl build`."

json_option = click.option("--json", "is_json", is_flag=True, help="Print a JSON object.")


@click.group()
def stats() -> None:
    """Count pulls of prompts in access logs, and show the counts.

    A pull is a successful GET of a prompt's text, its record or one of its versions. Each client
    address counts once per prompt and day (UTC). Bots do not count.
    """


@stats.command("ingest")
@state_option
@out_option
@base_url_option("the one the site was built with")
@json_option
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
def ingest_logs(
    state: str, out: str, base_url: str | None, is_json: bool, logs: tuple[str, ...]
) -> None:
    """Count the pulls in access logs (- is standard input).

    \b
    nginx, Apache        the combined format
    Caddy                lines of JSON
    hubctl serve         what --access-log writes

    Logs can be compressed with gzip, bzip2 or xz. A pull is counted once, so logs may overlap,
    repeat, and come in any order. If one log cannot be read, nothing is counted.

    The hub stores no addresses, only keyed hashes, for 35 days. Then the day is closed, and later
    lines of that day are not counted. So pass all old logs in one run.

    A running `hubctl serve` shows the counts within seconds; otherwise run `hubctl build`.

    \b
      hubctl stats ingest /var/log/nginx/access.log*
    """
    base_path = urlsplit(base_url or _site_url(out)).path
    with Progress() as progress:
        outcome = ingest(
            logs, state, base_path, progress=progress, on_wait=partial(say_waiting, "ingestion")
        )
    if is_json:
        _echo_json(asdict(outcome) | {"closed_days": _dates(outcome.closed_days)})
    else:
        # All on standard output: a nightly job can discard that and mail standard error.
        click.echo(describe(outcome))
        if outcome.counted:
            click.echo(HINT)
    tell_undone(outcome)


@stats.command()
@state_option
@click.option(
    "--days",
    type=click.IntRange(1),
    metavar="N",
    default=SHOWN_DAYS,
    show_default=True,
    help="Show the last N days, including today (UTC).",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    default=SHOWN_REPOS,
    show_default=True,
    help="Show the first N prompts.",
)
@json_option
@click.argument("repo", metavar="[OWNER/NAME]", required=False)
def show(state: str, days: int, top: int, is_json: bool, repo: str | None) -> None:
    """Show the most pulled prompts, or the pulls of OWNER/NAME by day.

    Columns, separated by tabs in a pipe: prompt, pulls in the last days, pulls in total; for one
    prompt: day, pulls. The totals go to standard error.

    \b
      hubctl stats show --days 7
      hubctl stats show ann/story
    """
    first_day = int(time.time() // DAY_SECONDS) - days + 1
    with Pulls(state) as pulls:
        if not pulls.serial():
            raise OperatorError(
                f"No pulls counted in {state} yet. Count those of an access log with `hubctl stats "
                "ingest LOG`."
            )
        if repo is None:
            _show_all(pulls, first_day, days, top, is_json)
        else:
            _show_repo(pulls, _check_repo(repo), first_day, days, is_json)


def describe(outcome: Outcome) -> str:
    """One line that says what an ingestion did."""
    return (
        f"{counted(outcome.lines, 'line')}: {counted(outcome.counted, 'pull')} counted in "
        f"{counted(outcome.repos, 'prompt')}, {outcome.repeated:,} repeated, "
        f"{outcome.bots:,} by bots, {counted(outcome.other, 'other request')}, "
        f"{outcome.malformed:,} malformed, {outcome.closed:,} of closed days, "
        f"{outcome.future:,} from the future"
    )


def tell_undone(outcome: Outcome) -> None:
    """Print on standard error what to do about lines that were not counted."""
    if outcome.malformed:
        say(
            f"Malformed: unknown format, no address or no time. The first one is "
            f"{outcome.first_malformed}."
        )
    if outcome.closed:
        closed = _dates(outcome.closed_days)
        shown = closed[0] if len(closed) == 1 else f"{closed[0]} to {closed[-1]}"
        say(
            f"Closed: the hashes of {shown} were already deleted, so new lines of "
            "these days cannot be distinguished from counted ones. Next time, pass all old logs in "
            "one run."
        )
    if outcome.future:
        say(
            "From the future: more than a day ahead of this machine's clock. If the clock is "
            "wrong, set it and run the command again."
        )
    if not outcome.wiped:
        say(
            f"Everything is counted, but another program has {PULLS_FILE} open, so deleted hashes "
            "may still be on the disk. The next run overwrites them."
        )


def _show_all(pulls: Pulls, first_day: int, days: int, top: int, is_json: bool) -> None:
    by_day = pulls.days()
    total = sum(count for _, count in by_day)
    recent = sum(count for day, count in by_day if day >= first_day)
    rows = [(repo, count, pulls.of(repo).total) for repo, count in pulls.top(first_day, top)]
    if is_json:
        shown = [{"repo": repo, "pulls": count, "total": ever} for repo, count, ever in rows]
        _echo_json(
            {
                "total": total,
                "repos": pulls.repos_count(),
                "days": days,
                "pulls": recent,
                "by_day": _days_shown(by_day, first_day),
                "top": shown,
            }
        )
        return
    echo_table(
        ("prompt", f"{days} days", "total"),
        [(repo, str(count), str(ever)) for repo, count, ever in rows],
    )
    say(
        f"{counted(recent, 'pull')} in the last {counted(days, 'day')}, {total:,} in total, of "
        f"{counted(pulls.repos_count(), 'prompt')}"
    )


def _show_repo(pulls: Pulls, repo: str, first_day: int, days: int, is_json: bool) -> None:
    total, by_day = pulls.of(repo)
    shown = _days_shown(by_day, first_day)
    recent = sum(each["pulls"] for each in shown)
    if is_json:
        _echo_json({"repo": repo, "total": total, "days": days, "pulls": recent, "by_day": shown})
        return
    echo_table(("day", "pulls"), [(each["day"], str(each["pulls"])) for each in shown])
    say(f"{repo}: {counted(recent, 'pull')} in the last {counted(days, 'day')}, {total:,} in total")


def _site_url(out: str) -> str:
    hub = read_hub(out)
    if hub is None:
        raise OperatorError(
            f"No site in {out}, so the path of its URLs is unknown. Build it first, or pass its "
            "address with --base-url."
        )
    return hub.base_url


def _check_repo(repo: str) -> str:
    owner, _, name = repo.partition("/")
    return f"{names.check_owner(owner)}/{names.check_repo(name)}"


def _days_shown(by_day: Sequence[tuple[int, int]], first_day: int) -> list[dict[str, object]]:
    return [{"day": _date(day), "pulls": count} for day, count in by_day if day >= first_day]


def _dates(days: set[int]) -> list[str]:
    return [_date(day) for day in sorted(days)]


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC).date().isoformat()


def _echo_json(value: dict[str, object]) -> None:
    click.echo(msgspec.json.encode(value))
