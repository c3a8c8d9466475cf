"""Secrets of others with a fixed shape: prefix, characters, length. Pure.

The shapes are those that their makers document, or that GitHub's secret scanning and gitleaks look
for (https://docs.github.com/code-security/secret-scanning,
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml). A shape without a prefix of
its own, such as that of a password, is in no rule: it would match other texts.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_KEY_FILES = re.compile(r"(?:.*/)?id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:p12|pfx|jks|kdbx|ppk)")
# A PEM file may as well be public.
_PEM_FILES = re.compile(r".*\.(?:pem|key)")
_PUBLIC = re.compile(r"-----BEGIN (?:X509 |TRUSTED )?(?:CERTIFICATE|[A-Z ]*PUBLIC KEY)")
# Examples in documents repeat a character, count, or say that they are examples.
_DISTINCT_MIN = 8
_EXAMPLE = re.compile(r"EXAMPLE|example|0123456789|1234567890|abcdefgh|xxxxxx|XXXXXX")


class Shape(NamedTuple):
    """``what`` it is; ``prefixes``: each match has one; and the whole ``pattern``."""

    what: str
    prefixes: tuple[str, ...]
    pattern: str


SHAPES = (
    Shape("an API key of Anthropic", ("sk-ant-",), r"sk-ant-[a-z]+\d\d-[\w-]{80,120}"),
    Shape(
        "an API key of OpenAI",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "T3BlbkFJ"),
        r"sk-(?:proj|svcacct|admin)-[\w-]{40,200}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
    ),
    Shape("an API key of Google", ("AIza",), r"AIza[\w-]{35}"),
    Shape("a token of Hugging Face", ("hf_",), r"hf_[A-Za-z]{34}"),
    Shape(
        "a token of GitHub",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    ),
    Shape("a token of GitLab", ("glpat-",), r"glpat-[\w-]{20}"),
    Shape("an access key of AWS", ("AKIA", "ASIA"), r"(?:AKIA|ASIA)[A-Z2-7]{16}"),
    Shape(
        "a token of Slack",
        ("xoxb-", "xoxp-", "xoxa-", "xapp-", "hooks.slack.com"),
        r"xox[abp]-\d{10,13}-\d{10,13}-[A-Za-z0-9-]{20,}|xapp-\d-[A-Z0-9]{9,}-\d{10,}-[a-z0-9]{60,}"
        r"|hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{24}",
    ),
    Shape("a secret key of Stripe", ("k_live_",), r"[rs]k_live_[A-Za-z0-9]{24,99}"),
    Shape("a token of npm", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    Shape("a token of PyPI", ("pypi-AgEIcHlwaS5vcmc",), r"pypi-AgEIcHlwaS5vcmc[\w-]{50,}"),
    Shape("a token of DigitalOcean", ("do",), r"do[opr]_v1_[a-f0-9]{64}"),
    Shape("an API key of SendGrid", ("SG.",), r"SG\.[\w-]{22}\.[\w-]{43}"),
    Shape(
        "a private key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:\\[nr]|\s|(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]*\n)*+[A-Za-z0-9+/=]{40,}",
    ),
)
_patterns = [
    (one, re.compile(rf"(?<![A-Za-z0-9_-])(?:{one.pattern})(?![A-Za-z0-9])", re.ASCII))
    for one in SHAPES
]


def find_secrets(text: str) -> Iterator[tuple[str, int]]:
    """The places of a text that look like secrets, each with its kind and its line from 1. Takes
    time in proportion to its length.
    """
    for shape, pattern in _patterns:
        if any(prefix in text for prefix in shape.prefixes):
            for match in pattern.finditer(text):
                if len({*match[0]}) >= _DISTINCT_MIN and not _EXAMPLE.search(match[0]):
                    yield shape.what, text.count("\n", 0, match.start()) + 1


def tell_secrets(text: str, files: Sequence[tuple[str, bytes]] = ()) -> Iterator[str]:
    """A warning for each secret in a prompt's text and in its files (path and bytes)."""
    for what, line in find_secrets(text):
        yield _warning(f"{what} in line {line} of the text")
    for path, data in files:
        shown = data.decode("latin-1")
        found = [*find_secrets(shown)]
        for what, line in found:
            yield _warning(f"{what} at {path}:{line}")
        is_key = _KEY_FILES.fullmatch(path)
        if not found and (is_key or (_PEM_FILES.fullmatch(path) and not _PUBLIC.search(shown))):
            yield _warning(f"a private key in {path}, by its name")


def _warning(what: str) -> str:
    return (
        f"secret_suspected: This looks like {what}. Everyone can read what is published. If it is "
        "a secret, remove it, and revoke it where it was already shown."
    )
