"""``robots.txt`` and ``llms.txt``: their forms, and that what they name exists."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.matching import match_url
from builder.render import feeds
from builder.text.one_line import one_line
from tests.builder.render.test_feeds import hostile, make_repo
from tests.support.catalogues import BASE_URL, build_files, moment, settings_in, write_version

LINK = re.compile(r"- \[((?:\\.|[^\\\[\]])+)\]\((https?://[^() ]+)\)(?:: (.+))?")


def sections(data: bytes) -> dict[str, list[tuple[str, str, str | None]]]:
    """The links of llms.txt by section; holds the document against llmstxt.org's form."""
    title, blank, quote, *rest = data.decode().removesuffix("\n").split("\n")
    assert re.fullmatch(r"# \S.*", title) and not blank and quote.startswith("> ")
    found: dict[str, list[tuple[str, str, str | None]]] = {}
    for line in rest:
        if line.startswith("#"):
            assert re.fullmatch(r"## \S.*", line) and line[3:] not in found
            found[line[3:]] = []
        elif line and found:
            name, url, note = LINK.fullmatch(line).groups()
            found[[*found][-1]].append((name, url, note))
    return found


@pytest.mark.parametrize("base_path", ["", "/prompts"])
def test_crawlers_may_not_see_the_account_settings(tmp_path, base_path):
    text = feeds.robots(settings_in(tmp_path, f"https://example.org{base_path}")).decode()
    lines = [line for line in text.splitlines() if line.startswith(("Allow", "Disallow"))]
    assert lines == [
        f"Disallow: {base_path}/account$", f"Disallow: {base_path}/account/", "Allow: /"
    ]  # fmt: skip
    for path in ("/account", "/account/", "/account/login", "/account/tokens/7/revoke"):
        assert not may_read(lines, base_path + path)
    # Owners, and their prompts.
    for path in ("/", "/accountant", "/accountant/account", "/ann/account", "/api/v1/repos"):
        assert may_read(lines, base_path + path)


def may_read(lines: list[str], path: str) -> bool:
    """True if the longest matching rule allows the path (RFC 9309, 2.2.2); $ is the end of it."""
    found = []
    for line in lines:
        kind, _, rule = line.partition(": ")
        pattern = re.escape(rule.removesuffix("$")) + ("$" if rule.endswith("$") else "")
        if re.match(pattern, path):
            found.append((len(rule), kind == "Allow"))
    return max(found)[1]


@pytest.mark.parametrize("base_url", [BASE_URL, "https://example.org/prompts"])
@pytest.mark.parametrize("queries", [False, True])
def test_what_llms_txt_names_is_there(tmp_path, base_url, queries):
    settings = settings_in(tmp_path, base_url, queries=queries)
    write_version(settings.content, "ann", "review", "1.0.0", "x", description="Reviews.")
    site = build_files(settings)
    found = sections(site["llms.txt"])
    assert [*found] == ["API", "Top prompts", "Optional"]
    for links in found.values():
        for name, url, _ in links:
            path = url.removeprefix(base_url)
            assert name == "MCP" or match_url(path).file in site
    names = {name: url for name, url, _ in found["API"]}
    assert names["API document"] == f"{base_url}/api/v1/openapi.json"
    assert names["Catalogue"] == f"{base_url}/api/v1/catalogue.jsonl"
    assert names.get("MCP") == (f"{base_url}/mcp" if queries else None)
    raw = f"{base_url}/api/v1/repos/ann/review/raw.txt"
    assert found["Top prompts"] == [("The review prompt", raw, "Reviews.")]
    form = re.search(r"latest text of a prompt: `(.+)`", site["llms.txt"].decode())[1]
    assert form.format(owner="ann", name="review") == raw


def test_llms_txt_has_the_best_twenty_and_follows_them(empty):
    assert [*sections(build_files(empty)["llms.txt"])] == ["API", "Optional"]
    for number in range(30):
        hours = moment(number)
        write_version(empty.content, "ann", f"r{number}", "1.0.0", "x", published_at=hours)
    top = sections(build_files(empty)["llms.txt"])["Top prompts"]
    assert [url.split("/")[-2] for _, url, _ in top] == [f"r{n}" for n in range(29, 9, -1)]
    write_version(empty.content, "ann", "r3", "1.0.1", "x", published_at=moment(99), title="Now")
    top = sections(build_files(empty, changed=[("ann", "r3")])["llms.txt"])["Top prompts"]
    assert (len(top), top[0][0]) == (20, "Now")


@given(title=hostile, description=hostile | st.text(alphabet="[]()`*_<>\\ #a\n", max_size=300))
def test_no_title_or_description_breaks_out_of_its_line(tmp_path_factory, title, description):
    settings = settings_in(tmp_path_factory.getbasetemp(), site_name=description)
    repo = msgspec.json.encode(make_repo(title, description))
    found = sections(feeds.llms(settings, [repo]))
    ((name, url, note),) = found["Top prompts"]
    assert url == f"{BASE_URL}/api/v1/repos/ann/x/raw.txt"
    assert re.sub(r"\\(.)", r"\1", name) == (one_line(title, 200) or "x")
    assert re.sub(r"\\(.)", r"\1", note or "") == one_line(description, 200)
    for text in (name, note or ""):
        assert not re.search(r"[<>\[\]`*_]", re.sub(r"\\.", "", text))


@given(text=hostile, chars_max=st.integers(1, 20))
def test_one_line_is_one_line(text, chars_max):
    line = one_line(text, chars_max)
    assert len(line) <= chars_max
    assert line == line.strip()
    assert len(line.splitlines()) <= 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)
    assert one_line(line, chars_max) == line


def test_one_line_keeps_what_words_are_made_of():
    assert one_line(" a\n\tb ", 9) == "a b"
    assert one_line("می\u200cخواهم 👩\u200d💻", 20) == "می\u200cخواهم 👩\u200d💻"
    assert one_line("abc\u202edef", 20) == "abc def"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"
    assert one_line("abcd efgh", 6) == "abcd…"
