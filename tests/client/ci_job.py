"""A CI job that publishes with `hub push --trusted`, and what its issuer and its hub answer."""

import json
from collections.abc import Callable

from tests.client.fake import Answer, Request, answer, in_turn
from tests.client.shells import TOKEN, Client, Done
from tests.support.issuer import RUNTIME_SECRET

EXCHANGE = "/api/v1/trusted-publishing/token"


VERSIONS = "/api/v1/repos/ada/x/versions"


ID_TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJqdGkiOiJmYWtlIn0.c2lnbmF0dXJlLW9mLW5vYm9keQ"


CREATED = answer('{"data":{"owner":"ada","name":"x","version":"1.0.0","warnings":[]}}', 201)


GRANTED = answer(json.dumps({"data": {"token": TOKEN, "owner": "ada", "repos": ["x"]}}))


PUSH = ("push", "--trusted", "ada/x", "-")


def push(client: Client) -> Done:
    return client.run(*PUSH, stdin=b"Hi.")


def id_token_answer(token: str = ID_TOKEN) -> bytes:
    return answer(json.dumps({"count": len(token), "value": token}))


def on_github(client: Client, url: str, issuer_url: str, **env: str) -> Client:
    """A client in a job of GitHub Actions, whose runner is at ``issuer_url``."""
    given = {
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{issuer_url}/token?api-version=2.0",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": RUNTIME_SECRET,
    }
    return client.to(url, **given | env)


class Parts:
    """Answers of an issuer and a hub at one address; each part is answers in turn."""

    def __init__(
        self, *,
        id_token: tuple[Answer, ...] = (id_token_answer(),),
        exchange: tuple[Answer, ...] = (GRANTED,),
        versions: tuple[Answer, ...] = (CREATED,),
    ) -> None:  # fmt: skip
        self._parts: dict[str, Callable[[Request], Answer]] = {
            "/token": in_turn(*id_token),
            EXCHANGE: in_turn(*exchange),
            VERSIONS: in_turn(*versions),
        }

    def __call__(self, request: Request) -> Answer:
        return self._parts[request.path.partition("?")[0]](request)
