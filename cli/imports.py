"""``hubctl import``: publishes the prompts of another collection."""

import contextlib
import os
import shlex
import tempfile
from importlib import import_module
from types import ModuleType

import click

from builder.model.errors import RequestError
from builder.model.plural import counted
from cli.import_summary import tell
from cli.options import content_option, init_option, prepare_content
from cli.progress import Progress
from publisher.importers.items import (
    CONTRIBUTOR_COLUMNS,
    PROMPT_COLUMNS,
    TAGS_COLUMNS,
    TITLE_COLUMNS,
    Columns,
)
from publisher.importers.run import Options, import_found, import_source
from publisher.importers.vendors import MODULES
from publisher.importers.vendors.documents import read_export
from publisher.write.fields import parse_field

CONVENTIONS = ("auto", "dollar", "single", "f-string", "mustache", "jinja", "none")


def column_option(option: str, what: str, usual: tuple[str, ...], **settings: object):
    return click.option(
        option, metavar="COLUMN", **settings, show_envvar=True,
        envvar=f"HUB_IMPORT_{option.removeprefix('--').replace('-', '_').upper()}",
        help=f"Column or key with {what}. [default: {' or '.join(usual)}]",
    )  # fmt: skip


def check_tags(context: click.Context, option: click.Parameter, tags: tuple[str, ...]):
    try:
        return tuple(parse_field("tags", list(tags)))
    except RequestError as error:
        raise click.BadParameter(error.details[0].message) from None


def is_address(source: str) -> bool:
    return source.lower().startswith(("https://", "http://"))


def check_source(context: click.Context, argument: click.Parameter, source: str) -> str:
    there = click.Path(exists=True)
    return source if is_address(source) else there.convert(source, argument, context)


