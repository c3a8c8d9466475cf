"""Names in plain letters, made of what people write in any script. Pure."""

import re

from anyascii import anyascii


def plain_words(text: str, chars_max: int, joint: str) -> str:
    """Words of a-z and 0-9 with ``joint`` between them; empty where there are none.

    No longer than ``chars_max``, cut between words where there are several.
    """
    # An apostrophe is inside a word.
    plain = re.sub("['`]", "", anyascii(text).lower())
    words = re.sub("[^a-z0-9]+", joint, plain).strip(joint)
    if len(words) <= chars_max:
        return words
    # One character more shows whether the limit is the end of a word.
    head, found, _ = words[: chars_max + 1].rpartition(joint)
    return head if found else words[:chars_max]
