"""``hubctl import``: publishes the prompts of another collection."""

import os
from collections import Counter
from importlib import import_module

import click

from builder.model.errors import RequestError
from builder.model.plural import counted
from cli.activity import note_change
from cli.groups import grouped, setting
from cli.import_summary import tell
from cli.options import (
    Places,
    owner_option,
    places_options,
    settings_of_serve,
)
from cli.site import update_site
from cli.standard_error import Progress
from cli.stores import open_store
from moving.importers.items import (
    CONTRIBUTOR_COLUMNS,
    PROMPT_COLUMNS,
    TAGS_COLUMNS,
    TITLE_COLUMNS,
    Columns,
)
from moving.importers.placeholders import CONVENTIONS
from moving.importers.run import Options, Outcome, check_owners, import_found, import_source
from moving.vendors import MODULES
from moving.vendors.documents import read_documents, read_export
from publisher.write.fields import parse_field

DEFAULT_OWNER = "imported"


def column_option(option: str, name: str, what: str, usual: tuple[str, ...], **rest: object):
    """The option of a column. It sets ``name``, a field of ``Columns``."""
    variable = f"HUB_IMPORT_{option.removeprefix('--').replace('-', '_').upper()}"
    shown = f"Column or key with {what}. [default: {' or '.join(usual)}]"
    return setting(option, name, variable=variable, metavar="COLUMN", help=shown, **rest)


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
@places_options
@click.argument("source", metavar="SOURCE", callback=check_source)
@click.option(
    "--from",
    "vendor",
    type=click.Choice(sorted(MODULES)),
    metavar="VENDOR",
    help="What SOURCE is: an export of this vendor, or the address of its API. VENDOR is "
    f"{', '.join(sorted(MODULES))}.",
)
@grouped(
    "options",
    Options,
    click.option(
        "--placeholders",
        type=click.Choice(["auto", *CONVENTIONS]),
        default="auto",
        show_default=True,
        help="How the source marks what is filled in: ${name}, {name}, {name} with {{ for a "
        'brace, {{name}} of mustache or of Jinja, [NAME], {argument name="name"}, $1, or none. '
        "auto: as its kind of file does.",
    ),
    owner_option,
    grouped(
        "columns",
        Columns,
        column_option("--title-column", "title", "the titles, which become names", TITLE_COLUMNS),
        column_option("--prompt-column", "prompt", "the texts", PROMPT_COLUMNS),
        column_option(
            "--tags-column", "tags", "tags. Can be repeated", TAGS_COLUMNS, multiple=True
        ),
        column_option(
            "--contributor-column",
            "contributor",
            "the owners; '' uses --owner for all",
            CONTRIBUTOR_COLUMNS,
        ),
    ),
    setting(
        "--license",
        variable="HUB_IMPORT_LICENSE",
        metavar="ID",
        help="License of prompts that name none, like CC0-1.0.",
    ),
    click.option(
        "--tag",
        "all_tags",
        metavar="TAG",
        multiple=True,
        callback=check_tags,
        help="Tag to add to every prompt. Can be repeated.",
    ),
    click.option(
        "-m",
        "--changelog",
        metavar="TEXT",
        help="Changelog of each version. [default: Imported from FILE, or Changed in FILE]",
    ),
    setting(
        "--allow-owner",
        "allowed_owners",
        variable="HUB_IMPORT_ALLOW_OWNER",
        metavar="NAME",
        multiple=True,
        help="Also update existing prompts of this owner. By default, only those of --owner are "
        "updated. Can be repeated.",
    ),
    click.option(
        "--markdown",
        is_flag=True,
        help="Also import plain .md files of a folder that has prompts in formats of their own.",
    ),
    click.option(
        "--instructions",
        is_flag=True,
        help="Also import AGENTS.md, CLAUDE.md, GEMINI.md, .cursorrules and the like, by the name "
        "of the folder that they are about.",
    ),
    click.option(
        "--onto-others",
        is_flag=True,
        help="Also add versions to prompts that came from elsewhere. By default, a prompt whose "
        "name such a prompt has is imported as NAME-2.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Write nothing; print a table of the prompts that would be created and updated.",
    ),
)
@click.option("--verbose", is_flag=True, help="List all warnings, not one of each kind.")
def imports(
    places: Places, source: str, vendor: str | None, options: Options, verbose: bool
) -> None:
    """Publish every prompt of a file or folder, or of another vendor's export or API.

    \b
    .csv .tsv            a table, one prompt per row
    .jsonl .ndjson       one JSON object per line
    .json                a list of objects, or an object with one such list
    .md                  a prompt, with or without front matter
    .prompt              dotprompt
    .prompty             prompty
    .prompt.yml          the prompt format of GitHub Models
    .prompt.md .agent.md .instructions.md .chatmode.md
                         the files of coding assistants
    .claude/commands .claude/agents .cursor/rules .gemini/commands .windsurf/rules .clinerules
                         the files of coding agents, below such a folder; .mdc anywhere
    SKILL.md PROMPT.md   in a folder: one prompt with the files beside and below it, which become
                         files of its version. A .hubignore there names what stays out
    system.md user.md    beside each other: one prompt with two messages
    a folder             all such files below it, except tables and JSON, and except the hub's
                         own folders, built sites, environments, node_modules and hidden
                         folders other than those of coding agents. Where it has
                         others, plain .md files are documents, and are left out

    Messages of dotprompt, prompty, GitHub Models and JSON (role, content) become messages here.

    With --from, prompts come with their versions, times, changelogs and labels. SOURCE is then an
    export of the vendor, a file or a folder; or the https address of the vendor's API, which is
    read to its end before anything is published. API keys come from the environment.

    You can import the same source again: unchanged prompts are skipped, changed ones get a new
    version, and histories get the versions that are new. A source can create prompts of any owner,
    but updates only those of --owner and --allow-owner. Prompts that cannot be imported are listed
    and skipped. Exits 1 if any prompt or version is rejected or refused.

    \b
      hubctl import prompts.csv --owner ann --allow-owner bob
      hubctl import --from langsmith ./export --owner ann
      hubctl import --from langfuse https://cloud.langfuse.com --owner ann
    """
    file_bytes = settings_of_serve(click.get_current_context())["file_bytes"]
    options = options._replace(owner=options.owner or DEFAULT_OWNER, file_bytes=file_bytes)
    outcome = _import(places, source, vendor, options)
    tell(outcome, options, verbose=verbose)
    _finish(places, source, outcome, dry_run=options.dry_run)
    if failed := len(outcome.rejected) + len(outcome.refused):
        what = ("prompt or version", "prompts or versions") if vendor else ("prompt",)
        raise click.ClickException(f"{counted(failed, *what)} not imported.")


