"""The rules of the search as data, for clients that search a catalogue themselves.

Browsers and the shell client do so if a host answers no ``q``. Their code needs lists of words,
numbers and the stemmer, which come from here or from the modules of the server's own search.
"""

import json
from functools import cache

from builder.model import routes
from builder.search import engine, entries, language, matches, plan
from builder.text import words

_TAKEN = {
    engine: "FACETS_MAX",
    entries: "SHORT_TITLE_WORDS_MAX BEGINNING_CHARS_MAX",
    language: "SPOKEN SYNONYMS",
    matches: "MARKS",
    plan: "LABELLED RARITY_STEPS FREQUENT_SHARE FREQUENT_PARTS WEIGHT_MAX SYNONYM_SHARE "
    "BEGINNING_VALUE BEGINNING_ELSEWHERE_VALUE EXACT_VALUE WHOLE_SCORE TARGETS_MAX "
    "FREQUENT_TARGETS_MAX CORRECTED_MAX CORRECTED_LETTERS_MIN CORRECTED_BESIDE_LETTERS_MIN "
    "KNOWN_TIMES ONE_EDIT_LETTERS_MAX",
    routes: "PAGE_SIZE QUERY_CHARS_MAX",
    words: "UNSPACED WORD_CHARS_MAX QUERY_WORDS_MAX SIGNED JOINED ARTICLES ARTICLE",
}

# Whoosh's form of Porter's stemmer as a table; a test compares the two. Each step replaces the
# word's longest suffix in the table by an ending, if the part before it matches a condition. The
# regular expressions mean the same in Python and JavaScript.
_CONSONANTS, _VOWELS = "[^aeiouy]+", "[aeiou]+"
_ONE = f"^(?:{_CONSONANTS})?{_VOWELS}{_CONSONANTS}"
_TWO = _ONE + _VOWELS + _CONSONANTS
_VOWEL = f"^(?:{_CONSONANTS})?[aeiouy]"
_SHORT = f"^{_CONSONANTS}[aeiouy][^aeiouwxy]$"
# A mark at the end of words that lost "ed" or "ing", between two steps.
_CUT = "~"


def _replaced(endings: str) -> dict[str, tuple[str, str]]:
    """A step for words with ``_ONE``, from ``suffix:ending`` each."""
    pairs = (pair.split(":") for pair in endings.split())
    return {suffix: (_ONE, ending) for suffix, ending in pairs}


_STEM_STEPS: tuple[dict[str, tuple[str, str]], ...] = (
    {"sses": ("", "ss"), "ies": ("", "i"), "ss": ("", "ss"), "s": ("", "")},
    {"eed": (_ONE, "ee"), "ed": (_VOWEL, _CUT), "ing": (_VOWEL, _CUT)},
    {_CUT: (f"{_SHORT}|^(?:at|iz)$", "e")},
    {_CUT: ("", "")},
    {"y": (_VOWEL, "i")},
    _replaced(
        "ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e "
        "ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous "
        "aliti:al iviti:ive biliti:ble logi:log"
    ),
    _replaced("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"),
    dict.fromkeys(
        "al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize".split(),
        (_TWO, ""),
    )
    | {"ion": (f"^(?=.*[st]$){_TWO[1:]}", "")},
    {"e": (f"{_TWO}|^(?!{_SHORT[1:]}){_ONE[1:]}(?:{_VOWELS})?$", "")},
    {"l": (f"^(?=.*l$){_TWO[1:]}", "")},
)


@cache
def search_rules() -> str:
    """All rules as JSON, in ASCII."""
    rules = {
        name: getattr(module, name) for module, names in _TAKEN.items() for name in names.split()
    }
    rules |= {
        "COMBINING": words.mark_ranges(),
        "STOP": sorted(language.STOP_STEMS),
        "FREQUENT": sorted(language.FREQUENT_STEMS),
        "VALUES": {"text": entries.TEXT_VALUE}
        | {place: entries.TEXT_VALUE + added for place, added in entries.ADDED_VALUES.items()},
        "STEM_STEPS": _STEM_STEPS,
    }
    return json.dumps(rules, separators=(",", ":"))
