"""Detection of bots by user agent, with the list that ``crawler-user-agents`` maintains.

The list names programs that read the web for their own purposes (search engines, archives,
monitors, feed readers, previews, scanners), and HTTP libraries with which people pull prompts:
curl, python-requests, Go's client. A tag marks the libraries. Those made for crawling count as
bots. An empty agent is not a bot.
"""

import re
from functools import lru_cache

from crawleruseragents import CRAWLER_USER_AGENTS_DATA

# Longer ones are cut, because a bot's name is near the start.
AGENT_CHARS_MAX = 500

_REMEMBERED = 16_384
# The shell client's agent contains the hub's address, which may have any word.
_OURS = "hub/"
# The agent of `hubctl doctor`, which reads a prompt to check that the hub delivers it.
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
# Nearly all patterns are plain texts, and searching those is several times as fast.
_plain = re.compile(r"(?:[^\\.^$*+?{}\[\]|()]|\\\W)+")
_texts = [re.sub(r"\\(.)", r"\1", each) for each in _patterns if _plain.fullmatch(each)]
_others = re.compile("|".join(each for each in _patterns if not _plain.fullmatch(each)))


def is_bot(agent: str) -> bool:
    """True if a User-Agent header is a bot's."""
    return agent == DOCTOR or _is_bot(agent[:AGENT_CHARS_MAX])


@lru_cache(maxsize=_REMEMBERED)
def _is_bot(agent: str) -> bool:
    if agent.startswith(_OURS):
        return False
    return any(text in agent for text in _texts) or bool(_others.search(agent))
