"""Publishing through nodes of one database: one order for all, and each folder a copy of it."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from builder.model.errors import OperatorError, RequestError
from builder.model.names import Version
from builder.model.records import OwnerFile
from builder.model.request_bodies import Draft, DraftFile
from builder.store.content import list_versions, read_files, read_record
from publisher.nodes import commits as commits_module
from publisher.nodes.commits import StoreUnavailable
from publisher.nodes.store import Shared
from publisher.write.durable import FolderStore, NewVersion
from publisher.write.profile import read_profile, write_profile
from publisher.write.publish import Past, Published, publish_past
from publisher.write.quotas import QuotaKeeper, Quotas
from tests.publisher.nodes.conftest import Nodes
from tests.publisher.nodes.publishing import (
    before_next_group,
    key_of,
    label,
    meet,
    put,
    stop_reading,
    take_back,
)
from tests.publisher.write.acts import code_of
from tests.support.catalogues import edit_record, write_version


def test_two_nodes_number_one_prompt(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    assert put(one, "first\n").version == "1.0.0"
    assert put(two, "second\n").version == "1.0.1"
    assert put(one, "third\n").previous_version == "1.0.1"
    meet(nodes, one, two)
    assert nodes.content("one") == nodes.content("two")
    assert one.serial == two.serial == 4  # with the profile
    assert one.decided_serial == 4
    assert nodes.execute("SELECT serial FROM change ORDER BY 1") == [(1,), (2,), (3,), (4,)]


def test_files_need_not_come_in_the_order_of_their_record(nodes: Nodes, tmp_path: Path):
    """A branch of git has them in the order of paths, and a record in any."""
    files = {"a.txt": b"A", "b/c.sh": b"", "d.bin": b"\0\1\2"}
    record = write_version(tmp_path / "hand", "ann", "lint", "1.0.0", "Lint.", files)
    edit_record(record, files=json.loads(record.read_bytes())["files"][::-1])
    text, raw = record.with_suffix(".md").read_bytes(), record.read_bytes()
    one = nodes.start("one")
    version = "ann", "lint", "1.0.0"
    one.decide("ann", "lint", lambda: one.write_version(*version, NewVersion(text, raw, files)))
    at = one.root, "ann", "lint", Version(1, 0, 0)
    stored = read_record(*at)
    assert [one.path for one in stored.files or ()] == ["d.bin", "b/c.sh", "a.txt"]
    assert read_files(*at, stored) == [*files.values()][::-1]


def test_a_folder_would_have_the_same_files(nodes: Nodes, tmp_path: Path):
    now = datetime(2026, 1, 2, tzinfo=UTC)
    one, two = nodes.start("one"), nodes.start("two")
    (tmp_path / "plain").mkdir()
    files = [
        DraftFile(path="a/run.sh", content="hi", executable=True),
        DraftFile(path="b", base64="AP8="),
        DraftFile(path="empty", content=""),
    ]
    for store in (one, FolderStore(str(tmp_path / "plain"))):
        put(store, "first\n", now=now)
        put(store, "second\n", now=now, draft={"labels": ["beta"], "files": files})
        put(store, "second\n", now=now, draft={"labels": ["gamma", "live"]})
        label(store, "1.0.0", now=now)
        take_back(store, "1.0.1", move_labels="1.0.0", now=now)
        write_profile(store, "ann", OwnerFile("Ann", "2026-01-01T00:00:00Z"))
        put(store, "other\n", name="other", now=now)
        put(store, "foldered\n", name="other", now=now, draft={"files": files})
        put(store, "kept\n", name="other", now=now)
    # A node that follows, and one that catches up with all of it.
    meet(nodes, one, two, nodes.start("three"))
    for node in ("one", "two", "three"):
        assert nodes.content(node) == nodes.content("plain")
    assert nodes.content("plain")["ann/other/1.0.2.files/a/run.sh"] == b"hi"


def test_a_node_that_is_behind_decides_by_what_is_there(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    assert put(two, "first\n").unchanged
    put(one, "second\n")
    assert code_of(put, two, "third\n", draft={"base_version": "1.0.0"}) == "base_version_mismatch"
    put(one, "third\n")
    assert label(two, "1.0.2").version == "1.0.2"
    assert label(one, "1.0.2").unchanged
    assert code_of(label, one, "1.0.0", expected="1.0.1") == "label_moved"
    take_back(two, "1.0.2")
    assert code_of(put, one, "third\n") == "version_withdrawn"


def test_what_was_overtaken_is_decided_again(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(nodes, one, two)
    before_next_group(two, lambda: put(one, "between\n"))
    done = put(two, "second\n")
    assert (done.version, done.previous_version) == ("1.0.2", "1.0.1")
    before_next_group(two, lambda: put(one, "same\n"))
    assert put(two, "same\n").unchanged
    before_next_group(two, lambda: label(one, "1.0.0"))
    assert label(two, "1.0.1").previous == "1.0.0"
    before_next_group(two, lambda: take_back(one, "1.0.0"))
    assert take_back(two, "1.0.0").unchanged
    before_next_group(two, lambda: take_back(one, None))
    with pytest.raises(RequestError, match="not given again"):
        put(two, "third\n")


def test_a_text_that_is_taken_twice_is_refused_by_the_database(nodes: Nodes):
    """The database refuses it even if the code forgets to check what others have committed."""
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(nodes, one, two)
    stop_reading(two)
    put(one, "second\n")
    unseen = two._copy.mark.serial + 1
    commit = two._commits.commit
    two._commits.commit = lambda change: commit(structs.replace(change, seen=unseen))
    with pytest.raises(StoreUnavailable):
        put(two, "third\n")
    rows = nodes.execute("SELECT name FROM change WHERE kind = 'version' ORDER BY serial")
    assert rows == [("1.0.0",), ("1.0.1",)]


# A request that is sent again


def test_a_request_sent_again_elsewhere_gets_its_first_answer(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    first = put(one, "first\n", idempotency_key=key_of(nodes, "one"))
    put(one, "second\n")
    assert put(two, "first\n", idempotency_key=key_of(nodes, "two")) == first


def test_the_answer_is_in_the_transaction_of_its_version(nodes: Nodes):
    one = nodes.start("one")
    put(one, "first\n", idempotency_key=key_of(nodes, "one"))
    (kept,) = nodes.execute("SELECT xmin::text FROM answer")
    assert {kept} == set(nodes.execute("SELECT xmin::text FROM change"))


def test_one_request_at_two_nodes_at_once_makes_one_version(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    made: list[Published] = []
    before_next_group(
        two, lambda: made.append(put(one, "first\n", idempotency_key=key_of(nodes, "one")))
    )
    assert put(two, "first\n", idempotency_key=key_of(nodes, "two")) == made[0]
    meet(nodes, one, two)
    assert [path for path in nodes.content("two") if path.endswith(".md")] == ["ann/story/1.0.0.md"]
    assert nodes.execute("SELECT count(*) FROM answer") == [(1,)]


def test_a_key_that_another_request_takes_first_is_refused(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "old\n", name="old")
    meet(nodes, two)  # otherwise the owner's first prompt is overtaken
    other = key_of(nodes, "one")._replace(fingerprint=b"g" * 32)
    before_next_group(two, lambda: put(one, "first\n", name="other", idempotency_key=other))
    assert (
        code_of(put, two, "first\n", idempotency_key=key_of(nodes, "two"))
        == "idempotency_key_reused"
    )
    assert nodes.execute("SELECT count(*) FROM change WHERE repo = 'ann/story'") == [(0,)]


def test_an_answer_that_nothing_is_new_is_kept_only_if_it_is_so(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(nodes, two)
    before_next_group(two, lambda: put(one, "second\n"))
    done = put(two, "first\n", idempotency_key=key_of(nodes, "two"))
    assert (done.version, done.unchanged) == ("1.0.2", False)
    again = put(one, "first\n", idempotency_key=key_of(nodes, "one"))
    assert again == done
    assert put(two, "first\n", idempotency_key=key_of(nodes, "two")._replace(key="2")).unchanged
    put(one, "third\n")
    assert put(one, "first\n", idempotency_key=key_of(nodes, "one")._replace(key="2")).unchanged


def test_an_answer_about_a_label_is_kept(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    put(one, "second\n")
    first = label(one, "1.0.0", key_of(nodes, "one"))
    label(one, "1.0.1")
    assert label(two, "1.0.0", key_of(nodes, "two")) == first


def test_an_owner_has_so_many_keys(nodes: Nodes):
    one = nodes.start("one")
    key = key_of(nodes, "one")._replace(kept_max=2)
    for number in range(2):
        put(one, f"{number}\n", idempotency_key=key._replace(key=f"{number}"))
    assert code_of(put, one, "more\n", idempotency_key=key._replace(key="2")) == "rate_limited"
    assert put(one, "0\n", idempotency_key=key._replace(key="0")).version == "1.0.0"


# Withdrawals


def test_a_withdrawn_text_is_nowhere(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "hidden\n", draft={"files": [DraftFile(path="a/key", content="hidden key")]})
    put(one, "fine\n", draft={"files": []})
    meet(nodes, one, two)
    take_back(two, "1.0.0")
    meet(nodes, one, two)
    shown = nodes.execute("SELECT convert_from(text, 'UTF8') FROM change WHERE text IS NOT NULL")
    assert shown == [("fine\n",)]
    records = nodes.execute("SELECT convert_from(record, 'UTF8') FROM change")
    assert not [record for (record,) in records if "hidden" in record]
    nodes.start("three")  # which reads the whole past
    for name in ("one", "two", "three"):
        assert not any(b"hidden" in data for data in nodes.content(name).values())
        assert nodes.content("one") == nodes.content(name)


def test_a_whole_prompt_is_withdrawn(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    for text in ("hidden a", "hidden b"):
        put(one, f"{text}\n")
    put(one, "other\n", name="other")
    take_back(two, None)
    meet(nodes, one, two)
    assert nodes.execute("SELECT repo FROM change WHERE text IS NOT NULL") == [("ann/other",)]
    assert nodes.content("one") == nodes.content("two")
    with pytest.raises(RequestError, match="not given again"):
        put(one, "c\n")


# Owners


def test_the_first_prompt_brings_a_profile_and_the_last_profile_stays(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(nodes, one, two)
    assert read_profile(two.root, "ann").name == "ann"
    before_next_group(
        two, lambda: write_profile(one, "ann", OwnerFile("Ann", "2026-01-01T00:00:00Z"))
    )
    write_profile(two, "ann", OwnerFile("Anne", "2026-01-01T00:00:00Z"))
    meet(nodes, one, two)
    assert read_profile(one.root, "ann").name == "Anne"
    assert nodes.content("one") == nodes.content("two")


def test_two_first_prompts_at_once_bring_one_profile(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    before_next_group(two, lambda: put(one, "first\n"))
    put(two, "second\n", name="other")
    assert nodes.execute("SELECT count(*) FROM change WHERE kind = 'profile'") == [(1,)]


def test_a_quota_holds_over_all_nodes(nodes: Nodes):
    running = [nodes.start(name, has_quotas=True) for name in ("one", "two")]

    def work(store: Shared) -> list[str]:
        keeper, outcomes = QuotaKeeper(store.root, Quotas(versions=5)), []
        for number in range(5):
            try:
                put(store, "x\n", name=f"{Path(store.root).name}-{number}", quotas=keeper)
                outcomes.append("done")
            except RequestError as error:
                outcomes.append(error.code)
        return outcomes

    with ThreadPoolExecutor(2) as pool:
        outcomes = [one for some in pool.map(work, running) for one in some]
    assert sorted(outcomes) == ["done"] * 5 + ["validation_failed"] * 5


def test_histories_come_whole_or_are_refused(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    past = [Past(Draft(content=f"{n}\n"), datetime(2025, 1, n, tzinfo=UTC)) for n in (1, 2, 3)]
    done = [*publish_past(one, "ann", "story", past, after=None, publisher="ann")]
    assert [one.version for one in done] == ["1.0.0", "1.0.1", "1.0.2"]
    meet(nodes, two)
    assert nodes.content("two") == nodes.content("one")
    before_next_group(two, lambda: put(one, "between\n"))
    after = list_versions(two.root, "ann", "story").versions[-1]
    again = publish_past(two, "ann", "story", past, after=after, publisher="ann")
    assert code_of(list, again) == "version_conflict"


# Starting


def test_a_new_node_reads_many_pages(nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    one = nodes.start("one")
    for number in range(7):
        put(one, f"{number}\n")
    label(one, "1.0.2")
    take_back(one, "1.0.1")
    monkeypatch.setattr(commits_module.rows, "PAGE_ROWS", 3)
    two = nodes.start("two")
    assert nodes.content("two") == nodes.content("one")
    assert two.serial == one.serial == 10


def test_a_node_that_was_killed_keeps_nothing_that_was_withdrawn(nodes: Nodes):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "hidden\n")
    put(one, "fine\n")
    meet(nodes, one, two)
    nodes.stop("one")
    mark = nodes.root / "one" / ".hub-store"
    mark.write_bytes(mark.read_bytes().replace(b'"applied":3', b'"applied":1'))
    take_back(two, "1.0.0")
    nodes.start("one")
    assert nodes.content("one") == nodes.content("two")


def test_a_node_goes_on_where_it_was(nodes: Nodes):
    put(nodes.start("one"), "first\n")
    nodes.stop("one")
    put(nodes.start("two"), "second\n")
    nodes.start("one")
    assert nodes.content("one") == nodes.content("two")


def test_a_folder_is_for_one_process(nodes: Nodes):
    nodes.start("one")
    with pytest.raises(OperatorError, match="Another process"):
        Shared(str(nodes.root / "one"), nodes.databases["one"].engine.connections)


def test_prompts_of_a_folder_are_not_mixed_with_those_of_a_database(nodes: Nodes):
    (nodes.root / "one" / "ann").mkdir(parents=True)
    with pytest.raises(OperatorError, match="hubctl store copy"):
        nodes.start("one")
