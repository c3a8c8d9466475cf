"""Reads ``hub.toml``, which has settings for all commands.

The commands' options define the file: each option with an environment variable is a setting, and
its key is the flag without dashes. Settings that several commands share, by the same variable,
stand at the top of the file. A command's table has its own settings, and overrides shared ones for
this command alone. Flags and variables override the file.

Relative paths in the file, and relative default folders, start at the file's folder.
"""

import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from builder.model.errors import HubError, OperatorError
from builder.text.likeness import alike
from cli.groups import SettingArgument
from cli.standard_error import say

FILE_NAME = "hub.toml"
BYTES_MAX = 64 * 1024
SHOWN_FAULTS = 20

_secret = re.compile(r"(^|[-_])(secret|password|passwd|credentials?|token|key)s?($|[-_])")
_place_in_toml = re.compile(r"(.*) \(at line (\d+), column \d+\)", re.DOTALL)
# The place of a key: the table's name (several words for a command of a group), and the key.
Where = tuple[str, ...]


class Setting(NamedTuple):
    """An option that can stand in the file, of the command whose name is ``words``."""

    words: tuple[str, ...]
    command: click.Command
    option: click.Option

    @property
    def key(self) -> str:
        return key_of(self.option)

    @property
    def shared_as(self) -> tuple[str, str]:
        """Equal for settings that stand at the top together."""
        return self.key, variable_of(self.option)


class Schema(NamedTuple):
    """The keys that the file may have. ``known`` has, for each place of a key, the settings that it
    is for: several at the top, one in a table.
    """

    known: dict[Where, list[Setting]]
    tables: set[Where]

    @property
    def settings(self) -> Iterator[Setting]:
        """Yields each setting of each command."""
        return (each for where, (each, *_) in self.known.items() if len(where) > 1)


def key_of(option: click.Option) -> str:
    """The name of an option's flag, without dashes."""
    return max(option.opts, key=len).lstrip("-")


def variable_of(option: click.Option) -> str:
    """The environment variable of an option; empty if it has none."""
    return option.envvar if isinstance(option.envvar, str) else ""


def is_path(option: click.Option) -> bool:
    """True if the values are paths: the option's help shows DIR or FILE."""
    return not {"DIR", "FILE"}.isdisjoint(re.split(r"\W", option.metavar or ""))


_HUB = {("build",), ("serve",)}


def schema_of(group: click.Group) -> Schema:
    """The schema of the file for the commands of ``group``."""
    known: dict[Where, list[Setting]] = {}
    shared: defaultdict[tuple[str, str], list[Setting]] = defaultdict(list)
    tables: set[Where] = set()
    for words, command in _commands(group):
        for option in command.params:
            if not isinstance(option, click.Option | SettingArgument):
                continue
            setting = Setting(words, command, option)
            is_secret = _secret.search(setting.key) and not is_path(option)
            if is_secret or not variable_of(option):
                continue
            known[(*words, setting.key)] = [setting]
            shared[setting.shared_as].append(setting)
            tables |= {words[:count] for count in range(1, len(words) + 1)}
    # Settings of the site and the service are those of the hub, so they may stand at the top, too.
    known |= {
        (key,): those
        for (key, _), those in shared.items()
        if len(those) > 1 or (those[0].words in _HUB and (key,) not in tables)
    }
    return Schema(known, tables)


def _commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*words, name))
        elif command:
            yield (*words, name), command


def find_file(folder: str) -> str | None:
    """The ``hub.toml`` in ``folder``, or in the nearest folder above it that has one.

    Raises OperatorError if a folder above has one of another user, who could have put it there to
    choose where your commands write.
    """
    try:
        here = Path(os.path.abspath(folder))
    except FileNotFoundError:  # the current folder was removed
        return None
    for above in (here, *here.parents):
        file = above / FILE_NAME
        # Not Path.is_file, which raises where the folder may not be looked into.
        if os.path.isfile(file):
            if above != here and file.stat().st_uid not in (0, os.getuid()):
                raise OperatorError(
                    f"{file} belongs to another user, who could change where your commands write. "
                    f"Run the command as that user, name the file with `hubctl --config {file}`, "
                    "or use none with `hubctl --config ''`."
                )
            return str(file)
    return None


