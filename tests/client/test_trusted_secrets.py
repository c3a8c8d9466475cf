"""Secrets of `hub push --trusted`: which program and which server gets which."""

import json
import re
from pathlib import Path

import pytest

from publisher.accounts.token import make_token
from tests.client.ci_job import (
    ID_TOKEN,
    PUSH,
    VERSIONS,
    Parts,
    on_github,
    push,
)
from tests.client.fake import Answer, Fake, Request, answer, error
from tests.client.shells import TOKEN, Client, run_traced, share
from tests.support.issuer import RUNTIME_SECRET


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, "set HUB_TOKEN and leave out --trusted"),
        ({"HUB_TOKEN": TOKEN}, "set HUB_TOKEN and leave out --trusted"),
        ({"GITHUB_ACTIONS": "true"}, "`permissions: id-token: write`"),
        ({"GITHUB_ACTIONS": "true", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"}, "id-token: write"),
        ({"GITLAB_CI": "true"}, "`id_tokens: HUB_ID_TOKEN: aud: https://hub.example`"),
        ({"HUB_ID_TOKEN": 'x"\ny'}, "HUB_ID_TOKEN is not an ID token"),
        ({"HUB_ID_TOKEN": "$ID_TOKEN"}, "HUB_ID_TOKEN is not an ID token"),
    ],
)
def test_no_job_that_can_say_who_it_is(
    env: dict[str, str], told: str, curl: tuple[Client, Path]
) -> None:
    client, seen = curl
    done = push(client.to("https://hub.example", **env))
    assert done.status == 4 and told in done.err, done.err
    assert not seen.exists()


SECRETS = {
    "HUB_TOKEN": make_token(), "HUB_ID_TOKEN": "e30.the-job-s.own",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": RUNTIME_SECRET,
}  # fmt: skip


def test_other_commands_take_the_secrets_away(curl: tuple[Client, Path]) -> None:
    client, seen = curl
    job = on_github(client, "https://hub.example", "https://runner.example", **SECRETS)
    for command in (["pull", "a/b"], ["cat", "a/b"], ["versions", "a/b"], ["search", "x"]):
        job.run(*command)
    noted = seen.read_text()
    assert "HOME=" in noted
    assert not [secret for secret in SECRETS.values() if secret in noted]


def test_which_hub_gets_an_id_token(curl: tuple[Client, Path]) -> None:
    client, seen = curl
    for url, insecure, status in [
        ("https://hub.example", "", 6), ("http://[::1]:8000", "", 6),
        ("http://hub.example", "", 4), ("http://localhost.evil.example", "", 4),
        ("http://hub.example", "1", 6),
    ]:  # fmt: skip
        job = client.to(url, HUB_INSECURE=insecure, HUB_ID_TOKEN=ID_TOKEN)
        assert push(job).status == status, url
        assert seen.exists() == (status == 6), url
        if seen.exists():
            assert ID_TOKEN in seen.read_text()
            seen.unlink()


SAFE = [
    "https://runner.example/a/b?api-version=2.0&x=%20,y", "https://runner.example:8443",
    "http://127.0.0.1:8000/x?y=z", "http://localhost/x", "http://[::1]:80/x",
]  # fmt: skip


UNSAFE = [
    "http://runner.example/x", "http://localhost.evil.example", "http://localhost?@evil.example",
    "http://127.0.0.1@evil.example/", "http://localhost:80?x", "http://localhost\\@evil.example",
    "http://localhost#@evil.example", "https://", "https:///x", "file:///etc/passwd", "localhost",
    'https://x"\nurl=y', "https://x y", "-K", "https://{a,b}.example", "ftp://x",
]  # fmt: skip


def test_which_issuer_is_asked(curl: tuple[Client, Path]) -> None:
    client, seen = curl
    job = on_github(client, "https://hub.example", "", HUB_INSECURE="1")
    for url in share(client.shell, [*SAFE, *UNSAFE]):
        done = push(job.to("https://hub.example", ACTIONS_ID_TOKEN_REQUEST_URL=url))
        assert done.status == (6 if url in SAFE else 4), (url, done.err)
        assert seen.exists() == (url in SAFE), url
        if seen.exists():
            assert f'header = "Authorization: bearer {RUNTIME_SECRET}"\n' in seen.read_text()
            seen.unlink()
        else:
            assert "is not what GitHub sets" in done.err


