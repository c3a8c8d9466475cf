"""What browsers and the shell client run to look through a catalogue, with the rules put in."""

import os

_HERE = os.path.dirname(__file__)


def for_browsers(rules: str) -> bytes:
    """A module; ``rules`` is JSON in ASCII, as ``builder.search.rules`` has it."""
    source = _read("assets", "catalogue.js")
    return source.replace("RULES = {};", f"RULES = {rules};").encode()


def for_client(rules: str) -> bytes:
    """Python for the shell client's own program to begin with."""
    source = _read("client", "search.py")
    return source.replace('r"""{}"""', f'r"""{rules}"""').encode()


def _read(*parts: str) -> str:
    with open(os.path.join(_HERE, *parts), encoding="utf-8") as file:
        return file.read()
