"""Error messages without details. ``missing`` has those for missing files."""

from collections.abc import Mapping
from types import MappingProxyType

from builder.model.errors import LANGFUSE_INVALID, LANGFUSE_NOT_FOUND
from builder.model.routes import (
    API,
    BY_NAME,
    LANGFUSE_NOT_FILTERS,
    LIST_PARAMETERS,
)

# Messages by code.
MESSAGES = {
    LANGFUSE_INVALID: "Give version or label, each once, and not both. A list takes page, a whole "
    f"number from 1, and tag; it cannot filter by {', '.join(LANGFUSE_NOT_FILTERS)}.",
    LANGFUSE_NOT_FOUND: "Nothing at this address. Langfuse's SDKs can read prompts here, by names "
    "like owner/name, and nothing else.",
    "not_found": f"Nothing at this address. {API}/openapi.json lists the endpoints.",
    "method_not_allowed": "This address is read-only. Use GET or HEAD.",
    "internal_error": "The server failed. Try again in a moment.",
    "unavailable": "Search and publishing are temporarily unavailable. Reading still works. Try "
    "again in a moment.",
}


def misplaced(params: Mapping[str, str] = MappingProxyType({})) -> str:
    """The message for an address that does not accept some of PARAMETERS, or not together: the
    addresses to use instead. ``params`` are the known values of the request.
    """
    names_of_all = {"owner": "OWNER", "name": "NAME", "version": "X.Y.Z", "label": "LABEL"}
    version, version_text, label, label_text = (
        (route.query or route.url).format_map(names_of_all | dict(params))
        for route in map(BY_NAME.__getitem__, ("version", "version_raw", "label", "label_raw"))
    )
    return (
        f"This address does not take these parameters, or not together. A version is at {version} "
        f"(its text at {version_text}), the version that a label names at {label} (its text at "
        f"{label_text}). {', '.join(LIST_PARAMETERS)} belong to {BY_NAME['repos'].url}."
    )