@pytest.mark.parametrize("secret", ["a b", 'a"', "a\\n", "a\nurl=http://x", "é"])
def test_what_is_no_token_for_the_issuer(secret: str, curl: tuple[Client, Path]) -> None:
    client, seen = curl
    job = on_github(
        client, "https://hub.example", "https://x", ACTIONS_ID_TOKEN_REQUEST_TOKEN=secret
    )
    done = push(job)
    assert done.status == 4 and "is not what GitHub sets" in done.err
    assert not seen.exists()


def test_no_program_gets_a_secret(each: Client, tmp_path: Path) -> None:
    """Neither as an argument nor in its environment; what is written is in the private folder."""
    old = make_token()
    names = "token id_token id_request_token curl_config secret secrets masked unmasked"
    with Fake(Parts()) as fake:
        job = on_github(
            each, fake.url, fake.url, HUB_TOKEN=old, **dict.fromkeys(names.split(), "exported")
        )
        done, calls = run_traced(job, tmp_path / "trace", *PUSH)
    assert done.stdout == b"ada/x 1.0.0\n", done.stderr
    assert not list(job.tmp.iterdir())
    secrets = (old, RUNTIME_SECRET, ID_TOKEN, TOKEN)
    assert b"main push" in done.stderr
    assert not [secret for secret in secrets if secret.encode() in done.stderr]
    runs = [call for call in calls if " execve(" in call]
    assert len(runs) > 10
    assert RUNTIME_SECRET in runs[0]  # the shell itself
    for call in runs[1:]:
        assert not [secret for secret in secrets if secret in call], call[:200]
    told = [call for call in calls if call not in runs and any(each in call for each in secrets)]
    assert {secret for secret in secrets for call in told if secret in call} == {*secrets} - {old}
    into = re.compile(
        rf" (write|writev|sendto|sendmsg)\(\d+<(pipe|socket|TCP|{re.escape(str(job.tmp))}/hub-)"
    )
    for call in told:
        assert into.search(call), call[:200]


def test_files_have_a_secret_no_longer_than_it_takes_to_read_it(each: Client) -> None:
    """A client that is killed in its last request, the long one, leaves no secret."""
    parts = Parts()
    found: list[bytes] = []

    def look(request: Request) -> Answer:
        if request.path == VERSIONS:
            found.extend(path.read_bytes() for path in each.tmp.glob("*/*"))
        return parts(request)

    with Fake(look) as fake:
        assert push(on_github(each, fake.url, fake.url)).status == 0
    assert any(b'"content":"Hi."' in text for text in found)
    for secret in (RUNTIME_SECRET, ID_TOKEN, TOKEN):
        assert not [text for text in found if secret.encode() in text]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_do_not_get_a_secret(status: int, client: Client) -> None:
    with Fake(Parts()) as other:
        for part in ("id_token", "exchange"):
            moved = answer("", status, Location=other.url + "/token")
            with Fake(Parts(**{part: (moved,)})) as fake:
                assert push(on_github(client, fake.url, fake.url)).status == 6
        assert not other.requests


def test_a_proxy_does_not_get_what_stays_on_this_machine(client: Client) -> None:
    with Fake(lambda _: error(500)) as proxy, Fake(Parts()) as fake:
        job = on_github(client, fake.url, fake.url, http_proxy=proxy.url, ALL_PROXY=proxy.url)
        assert push(job).status == 0
    assert not proxy.requests


TOLD = f"No: {ID_TOKEN}, '{ID_TOKEN}' and {TOKEN}; {RUNTIME_SECRET}{RUNTIME_SECRET}!"


def test_what_servers_tell_back_is_masked(client: Client) -> None:
    with Fake(Parts(exchange=(error(403, TOLD),))) as fake:
        done = push(on_github(client, fake.url, fake.url))
        assert done == (4, b"", f"No: ***, '***' and {TOKEN}; ******!\n")
    with Fake(Parts(versions=(error(403, TOLD),))) as fake:
        done = push(on_github(client, fake.url, fake.url))
        assert done == (4, b"", "No: ***, '***' and ***; ******!\n")
        # As with a token that is stored.
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run("push", "ada/x", "-", stdin=b"Hi.")
        assert done.status == 4 and TOKEN not in done.err and "***" in done.err


def test_warnings_are_masked(each: Client) -> None:
    warned = {"owner": "ada", "name": "x", "version": "1.0.0", "warnings": [TOLD]}
    created = answer(json.dumps({"data": warned}, separators=(",", ":")), 201)
    with Fake(Parts(versions=(created,))) as fake:
        done = push(on_github(each, fake.url, fake.url))
        assert done.status == 0
        told = "standard input: warning: No: ***, '***' and ***; ******!\n"
        assert done.err == f"::warning file=standard input,line=1::{told}"
