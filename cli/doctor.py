"""``hubctl doctor``: reports what is wrong with a hub, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from builder.model.plural import counted
from builder.model.settings import DEFAULT_BASE_URL, Settings
from cli.options import Places, base_url_option, places_options, settings_of_serve
from cli.standard_error import say

if TYPE_CHECKING:
    from operate.doctor.findings import Subject


@click.command()
@places_options
@base_url_option("the one the site was built with")
@click.option("--offline", is_flag=True, help="Leave out the checks that ask the base URL.")
@click.pass_context
def doctor(context: click.Context, places: Places, base_url: str, offline: bool) -> None:
    """Check the whole hub, and say how to fix each problem.

    Asks first if strangers can read a private hub. Then checks folders, disks, service, databases,
    content, site and backups, and the hub at its base URL. Changes nothing. Run it as the user who
    runs the hub, with the same settings. Exits 1 if there is a problem; warnings alone exit 0.

    \b
      hubctl doctor --base-url https://prompts.example.org
    """
    # Loaded late: other commands import this module to read its options.
    from operate.doctor.examine import examine

    subject = _subject(places, base_url, settings_of_serve(context)["private"])
    counts = {"problem": 0, "warning": 0, "ok": 0}
    for name, finding in examine(subject, offline=offline):
        counts[finding.level] += 1
        click.echo(f"{finding.level:7}  {name}: {finding.what}")
        if finding.do:
            click.echo(f"         {finding.do}")
    say(
        f"{counted(counts['problem'], 'problem')}, {counted(counts['warning'], 'warning')}, "
        f"{counts['ok']} fine."
    )
    if counts["problem"]:
        context.exit(1)


def _subject(places: Places, base_url: str, private: bool | None) -> Subject:
    """The hub; ``private`` as `hubctl serve` would get it."""
    from builder.store.privacy import is_private
    from builder.store.site import read_hub
    from builder.store.state import last_settings
    from builder.store.state.serving import service_settings
    from operate.doctor.findings import Subject

    noted = last_settings(*places.folders)
    service = service_settings(*places.folders)
    known = service or noted
    settings = Settings(
        *places.folders,
        base_url or (known.base_url if known else DEFAULT_BASE_URL),
        private=is_private(places.content, places.out) or bool(service and service.private),
    )
    hub, has_file = read_hub(places.out), not places.database_url
    return Subject(settings, hub, noted, service, has_file, private is False)
