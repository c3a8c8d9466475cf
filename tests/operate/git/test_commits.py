"""Each publication becomes a commit, whose texts are only texts."""

import pytest

from operate.git import commits, sync
from tests.operate.git.places import Place, git, watched_git
from tests.support.catalogues import read_tree, write_label, write_version, write_withdrawn


def test_each_publication_is_a_commit(place: Place) -> None:
    done = place.run()
    assert place.is_same()
    assert done.commits == 5
    assert place.log("%an <%ae> %aI %s")[:4] == [
        "ann <ann@users.noreply.hub.example> 2025-02-11T16:00:00+00:00 ann/review 1.0.0",
        "ann <ann@users.noreply.hub.example> 2025-02-11T16:00:00+00:00 ann/story 1.0.0",
        "bob <bob@users.noreply.hub.example> 2025-02-11T16:00:00+00:00 bob/sql 1.0.0",
        "ann <ann@users.noreply.hub.example> 2025-02-13T18:00:00+00:00 ann/review 1.1.0: With "
        "care.",
    ]
    assert place.log("%s")[4:] == ["ann: profile"]
    assert place.run().commits == 0
    assert place.builds == []


def test_git_changes_no_line_end_in_a_clone(place: Place) -> None:
    write_version(place.content, "ann", "lines", "1.0.0", b"One\r\nTwo\n")
    place.run()
    clone = place.clone()
    git(clone, "-c", "core.autocrlf=true", "checkout-index", "--force", "--all")
    assert {path: data for path, data in read_tree(clone).items() if path[0] != "."} == read_tree(
        place.content
    )


def test_labels_and_withdrawals_are_commits(place: Place) -> None:
    place.run()
    write_label(place.content, "ann/review", 1, "production", "1.1.0", note="Passed.")
    write_label(place.content, "ann/review", 2, "production", None)
    write_withdrawn(place.content, "bob/sql", "1.0.0", note="Use another.")
    place.run()
    assert place.is_same()
    assert place.log("%an %s")[5:] == [
        "ann ann/review label production to 1.1.0: Passed.",
        "ann ann/review no label production",
        "ann bob/sql 1.0.0 withdrawn (secret): Use another.",
    ]


def test_what_was_withdrawn_before_the_push_never_gets_there(place: Place) -> None:
    write_version(place.content, "bob", "key", "1.0.0", "hunter2\n")
    write_withdrawn(place.content, "bob/key")
    place.run()
    assert place.is_same()
    assert "hunter2" not in git(place.remote, "log", "--all", "--patch")


def test_texts_of_others_are_only_texts(place: Place) -> None:
    changelog = (
        "Red \x1b[31m\u202etext\nD content/ann\ndata 5\n\nreset refs/heads/main\n" + "long " * 999
        + "\n\nCo-authored-by: Bob <bob@example.org>\n"
    )  # fmt: skip
    write_version(place.content, "ann", "evil", "1.0.0", "Hi\n", changelog=changelog)
    write_version(place.content, "ann", "old", "1.0.0", "Hi\n", published_at="0800-01-01T00:00:00Z")
    write_version(place.content, "ann", "new", "1.0.0", "Hi\n", published_at="9999-01-01T00:00:00Z")
    place.run()
    assert place.is_same()
    message = next(one for one in place.log("%B") if one.startswith("ann/evil"))
    lines = message.split("\n")
    assert lines[0] == "ann/evil 1.0.0: Red [31m text"
    assert lines[2:4] == ["D content/ann", "data 5"]
    assert max(map(len, lines)) <= commits.LINE_CHARS_MAX
    assert place.log("%(trailers:only)")[-1].strip() == "By: ann"
    dates = dict(line.split(" ", 1)[::-1] for line in place.log("%at %s"))
    assert (dates["ann/old 1.0.0"], dates["ann/new 1.0.0"]) == ("0", "253370764800")


def test_many_at_once_are_one_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commits, sync):
        monkeypatch.setattr(module, "COMMITS_MAX", 3)
    write_label(place.content, "ann/review", 1, "production", "1.1.0")
    place.run()
    assert place.is_same()
    (message,) = place.log("%B")
    assert message.split("\n") == [
        "6 changes", "", "ann/review 1.0.0", "ann/story 1.0.0", "bob/sql 1.0.0", "and 3 more", "",
        "By: hub", "",
    ]  # fmt: skip


def test_many_places_are_pushed_part_by_part(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "PLACES_MAX", 2)
    commands: list[str] = []
    with watched_git(commands.extend):
        place.run()
    assert place.is_same()
    assert commands.count("push") == 3
