"""``hubctl deploy``: the site to where it is read from."""

import contextlib
import json
from collections.abc import Iterator

import click

from builder.deploy.compare import Options, Plan
from builder.deploy.destination import open_destination
from builder.deploy.order import Delete, Put, cache_control
from builder.deploy.run import Report
from builder.deploy.run import deploy as deploy_site
from builder.model.settings import DEFAULT_BASE_URL
from builder.render.envelopes import json_bytes
from builder.store.site import read_hub
from cli.options import out_option, state_option
from cli.progress import Progress


@click.command()
@click.argument("destination", required=False)
@out_option
@state_option
@click.option(
    "--endpoint-url", metavar="URL",
    help="Where S3 is spoken, for R2, MinIO and others. [default: AWS_ENDPOINT_URL, or AWS]",
)  # fmt: skip
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, 256), default=Options().jobs,
    show_default=True, help="How many uploads at once.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True,
    help="Change nothing there; tell what would go, in order. Without DESTINATION: the whole site.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Upload every file, also what is there.")
@click.option("--no-delete", is_flag=True, help="Leave there what the site has no more.")
@click.option(
    "--files-only", is_flag=True,
    help="Put no second copy under the URLs of a bucket: a CDN finds the files by rules, or the "
    "service (MinIO) has no object whose key begins with another's.",
)  # fmt: skip
@click.option(
    "--json", "is_json", is_flag=True,
    help="Print the counts as JSON; with --dry-run a line of JSON for each object instead.",
)  # fmt: skip
def deploy(
    destination: str | None, out: str, state: str, endpoint_url: str | None, jobs: int,
    dry_run: bool, everything: bool, no_delete: bool, files_only: bool, is_json: bool,
) -> None:  # fmt: skip
    """Upload the site to DESTINATION: a folder, or s3://BUCKET/PREFIX.

    Uploads only what has changed, in an order in which readers never follow a link to what is not
    there, deletes last what the site has no more, and leaves alone what is not the site's. One
    that was stopped goes on where it was. The site may be built meanwhile: what goes is as it was
    at one moment.

    S3 needs boto3 (pip install boto3); credentials come from AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role of the machine.
    """
    if destination is None and not dry_run:
        raise click.UsageError(
            "Missing argument 'DESTINATION'. Give a folder or s3://BUCKET/PREFIX; only --dry-run "
            "does without."
        )
    options = Options(jobs, everything, not no_delete, files_only, dry_run)

    def tell_plan(plan: Plan) -> None:
        if dry_run:
            for line in plan_lines(plan) if is_json else described_steps(plan):
                click.echo(line)

    with contextlib.closing(
        open_destination(
            destination, jobs=jobs, endpoint_url=endpoint_url, apart_from=(out, state)
        )
    ) as opened, Progress() as progress:  # fmt: skip
        report = deploy_site(
            out, state, opened, options, progress=progress, on_wait=say_waiting, on_plan=tell_plan
        )
    if not is_json:
        click.echo(describe(report, dry_run))
    elif not dry_run:
        click.echo(json.dumps(report._asdict()))
    hub = read_hub(out)
    if hub and hub.base_url == DEFAULT_BASE_URL:
        click.echo(
            f"Links of the site lead to {DEFAULT_BASE_URL}; build it with --base-url and deploy "
            "again.",
            err=True,
        )


def say_waiting(what: str) -> None:
    click.echo(f"Another {what} is running; waiting for it to end.", err=True)


def plan_lines(plan: Plan) -> Iterator[bytes]:
    """An object of JSON for each step. All of a ``group`` has to be done before the next begins."""
    for number, group in enumerate(plan.groups, 1):
        for step in group:
            if isinstance(step, Put):
                line = {
                    "action": "put", "key": step.key, "file": step.file,
                    "content_type": step.route.media,
                    "cache_control": cache_control(step.route), "size": step.size,
                    "md5": step.md5.hex(), "group": number,
                }  # fmt: skip
            else:
                line = {"action": "delete", "key": step.key, "group": number}
            yield json_bytes(line)


def described_steps(plan: Plan) -> Iterator[str]:
    """A line for people for each step."""
    for group in plan.groups:
        for step in group:
            if isinstance(step, Delete):
                yield f"would delete {step.key}"
            else:
                yield f"would {'add' if step.old is None else 'change'} {step.key}"


def describe(report: Report, dry_run: bool) -> str:
    """A line for people about what a deployment did."""
    added, changed, deleted = (
        ("to add", "to change", "to delete") if dry_run else ("added", "changed", "deleted")
    )
    parts = [
        f"{report.new:,} objects {added}, {report.changed:,} {changed}, "
        f"{report.deleted:,} {deleted}, {report.current:,} current"
    ]
    if report.kept:
        parts.append(f"{report.kept:,} that the site has no more were left there")
    if report.foreign:
        parts.append(f"{report.foreign:,} that are not the site's were left alone")
    if report.unknown:
        parts.append(f"{report.unknown:,} files of the site's folder are not hub's, left out")
    return f"{'; '.join(parts)}; {report.bytes:,} bytes in {report.seconds:.2f} seconds"
