"""A client that writes to a deployment, with the token that the tester gave."""

import json
from typing import Any

from builder.model.routes import BY_NAME, JSON
from builder.model.service_urls import PUBLISH_URL
from tests.conformance.catalogue import file_of
from tests.conformance.client import Answer, Client


def publish_path(owner: str, name: str) -> str:
    return PUBLISH_URL.format(owner=owner, name=name)


class Publisher:
    """Publishes to the repo that the tester gave."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.owner, _, self.name = client.deployment.publish_to.partition("/")
        self.path = publish_path(self.owner, self.name)

    def post(self, body: Any, path: str = "", **headers: str) -> Answer:
        return self.send("POST", path or self.path, body, **headers)

    def send(self, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {
            "Authorization": f"Bearer {self.client.deployment.token}",
            "Content-Type": JSON,
            **{key.replace("_", "-"): value for key, value in headers.items()},
        }
        return self.client.ask(method, path, sent, data)

    def file(self, name: str, **params: str) -> str:
        return file_of(name, owner=self.owner, name=self.name, **params)

    def url(self, name: str, **params: str) -> str:
        return BY_NAME[name].url_for(owner=self.owner, name=self.name, **params)
