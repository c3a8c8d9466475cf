"""`hub cat --body`: what comes after the front matter, byte by byte, of a text that is verified."""

import json

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from tests.client.fake import Answers, Fake, Request, answer
from tests.client.shells import Client
from tests.client.site import Site, compact
from tests.client.test_bytes import TEXTS

FRONT = b'---\ntitle: "A, \\"body\\":\\"no\\""\nbody: "\\\\u0041"\n---\n'
BODIES = {
    "everything": b"\n".join(TEXTS.values()),
    **{name: TEXTS[name] for name in ("no final newline", "newlines at the end", "a BOM")},
    "a key": b'"body":"no","#body":"1"} \\" \\\\" \\u005c \\ud83d\\ude00',
    "nothing": b"",
    "a fence": b"---\n",
}


@pytest.fixture
def site() -> Site:
    site = Site()
    site.publish("ann/review", "1.0.0", FRONT + b"One.\n")
    site.publish("ann/review", "1.1.0", b"Two.\n")
    site.publish("ann/review", "2.0.0", FRONT + b"Three.\n")
    site.move("ann/review", "production", "1.0.0")
    return site


def test_which_body_is_printed(client: Client, host: Fake) -> None:
    to = client.to(host.url)
    for words, text in {
        ("ann/review",): b"Three.\n",
        ("ann/review@production",): b"One.\n",
        ("ann/review", "--version", "1.0.0"): b"One.\n",
        ("ann/review@1.1.0",): b"Two.\n",  # which has no front matter
    }.items():
        assert to.run("cat", "--body", *words) == (0, text, ""), words
    assert to.run("cat", "ann/review").out == FRONT + b"Three.\n"


def test_the_body_is_exact(awk: Client, site: Site, host: Fake) -> None:
    to = awk.to(host.url)
    for number, (name, body) in enumerate(BODIES.items()):
        repo = f"ann/text-{number}"
        site.publish(repo, "1.0.0", FRONT + body)
        assert to.run("cat", "--body", repo) == (0, body, ""), name
        # As a hub might write it that escapes all but ASCII.
        record = json.loads(site.files[f"{repo}.json"])
        site.files[f"{repo}.json"] = json.dumps(record, separators=(",", ":")).encode()
        if name in ("everything", "a key"):
            assert to.run("cat", "--body", "--no-cache", repo) == (0, body, ""), name


def test_the_largest(awk: Client, site: Site, host: Fake) -> None:
    piece = b"\\\x01" + 8 * "👩".encode() + 10 * b"x"
    body = piece * ((CONTENT_BYTES_MAX - len(FRONT)) // len(piece))
    site.publish("ann/large", "1.0.0", FRONT + body)
    assert awk.to(host.url).run("cat", "--body", "ann/large").out == body


def test_a_body_of_a_real_hub(placed: Client) -> None:
    assert placed.run("cat", "ann/review", "--body") == (0, b"Review {{code}} with care.\n", "")


def test_the_copy_is_that_of_the_text(client: Client, site: Site, host: Fake) -> None:
    to = client.to(host.url)
    assert to.run("cat", "ann/review").status == 0
    host.requests.clear()
    assert to.run("cat", "ann/review", "--body").out == b"Three.\n"
    assert [request.path for request in host.requests] == ["/api/v1/repos/ann/review.json"]
    host.requests.clear()
    assert to.run("cat", "ann/review", "--body", "--offline") == (0, b"Three.\n", "")
    assert not host.requests
    site.is_up = False
    done = to.run("cat", "ann/review", "--body")
    assert (done.status, done.out) == (0, b"Three.\n")
    assert "using the last fetched copy" in done.err


def with_record(site: Site, change: dict[str, object]) -> Answers:
    """The site with another record of ann/review; None takes a key away."""
    data = json.loads(site.files["ann/review.json"])["data"] | change
    record = compact({key: value for key, value in data.items() if value is not None})

    def answers(request: Request) -> bytes:
        return answer(record) if request.path.endswith("/review.json") else site(request)

    return answers


def test_a_text_that_is_not_the_one_of_the_record(client: Client, site: Site, host: Fake) -> None:
    site.files["ann/review/versions/2.0.0.txt"] = FRONT + b"Evil!!\n"
    done = client.to(host.url).run("cat", "ann/review", "--body")
    assert (done.status, done.out) == (6, b"")
    assert "its SHA-256 differs" in done.err


def test_a_body_longer_than_its_text(client: Client, site: Site, host: Fake) -> None:
    host.answers = with_record(site, {"body": "x" * 1000})
    done = client.to(host.url).run("cat", "ann/review", "--body")
    assert (done.status, done.out) == (6, b"")
    assert "is not from a hub" in done.err


@pytest.mark.parametrize("change", [{"body": None}, {"body": 7}, {"body": ["x"]}], ids=str)
def test_a_hub_that_does_not_say(
    client: Client, site: Site, host: Fake, change: dict[str, object]
) -> None:
    host.answers = with_record(site, {**change, "parameters": {"body": "x"}})
    done = client.to(host.url).run("cat", "ann/review", "--body")
    assert (done.status, done.out) == (1, b"")
    assert "Leave out --body" in done.err
    assert client.to(host.url).run("cat", "ann/review").out == FRONT + b"Three.\n"


def test_only_cat_has_it(client: Client, host: Fake) -> None:
    done = client.to(host.url).run("pull", "ann/review", "--body")
    assert done.status == 2 and "unknown option --body" in done.err
