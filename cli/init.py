"""``hubctl init``: creates a folder that is a hub."""

import contextlib
import getpass
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from builder import DISTRIBUTION
from builder.model.errors import OperatorError, RequestError
from builder.model.names import check_new_owner
from builder.model.plural import counted
from builder.store import content as tree
from cli.config import FILE_NAME, read_config, schema_of
from cli.config_text import config_text
from cli.standard_error import say
from moving.importers.naming import handle_of
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore
from publisher.write.publish import publish

PARTS = Path(__file__).parent / "new_hub"
# The first import of a collection must not meet this name.
FIRST_PROMPT = "summarize-for-a-busy-reader"
# The name of a folder that can be read as words.
_is_plain = re.compile("[a-z0-9 -]+").fullmatch
JOBS = {".github/workflows/hub.yml": "github.yml", ".gitlab-ci.yml": "gitlab.yml"}
# A line of .gitattributes: git must not change line ends, since a text's hash covers its bytes.
KEEP_BYTES = "content/** -text\n"
# The last pattern: folders that `hubctl import --from VENDOR` downloads.
IGNORED = "/site_out/\n/public/\n/var/\n/*-export/\n"


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("--sample", is_flag=True, help="Start with the sample catalogue: 33 prompts.")
@click.option(
    "--owner",
    metavar="HANDLE",
    help="Owner of the prompts, kept in hub.toml. [default: asks; your user name without a "
    "terminal]",
)
@click.option(
    "--package",
    metavar="SPEC",
    help="What the CI jobs install hubctl from, for pip. [default: the commit or URL that it was "
    "installed from here; if that is unknown, no CI jobs are created]",
)
@click.pass_context
def init(
    context: click.Context, directory: str, sample: bool, owner: str | None, package: str | None
) -> None:
    """Create a hub in the folder DIR.

    Creates content/ with a first prompt, its owner's account in var/, hub.toml with every setting,
    a README for the authors, .gitignore, .gitattributes, and CI jobs that check the prompts and
    deploy the site to GitHub Pages or GitLab Pages. Never overwrites a file: run it again to add
    what is missing.

    \b
      hubctl init my-hub
      hubctl init demo --sample
    """
    group, file = context.find_root().command, _inside(directory, FILE_NAME)
    if not owner and os.path.isfile(file):  # from an earlier run
        owner = read_config(file, group).get("publish", {}).get("owner")
    owner = check_new_owner(owner) if owner else _ask_owner()
    spec = package or _installed_as() or ""
    if '"' in spec or not spec.isprintable():  # the jobs have it in quotes
        raise click.BadParameter(f"{spec!r} is nothing that pip installs.", param_hint="--package")
    name = os.fsencode(os.path.basename(os.path.abspath(directory))).decode("utf-8", "replace")
    words = {"@NAME@": name, "@OWNER@": owner, "@PACKAGE@": spec}
    site_name = name.replace("-", " ").capitalize() if _is_plain(name) else name
    chosen = {"site-name": site_name, "default-owner": owner}
    texts = {
        FILE_NAME: config_text(schema_of(group), chosen),
        "README.md": _filled("README.md", words),
        ".gitignore": IGNORED,
        ".gitattributes": KEEP_BYTES,
    }
    if spec:
        texts |= {file: _filled(part, words) for file, part in JOBS.items()}
    with _creating(directory):
        os.makedirs(directory, exist_ok=True)
    _create_content(_inside(directory, "content"), owner, sample)
    with Database(_inside(directory, "var")) as database:
        accounts = Accounts(database)
        if not accounts.is_known(owner):
            accounts.add_owner(owner)
    for file, text in texts.items():
        _create(_inside(directory, file), text)
    if not spec:
        say(
            "Created no CI jobs: hubctl was not installed from a URL, which they need to install "
            "it. To add them, name one, like --package git+https://git.example.org/hub@COMMIT."
        )
    folder = "" if os.path.samefile(directory, os.curdir) else f"cd {shlex.quote(directory)}\n  "
    say(f"Next:\n  {folder}hubctl owner invite {owner}  # a link to sign in\n  hubctl serve")


