"""Files of versions: each has its bytes, at its address, and no browser runs it."""

import hashlib

import pytest

from builder.model.matching import version_file
from builder.model.routes import BY_NAME, BYTES, TEXT
from tests.conformance.catalogue import Catalogue
from tests.conformance.checks import Check
from tests.conformance.client import Client
from tests.conformance.marks import area

pytestmark = [pytest.mark.level("files"), area("files")]


def test_files_of_versions(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        answer = client.get("/" + BY_NAME["version"].file_for(**params))
        record = answer.json["data"]
        for one in record.get("files", []):
            match = version_file(**params, path=one["path"])
            path = client.path_of(one["url"])
            check.that(answer, path == f"/{match.file}", f"the URL of {one['path']}", one["url"])
            read = client.get(path)
            check.status(read, 200)
            sha256 = hashlib.sha256(read.body).hexdigest()
            check.that(read, sha256 == one["sha256"], f"the SHA-256 {one['sha256']}")
            check.that(read, len(read.body) == one["size"], f"{one['size']} bytes")
            kind = read.headers.get("Content-Type", "")
            check.that(read, kind.partition(";")[0] in (TEXT.partition(";")[0], BYTES), "no page")


@pytest.mark.level("queries")
def test_headers_of_files(check: Check, client: Client, catalogue: Catalogue) -> None:
    for name, media in (("version_text_file", TEXT), ("version_file", BYTES)):
        for url, _ in catalogue.urls(BY_NAME[name]):
            answer = client.get(url)
            check.status(answer, 200)
            check.header(answer, "Content-Type", media)
            check.header(answer, "X-Content-Type-Options", "nosniff")
            cache = answer.headers.get("Cache-Control", "")
            check.that(answer, cache.endswith(", immutable"), "an immutable answer", cache)
            policy = answer.headers.get("Content-Security-Policy", "")
            check.that(answer, media == TEXT or "sandbox" in policy, "a policy that sandboxes")
            saved = answer.headers.get("Content-Disposition", "")
            name = url.rpartition("/")[2]
            wanted = "" if media == TEXT else f'attachment; filename="{name}"'
            check.that(answer, saved == wanted, f"the name {name}", saved)


@pytest.mark.level("queries")
def test_what_no_version_has(check: Check, client: Client, catalogue: Catalogue) -> None:
    for params in catalogue.params(BY_NAME["version"]):
        folder = f"{BY_NAME['version'].url_for(**params)}/files/"
        for path in (
            "none.md",
            "none.bin",
            "a/none",
            "x" * 200,
            "x" * 201,
            "../1.0.0",
            ".git/config",
        ):
            answer = client.get(folder + path)
            check.that(answer, answer.status in (400, 404), "404", str(answer.status))
        return
