"""Tool calls without the SDK: the same answers, from fewer steps.

A call that looks like any client's is decoded, done and put into its envelope here. Whatever is
unusual about a request – a member that is not known, a version that is not known, a header that
comes twice – leaves it to the SDK. A test holds both to the same answers.
"""

from typing import Any, NamedTuple

import mcp_types as types
import msgspec
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic import ValidationError

from mcp_app.answer_cache import KeptAnswers
from mcp_app.reader import Catalogue, Reader
from mcp_app.selection import Selection
from mcp_app.tools import TOOLS, Outcome, call, search_prompts

# What a client gets who names no version in its header.
ASSUMED_VERSION = types.DEFAULT_NEGOTIATED_VERSION
SEARCH = search_prompts.__name__
ENVELOPES_KNOWN_MAX = 1000
ENVELOPE_BYTES_MAX = 4096

_encode = msgspec.json.encode


class _Params(Struct, forbid_unknown_fields=True):
    name: str
    arguments: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


class _Meta(Struct):
    """Members beyond these change no answer."""

    progress: str | int | UnsetType = msgspec.field(name="progressToken", default=UNSET)
    version: str | UnsetType = msgspec.field(name=types.PROTOCOL_VERSION_META_KEY, default=UNSET)
    capabilities: Raw = msgspec.field(name=types.CLIENT_CAPABILITIES_META_KEY, default=Raw())
    info: Raw = msgspec.field(name=types.CLIENT_INFO_META_KEY, default=Raw())
    log_level: Raw = msgspec.field(name=types.LOG_LEVEL_META_KEY, default=Raw())


_decode_params = msgspec.json.Decoder(_Params).decode
_decode_meta = msgspec.json.Decoder(_Meta).decode
_decode_arguments = msgspec.json.Decoder(dict[str, Any]).decode


class Spoken(NamedTuple):
    """What of a request's headers says which protocol it speaks."""

    version: str | None
    method: bytes | None
    name: bytes | None


class QuickCalls:
    """Answers tool calls over a catalogue."""

    def __init__(self, catalogue: Catalogue, server_info: dict[str, Any]) -> None:
        self._catalogue = catalogue
        self._kept = KeptAnswers()
        self._known_envelopes: set[bytes] = set()
        self._modern_end = (
            b',"resultType":"complete","_meta":'
            + _encode({types.SERVER_INFO_META_KEY: server_info})
            + b"}"
        )

    async def answer(self, selection: Selection, spoken: Spoken, params: Raw) -> bytes | None:
        """The result of ``tools/call`` as JSON; None where the SDK is to answer."""
        version = ASSUMED_VERSION if spoken.version is None else spoken.version
        try:
            asked = _decode_params(params)
            if asked.name not in TOOLS or not self._is_usual(spoken, version, asked, params):
                return None
            arguments = b"" if asked.arguments is UNSET else bytes(asked.arguments)
            made_of = self._catalogue.queries.version() if asked.name == SEARCH else None
            key = (version, selection, asked.name, arguments, made_of)
            kept = self._kept.get(key)
            if kept is not None:
                return kept
            given = _decode_arguments(arguments) if arguments else {}
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None
        reader = Reader(self._catalogue, selection, made_of)
        result = self._result(version, await call(TOOLS[asked.name], reader, given))
        if reader.sources or (made_of and reader.sources is not None):
            self._kept.put(key, len(arguments), result, reader.sources)
        return result

    def _is_usual(self, spoken: Spoken, version: str, asked: _Params, params: Raw) -> bool:
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            if asked.meta is not UNSET:
                _decode_meta(asked.meta)
            return True
        if (
            version not in MODERN_PROTOCOL_VERSIONS
            or spoken.method != b"tools/call"
            or spoken.name != asked.name.encode()
            or asked.meta is UNSET
        ):
            return False
        meta = _decode_meta(asked.meta)
        if meta.version != version:
            return False
        envelope = b"\0".join((bytes(meta.capabilities), bytes(meta.info), bytes(meta.log_level)))
        return envelope in self._known_envelopes or self._check(version, envelope, params)

    def _check(self, version: str, envelope: bytes, params: Raw) -> bool:
        """Whether the SDK would accept what a client says of itself, which most say each time."""
        try:
            methods.validate_client_request("tools/call", version, msgspec.json.decode(params))
        except ValidationError:
            return False
        if len(envelope) <= ENVELOPE_BYTES_MAX:
            if len(self._known_envelopes) >= ENVELOPES_KNOWN_MAX:
                self._known_envelopes.clear()
            self._known_envelopes.add(envelope)
        return True

    def _result(self, version: str, outcome: Outcome) -> bytes:
        parts = [b'{"content":[{"type":"text","text":', _encode(outcome.text), b"}]"]
        if not outcome.is_error:
            parts += b',"structuredContent":', outcome.text.encode()
        parts.append(b',"isError":true' if outcome.is_error else b',"isError":false')
        parts.append(self._modern_end if version in MODERN_PROTOCOL_VERSIONS else b"}")
        return b"".join(parts)
