"""``hubctl stats``: counts pulls from access logs, and shows the counts."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from urllib.parse import urlsplit

import click
import msgspec

from builder.model import names
from builder.model.errors import OperatorError
from builder.model.records import DAY_SECONDS
from builder.stats.ingest import Outcome, ingest
from builder.stats.pulls import PULLS_FILE, Pulls
from builder.store.site import read_hub
from cli.options import base_url_option, out_option, state_option
from cli.progress import Progress
from cli.table import echo_table

SHOWN_DAYS = 30
SHOWN_REPOS = 20
HINT = "`hubctl serve` shows the counts in some seconds; without one, run `hubctl build`."

json_option = click.option("--json", "is_json", is_flag=True, help="Print a JSON object.")


@click.group()
def stats() -> None:
    """Count the pulls of repos from access logs, and show the counts.

    A pull is a successful GET of a repo's text, its record or one of its versions: one for each
    client address, repo and UTC day, without bots.
    """


@stats.command("ingest")
@state_option
@out_option
@base_url_option("as the site says")
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

    Plain, or compressed by gzip, bzip2 or xz, whatever the name. A pull is counted once, so logs
    may overlap, be given again, and in any order. All of them are counted or, if one cannot be
    read, none.

    Addresses are not stored, only hashes that tell none, and those for 35 days. Then a day is
    closed: lines that come later are refused. So give old logs all at once.

    A `hubctl serve` that runs shows the counts in some seconds; without one, the next
    `hubctl build` does.
    """
    base_path = urlsplit(base_url or _site_url(out)).path
    with Progress() as progress:
        outcome = ingest(logs, state, base_path, progress=progress, on_wait=say_waiting)
    if is_json:
        _echo_json(asdict(outcome) | {"closed_days": _dates(outcome.closed_days)})
    else:
        # All of it on standard output, so that a nightly job can leave it out and mail the rest.
        click.echo(describe(outcome))
        if outcome.counted:
            click.echo(HINT)
    tell_undone(outcome)


@stats.command()
@state_option
@click.option(
    "--days", type=click.IntRange(1), metavar="N", default=SHOWN_DAYS, show_default=True,
    help="Show the last N days, with today (UTC).",
)  # fmt: skip
@click.option(
    "--top", type=click.IntRange(1), metavar="N", default=SHOWN_REPOS, show_default=True,
    help="Show so many repos.",
)  # fmt: skip
@json_option
@click.argument("repo", metavar="[OWNER/NAME]", required=False)
def show(state: str, days: int, top: int, is_json: bool, repo: str | None) -> None:
    """Show the repos with most pulls in the last days, or the days of OWNER/NAME.

    Columns, separated by tabs in a pipe: repo, pulls in the last days, pulls ever; of one repo:
    day, pulls. The sums are on standard error.
    """
    first_day = int(time.time() // DAY_SECONDS) - days + 1
    with Pulls(state) as pulls:
        if not pulls.serial():
            raise OperatorError(
                f"Nothing was counted in {state} yet; `hubctl stats ingest LOG` counts the pulls "
                "in an access log."
            )
        if repo is None:
            _show_all(pulls, first_day, days, top, is_json)
        else:
            _show_repo(pulls, _check_repo(repo), first_day, days, is_json)


def say_waiting() -> None:
    click.echo("Another ingestion is running; waiting for it to end.", err=True)


def describe(outcome: Outcome) -> str:
    """A line for people about what an ingestion did."""
    return (
        f"{outcome.lines:,} lines: {outcome.counted:,} pulls counted in {outcome.repos:,} repos, "
        f"{outcome.repeated:,} repeated, {outcome.bots:,} of bots, {outcome.other:,} other "
        f"requests, {outcome.malformed:,} malformed, {outcome.closed:,} of closed days, "
        f"{outcome.future:,} from the future"
    )


def tell_undone(outcome: Outcome) -> None:
    """Say on standard error what to do about lines that were not taken, and what was not done."""
    if outcome.malformed:
        click.echo(
            f"Malformed: no format that is known, no address or no time; the first is "
            f"{outcome.first_malformed}.",
            err=True,
        )
    if outcome.closed:
        closed = _dates(outcome.closed_days)
        shown = closed[0] if len(closed) == 1 else f"{closed[0]} to {closed[-1]}"
        click.echo(
            f"Closed: pulls of {shown} were counted before and their hashes dropped, so nobody "
            "can tell which of these lines are new. Give old logs all in one run.",
            err=True,
        )
    if outcome.future:
        click.echo(
            "From the future: more than a day ahead of this machine's clock. If the clock is "
            "wrong, set it and run this again.",
            err=True,
        )
    if not outcome.wiped:
        click.echo(
            f"Another program reads {PULLS_FILE} all the while, so hashes that were dropped may "
            "still be on the disk. All is counted; the next run overwrites them.",
            err=True,
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
                "total": total, "repos": pulls.repos_count(), "days": days, "pulls": recent,
                "by_day": _days_shown(by_day, first_day), "top": shown,
            }
        )  # fmt: skip
        return
    echo_table(
        ("repo", f"{days} days", "ever"),
        [(repo, str(count), str(ever)) for repo, count, ever in rows],
    )
    click.echo(
        f"{recent:,} pulls in the last {days:,} days, {total:,} ever, of "
        f"{pulls.repos_count():,} repos",
        err=True,
    )


def _show_repo(pulls: Pulls, repo: str, first_day: int, days: int, is_json: bool) -> None:
    total, by_day = pulls.of(repo)
    shown = _days_shown(by_day, first_day)
    recent = sum(each["pulls"] for each in shown)
    if is_json:
        _echo_json({"repo": repo, "total": total, "days": days, "pulls": recent, "by_day": shown})
        return
    echo_table(("day", "pulls"), [(each["day"], str(each["pulls"])) for each in shown])
    click.echo(f"{repo}: {recent:,} pulls in the last {days:,} days, {total:,} ever", err=True)


def _site_url(out: str) -> str:
    hub = read_hub(out)
    if hub is None:
        raise OperatorError(
            f"There is no site in {out}, which would tell below which path it is. Build it first, "
            "or give the site's address with --base-url."
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


def _echo_json(told: dict[str, object]) -> None:
    click.echo(msgspec.json.encode(told))
