"""Searches where the hub is plain files: the client looks through the catalogue by itself."""

import json
import re

import msgspec
import pytest

from builder.model.routes import PAGE_SIZE, QUERY_CHARS_MAX
from builder.render.clients import SHELL_CLIENT
from tests.client.fake import Fake, Request, answer
from tests.client.shells import Client
from tests.support.searches import CASES, LINES, Case

CATALOGUE = b"".join(msgspec.json.encode(line) + b"\n" for line in LINES).decode()


def files(catalogue: str = CATALOGUE) -> Fake:
    """A host of plain files with a catalogue."""

    def answers(request: Request) -> bytes:
        is_hub = request.path.endswith("hub.json")
        return answer('{"data":{"queries":false}}' if is_hub else catalogue)

    return Fake(answers)


# tests/builder/search has all cases; these are for the client's own code.
@pytest.mark.parametrize("case", CASES[::6], ids=str)
def test_it_finds_what_the_server_s_rules_find(client: Client, case: Case) -> None:
    with files() as fake:
        options = ["--tag", case.tags] if case.tags else []
        done = client.to(fake.url).run("search", *options, "--", case.q)
    assert [line.split("\t")[0] for line in done.text.splitlines()] == case.found.split()
    corrected = re.findall("no prompt has '(.*)': searched for '(.*)' instead", done.err)
    assert dict(corrected) == (case.corrected or {})
    assert ("These are the closest" in done.err) == (case.match == "some" and bool(case.found))


def test_what_is_said_of_it(client: Client) -> None:
    with files() as fake:
        hub = client.to(fake.url)
        some = hub.run("search", "email for xyzzy")
        assert "no prompt has all of these words. These are the closest\n" in some.err
        assert some.text.startswith("ann/cold-email\t1.0.0\tCold email\temail,sales\t")
        taken = hub.run("search", "marketting")
        assert "no prompt has 'marketting': searched for 'marketing' instead\n" in taken.err
        assert "closest" not in taken.err
        none = hub.run("search", "xyzzy")
        assert none.out == b"" and none.err.endswith("no prompts found\n")
        assert "closest" not in none.err


def test_the_server_s_answer_says_it_too(client: Client) -> None:
    line = msgspec.to_builtins(LINES[0])
    meta = {"page": 1, "pages": 1, "total": 1, "sort": None, "tag": None, "q": "x colld"}
    meta |= {"match": "some", "corrected": [{"from": "colld", "to": "cold\x1b[2J"}]}

    def answers(request: Request) -> bytes:
        is_hub = request.path.endswith("hub.json")
        body = {"data": {"queries": True}} if is_hub else {"data": [line], "meta": meta}
        return answer(json.dumps(body, separators=(",", ":")))

    with Fake(answers) as fake:
        done = client.to(fake.url).run("search", "x colld")
        assert "searched for 'cold[2J' instead\n" in done.err and "closest" in done.err
        meta["corrected"] = [{"from": "x"}]
        done = client.to(fake.url).run("search", "x colld")
    assert done.status == 6 and "is not from a hub" in done.err  # nor is its catalogue


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("!!!", "the query has no word"),
        ("é" * (QUERY_CHARS_MAX + 1), f"it may have {QUERY_CHARS_MAX} characters"),
    ],
)
def test_a_query_that_the_server_would_refuse(client: Client, query: str, told: str) -> None:
    with files() as fake:
        done = client.to(fake.url).run("search", query)
    assert (done.status, done.out) == (5, b"") and told in done.err


def test_pages_of_what_is_found(client: Client) -> None:
    lines = [{**msgspec.to_builtins(LINES[0]), "name": f"n{at:03}"} for at in range(PAGE_SIZE + 2)]
    with files("".join(json.dumps(line) + "\n" for line in lines)) as fake:
        hub = client.to(fake.url)
        assert hub.run("search", "cold").text.count("\n") == PAGE_SIZE
        second = hub.run("search", "cold", "--page", "2")
        assert second.text.count("\n") == 2 and second.text.startswith("ann/n050\t")
        assert hub.run("search", "cold", "--page", "3").status == 3
        assert hub.run("search", "", "--tag", "sales", "--page", "2").text.count("\n") == 2


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"title":1}', '{"owner":"a","name":"b","title":"c","tags":[1]}', "x"]
)
def test_what_is_no_catalogue(client: Client, line: str) -> None:
    with files(f'{CATALOGUE}{line}\n{{"x":1}}\n') as fake:
        done = client.to(fake.url).run("search", "email")
    assert (done.status, done.out) == (6, b"") and "is not from a hub" in done.err


def test_a_client_that_no_site_released(client: Client) -> None:
    source = Client(client.folder, tools=client.tools, script=SHELL_CLIENT)
    with files() as fake:
        done = source.to(fake.url).run("search", "email")
    assert done.status == 1 and "Install the release that a site has at /cli/hub" in done.err
