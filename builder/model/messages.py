"""Error messages that every host and the embedded server send in the same words.

``missing`` has those for missing files.
"""

from collections.abc import Mapping
from types import MappingProxyType

from builder.model import names
from builder.model.errors import LANGFUSE_INVALID, LANGFUSE_NOT_FOUND
from builder.model.routes import (
    API,
    BY_NAME,
    LANGFUSE_NOT_FILTERS,
    LIST_PARAMETERS,
    QUERY_CHARS_MAX,
    SORTS,
)
from builder.model.service_urls import ACCOUNT_URL

# Messages by code, for hosts that cannot give details.
MESSAGES = {
    LANGFUSE_INVALID: "Give version or label, each once, and not both. A list takes page, a whole "
    f"number from 1, and tag; it cannot filter by {', '.join(LANGFUSE_NOT_FILTERS)}.",
    LANGFUSE_NOT_FOUND: "Nothing at this address. Langfuse's SDKs can read prompts here, by names "
    "like owner/name, and nothing else.",
    "invalid_label": f"Invalid label. A label has 1 to {names.LABEL_CHARS_MAX} characters: a-z and "
    "0-9, and between them also dots, underscores and hyphens, like production.",
    "invalid_name": "Invalid name. Owners and prompts have lower-case names: a-z, 0-9 and single "
    "hyphens between them.",
    "invalid_parameter": "Invalid parameter. page is a whole number from 1, sort is one of "
    f"{', '.join(SORTS)}, tag is one tag or several separated by commas, and q has at most "
    f"{QUERY_CHARS_MAX} characters. Give each parameter once.",
    "invalid_version": "Invalid version. A version is x.y.z: three whole numbers without leading "
    "zeros.",
    "not_found": f"Nothing at this address. {API}/openapi.json lists the endpoints.",
    "method_not_allowed": "This address is read-only. Use GET or HEAD.",
    "content_too_large": "The request is too large. Send less.",
    "range_not_satisfiable": "The range begins after the end of the text. Request an earlier one.",
    "rate_limited": "Too many reads in a minute. Wait as many seconds as Retry-After says, "
    "and cache answers as Cache-Control says.",
    "missing_token": "This hub is for members. Send a token as `Authorization: Bearer hub_…`; you "
    f"can create one at {ACCOUNT_URL}.",
    "invalid_token": "This hub does not know the token, or it was revoked. Create a new one at "
    f"{ACCOUNT_URL}.",
    "token_expired": f"The token expired. Create a new one at {ACCOUNT_URL}.",
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


# For people, as plain text.
ACCOUNT_TOO_LARGE = "The form is too large. Go back and send less."
# For a request that cannot be parsed.
BAD_REQUEST = "The request is not valid HTTP, or its address or headers are too long."
# For a private hub whose service cannot be reached to check access.
CLOSED = "The hub cannot tell now who may read. Try again in a moment."
# Not a 503, because a retry would get the same answer.
NO_QUERIES = (
    "This host cannot search (q) or filter by several tags. Use one tag, or search "
    f"{BY_NAME['catalogue'].url}, which lists every prompt."
)
