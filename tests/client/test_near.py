"""Suggestions for a wrong name: prompts with similar names, from the files of any host."""

import json

import pytest

from tests.client.fake import Answer, Fake, Request, answer, error
from tests.client.shells import Client


def site(*repos: str, catalogue: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Files of a site: a page of one owner's repos, and a catalogue of these and others."""

    def summary(repo: str) -> dict[str, str]:
        owner, name = repo.split("/")
        # A text that only looks like a repo.
        return {"owner": owner, "name": name, "title": '{"owner":"ann","name":"stors"} stors'}

    compact = {"ensure_ascii": False, "separators": (",", ":")}
    user = {"data": {"handle": "ann", "repos": [summary(repo) for repo in repos]}}
    lines = [json.dumps(summary(repo), **compact) + "\n" for repo in (*repos, *catalogue)]
    return {
        "/api/v1/users/ann.json": json.dumps(user, **compact).encode() + b"\n",
        "/api/v1/catalogue.jsonl": "".join(lines).encode(),
    }


def told(client: Client, files: dict[str, bytes], wanted: str, missing: bytes = b"") -> str:
    """The client's message if a site has these files, but not the requested prompt."""

    def answers(request: Request) -> Answer:
        found = files.get(request.path)
        return (missing or answer("", 404)) if found is None else answer(found)

    with Fake(answers) as fake:
        done = client.to(fake.url).run("cat", wanted)
        assert (done.status, done.out) == (3, b"")
        return done.err.replace(fake.url, "HUB")


MANY = site(
    "ann/story", "ann/stories", "ann/story-board", "ann/store", "ann/x",
    catalogue=("bob/story", "bob/socratic-lens", "mara-okafor/sql-review"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("ann/stoyr", " Did you mean ann/story?"),
        ("ann/tory", " Did you mean ann/story?"),
        ("ann/storie", " Did you mean ann/stories, ann/store or ann/story?"),
        # Nothing of this owner is near, so all are looked at.
        ("ann/sql-review", " Did you mean mara-okafor/sql-review?"),
        ("mara-okafr/sql-reviw", " Did you mean mara-okafor/sql-review?"),
        ("zoe/story", " Did you mean ann/story or bob/story?"),
        ("nobody/nothing", ""),
        ("ann/zzzz", ""),
        ("ann/" + "z" * 64, ""),
    ],
)
def test_only_what_is_near_is_suggested(client: Client, wanted: str, near: str) -> None:
    assert told(client, MANY, wanted) == f"no {wanted} at HUB: it answers 404.{near}\n"


def test_under_each_awk(pair: Client) -> None:
    assert "ann/store or ann/story?" in told(pair, MANY, "ann/storie")


def test_under_each_shell_on_each_host(placed: Client) -> None:
    done = placed.run("cat", "ann/reviw")
    assert done.status == 3 and "Did you mean ann/review?" in done.err
    done = placed.run("cat", "nobody/nothing-h")
    assert done.status == 3 and "Did you mean" not in done.err
    done = placed.run("versions", "ana/review")
    assert done.status == 3 and "Did you mean ann/review?" in done.err
    done = placed.run("pull", "ann/review", "--version", "9.0.0")
    assert done.status == 3 and "Did you mean" not in done.err and "versions" in done.err


def test_the_words_of_the_server_come_first(client: Client) -> None:
    missing = error(404, "There is no repo.")
    assert told(client, MANY, "ann/stoyr", missing) == "There is no repo. Did you mean ann/story?\n"


def test_a_version_that_there_is_not_has_the_prompt_s_own_list(client: Client) -> None:
    def answers(request: Request) -> Answer:
        found = MANY.get(request.path)
        return answer("", 404) if found is None else answer(found)

    with Fake(answers) as fake:
        done = client.to(fake.url).run("cat", "ann/story", "--version", "9.0.0")
    assert done.status == 3
    assert done.err.endswith("Run `hub versions ann/story` to see its versions.\n")


@pytest.mark.parametrize("status", [404, 429, 500, 503, 302])
def test_a_host_that_does_not_help_is_asked_twice_and_no_more(client: Client, status: int) -> None:
    def answers(request: Request) -> Answer:
        return answer("", 404 if "/repos/" in request.path else status, Retry_After="100")

    with Fake(answers) as fake:
        done = client.to(fake.url).run("cat", "ann/story")
        assert (done.status, done.err) == (3, f"no ann/story at {fake.url}: it answers 404.\n")
        assert [request.path for request in fake.requests][1:] == [
            "/api/v1/users/ann.json", "/api/v1/catalogue.jsonl",
        ]  # fmt: skip
    assert client.sleeps == []


def test_a_catalogue_that_is_too_large_is_not_fetched(client: Client) -> None:
    line = b'{"owner":"bob","name":"sotry","title":"x"}\n'
    files = {"/api/v1/catalogue.jsonl": line * (4_000_001 // len(line) + 1)}
    assert "Did you mean" not in told(client, files, "bob/story")
    files = {"/api/v1/catalogue.jsonl": line * (3_000_000 // len(line))}
    assert "Did you mean bob/sotry" in told(client, files, "bob/story")
