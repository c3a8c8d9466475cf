"""A version as Langfuse's SDKs read it, and the names by which they find it. Pure."""

from typing import Any, Literal, NamedTuple

import msgspec

from builder.model.answers import Message
from builder.model.names import LATEST

# The label that the SDKs use if the caller names none.
DEFAULT_LABEL = "production"
# Stands for "no ref" in the list of refs of the default version.
NO_REF = ""


class LangfusePrompt(msgspec.Struct, rename="camel"):
    """A version with all fields that any of the SDKs requires. ``version`` is the number of
    publication.

    ``prompt`` is a text if the type is ``text``, and a list of messages if it is ``chat``.
    ``labels`` includes ``latest``.
    """

    name: str
    version: int
    type: Literal["text", "chat"]
    prompt: str | list[Message]
    config: dict[str, Any]
    labels: list[str]
    tags: list[str]
    commit_message: str | None


class LangfuseMeta(msgspec.Struct, rename="camel"):
    """A prompt in a list. ``type`` and ``last_config`` are those of the latest version; ``labels``
    includes ``latest``.
    """

    name: str
    type: Literal["text", "chat"]
    versions: list[int]
    labels: list[str]
    tags: list[str]
    last_updated_at: str
    last_config: dict[str, Any]


class LangfuseListMeta(msgspec.Struct, rename="camel"):
    """The position of a page in a list; ``limit`` is the most prompts of a page."""

    page: int
    limit: int
    total_items: int
    total_pages: int


class Findable(NamedTuple):
    """The data that determines a version's refs. ``ordinal`` is its number of publication,
    ``labels`` are sorted.
    """

    version: str
    ordinal: int
    labels: list[str]


def refs_of(versions: list[Findable]) -> list[list[str]]:
    """The refs of each version of a repo, with NO_REF; the version and its number come first.
    ``versions`` are the readable ones, oldest first, at least one.
    """
    refs = [[one.version, str(one.ordinal), *one.labels] for one in versions]
    refs[-1].append(LATEST)
    named = (at for at, one in enumerate(versions) if DEFAULT_LABEL in one.labels)
    refs[next(named, -1)].append(NO_REF)
    return refs