@contextlib.contextmanager
def _creating(path: str) -> Iterator[None]:
    """Say what to do if ``path`` cannot be created."""
    again = "Correct this, and run the command again: it adds what is missing."
    try:
        yield
    except OSError as error:
        raise OperatorError(f"Cannot create {path}: {error.strerror}. {again}") from error
    except RequestError as error:
        raise OperatorError(f"{error} {again}") from error


@contextlib.contextmanager
def _creating_whole(path: str) -> Iterator[str]:
    """Yields a name beside ``path`` for content that appears whole, or not at all."""
    folder, name = os.path.split(path)
    new = os.path.join(folder, f".{name}.{os.getpid()}")
    with _creating(path):
        os.makedirs(folder or os.curdir, exist_ok=True)
        try:
            yield new
            os.rename(new, path)
        except BaseException:
            with contextlib.suppress(OSError):  # the caller reports the failure itself
                shutil.rmtree(new) if os.path.isdir(new) else os.unlink(new)
            raise


def _create_content(content: str, owner: str, sample: bool) -> None:
    if os.path.isdir(content) and os.listdir(content):
        say(f"Kept {content}, which is there already.")
        return
    with _creating_whole(content) as new:  # also replaces an empty one
        os.mkdir(new)
        if sample:
            _copy_files(PARTS / "sample", new)
        else:
            text = (PARTS / "first-prompt.md").read_text(encoding="utf-8")
            draft = make_draft({"content": text, "changelog": "First version"})
            publish(FolderStore(new), owner, FIRST_PROMPT, draft, publisher=owner)
    owners = tree.list_owners(content)
    count = sum(len(tree.list_repos(content, each)) for each in owners)
    click.echo(f"Created {content} with {counted(count, 'prompt')}.")


def _copy_files(source: Path, folder: str) -> None:
    """Copy a tree, but not its permissions: packages may be installed read-only."""
    for path in source.rglob("*"):
        target = os.path.join(folder, path.relative_to(source))
        if path.is_file():
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)


def _create(file: str, text: str) -> None:
    """Create a file if it is missing."""
    if os.path.lexists(file):
        say(f"Kept {file}, which is there already.")
        return
    with _creating_whole(file) as new, open(new, "x", encoding="utf-8") as opened:
        opened.write(text)
    click.echo(f"Created {file}.")


def _inside(directory: str, file: str) -> str:
    return os.path.normpath(os.path.join(directory, file))


def _filled(part: str, words: dict[str, str]) -> str:
    """A part with these words. Without a package, lines from @PACKAGED@ to @END@ are left out."""
    text = (PARTS / part).read_text(encoding="utf-8")
    shown = r"\1" if words["@PACKAGE@"] else ""
    text = re.sub(r"@PACKAGED@\n(.*?)@END@\n", shown, text, flags=re.DOTALL)
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


def _ask_owner() -> str:
    """The owner that the user enters; without a terminal, the name of the user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        user = ""
    handle = handle_of(user, "author")
    if not sys.stdin.isatty():
        say(f"The prompts belong to {handle}. To choose another, pass --owner.")
        return handle
    return click.prompt("Owner of the prompts", default=handle, value_proc=_check_owner, err=True)


def _check_owner(text: str) -> str:
    try:
        return check_new_owner(text)
    except RequestError as error:
        raise click.UsageError(str(error)) from None


def _installed_as() -> str | None:
    """The argument with which pip installs this release again: its commit or its URL, from
    direct_url.json (PEP 610). None where neither is known: in a package index, another project may
    have this name.
    """
    origin = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    direct = json.loads(origin) if origin else {}
    url = direct.get("url", "")
    commit = direct.get("vcs_info")
    if commit and not url.startswith("file:"):
        return f"{DISTRIBUTION} @ {commit['vcs']}+{url}@{commit['commit_id']}"
    return f"{DISTRIBUTION} @ {url}" if url.startswith("https:") else None
