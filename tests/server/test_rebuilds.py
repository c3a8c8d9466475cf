"""A live server whose site is rebuilt, damaged or gone."""

import shutil
import threading
from pathlib import Path

import requests

from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.server.test_app import check_error
from tests.support.catalogues import moment, write_owner, write_version
from tests.support.servers import DEADLINE_SECONDS, Server, serving, wait_until


def rebuild(server: Server) -> None:
    """As the publish service does: in another process than the server's, the same options."""
    build(server.settings._replace(base_url=server.url, queries=True))


def test_no_stale_answer_in_the_same_second_and_size(small: Settings) -> None:
    paths = ("/api/v1/repos/bob/sql", "/api/v1/repos/bob/sql/raw")
    with serving(small) as server:
        before = {path: server.get(path) for path in paths}
        for patch in range(1, 5):
            text = f"Write SQL for {{{{question}}}}{patch}\n"
            write_version(
                small.content, "bob", "sql", f"1.0.{patch}", text, tags=["code"],
                published_at=moment(2000 + patch), changelog="",
            )  # fmt: skip
            rebuild(server)
            for path in paths:
                etag = before[path].headers["ETag"]
                answer = server.get(path, headers={"If-None-Match": etag})
                assert answer.status_code == 200
                if patch > 1:
                    assert len(answer.content) == len(before[path].content)
                assert answer.content != before[path].content
                before[path] = answer
            assert before[paths[1]].text == text


def test_repo_that_is_removed(small: Settings) -> None:
    with serving(small) as server:
        shutil.rmtree(Path(small.content, "ann"))
        # Files are removed one build after the links to them.
        rebuild(server)
        assert server.get("/api/v1/repos").json()["meta"]["total"] == 1
        rebuild(server)
        check_error(server.get("/api/v1/repos/ann/story"), 404, "repo_not_found")
        check_error(server.get("/api/v1/users/ann"), 404, "user_not_found")
        check_error(server.get("/api/v1/repos?tag=careful"), 404, "tag_not_found")
        assert server.get("/api/v1/repos?q=story").json()["data"] == []


def test_watch(small: Settings) -> None:
    with serving(small, "--watch") as server:
        write_version(small.content, "ann", "story", "1.0.1", "Tell a longer story.\n")
        wait_until(
            lambda: server.get("/api/v1/repos/ann/story/raw").text == "Tell a longer story.\n",
            "the new version",
        )
        write_owner(small.content, "ann", bio="Writes no more.")
        wait_until(
            lambda: server.get("/api/v1/users/ann").json()["data"]["bio"] == "Writes no more.",
            "the new profile",
        )
        # A fault is reported, changes no site, and ends nothing.
        Path(small.content, "bob/sql/1.1.0.json").write_text("{")
        server.process.wait_for_line("bob/sql/1.1.0.json")
        assert server.get("/api/v1/repos/bob/sql").json()["data"]["latest_version"] == "1.0.0"
        write_version(small.content, "bob", "sql", "1.1.0", "Write it.\n")
        wait_until(
            lambda: server.get("/api/v1/repos/bob/sql").json()["data"]["versions_count"] == 2,
            "the mended version",
        )
        wait_until(
            lambda: server.get("/api/v1/repos?q=longer").json()["meta"]["total"] == 1, "the index"
        )


def test_internal_error_tells_readers_nothing(small: Settings) -> None:
    with serving(small) as server:
        broken = Path(small.out, "api/v1/tags.json")
        broken.unlink()
        broken.mkdir()
        answer = server.get("/api/v1/tags")
        message = check_error(answer, 500, "internal_error")
        for inside in ("Traceback", "Error", small.out, ".py"):
            assert inside not in message
        server.process.wait_for_line("IsADirectoryError")
        assert server.get("/api/v1/users/ann").status_code == 200
        broken.rmdir()
        check_error(server.get("/api/v1/tags"), 404, "not_found")


def test_site_that_is_gone(small: Settings) -> None:
    with serving(small) as server:
        assert server.get("/api/v1/repos?q=care").status_code == 200
        shutil.rmtree(small.out)
        for path in ("/api/v1/repos", "/api/v1/tags", "/api/v1/repos/ann/story"):
            answer = server.get(path)
            check_error(answer, 503, "unavailable")
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
        rebuild(server)
        assert server.get("/api/v1/repos/ann/story").status_code == 200


def test_search_index_and_state_that_are_gone(small: Settings) -> None:
    with serving(small) as server:
        shutil.rmtree(small.state)
        answer = server.get("/api/v1/repos?q=care")
        check_error(answer, 503, "unavailable")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert server.get("/api/v1/repos").status_code == 200
        rebuild(server)
        assert server.get("/api/v1/repos?q=care").json()["meta"]["total"] == 1


def test_many_readers_at_once(live: Server) -> None:
    """Every one gets the answer to its own question."""
    questions = ["sql", "review", "act as interviewer", "議事録", "лист", "the"] * 8
    expected = {q: live.get("/api/v1/repos", params={"q": q}).content for q in set(questions)}
    wrong = []

    def ask(q: str) -> None:
        answer = requests.get(f"{live.url}/api/v1/repos", params={"q": q}, timeout=DEADLINE_SECONDS)
        if answer.content != expected[q]:
            wrong.append((q, answer.status_code))

    threads = [threading.Thread(target=ask, args=(q,)) for q in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
