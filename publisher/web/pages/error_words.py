"""The words of the pages that show errors."""

# By status.
HEADINGS = {
    400: "That did not work",
    403: "Not allowed",
    404: "Page not found",
    413: "Too large",
    429: "Wait a moment",
    500: "The hub failed",
    503: "Temporarily unavailable",
}
# Failures of the hub in words for its writers, who see the error itself as the operator's detail.
FAILURES = {
    "internal_error": "The hub could not do this. Wait a moment, then reload the page.",
    "storage_unavailable": (
        "Nothing is saved, because the hub cannot store anything right now. Your text is kept on "
        "the page before this one: go back, and save it later."
    ),
}
