"""OpenAI: reusable prompts, from the Responses API or from saved responses.

OpenAI has neither an export nor a list of prompts, and ends them on 2026-11-30. What it has is
``POST /v1/responses``: made with a prompt's id, and with ``{{x}}`` as the value of each variable x,
the response has the prompt's own text in ``instructions``. A response is billed, so few tokens are
asked for, no tool may be called, and nothing is stored. A response that was saved earlier is read
likewise, also in a list, a stream of events or the results of a batch.

Follows the published OpenAPI description. Not taken: what the model answered, ``metadata``, the
tier, the user, and values of variables that are no text. Neither a name nor a changelog is in a
response, and its time is when it was made. Since a call sends them, the prompt's own
``max_output_tokens`` and ``tool_choice`` do not come along.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from builder.model.errors import OperatorError, cut
from builder.model.names import ORDINAL_MAX, VERSIONS_PER_REPO_MAX
from builder.model.plural import counted
from publisher.importers.items import Document, History, Rejection, Revision
from publisher.importers.vendors.api import Api, ApiError, file_part
from publisher.importers.vendors.openai_responses import (
    ASKED,
    OUTPUT_TOKENS_MIN,
    Saved,
    read_number,
    read_response,
)

TITLE = "OpenAI"
API_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
KEYS = ("OPENAI_API_KEY",)
# Asked instead of a prompt's model where that has ended.
MODEL_VARIABLE = "OPENAI_MODEL"
OPTIONAL_KEYS = (MODEL_VARIABLE,)

ALL = "all"
# The label of the version that OpenAI gives where none is asked for.
CURRENT = "current"
IDS_BYTES_MAX = 1024 * 1024
# Each try names at least one variable more. Those that fail are not billed.
TRIES_MAX = 100
VARIABLES_MAX = 100
MESSAGE_CHARS_MAX = 10_000

_ID_PREFIX = "pmpt_"
# An id is long, and begins with the time at which the prompt was made.
_NAME_CHARS = len(_ID_PREFIX) + 16
_NOTES_FILE = "asked.json"
_NOTES_KEY = "prompts_asked_for"
_id = re.compile(r"pmpt_[A-Za-z0-9_-]{1,200}")
_version = re.compile(f"(?:[1-9][0-9]{{0,8}}|{ALL})?")
# Of an error's message: "Missing prompt variables: name, topic".
_missing = re.compile(r"missing\b[^:]{0,80}\bvariables?\b[^:]{0,80}:(.*)", re.I | re.DOTALL)
_unknown = re.compile(r"unknown\b[^:]{0,80}\bvariables?\b[^:]{0,80}:(.*)", re.I | re.DOTALL)
_quoted = re.compile(r"""['"`]([^'"`]{1,100})['"`]""")
_bare = re.compile(r"[^\s,;.:()\[\]{}]{1,100}")
_no_version = re.compile(r"version\b.*\b(?:not found|does not exist)", re.I | re.DOTALL)


class Wanted(NamedTuple):
    """A line of a file of ids. ``version`` is a number, ``all``, or empty for the current one."""

    id: str
    version: str = ""
    name: str = ""


def read_wanted(path: str) -> list[Wanted] | None:
    """The prompts that a file asks for; None if it is no file of ids, but an export.

    It has an id on each line, a version (or ``all``) after it, and a name after that, both if you
    like. Raises OperatorError.
    """
    try:
        if os.path.isdir(path):
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(IDS_BYTES_MAX + 1).removeprefix("\ufeff")
    except OSError as error:
        raise OperatorError(f"Cannot read {path}: {error.strerror}.") from None
    # A name may have a # in a word.
    lines = enumerate((re.split(r"(?:^|\s)#", line)[0].split() for line in text.splitlines()), 1)
    entries = [(number, words) for number, words in lines if words]
    if not entries or not entries[0][1][0].startswith(_ID_PREFIX):
        return None
    if len(text) > IDS_BYTES_MAX:
        raise OperatorError(f"{path} has more than {IDS_BYTES_MAX:,} bytes of ids. Split it.")
    wanted = []
    for number, (prompt_id, *words) in entries:
        version = words.pop(0) if words and re.fullmatch(rf"\d+|{ALL}", words[0]) else ""
        if not _id.fullmatch(prompt_id) or not _version.fullmatch(version):
            raise OperatorError(
                f"{path}, line {number:,}: {cut(f'{prompt_id} {version}'.strip(), 80)!r} is no "
                f"prompt. Write its id, and after that its version, `{ALL}`, or nothing for the "
                f"current one, as in `{_ID_PREFIX}123 3`."
            )
        wanted.append(Wanted(prompt_id, version, " ".join(words)))
    return list(dict.fromkeys(wanted))


def calls_min(wanted: Sequence[Wanted]) -> int:
    """How many billed calls a download makes at least."""
    return len(wanted)


def estimate(wanted: Sequence[Wanted]) -> str:
    """What a download costs, to be told before it."""
    prompts = len({one.id for one in wanted})
    return (
        f"{counted(prompts, 'prompt')} of OpenAI: at least "
        f"{counted(calls_min(wanted), 'call')}, one for each version. OpenAI bills each with the "
        f"input tokens of its prompt, and up to {OUTPUT_TOKENS_MIN} output tokens."
    )


def headers(keys: Mapping[str, str]) -> dict[str, str]:
    """What authenticates a request."""
    return {"Authorization": f"Bearer {keys[KEYS[0]]}"}


class _Notes:
    """What the responses do not say themselves, kept beside them."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        # By id, the version that is the current one; and by file, the model that was asked instead.
        self.current: dict[str, str] = {}
        self.models: dict[str, str] = {}
        self.faults: list[tuple[str, str]] = []

    def write(self, api: Api) -> None:
        api.write(_NOTES_FILE, {_NOTES_KEY: vars(self)})

    def read(self, value: Any) -> None:
        """Add what such a file says; what is not as it was written is passed over."""
        value = value if isinstance(value, dict) else {}
        for key in ("names", "current", "models"):
            if isinstance(value.get(key), dict):
                texts = {one: two for one, two in value[key].items() if isinstance(two, str)}
                getattr(self, key).update(texts)
        for fault in value["faults"] if isinstance(value.get("faults"), list) else ():
            if isinstance(fault, list) and len(fault) == 2:
                self.faults.append((str(fault[0]), str(fault[1])))


def download(api: Api) -> None:
    """Keep a response for each version that is wanted. What is wrong with one prompt is noted, and
    the rest goes on. Raises ApiError.
    """
    notes = _Notes({one.id: one.name for one in api.wanted if one.name})
    notes.write(api)
    for done, one in enumerate(api.wanted):
        api.count(done, len(api.wanted))
        try:
            _download_prompt(api, one, notes)
        except ApiError as error:
            if error.status not in (400, 404) and not _is_of_model(error):
                raise
            notes.faults.append((f"{one.id} {one.version}".strip(), str(error)))
    notes.write(api)
    api.count(len(api.wanted), len(api.wanted))


def _download_prompt(api: Api, wanted: Wanted, notes: _Notes) -> None:
    """All versions are those up to the current one, and the ones after it without a gap."""
    if wanted.version not in (ALL, ""):
        _ask(api, wanted.id, wanted.version, notes)
        return
    current = _version_of(_ask(api, wanted.id, "", notes))
    notes.current[wanted.id] = current
    for number in range(1, VERSIONS_PER_REPO_MAX + 1) if wanted.version == ALL else ():
        if str(number) == current:
            continue
        try:
            _ask(api, wanted.id, str(number), notes)
        except ApiError as error:
            if not _is_no_version(error):
                raise
            if not current or number > int(current):
                return


def _ask(api: Api, prompt_id: str, version: str, notes: _Notes) -> Any:
    """The response to a prompt with each of its variables as the value of itself.

    The API says which variables are missing, and no more is known of them. Raises ApiError.
    """
    body: dict[str, Any] = {"store": False, **ASKED}
    prompt: dict[str, Any] = {"id": prompt_id} | ({"version": version} if version else {})
    variables: dict[str, str] = {}
    refused: set[str] = set()
    for _ in range(TRIES_MAX):
        prompt |= {"variables": variables} if variables else {}
        # With another model it is another file, so that a download that goes on notes it again.
        file = _file(prompt_id, version, body.get("model", ""))
        try:
            return api.keep(file, "responses", method="POST", body=body | {"prompt": prompt})
        except ApiError as error:
            last = error
        missing = [name for name in _named(_missing, last) if name not in {*variables, *refused}]
        unknown = [name for name in _named(_unknown, last) if name in variables]
        if missing:
            variables |= {name: f"{{{{{name}}}}}" for name in missing}
        elif unknown:
            refused.update(unknown)
            variables = {name: one for name, one in variables.items() if name not in refused}
        elif _error_of(last).get("param") == "tool_choice" and "tool_choice" in body:
            del body["tool_choice"]  # of a prompt without tools
        elif _is_of_model(last) and "model" not in body:
            if not api.key(MODEL_VARIABLE):
                told = f"To ask another model for the prompt, set {MODEL_VARIABLE}."
                raise last.with_more(told)
            body["model"] = notes.models[file] = api.key(MODEL_VARIABLE)
        else:
            raise last
    raise last


def _file(prompt_id: str, version: str, model: str = "") -> str:
    by_other = f" by {file_part(model)}" if model else ""
    return f"{file_part(prompt_id)}/{version or CURRENT}{by_other}.json"


def _version_of(answer: Any) -> str:
    prompt = answer.get("prompt") if isinstance(answer, dict) else None
    number = read_number(prompt.get("version")) if isinstance(prompt, dict) else None
    return str(number or "")


def _error_of(error: ApiError) -> dict[str, Any]:
    said = error.answer.get("error") if isinstance(error.answer, dict) else None
    return said if isinstance(said, dict) else {}


def _message(error: ApiError) -> str:
    return str(_error_of(error).get("message", ""))[:MESSAGE_CHARS_MAX]


def _named(pattern: re.Pattern[str], error: ApiError) -> list[str]:
    """The variables that an error names."""
    found = pattern.search(_message(error))
    if not found or error.status != 400:
        return []
    names = _quoted.findall(found[1]) or _bare.findall(re.split(r"\.(?:\s|$)", found[1])[0])
    return names[:VARIABLES_MAX]


def _is_of_model(error: ApiError) -> bool:
    said = _error_of(error)
    return said.get("code") == "model_not_found" or said.get("param") == "model"


def _is_no_version(error: ApiError) -> bool:
    if _is_of_model(error):
        return False
    return error.status == 404 or (
        error.status == 400 and _no_version.search(_message(error)) is not None
    )


def read_histories(documents: Iterable[Document]) -> Iterator[History | Rejection]:
    """A prompt for each id, with its versions in order. Of several responses of one version, the
    one counts that shows most of the prompt's own text, and its time is that of the first.
    """
    notes = _Notes({})
    found: dict[str, dict[int | str, Saved]] = {}
    for document in documents:
        for where, value in _open(document.where, document.value):
            if isinstance(value, dict) and _NOTES_KEY in value:
                notes.read(value[_NOTES_KEY])
                continue
            try:
                saved = read_response(where, value)
                yield from _add(found.setdefault(saved.id, {}), saved)
            except ValueError as error:
                yield Rejection(where, str(error))
    for prompt_id, versions in found.items():
        name = notes.names.get(prompt_id) or prompt_id[:_NAME_CHARS]
        revisions = [_to_revision(one, notes) for one in sorted(versions.values(), key=_order)]
        yield History(revisions[0].where, "", name, revisions)
    for place, reason in notes.faults:
        yield Rejection(place, reason)


def _order(saved: Saved) -> tuple[int, float]:
    """Those that do not say their version come last, in order of time."""
    return saved.number or ORDINAL_MAX, saved.created


def _open(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The responses in a document: itself, those of a list, of an event or of a batch."""
    if not isinstance(value, dict):
        yield where, value
    elif isinstance(value.get("data"), list):
        for number, one in enumerate(value["data"], start=1):
            yield f"{where}, entry {number:,}", one
    elif str(value.get("type")).startswith("response."):
        if "response" in value:  # others are pieces of the answer
            yield where, value["response"]
    elif "custom_id" in value and isinstance(value.get("response"), dict):
        yield where, value["response"].get("body")
    else:
        yield where, value


def _add(versions: dict[int | str, Saved], saved: Saved) -> Iterator[Rejection]:
    # One that does not say its version is one for each text of the prompt's own.
    key = saved.number or ("" if saved.left else saved.text())
    there = versions.setdefault(key, saved)
    if there is saved:
        return
    best = min(there, saved, key=lambda one: (len(one.left), len(one.back), one.created))
    other = saved if best is there else there
    versions[key] = best._replace(created=min(there.created, saved.created))
    if not (other.left or other.back) and other.text() != best.text():
        yield Rejection(
            other.where, f"has another text for version {saved.number} than {best.where}"
        )


def _to_revision(saved: Saved, notes: _Notes) -> Revision:
    version = str(saved.number or "")
    is_current = bool(version) and notes.current.get(saved.id) == version
    files = {_file(saved.id, version)} | ({_file(saved.id, "")} if is_current else set())
    if not files.isdisjoint(notes.models):
        told = "Left out the model: its own has ended, and another was asked for the prompt."
        saved = saved._replace(
            parameters={key: one for key, one in saved.parameters.items() if key != "model"},
            warnings=[*saved.warnings, told],
        )
    return saved.to_revision((CURRENT,) if is_current else ())