def read_config(file: str, group: click.Group) -> dict[str, Any]:
    """The defaults of each command, as click's ``default_map``. Raises OperatorError, which has
    every mistake with its line.
    """
    text = _read(file)
    reader = _Reader(schema_of(group), os.path.dirname(os.path.abspath(file)))
    shown = os.path.relpath(file)
    try:
        reader.read(tomllib.loads(text))
    except ValueError as error:  # invalid TOML, or a number of too many digits
        reason, line = str(error), f", line {text.count(chr(10)) + 1}"
        if found := _place_in_toml.fullmatch(reason):
            reason, line = found[1], f", line {found[2]}"
        reason = reason.removesuffix(" (at end of document)")
        raise OperatorError(
            f"{shown}{line}: {reason}. Correct this line; it is not TOML."
        ) from None
    except RecursionError:
        raise OperatorError(f"{shown} nests lists too deeply. Remove them.") from None
    if reader.faults:
        faults = sorted((_line_of(text, where), fault) for where, fault in reader.faults)
        messages = [
            f"{shown}, line {line}: {fault}" if line else f"{shown}: {fault}"
            for line, fault in faults[:SHOWN_FAULTS]
        ]
        if len(faults) > SHOWN_FAULTS:
            messages.append(f"… and {len(faults) - SHOWN_FAULTS:,} more")
        raise OperatorError("\n".join(messages))
    for where in reader.former:
        key = ".".join(where)
        say(f"{shown}: `{key}` is ignored: this release has no such setting. Remove it.")
    return reader.default_map()


def _is_former(place: Where, value: Any) -> bool:
    """True for what a file of an earlier release may have, and this one has not."""
    if isinstance(value, dict):
        return place in FORMER_TABLES
    return place[-1] in FORMER_KEYS or place in (("hosts", "state"), ("hosts", "trusted-proxy"))


def _read(file: str) -> str:
    try:
        with open(file, "rb") as opened:
            data = opened.read(BYTES_MAX + 1)
        if len(data) > BYTES_MAX:
            raise OperatorError(f"{file} has more than {BYTES_MAX:,} bytes. Remove some.")
        return data.decode()
    except FileNotFoundError:
        raise OperatorError(
            f"No file {file}. Name another with --config or HUB_CONFIG, or create a hub with "
            "`hubctl init DIR`."
        ) from None
    except OSError as error:
        raise OperatorError(f"Cannot read {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise OperatorError(
            f"{file} is not UTF-8 at byte {error.start:,}. Save it as UTF-8."
        ) from None


# Tables and keys that an earlier release wrote into new files, or read there.
FORMER_TABLES = {("mcp",), ("publish-service",)}
FORMER_KEYS = {
    "deploy-endpoint-url", "deploy-guarded", "deploy-jobs", "deploy-no-delete", "endpoint-url",
    "git", "git-branch", "git-folder", "hsts", "jobs", "keep", "limits", "no-upstream",
    "on-deployed", "redirect-from", "target", "trusted-proxies",
}  # fmt: skip


