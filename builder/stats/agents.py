"""Whether a user agent is a bot, by the list that ``crawler-user-agents`` maintains.

The list names what reads the web for purposes of its own (search engines, archives, monitors,
feed readers, previews, scanners), and HTTP libraries, with which people pull prompts: curl,
python-requests, Go's client. A tag tells them apart. Of the libraries, those that are made for
crawling count as bots. An agent that says nothing is a program like any other.
"""

import re
from functools import lru_cache

from crawleruseragents import CRAWLER_USER_AGENTS_DATA

# Longer ones are cut: what a bot is called stands nearer to the start.
AGENT_CHARS_MAX = 500

_REMEMBERED = 16_384
# The shell client names the hub's address, where any word may be.
_OURS = "hub/"
# How `hubctl doctor` names itself, which reads a prompt to see whether it arrives.
DOCTOR = "hubctl-doctor/1.0"
_LIBRARY = ["http-library"]
_crawling_library = re.compile(
    r"bot|crawl|spider|scrap|larbin|newspaper|opengraph|colly|trafilatura|HTTrack|Download Ninja",
    re.IGNORECASE,
)
_patterns = [
    entry["pattern"]
    for entry in CRAWLER_USER_AGENTS_DATA
    if entry.get("tags") != _LIBRARY or _crawling_library.search(entry["pattern"])
]
# Nearly all are plain texts, to look for which is several times as fast.
_plain = re.compile(r"(?:[^\\.^$*+?{}\[\]|()]|\\\W)+")
_texts = [re.sub(r"\\(.)", r"\1", each) for each in _patterns if _plain.fullmatch(each)]
_others = re.compile("|".join(each for each in _patterns if not _plain.fullmatch(each)))


def is_bot(agent: str) -> bool:
    """Whether a User-Agent header is a bot's."""
    return agent == DOCTOR or _is_bot(agent[:AGENT_CHARS_MAX])


@lru_cache(maxsize=_REMEMBERED)
def _is_bot(agent: str) -> bool:
    if agent.startswith(_OURS):
        return False
    return any(text in agent for text in _texts) or bool(_others.search(agent))