def _finish(places: Places, source: str, outcome: Outcome, *, dry_run: bool) -> None:
    """Note the import in the activity, and update the site. Raises click.ClickException."""
    changed = [*outcome.created, *outcome.updated]
    if changed and not dry_run:
        named = [tuple(one.split()[0].split("/")) for one in changed]
        for owner, count in Counter(owner for owner, _ in named).items():
            note_change(places, "published", owner, f"{owner}/*, {counted(count, 'prompt')}")
        update_site(places, named, "The prompts are imported")
    elif not (changed or outcome.unchanged or outcome.rejected or outcome.refused):
        raise click.ClickException(
            f"{source} has no prompts to import. `hubctl import --help` lists what an import reads."
        )


def _import(places: Places, source: str, vendor: str | None, options: Options) -> Outcome:
    if not vendor and is_address(source):
        raise click.UsageError(
            f"{source} is an address. Add --from VENDOR to say whose API it is, like --from "
            "langfuse."
        )
    with open_store(places) as store, Progress() as progress:
        if not vendor:
            own = {*map(os.path.realpath, places.folders)}
            return import_source(source, store, options, progress, own)
        from moving.vendors.api import ask  # late: its libraries take a while to load

        check_owners(options)  # before a download
        module = import_module(MODULES[vendor])
        is_api = is_address(source)
        documents = ask(module, source, progress) if is_api else read_documents(source)
        found = read_export(module, documents)
        return import_found(found, module.TITLE, store, options, progress)
