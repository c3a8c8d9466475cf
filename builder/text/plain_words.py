"""Names in plain letters, from text in any script. Pure."""

import re

from anyascii import anyascii


def plain_words(text: str, chars_max: int, joint: str) -> str:
    """Words of a-z and 0-9 with ``joint`` between them; empty if there are none.

    No longer than ``chars_max``; cut between words if there are several.
    """
    # An apostrophe does not split a word.
    plain = re.sub("['`]", "", anyascii(text).lower())
    words = re.sub("[^a-z0-9]+", joint, plain).strip(joint)
    if len(words) <= chars_max:
        return words
    # One more character shows if the limit is the end of a word.
    head, found, _ = words[: chars_max + 1].rpartition(joint)
    return head if found else words[:chars_max]