class _Reader:
    """Compares the file with the schema, and collects values and faults."""

    def __init__(self, schema: Schema, root: str) -> None:
        self.faults: list[tuple[Where, str]] = []
        self.former: list[Where] = []
        self._schema = schema
        self._root = root
        self._values: dict[Where, Any] = {}

    def read(self, table: dict[str, Any], where: Where = ()) -> None:
        for key, value in table.items():
            place = (*where, key)
            if place in self._schema.known:
                self._read_value(place, value)
            elif place in self._schema.tables and isinstance(value, dict):
                self.read(value, place)
            elif _is_former(place, value):
                self.former.append(place)
            else:
                self.faults.append((place, self._unknown(place, value)))

    def _read_value(self, place: Where, value: Any) -> None:
        for setting in self._schema.known[place]:
            if fault := fault_of(setting, value):
                self.faults.append((place, fault))
                return
        self._values[place] = value

    def _unknown(self, place: Where, value: Any) -> str:
        *table, key = place
        within = f"in [{'.'.join(table)}]" if table else "at the top of the file"
        if place in self._schema.tables:
            return f"{key} is a table. Write [{'.'.join(place)}] on a line, and its keys below it."
        if isinstance(value, dict):
            near = _nearest(key, (one[-1] for one in self._schema.tables if one[:-1] == place[:-1]))
            return f"Unknown table [{'.'.join(place)}]. {near or 'No such command has settings.'}"
        if _secret.search(key):
            return (
                f"`{key}` is unknown, and secrets do not belong in {FILE_NAME}, which is often "
                "shared. Put them into the environment."
            )
        if (key,) in self._schema.known:
            return f"`{key}` does not belong {within}. Move it to the top of the file."
        if tables := [
            f"[{'.'.join(one.words)}]" for one in self._schema.settings if one.key == key
        ]:
            return f"`{key}` does not belong {within}. Move it to {' or '.join(tables)}."
        known = (one[-1] for one in self._schema.known if one[:-1] == place[:-1])
        near = _nearest(key, known) or _nearest(key, (one.key for one in self._schema.settings))
        return f"Unknown key `{key}` {within}. {near or 'Remove it.'}"

    def default_map(self) -> dict[str, Any]:
        """The values that were read, by the commands' words and the options' names."""
        defaults: dict[str, Any] = {}
        for setting in self._schema.settings:
            value = self._value_for(setting)
            if value is None:
                continue
            table = defaults
            for word in setting.words:
                table = table.setdefault(word, {})
            table[setting.option.name] = self._placed(value) if is_path(setting.option) else value
        return defaults

    def _value_for(self, setting: Setting) -> Any:
        own = (*setting.words, setting.key)
        if own in self._values:
            return self._values[own]
        top = (setting.key,)
        if top in self._values and setting in self._schema.known[top]:
            return self._values[top]
        # Settings of the site, and whether it is private, are the same for all commands.
        of_serve = ("serve", setting.key)
        is_of_site = ("build", setting.key) in self._schema.known
        if is_of_site and of_serve in self._values and setting in self._schema.known[top]:
            return self._values[of_serve]
        default = setting.option.default
        return default if is_path(setting.option) and isinstance(default, str) else None

    def _placed(self, value: Any) -> Any:
        """A path, or each of a list of them, from the current folder."""
        if isinstance(value, list):
            return [self._placed(one) for one in value]
        if "://" in value or os.path.isabs(value) or self._root == os.getcwd():
            return value
        return os.path.relpath(os.path.join(self._root, value))


def fault_of(setting: Setting, value: Any) -> str | None:
    """Describes what is wrong with a value of the file; None if nothing is."""
    option, key = setting.option, setting.key
    if wanted := _wrong_type(option, value):
        return f"`{key}` must be {wanted}."
    try:
        option.process_value(click.Context(setting.command), value)
    except click.UsageError as error:
        return f"`{key}`: {error.message}"
    except HubError as error:
        return f"`{key}`: {error}"
    return None


def _wrong_type(option: click.Option, value: Any) -> str | None:
    """Describes the type that a value must have; None if it has it."""
    if option.is_flag:
        return None if isinstance(value, bool) else "true or false"
    if option.multiple or option.nargs != 1:
        is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return None if is_list else f'a list of texts, like ["{option.metavar}"]'
    if isinstance(option.type, click.types.IntParamType):
        return None if isinstance(value, int) and not isinstance(value, bool) else "a whole number"
    return None if isinstance(value, str) else 'a text, in "double quotes"'


def _nearest(wrong: str, known: Iterator[str]) -> str:
    near = next(iter(alike(wrong, sorted(set(known)))), None)
    return f"Did you mean `{near}`?" if near else ""


def _line_of(text: str, where: Where) -> int:
    """The first line with a key below the header of its table, or with a table's header; 0 where no
    line begins with it.
    """
    found = _first(text, r"\[+[ \t]*{}[ \t]*\]", where)
    if not found:
        table = _first(text, r"\[[ \t]*{}[ \t]*\]", where[:-1])
        found = _first(text, r"{}[ \t]*[=.]", where[-1:], table.end() if table else 0)
    return text.count("\n", 0, found.end()) + 1 if found else 0


def _first(text: str, form: str, words: Where, start: int = 0) -> re.Match | None:
    """The first line from ``start`` that begins in this form, in which {} stands for the words."""
    quoted = (rf"[\"']?{re.escape(word)}[\"']?" for word in words)
    dotted = r"[ \t]*\.[ \t]*".join(quoted)
    return re.compile(rf"^[ \t]*{form.format(dotted)}", re.MULTILINE).search(text, start)
