"""``hubctl deploy``: the site to where it is read from."""

import click

from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.model.settings import DEFAULT_BASE_URL
from builder.store.privacy import is_private
from builder.store.site import read_hub
from cli.groups import setting
from cli.options import content_option, out_option, state_option
from cli.standard_error import Progress, say, say_waiting

files_only_option = setting(
    "--files-only",
    "--deploy-files-only",  # its key in hub.toml, which `hubctl serve` reads, too
    "files_only",
    variable="HUB_DEPLOY_FILES_ONLY",
    is_flag=True,
    help="Upload each file once, under its name, and not also under its URL without extension. For "
    "a CDN that maps URLs to files, and for services that cannot store both `a` and `a/b` (MinIO).",
)


@click.command()
@click.argument("destination", envvar="HUB_DEPLOY")
@content_option
@out_option
@state_option
@files_only_option
@click.option("--no-delete", is_flag=True, help="Keep remote files that are no longer on the site.")
@click.option("--dry-run", is_flag=True, help="Change nothing; list what would change, in order.")
@click.option("--all", "everything", is_flag=True, help="Upload every file, also unchanged ones.")
@click.option(
    "--no-private",
    is_flag=True,
    help="Deploy a private hub, to a destination that keeps strangers out itself.",
)
def deploy(
    destination: str, content: str, out: str, state: str, no_private: bool, **options: bool
) -> None:
    """Upload the site to DESTINATION: a folder, or s3://BUCKET/PREFIX.

    Uploads only what differs, in an order that gives readers no broken links, and deletes last.
    Leaves files alone that are not part of the site. To continue after an interruption, run the
    command again. Builds may run at the same time.

    S3 needs obstore (`pip install obstore`). AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION
    and AWS_ENDPOINT_URL say where and as whom; without a key, the role of the machine counts.

    \b
      hubctl deploy /var/www/prompts
      hubctl deploy s3://my-bucket/prompts --dry-run
    """
    # Loaded late: no other command needs it.
    from operate.deploy.run import Deployment, open_destination

    if not no_private:
        refuse_private(content, out)
    opened = open_destination(destination, (out, state))
    with Progress() as progress:
        site = Deployment(out, state, opened, progress=progress, on_wait=say_waiting, **options)
        steps = site.run({})
    counts = {"add": 0, "change": 0, "delete": 0}
    for step in steps:
        verb = "delete" if not step.file else "add" if step.is_new else "change"
        counts[verb] += 1
        if options["dry_run"]:
            click.echo(f"would {verb} {step.key}")
    added, changed, deleted = counts.values()
    click.echo(
        f"{counted(added, 'object')} {'to add' if options['dry_run'] else 'added'}, {changed:,} "
        f"changed, {deleted:,} deleted"
    )
    hub = read_hub(out)
    if hub and hub.base_url == DEFAULT_BASE_URL:
        say(
            f"Links on the site point to {DEFAULT_BASE_URL}. Build it with --base-url, and deploy "
            "again."
        )


def refuse_private(content: str, out: str) -> None:
    """Raises OperatorError if the hub is private."""
    if is_private(content, out):
        raise OperatorError(
            "This hub is private, and everyone who can read the destination can read all of it. If "
            "the destination keeps strangers out itself, pass --no-private to `hubctl deploy`. "
            "Else serve the site with `hubctl serve`."
        )
