"""Bots are left out, programs that people pull with are not."""

import pytest
from crawleruseragents import CRAWLER_USER_AGENTS_DATA

from builder.stats.agents import AGENT_CHARS_MAX, is_bot


@pytest.mark.parametrize(
    "agent",
    [
        "", "-",
        "hub/1.0.0 (+https://prompts.example.org)",
        "hub/1.0.0 (+https://googlebot.example/Googlebot/)",
        "curl/8.5.0", "Wget/1.21.4", "HTTPie/3.2.2", "PostmanRuntime/7.36.0",
        "python-requests/2.31.0", "python-httpx/0.27.0", "Python-urllib/3.11",
        "Python/3.11 aiohttp/3.9.1", "axios/1.6.2", "node-fetch/1.0 (+https://github.com/x)",
        "undici", "node", "Deno/1.40.0", "Bun/1.0.25",
        "Go-http-client/2.0", "okhttp/4.12.0", "Java/17.0.9", "reqwest/0.11.22", "Ruby",
        "Apache-HttpClient/5.2 (Java/17)", "GuzzleHttp/7", "libwww-perl/6.68", "Dart/3.2 (dart:io)",
        "GitHub-Actions", "claude-code/2.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/131.0.0.0 Safari/537.36",
        "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
    ],
)  # fmt: skip
def test_programs_and_people(agent):
    assert not is_bot(agent)


@pytest.mark.parametrize(
    "agent",
    [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; "
        "+https://openai.com/gptbot)",
        "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
        "facebookexternalhit/1.1", "Slackbot-LinkExpanding 1.0", "UptimeRobot/2.0", "CCBot/2.0",
        "Scrapy/2.11.0 (+https://scrapy.org)", "colly - https://github.com/gocolly/colly",
        "HTTrack 3.0", "trafilatura/2.0.0", "Mozilla/5.0 HeadlessChrome/119.0.0.0",
        # A library's name beside a bot's does not make it a program.
        "AhrefsBot/7.0 python-requests/2.31.0",
    ],
)  # fmt: skip
def test_bots(agent):
    assert is_bot(agent)


def test_every_example_on_the_list_is_a_bot_but_those_of_libraries():
    for entry in CRAWLER_USER_AGENTS_DATA:
        if "http-library" not in entry["tags"]:
            for agent in entry["instances"]:
                assert is_bot(agent) or "hub/" in agent or len(agent) > AGENT_CHARS_MAX, agent


def test_a_long_agent_is_looked_at_in_part():
    assert is_bot("Googlebot/" + "x" * 1_000_000)
    assert not is_bot("x" * 1_000_000 + "Googlebot/")
