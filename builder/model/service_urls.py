"""The addresses that services answer, not files: publishing, accounts, health and MCP."""

import re

from builder.model.routes import API, BY_NAME

# Answered by the publish service: POST to the first, PUT and DELETE to the second.
PUBLISH_URL = BY_NAME["versions"].url
LABEL_URL = BY_NAME["label"].url
# As regular expressions that accept any names, because the service reports what is wrong with a
# name.
PUBLISH_PATTERN = re.sub(r"\{\w+\}", "[^/]+", PUBLISH_URL)
LABEL_URL_PATTERN = re.sub(r"\{\w+\}", "[^/]+", LABEL_URL)
# The methods that write, by the pattern of the URL's path.
WRITES = {PUBLISH_PATTERN: ("POST",), LABEL_URL_PATTERN: ("PUT", "DELETE")}
# GET: the state of the builds, and the health of the service.
HEALTH_URL = "/healthz"
READY_URL = "/readyz"
# A CI job exchanges its issuer's ID token for a token here, by POST.
TRUSTED_URL = f"{API}/trusted-publishing/token"
# POST: the result that a publication would have. It writes nothing and needs no token.
CHECK_URL = BY_NAME["repo"].url + "/check"
CHECK_PATTERN = re.sub(r"\{\w+\}", "[^/]+", CHECK_URL)
# The account settings: pages of the publish service, at this URL and below it.
ACCOUNT_URL = "/account"
# The page to sign in. `?page=` may name the page to continue with, as it is written in its URL.
LOGIN_URL = f"{ACCOUNT_URL}/login"
# The pages where owners write: the list of their prompts, and pages below it, whose forms may be as
# large as a publication.
WRITING_URL = f"{ACCOUNT_URL}/prompts"
# GET: the page that compares two versions of a prompt, `?from=` and `to=`.
COMPARE_URL = f"{ACCOUNT_URL}/compare/{{owner}}/{{name}}"
# The address of `hubctl serve` for MCP.
MCP_URL = "/mcp"
MCP_URLS = (MCP_URL, f"{MCP_URL}/")


def write_methods(path: str) -> tuple[str, ...]:
    """The methods that write at a URL's path, whatever names it contains; empty for most paths."""
    return next((WRITES[one] for one in WRITES if re.fullmatch(one, path)), ())


def is_check_url(path: str) -> bool:
    """True if drafts are checked at a URL's path, whatever names it contains."""
    return path.endswith("/check") and re.fullmatch(CHECK_PATTERN, path) is not None


def is_account_url(path: str) -> bool:
    """True if a URL's path is in the account settings, even if nothing exists there."""
    return f"{path}/".startswith(f"{ACCOUNT_URL}/")


def is_compare_url(path: str) -> bool:
    """True if a URL's path is where versions are compared, whatever names it contains."""
    return path.startswith(COMPARE_URL.partition("{")[0])


def url_at(host: str, port: int) -> str:
    """The URL at which a program on this machine reaches a server that listens there."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
