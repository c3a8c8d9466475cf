"""The deployment that the options name, and what the suite finds out about it."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import parse_base_url
from tests.conformance.catalogue import Catalogue, Unusable
from tests.conformance.client import NoAnswer, asking
from tests.conformance.deployment import PRIVATE, Deployment
from tests.conformance.hosts import Host


class Outsider(NamedTuple):
    """The deployment that the options name, and what was found out about it."""

    deployment: Deployment
    host: Host


OUTSIDER = pytest.StashKey[Outsider]()


def find_outsider(config: pytest.Config, url: str) -> Outsider:
    """Raises UsageError where it cannot be tested."""
    level = config.getoption("--level")
    token, publish_to = config.getoption("--token"), config.getoption("--publish-to")
    rate_limit, sample = config.getoption("--rate-limit"), config.getoption("--sample")
    member = ""
    if level == PRIVATE:
        if not token or publish_to:
            raise pytest.UsageError("--level private needs --token, and no --publish-to")
        token, member = "", token
    if bool(token) != bool(publish_to):
        raise pytest.UsageError("--token and --publish-to go together: both, or none of them")
    if publish_to and publish_to.count("/") != 1:
        raise pytest.UsageError("--publish-to is a repo, as OWNER/NAME")
    if rate_limit < 0 or sample < 0:
        raise pytest.UsageError("--rate-limit and --sample are numbers from 0 on")
    is_parallel = config.getoption("numprocesses", None) or hasattr(config, "workerinput")
    if (rate_limit or token) and is_parallel:
        raise pytest.UsageError("--rate-limit and --token disturb other tests: run without -n")
    lacks = dict.fromkeys(config.getoption("--lacks") or (), "--lacks")
    if not token:
        lacks["token"] = "no --token and --publish-to"
    if not rate_limit:
        lacks["rate limit"] = "no --rate-limit"
    try:
        deployment = Deployment(
            parse_base_url(url), token or "", publish_to or "", rate_limit, sample,
            may_lack_data=True, member=member,
        )  # fmt: skip
        with asking(deployment, say(config)) as client:
            catalogue = Catalogue(client)
            if not catalogue.has_langfuse:
                lacks["langfuse"] = "not built with --langfuse"
            level = level or ("full" if catalogue.hub.get("queries") is True else "files")
    except (OperatorError, Unusable, NoAnswer) as error:
        raise pytest.UsageError(f"Cannot test {url}. {error}") from None
    host = Host(level, lambda _: contextlib.nullcontext(deployment), lacks)
    return Outsider(deployment, host)


def say(config: pytest.Config) -> Callable[[str], None]:
    """Returns a function that prints progress, whatever pytest captures."""

    def write(text: str) -> None:
        capture = config.pluginmanager.getplugin("capturemanager")
        quiet = capture.global_and_fixture_disabled() if capture else contextlib.nullcontext()
        with quiet:
            print(f"[{text}]", flush=True)

    return write
