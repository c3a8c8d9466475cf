"""A small catalogue, and the results of searches without the texts. Browsers and the shell client
search like this on plain file hosts, by the server's rules.
"""

from typing import NamedTuple

from msgspec import UNSET

from builder.model.answers import CatalogueLine
from builder.text.words import QUERY_WORDS_MAX


def _line(
    repo_id: str, title: str, description: str, *tags: str, words: str = "", labels: str = ""
) -> CatalogueLine:
    owner, name = repo_id.split("/")
    line = CatalogueLine(owner, name, title, description, [*tags], "1.0.0", "0" * 64, words)
    line.labels = labels.split() or UNSET
    return line


LINES = [
    _line("ann/cold-email", "Cold email", "A first message to a customer.", "email", "sales",
          labels="production staging"),
    _line("ann/digest", "Thread digest", "Sums up long email threads.", "email"),
    _line("ann/ice", "Ice cream maker", "Invents flavours, served cold."),
    _line("ann/prompt", "Improve a prompt", "Makes a prompt shorter and clearer."),
    _line("bob/campaign", "Marketing campaign", "Plans a campaign for a new product.", "marketing"),
    _line("bob/cv", "Resume review", "Finds what a recruiter stumbles over.", "career"),
    _line("bob/sales", "Sales pitch", "Thirty seconds for a customer in a hurry.", "sales"),
    _line("bob/sql", "SQL review", "Explains slow queries.", "sql", "code"),
    _line("cleo/cafe", "Café menu", "Names the dishes of a café.", "naming"),
    _line("cleo/haiku", "俳句を作る", "季節の言葉を入れた俳句。", "poetry"),
    _line("cleo/review", "Code review of a whole long pull request with tests", "", "code"),
    _line("cleo/todays-news", "Today's news", "What's new, from the editor’s desk.", "news"),
    _line("dan/the-who", "The Who", "Writes song texts in the style of a band.", "music"),
    _line("eve/c", "C pointers", "Draws a program's heap."),
    _line("eve/cpp", "C++17 headers", "Sorts what C++ includes."),
    _line("eve/csharp", "C# services", "Designs an interface in ASP.NET."),
    _line("eve/fsharp", "F# lessons", "From the first function on."),
    _line("eve/names", "Snake_case and camelCase", "Keeps the style of a snake in its case."),
    _line("eve/node", "Upgrades of node.js", "Adds @types where none are."),
    _line("eve/parts", "Find types", "Sorts the node of a tree, a case of js, and a net."),
    _line("fay/mail-rules", "Sort mail", "Sorts an inbox by topics.", "mail"),
    _line("fay/arabic", "مراجعة الرسالة", "تدقيق النص بالكامل.", "writing"),
    _line("fay/video", "Video storyboard", "Draws a video, scene by scene.", "video",
          labels="eu-west production"),
    _line("gus/scales", "F lesson", "Ten scales at school."),
    _line("eve/text", "Ledger", "Sums up a month.", words="c++ invoices quarterly"),
]  # fmt: skip


class Case(NamedTuple):
    """``found``: ids in order. ``corrected``: misspelled words and their corrections. ``without``:
    the words that each of these repos lacks; None: not written down.
    """

    q: str
    found: str
    match: str = "all"
    corrected: dict[str, str] | None = None
    tags: str = ""
    without: tuple[str, ...] | None = None


def _words(count: int) -> str:
    """Different words that no line has; no line has a similar one either."""
    return " ".join(f"w{number}" for number in range(count))


