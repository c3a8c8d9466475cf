"""The numbers of publication that are stored, and what a publication reads to find the next."""

import json
import os
import shutil
from pathlib import Path

import pytest

from builder.model.errors import ContentError
from builder.model.names import ORDINAL_MAX
from builder.model.request_bodies import WithdrawalDraft
from builder.store import content
from operate.content_check import check
from publisher.write.decision import Terms
from publisher.write.durable import FolderStore
from publisher.write.moves import read_kept
from publisher.write.withdraw import withdraw
from tests.publisher.write import acts
from tests.support.calls import watched
from tests.support.catalogues import edit_record, moment, write_version


@pytest.fixture
def root(tmp_path: Path, settled: None) -> str:
    """A content folder whose files count as settled at once."""
    return str(tmp_path)


def put(root: str, text: str, **fields: object) -> int:
    """Publish; the number that the record stores."""
    done = acts.put(root, text, "ann/x", sync=False, **fields)
    return json.loads(Path(root, "ann/x", f"{done.version}.json").read_bytes())["ordinal"]


def take_back(root: str, version: str | None) -> dict:
    draft, terms = WithdrawalDraft(reason="error"), Terms(sync=False)
    withdraw(FolderStore(root), "ann", "x", version, draft, by="ann", terms=terms)
    return json.loads(Path(root, f"ann/x/withdrawn/{version or 'all'}.json").read_bytes())


def test_publications_are_counted_from_one_and_repeated_ones_are_not(root: str):
    assert [put(root, "One."), put(root, "Two.", bump="major"), put(root, "Two.")] == [1, 2, 2]
    assert put(root, "Three.", labels=["production"]) == 3


def test_a_withdrawal_keeps_the_number_which_is_not_given_again(root: str):
    put(root, "One.")
    put(root, "Two.")
    assert take_back(root, "1.0.1")["versions"]["1.0.1"]["ordinal"] == 2
    assert put(root, "Three.") == 3
    whole = take_back(root, None)["versions"]
    assert {version: one["ordinal"] for version, one in whole.items()} == {"1.0.0": 1, "1.0.2": 3}
    assert [*check(root)] == []


def test_versions_that_store_none_are_counted(root: str):
    for version in ("1.0.0", "1.0.1", "2.0.0"):
        write_version(root, "ann", "x", version, f"Say {version}.\n")
    assert "ordinal" not in take_back(root, "1.0.1")["versions"]["1.0.1"]
    assert put(root, "Four.") == 4


def test_a_number_that_a_lower_version_stores_counts_too(root: str):
    write_version(root, "ann", "x", "1.0.0", "One.", ordinal=40)
    write_version(root, "ann", "x", "2.0.0", "Two.", ordinal=2)
    assert put(root, "Three.") == 41
    take_back(root, "1.0.0")
    assert put(root, "Four.") == 42


def test_the_highest_number_is_the_last(root: str):
    write_version(root, "ann", "x", "1.0.0", "One.", ordinal=ORDINAL_MAX)
    error = acts.refusal(put, root, "Two.")
    assert error.code == "version_conflict" and "999,999,999, which is the limit" in str(error)


@pytest.mark.parametrize("ordinal", [0, -1, 1.5, "1", None, ORDINAL_MAX + 1], ids=repr)
def test_what_is_no_number_is_a_fault(root: str, ordinal: object):
    write_version(root, "ann", "x", "1.0.0", "One.", ordinal=ordinal)
    (fault,) = check(root)
    assert fault.path == "ann/x/1.0.0.json" and "ordinal" in fault.reason
    with pytest.raises(ContentError):
        put(root, "Two.")


def test_a_number_that_is_stored_twice_is_a_fault(root: str):
    put(root, "One.")
    put(root, "Two.")
    edit_record(Path(root, "ann/x/1.0.1.json"), ordinal=1)
    (fault,) = check(root)
    assert str(fault).startswith("ann/x/1.0.1.json: 1.0.1 has the ordinal 1, as 1.0.0 has")
    assert put(root, "Three.") == 3
    take_back(root, "1.0.1")
    (fault,) = check(root)
    assert fault.path == "ann/x/withdrawn/1.0.1.json"


def test_a_publication_opens_only_records_that_this_process_has_not_read(root: str):
    for patch in range(20):
        write_version(
            root, "ann", "x", f"1.0.{patch}", f"Say {patch}.\n", published_at=moment(patch)
        )
    put(root, "One more.")
    opened: set[str] = set()
    with watched(lambda call, args: opened.add(os.path.basename(args[0])) if call == "open" else 0):
        assert put(root, "And one more.") == 22
    # Only the latest one: its metadata are needed, and this process has not read it yet.
    assert {name for name in opened if name.startswith("1.")} - {"1.0.20.md"} == {"1.0.20.json"}
    # A folder of the same names, with other records in it.
    shutil.rmtree(f"{root}/ann/x")
    for patch in range(21):
        write_version(root, "ann", "x", f"1.0.{patch}", f"Say {patch}.\n", ordinal=50 + patch)
    assert put(root, "Another.") == 71


def test_all_faults_are_named_at_once(root: str):
    for patch in range(3):
        path = write_version(root, "ann", "x", f"1.0.{patch}", f"Say {patch}.\n")
        if patch != 1:
            path.write_text("{")
    listing = content.list_versions(root, "ann", "x")
    with pytest.raises(ContentError) as caught:
        read_kept(root, "ann", "x", listing)
    assert [fault.path for fault in caught.value.faults] == ["ann/x/1.0.0.json", "ann/x/1.0.2.json"]
