"""``hubctl publish``: publishes a file as the next version of a prompt."""

from pathlib import Path
from typing import Any

import click

from builder.model.errors import OperatorError
from builder.model.names import AUTO, BUMPS
from builder.model.records import CONTENT_BYTES_MAX
from cli.activity import note_change
from cli.options import (
    Places,
    owner_option,
    places_options,
    settings_of_serve,
    split_repo,
)
from cli.site import update_site
from cli.standard_error import say
from cli.stores import open_store
from moving.importers.beside import find_beside, text_in
from publisher.write.drafts import make_draft
from publisher.write.publish import publish as publish_draft


def _read_folder(folder: Path, file_bytes: int) -> tuple[Path, dict[str, Any]]:
    """The text of a folder, and the field of its files. Says what is left out. Raises HubError."""
    text = text_in([*folder.iterdir()])
    if not text:
        raise OperatorError(f"{folder} has no SKILL.md or PROMPT.md. Write the prompt into one.")
    if text.is_symlink():
        raise OperatorError(f"{text} is a symbolic link. Replace it with the file that it names.")
    try:
        beside = find_beside(text)
    except (OSError, ValueError) as error:
        raise OperatorError(f"{folder} cannot be read: {error}.") from None
    for path, why in beside.left:
        say(f"Left out {path}: {why}.")
    return text, {"files": beside.read(file_bytes)}


def _read_text(text: Path) -> str:
    with click.open_file(text, "rb") as opened:
        raw = opened.read(CONTENT_BYTES_MAX + 1)
    if len(raw) > CONTENT_BYTES_MAX:
        raise OperatorError(f"{text} is larger than {CONTENT_BYTES_MAX:,} bytes. Shorten the file.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OperatorError(
            f"{text} is not UTF-8 at byte {error.start:,}. Save it as UTF-8."
        ) from None


@click.command()
@places_options
@owner_option
@click.argument("repo", metavar="[OWNER/]NAME")
@click.argument(
    "file", metavar="FILE|FOLDER", type=click.Path(exists=True, allow_dash=True, path_type=Path)
)
@click.option("-m", "--changelog", metavar="TEXT", default="", help="What changed, and why.")
@click.option(
    "--bump",
    type=click.Choice((*BUMPS, AUTO)),
    default="patch",
    show_default=True,
    help="Number of the version to raise; auto: as the change of variables asks for. The first "
    "version is always 1.0.0.",
)
@click.option(
    "--title",
    metavar="TEXT",
    help="Title, on one line. [default: as before, or the text's first heading, or NAME]",
)
@click.option(
    "--description",
    metavar="TEXT",
    help="Description. [default: as before, or the first sentence of the text]",
)
@click.option(
    "--tag",
    "tags",
    metavar="TAG",
    multiple=True,
    help="Replaces the previous tags. Can be repeated.",
)
@click.option(
    "--license", metavar="ID", help="SPDX identifier, like CC0-1.0 or MIT. [default: as before]"
)
@click.option(
    "--base-version",
    metavar="X.Y.Z",
    help="Publish only if this is still the latest version, so that no change is overwritten.",
)
@click.option(
    "--label",
    "labels",
    metavar="LABEL",
    multiple=True,
    help="Move this label to the version, with its publication. Can be repeated.",
)
@click.option("--publisher", metavar="HANDLE", help="Name to record as publisher. [default: OWNER]")
def publish(
    places: Places,
    owner: str | None,
    repo: str,
    file: Path,
    publisher: str | None,
    **fields: Any,
) -> None:
    """Publish FILE (- is standard input) or FOLDER as the next version of OWNER/NAME.

    A FOLDER has the text in SKILL.md or PROMPT.md; the other files become files of the version.

    The first publication creates the prompt, and the owner. Without OWNER, the prompt belongs to
    --owner, which `hubctl init` sets in hub.toml. Title, description, tags, license, variables and
    parameters can also come from the file's front matter; options override it. If text and metadata
    equal the latest version, no version is created.

    \b
      hubctl publish ann/story story.md -m "First version"
    """
    owner, name = split_repo(repo, owner)
    file_bytes = settings_of_serve(click.get_current_context())["file_bytes"]
    text, files = _read_folder(file, file_bytes) if file.is_dir() else (file, {})
    fields["tags"] = [*fields["tags"]] or None
    fields["labels"] = [*fields["labels"]] or None
    given = {field: value for field, value in fields.items() if value is not None}
    draft = make_draft({"content": _read_text(text)} | files | given, file_bytes)
    with open_store(places) as store:
        done = publish_draft(store, owner, name, draft, publisher=publisher or owner)
    for warning in done.warnings:
        say(f"Warning: {warning}")
    click.echo(f"{owner}/{name} {done.version}{' unchanged' if done.unchanged else ''}")
    if not done.unchanged:
        note_change(places, "published", owner, done.what)
        update_site(places, [(owner, name)], "It is published")