CASES = [
    # A sentence finds the same as its keywords; a whole title or name comes first.
    Case("write a cold email to a potential customer", "ann/cold-email", "some",
         without=("potential",)),
    Case("cold email", "ann/cold-email ann/digest ann/ice", without=("", "cold", "email")),
    Case("email cold", "ann/cold-email ann/digest ann/ice"),
    Case("ann/cold-email", "ann/cold-email ann/digest ann/ice"),
    Case("Code review of a whole long pull request with tests", "cleo/review"),
    Case("code review", "cleo/review bob/sql bob/cv"),
    # Words are counted once, and in any form
    Case("emails", "ann/cold-email ann/digest"),
    Case("email email EMAIL", "ann/cold-email ann/digest"),
    Case("reviewing", "cleo/review bob/cv bob/sql"),
    Case("campaigns for products", "bob/campaign"),
    Case("todays", "cleo/todays-news"),
    Case("editor's", "cleo/todays-news"),
    Case("editors desk", "cleo/todays-news"),
    Case("cafés", "cleo/cafe"),
    Case("CAFE", "cleo/cafe"),
    Case("Ｓｑｌ", "bob/sql"),
    Case("俳句", "cleo/haiku"),
    Case("俳", "cleo/haiku"),
    Case("俳句を作る", "cleo/haiku"),
    # The last word as a beginning
    Case("rev", "bob/cv bob/sql cleo/review"),
    Case("slow quer", "bob/sql"),
    # Stop words and frequent words
    Case("improve", "ann/prompt"),
    Case("improve the review", "bob/cv bob/sql cleo/review", without=("", "", "")),
    Case("the who", "dan/the-who cleo/review"),
    Case("to me", "ann/cold-email cleo/cafe"),
    # Synonyms
    Case("CV", "bob/cv"),
    Case("postgres", "bob/sql", "some", without=("postgres",)),
    Case("film song", "dan/the-who", "some"),
    # Signs that carry meaning
    Case("c++", "eve/cpp eve/text"),
    Case("C++17", "eve/cpp eve/text"),
    Case("c#", "eve/csharp"),
    Case("Ｃ＃ services", "eve/csharp"),
    Case("f#", "eve/fsharp"),
    Case("c pointers", "eve/c"),
    Case(".net", "eve/csharp"),
    Case("asp.net", "eve/csharp"),
    Case("net", "eve/parts"),
    Case("node.js", "eve/node eve/parts"),
    Case("nöde.js upgrade", "eve/node eve/parts"),
    Case("@types", "eve/node eve/parts"),
    Case("types", "eve/parts eve/node"),
    Case("snake_case", "eve/names"),
    Case("snake case", "eve/names eve/parts"),
    Case("camelCase", "eve/names"),
    Case("camel", "eve/names"),
    # Words of the text
    Case("invoice", "eve/text"),
    Case("quart", "eve/text"),
    Case("invoyces", "eve/text", corrected={"invoyces": "invoices"}),
    # Frequent words alone
    Case("make it better", "ann/prompt", "some"),
    # The form of the query before other forms of a word
    Case("upgrades", "eve/node"),
    Case("sums", "ann/digest eve/text"),
    Case("lesson", "gus/scales eve/fsharp"),
    Case("lessons", "eve/fsharp gus/scales"),
    # The language of the answer
    Case("cold email in Spanish", "ann/cold-email ann/digest ann/ice"),
    Case("code review en français", "cleo/review bob/sql bob/cv"),
    Case("Café-Menü auf Deutsch", "cleo/cafe"),
    Case("in Spanish", "", "some"),
    # The Arabic article
    Case("رسالة", "fay/arabic"),
    Case("بالرسالة", "fay/arabic"),
    Case("كامل", "fay/arabic"),
    Case("للنص", "fay/arabic"),
    Case("والد", "", "some"),
    # A corrected word finds nothing by itself beside words that match; short ones stay
    Case("sora video prompt", "fay/video", "some"),
    Case("storybord mail", "fay/mail-rules", "some", corrected={"storybord": "storyboard"},
         without=("storyboard",)),
    # Words that nothing has
    Case("marketting", "bob/campaign", corrected={"marketting": "marketing"}),
    Case("slwo markteing", "bob/campaign bob/sql", "some",
         corrected={"slwo": "slow", "markteing": "marketing"}, without=("slow", "marketing")),
    Case("xyzzy email", "ann/cold-email ann/digest", "some", without=("xyzzy", "xyzzy")),
    Case("xyzzy", "", "some"),
    # The first different words count
    Case(f"{_words(QUERY_WORDS_MAX - 1)} {_words(QUERY_WORDS_MAX - 1)} cafe", "cleo/cafe", "some"),
    Case(f"{_words(QUERY_WORDS_MAX)} cafe", "", "some"),
    # Labels as words, and as filters
    Case("production", "ann/cold-email fay/video bob/campaign"),
    Case("staging email", "ann/cold-email ann/digest"),
    Case("video west", "fay/video"),
    Case("label:production", "ann/cold-email fay/video"),
    Case("LABEL:Production email", "ann/cold-email"),
    Case("ｌａｂｅｌ：eu-west label:production", "fay/video"),
    Case("a film label:production for me", "", "some"),
    Case("label:staging", "ann/cold-email", tags="email"),
    Case("label:nope", "", "some"),
    Case("label: production", "ann/cold-email fay/video bob/campaign", "some"),
    Case("label:production,", "ann/cold-email fay/video bob/campaign", "some"),
    Case("xyzzy label:production", "", "some"),
    # Among the prompts with some tags
    Case("customer", "ann/cold-email bob/sales"),
    Case("customer", "ann/cold-email", tags="email,sales"),
    Case("review", "cleo/review bob/sql", tags="code"),
]  # fmt: skip
