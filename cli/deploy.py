"""``hubctl deploy``: the site to where it is read from."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from builder.model.plural import counted
from builder.model.settings import DEFAULT_BASE_URL
from builder.render.envelopes import json_bytes
from builder.store.site import read_hub
from cli.options import out_option, state_option, upload_options
from cli.progress import Progress
from cli.standard_error import say, say_waiting
from operate.deploy.options import Options

if TYPE_CHECKING:
    from operate.deploy.plan import Plan, Report


@click.command()
@click.argument("destination", required=False, envvar="HUB_DEPLOY")
@out_option
@state_option
@upload_options("", "deploy-")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Change nothing; list what would change, in order. Without DESTINATION, list the whole "
    "site.",
)
@click.option("--all", "everything", is_flag=True, help="Upload every file, also unchanged ones.")
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Print the counts as JSON. With --dry-run, print a line of JSON for each change.",
)
def deploy(
    destination: str | None,
    out: str,
    state: str,
    endpoint_url: str | None,
    upload: Options,
    is_json: bool,
) -> None:
    """Upload the site to DESTINATION: a folder, or s3://BUCKET/PREFIX.

    Uploads only what changed, in an order that gives readers no broken links, and deletes last.
    Leaves files alone that are not part of the site. To continue after an interruption, run the
    command again. A build may run at the same time: the deployment uploads a snapshot.

    S3 needs obstore (`pip install obstore`). Credentials come from AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, or from the role of the machine.

    \b
      hubctl deploy /var/www/prompts
      hubctl deploy s3://my-bucket/prompts --dry-run
    """
    if destination is None and not upload.dry_run:
        raise click.UsageError(
            "Missing argument 'DESTINATION'. Pass a folder or s3://BUCKET/PREFIX, or use --dry-run."
        )
    # Loaded late: asyncio is slow to load, and no other command needs it.
    from operate.deploy import run
    from operate.deploy.destination import open_destination

    def print_plan(plan: "Plan") -> None:
        if upload.dry_run:
            for line in plan_lines(plan) if is_json else described_steps(plan):
                click.echo(line)

    opened = open_destination(destination, endpoint_url=endpoint_url, apart_from=(out, state))
    with Progress() as progress:
        hooks = run.Hooks(progress, say_waiting, print_plan)
        report = run.deploy(out, state, opened, upload, hooks)
    if not is_json:
        click.echo(describe(report, upload.dry_run))
    elif not upload.dry_run:
        counts = report._asdict()
        del counts["build"], counts["serial"]
        click.echo(json.dumps(counts))
    hub = read_hub(out)
    if hub and hub.base_url == DEFAULT_BASE_URL:
        say(
            f"Links on the site point to {DEFAULT_BASE_URL}. Build it with --base-url, and deploy "
            "again."
        )


def plan_lines(plan: "Plan") -> Iterator[bytes]:
    """Yields a JSON object for each step. All steps of a ``group`` end before the next group
    begins.
    """
    for number, group in enumerate(plan.groups(), 1):
        for step in group:
            if step.file is None:
                line = {"action": "delete", "key": step.key, "group": number}
            else:
                line = {
                    "action": "put",
                    "key": step.key,
                    "file": step.file,
                    "content_type": step.headers["Content-Type"],
                    "cache_control": step.headers["Cache-Control"],
                    "size": step.size,
                    "md5": step.md5.hex(),
                    "group": number,
                }
            yield json_bytes(line)


def described_steps(plan: "Plan") -> Iterator[str]:
    """Yields a line of text for each step."""
    for group in plan.groups():
        for step in group:
            verb = "add" if step.old is None else "change"
            yield f"would {'delete' if step.file is None else verb} {step.key}"


def describe(report: "Report", dry_run: bool) -> str:
    """One line that says what a deployment did."""
    added, changed, deleted = (
        ("to add", "to change", "to delete") if dry_run else ("added", "changed", "deleted")
    )
    parts = [
        f"{counted(report.new, 'object')} {added}, {report.changed:,} {changed}, "
        f"{report.deleted:,} {deleted}, {report.current:,} unchanged"
    ]
    if report.kept:
        parts.append(f"{report.kept:,} no longer on the site kept")
    if report.foreign:
        parts.append(f"{report.foreign:,} not part of the site left alone")
    if report.unknown:
        parts.append(f"{counted(report.unknown, 'unknown file')} of the site folder left out")
    return f"{'; '.join(parts)}; {counted(report.bytes, 'byte')} in {report.seconds:.2f} seconds"
