"""Readers of a site while it is built: they look after every single file that a build writes."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builder.model.names import Version
from builder.model.routes import BY_NAME, SORTS
from builder.model.settings import Settings
from tests.builder.pipeline.test_incremental import PAGE_SIZE, Stopped

Repo = tuple[str, str]

REPOS: tuple[Repo, ...] = (("ann", "x"), ("ann", "y"), ("bob", "x"), ("zoe", "x-y"))
# All of one size, so that builds cannot tell their files apart by size.
TEXTS = ("One.", "Two.", "Six.")
# Files of JSON that are not about objects of the catalogue.
NOT_RECORDS = tuple(
    BY_NAME[name].file for name in ("openapi", "not_found_error", "unavailable_error")
)


class Stored(NamedTuple):
    """A version as the model has it."""

    version: str
    text: str
    title: str
    tags: list[str]
    changelog: str
    published_at: str


class Readers:
    """The view of readers of a site, compared with the published versions.

    ``versions``: those of each repo, the newest last; ``unbuilt``: repos whose files may be older;
    ``seen``: the newest version read from each file; ``complaints``: faults seen during a build.
    """

    settings: Settings
    versions: dict[Repo, list[Stored]]
    unbuilt: set[Repo]

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Any] = {}
        self.complaints: list[AssertionError] = []

    @contextmanager
    def readers(self, stop_at: int | None) -> Iterator[None]:
        """Look at the site after each file that gets its name; die instead of this one."""
        rename = os.rename
        count = 0

        def look(*args: str) -> None:
            nonlocal count
            count += 1
            if count == stop_at:
                patch.setattr(os, "unlink", lambda path: None)  # the dead clear nothing up
                raise Stopped
            rename(*args)
            try:
                self.look(args[1])
            except AssertionError as error:
                self.complaints.append(error)  # the builder would put its own in the place of it

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "rename", look)
            yield

    def look(self, path: str) -> None:
        """Read a file that was just replaced, and follow every pointer in it."""
        file = os.path.relpath(path, self.settings.out)
        if not file.endswith(".json") or file in NOT_RECORDS:
            return
        if file.endswith(("/index.json", "/marketplace.json")):
            self.look_at_skills(json.loads(self.read(file)))
            return
        data = self.read_json(file)
        if file == BY_NAME["hub"].file:
            self.see(file, data["serial"])
            return
        rows = data["repos"] if "repos" in data else data if isinstance(data, list) else [data]
        for row in rows:
            for key in ("raw_url", "versions_url", "diff_url"):
                if row.get(key):
                    self.read(row[key].removeprefix(f"{self.settings.base_url}/"))
            if "latest_version" in row:
                repo = (row["owner"], row["name"])
                self.see(f"{file} {repo}", Version.parse(row["latest_version"]))
                # A reader who follows a list finds the listed version, or a newer one.
                there = self.read_json(BY_NAME["repo"].file_for(owner=repo[0], name=repo[1]))
                latest = Version.parse(there["latest_version"])
                assert latest >= Version.parse(row["latest_version"])

    def look_at_skills(self, listed: Any) -> None:
        """Each skill of an index or a marketplace has the bytes that this says."""
        found = [(one["url"], one["digest"][len("sha256:") :]) for one in listed.get("skills", ())]
        sources = [one["source"] for one in listed.get("plugins", ())]
        found += [(one["url"], one["sha256"]) for one in sources]
        for url, digest in found:
            data = self.read(url.removeprefix(f"{self.settings.base_url}/"))
            assert sha256(data).hexdigest() == digest

    def see(self, what: str, value: Any) -> None:
        assert value >= self.seen.get(what, value), f"{what} goes backwards"
        self.seen[what] = value

    def read(self, file: str) -> bytes:
        path = Path(self.settings.out, file)
        assert path.exists(), f"a pointer into nothing: {file}"
        return path.read_bytes()

    def read_json(self, file: str) -> Any:
        return json.loads(self.read(file))["data"]

    def check_repo(self, repo: Repo) -> None:
        """Each of the repo's endpoints has all that was published, and nothing else."""
        versions = self.versions[repo]
        if not versions:
            return
        at = {"owner": repo[0], "name": repo[1]}
        latest = versions[-1]
        data = self.read_json(BY_NAME["repo"].file_for(**at))
        keys = ("latest_version", "content", "title", "tags", "changelog", "updated_at")
        assert Stored(*(data[key] for key in keys)) == latest
        rows = self.read_json(BY_NAME["versions"].file_for(**at))
        assert [row["version"] for row in rows] == [one.version for one in reversed(versions)]
        assert self.read(BY_NAME["raw"].file_for(**at)) == latest.text.encode()
        assert latest.version in self.read(BY_NAME["repo_page"].file_for(**at)).decode()
        for number, stored in enumerate(versions):
            where = at | {"version": stored.version}
            data = self.read_json(BY_NAME["version"].file_for(**where))
            assert (data["content"], data["changelog"], data["published_at"]) == (
                stored.text, stored.changelog, stored.published_at,
            )  # fmt: skip
            assert self.read(BY_NAME["version_raw"].file_for(**where)) == stored.text.encode()
            assert stored.version in self.read(BY_NAME["version_page"].file_for(**where)).decode()
            if number:
                older = versions[number - 1]
                diff = self.read(BY_NAME["diff"].file_for(**where)).decode()
                is_told = f"-{older.text}" in diff and f"+{stored.text}" in diff
                assert is_told == (older.text != stored.text)
        user = self.read_json(BY_NAME["user"].file_for(owner=repo[0]))
        (row,) = (row for row in user["repos"] if row["name"] == repo[1])
        assert row["latest_version"] == latest.version

    def check_lists(self) -> None:
        """The first pages have what was built of each repo; ``top`` has the newest first."""
        if self.unbuilt:
            return
        latest = {repo: versions[-1] for repo, versions in self.versions.items() if versions}
        for sort in SORTS:
            rows = self.read_json(BY_NAME["list"].file_for(sort=sort, page=1))
            assert len(rows) == min(PAGE_SIZE, len(latest))
            for row in rows:
                assert row["latest_version"] == latest[row["owner"], row["name"]].version
            if sort == "top":
                newest = sorted(latest, key=lambda repo: latest[repo].published_at, reverse=True)
                assert [(row["owner"], row["name"]) for row in rows] == newest[:PAGE_SIZE]