@click.command("import")
@content_option
@click.argument("source", metavar="SOURCE", callback=check_source)
@click.option(
    "--from", "vendor", type=click.Choice(sorted(MODULES)), metavar="VENDOR",
    help=f"What SOURCE is: an export of this vendor, or the address of its API. VENDOR is "
    f"{', '.join(sorted(MODULES))}.",
)  # fmt: skip
@click.option(
    "--save", metavar="DIR",
    help="New folder to keep an API's answers in. [default: VENDOR-export]",
)  # fmt: skip
@click.option(
    "--placeholders", type=click.Choice(CONVENTIONS), default="auto", show_default=True,
    help="How the source marks what is filled in: ${name}, {name}, {name} with {{ for a brace, "
    "{{name}} of mustache or of Jinja, or none. auto: as its kind of file does.",
)  # fmt: skip
@click.option(
    "--owner", metavar="HANDLE", default="imported", show_default=True,
    envvar="HUB_IMPORT_OWNER", show_envvar=True,
    help="Owner of prompts for which the source names no owner.",
)  # fmt: skip
@column_option("--title-column", "the titles, which become names", TITLE_COLUMNS)
@column_option("--prompt-column", "the texts", PROMPT_COLUMNS)
@column_option("--tags-column", "tags. Can be repeated", TAGS_COLUMNS, multiple=True)
@column_option("--contributor-column", "the owners; '' uses --owner for all", CONTRIBUTOR_COLUMNS)
@click.option(
    "--license", metavar="ID", envvar="HUB_IMPORT_LICENSE", show_envvar=True,
    help="License of prompts that name none, like CC0-1.0.",
)  # fmt: skip
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True, callback=check_tags,
    help="Tag to add to every prompt. Can be repeated.",
)  # fmt: skip
@click.option(
    "-m", "--changelog", metavar="TEXT",
    help="Changelog of each version. [default: Imported from FILE, or Changed in FILE]",
)  # fmt: skip
@click.option(
    "--allow-owner", "allowed_owners", metavar="NAME", multiple=True,
    envvar="HUB_IMPORT_ALLOW_OWNER", show_envvar=True,
    help="Also update existing prompts of this owner. By default, only those of --owner are "
    "updated. Can be repeated.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; list what would be created and updated."
)
@init_option
def imports(
    content: str, source: str, vendor: str | None, save: str | None, placeholders: str, owner: str,
    title_column: str | None, prompt_column: str | None, tags_column: tuple[str, ...],
    contributor_column: str | None, license: str | None, tags: tuple[str, ...],
    changelog: str | None, allowed_owners: tuple[str, ...], dry_run: bool, init: bool,
) -> None:  # fmt: skip
    """Publish every prompt of a file or folder, or of another vendor's export or API.

    \b
    .csv .tsv            a table, one prompt per row
    .jsonl .ndjson       one JSON object per line
    .md                  a prompt, with or without front matter
    .prompt              dotprompt
    .prompty             prompty
    .prompt.yml          the prompt format of GitHub Models
    SKILL.md             a skill
    a folder             all such files below it, except tables

    Messages of dotprompt, prompty, GitHub Models and JSON (role, content) become messages here.

    With --from, prompts come with their versions, times, changelogs and labels. SOURCE is then an
    export of the vendor: a file, a .zip or a folder. Where it is the https address of the vendor's
    API, its answers are first kept in the folder of --save: a download that was cut short goes on
    when you run the command again. Keys of APIs come from the environment.

    You can import the same source again: unchanged prompts are skipped, changed ones get a new
    version, and histories get the versions that are new. A source can create prompts of any owner,
    but updates only those of --owner and --allow-owner. Prompts that cannot be imported are listed
    and skipped. Exits 1 if any prompt or version is rejected or refused.

    \b
      hubctl import prompts.csv --owner ann --allow-owner bob
      hubctl import --from langsmith ./export --owner ann
      hubctl import --from langfuse https://cloud.langfuse.com --owner ann
      hubctl import --from openai ids.txt --owner ann
    """
    if is_address(source) and not vendor:
        raise click.UsageError(
            f"{source} is an address. Add --from VENDOR to say whose API it is, like "
            "--from langfuse."
        )
    module = import_module(MODULES[vendor]) if vendor else None
    save = _check_save(save, source, vendor, module)
    columns = Columns(title_column, prompt_column, tags_column, contributor_column)
    options = Options(
        owner, columns, license, tags, changelog, dry_run, allowed_owners, placeholders
    )
    with contextlib.ExitStack() as stack:
        if init and dry_run and not os.path.isdir(content):
            content = stack.enter_context(tempfile.TemporaryDirectory())
        prepare_content(content, init, f"import {shlex.quote(source)}")
        progress = stack.enter_context(Progress())
        if save:
            source = _download(module, source, save, progress)
        if module:
            found = read_export(module, source)
            outcome = import_found(found, module.TITLE, content, options, progress)
        else:
            outcome = import_source(source, content, options, progress)
    tell(outcome, options)
    failed = len(outcome.rejected) + len(outcome.refused)
    if failed:
        what = counted(failed, "prompt or version", "prompts or versions")
        raise click.ClickException(f"{what if module else counted(failed, 'prompt')} not imported.")


def _check_save(
    save: str | None, source: str, vendor: str | None, module: ModuleType | None
) -> str | None:
    """The folder to keep the answers of an API in; None: nothing is asked."""
    if not is_address(source):
        if save:
            raise click.UsageError(
                "--save keeps the answers of an API, but SOURCE is no address. Leave out --save."
            )
        return None
    if not hasattr(module, "download"):
        raise click.UsageError(
            f"{module.TITLE} has no API to import from. Pass the file or folder of an export."
        )
    return save or f"{vendor}-export"


def _download(module: ModuleType, url: str, folder: str, progress: Progress) -> str:
    """Download what the API at ``url`` has; returns the folder."""
    from publisher.importers.vendors.api import download_to  # only now: it takes a while to load

    download_to(module, url, folder, progress)
    click.echo(
        f"Kept the answers of {module.TITLE} in {folder}. They have the texts of all prompts: "
        "remove the folder when you need it no more.",
        err=True,
    )
    return folder
