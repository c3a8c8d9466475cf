"""``hubctl stats``: counts pulls from access logs."""

from urllib.parse import urlsplit

import click

from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.stats.counter import KEPT_DAYS
from builder.stats.ingest import Outcome, ingest
from builder.stats.pulls import PULLS_FILE
from builder.store.site import read_hub
from cli.options import base_url_option, out_option, state_option
from cli.standard_error import say

HINT = "`hubctl serve` shows the counts within seconds. Without it, run `hubctl build`."


@click.group()
def stats() -> None:
    """Count pulls of prompts in access logs.

    A pull is a successful GET of a prompt's text, its record or one of its versions. Each client
    address counts once per prompt and day (UTC). Bots do not count.
    """


@stats.command("ingest")
@state_option
@out_option
@base_url_option("the one the site was built with")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
def ingest_logs(state: str, out: str, base_url: str | None, logs: tuple[str, ...]) -> None:
    """Count the pulls in access logs (- is standard input).

    Reads the combined format, which nginx and `hubctl serve --access-log` write, also packed with
    gzip. A pull is counted once, so logs may overlap, repeat, and come in any
    order. If one log cannot be read, nothing is counted.

    The hub stores no addresses, only keyed hashes, for 35 days. Then the day is closed, and later
    lines of that day are not counted. So pass all old logs in one run.

    A running `hubctl serve` shows the counts within seconds; otherwise run `hubctl build`.

    \b
      hubctl stats ingest /var/log/nginx/access.log*
    """
    hub = None if base_url else read_hub(out)
    if not base_url and hub is None:
        raise OperatorError(
            f"No site in {out}, so the path of its URLs is unknown. Build it first, or pass its "
            "address with --base-url."
        )
    base_path = urlsplit(base_url or hub.base_url).path
    outcome = ingest(logs, state, base_path)
    # On standard output: a nightly job can discard that and mail standard error.
    click.echo(
        f"{counted(outcome.lines, 'line')}: {counted(outcome.counted, 'pull')} counted, "
        f"{outcome.repeated:,} repeated, {outcome.bots:,} by bots, "
        f"{counted(outcome.other, 'other request')}, {outcome.malformed:,} malformed, "
        f"{outcome.closed:,} of closed days, {outcome.future:,} from the future"
    )
    if outcome.counted:
        click.echo(HINT)
    _say_what_is_undone(outcome)


def _say_what_is_undone(outcome: Outcome) -> None:
    """Print on standard error what to do about lines that were not counted."""
    if outcome.malformed:
        say(
            "Malformed: not the combined format, no address or no time. The first one is "
            f"{outcome.first_malformed}."
        )
    if outcome.closed:
        say(
            f"Closed: the hashes of days more than {KEPT_DAYS} days ago were already deleted, so "
            "new lines cannot be distinguished from counted ones. Next time, pass all old logs in "
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
