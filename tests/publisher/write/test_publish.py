"""Answers and files of a publication, alone and at the same time as others."""

import hashlib
import json
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import names, records
from builder.model.content_tree import RECORD
from builder.model.names import Version
from builder.store import content
from builder.text.prompts import parse_document
from operate.content_check import check
from publisher.write.decision import Terms
from publisher.write.drafts import make_draft
from publisher.write.publish import Published, preview
from tests.publisher.write import acts
from tests.support.catalogues import write_owner, write_version

NOW = datetime(2026, 1, 31, 9, 30, 15, 999_999, tzinfo=UTC)
put = partial(acts.put, now=NOW, sync=False)


def test_the_first_publication(tmp_path: Path):
    done = put(tmp_path, "Tell {{what}}.\r\n", bump="major", changelog="New.", tags=["fun"])
    data = b"Tell {{what}}.\r\n"
    assert done == Published(
        owner="ann", name="story", version="1.0.0", previous_version=None, changelog="New.",
        sha256=hashlib.sha256(data).hexdigest(), size=len(data), publisher="ann",
        published_at="2026-01-31T09:30:15Z", unchanged=False, warnings=[],
    )  # fmt: skip
    folder = tmp_path / "ann" / "story"
    assert (folder / "1.0.0.md").read_bytes() == data
    assert json.loads((tmp_path / "ann" / "owner.json").read_bytes()) == {
        "name": "ann", "joined_at": "2026-01-31T09:30:15Z", "bio": "", "url": None,
    }  # fmt: skip
    assert list(check(str(tmp_path))) == []


def test_the_record_is_for_people_too(tmp_path: Path):
    put(tmp_path, "Grüße, {{name}}!", title="Grüße")
    raw = (tmp_path / "ann" / "story" / "1.0.0.json").read_text(encoding="utf-8")
    assert raw.endswith("}\n") and '\n  "title": "Grüße",\n' in raw
    record = json.loads(raw)
    # Only where the publication moved labels, has files, or a CI job made it.
    absent = {"labels", "label_number", "source", "files", "content_sha256"}
    fields = records.VersionFile.__struct_fields__
    assert list(record) == [field for field in fields if field not in absent]
    assert tuple(record["variables"][0]) == records.Variable.__struct_fields__


def test_what_was_published_before_that_was_recorded_is_still_the_same(tmp_path: Path):
    text = "---\ntitle: Grüße\n---\nTell {{what}}."
    put(tmp_path, text)
    path = tmp_path / "ann" / "story" / "1.0.0.json"
    record = json.loads(path.read_bytes())
    del record["front_matter_bytes"]
    path.write_text(json.dumps(record))
    assert put(tmp_path, text).unchanged


@pytest.mark.parametrize(
    ("repo", "fields"),
    [("nul/story", {}), ("ann/lpt1", {}), ("ann/index", {}), ("ann/404", {}),
     ("ann/story", {"tags": ["fun", "com3"]}), ("ann/story", {"labels": ["aux"]}),
     ("ann/story", {"labels": ["prn.v1"]})],
)  # fmt: skip
def test_names_that_are_reserved_for_what_is_new(tmp_path: Path, repo: str, fields: dict[str, Any]):
    error = acts.refusal(put, tmp_path, "Text.", repo, **fields)
    assert (error.code, error.status) == ("name_reserved", 422)
    assert error.details[0].field in ("handle", "name", "tags", "labels")
    assert not content.list_versions(str(tmp_path), *repo.split("/")).versions


def test_what_has_a_reserved_name_is_published_on(tmp_path: Path):
    write_owner(str(tmp_path), "con")
    write_version(
        str(tmp_path), "con", "nul", "1.0.0", "One.", tags=["prn"], labels=["aux"], label_number=1
    )
    done = put(tmp_path, "Two.", "con/nul", tags=["prn", "new"], labels=["aux"])
    assert done.version == "1.0.1" and put(tmp_path, "One.", "con/story").version == "1.0.0"
    assert acts.refusal(put, tmp_path, "Three.", "con/nul", tags=["aux"]).code == "name_reserved"
    assert acts.refusal(put, tmp_path, "One.", "con/lpt3").code == "name_reserved"


@pytest.mark.parametrize("bump", ["patch", "minor", "major"])
def test_a_step_that_breaks_callers_is_a_warning_before_all_others(tmp_path: Path, bump: str):
    put(tmp_path, "Tell {{what}}.")
    text = "---\nodd: 1\n---\nTell {{whom}}."
    owner, name = "ann", "story"
    draft = make_draft({"content": text, "bump": bump})
    foreseen = preview(str(tmp_path), owner, name, draft, publisher=owner, terms=Terms(now=NOW))
    done = put(tmp_path, text, bump=bump)
    assert foreseen.decision.answer == done and len(done.warnings) == (1 if bump == "major" else 2)
    warning = "breaking_variables: Programs that use the version before can fail with this"
    assert done.warnings[0].startswith(warning) == (bump != "major")
    assert ("whom is a new required variable. what is gone." in done.warnings[0]) == (
        bump != "major"
    )
    again = put(tmp_path, text, bump=bump)
    assert again.unchanged and len(again.warnings) == 1


def test_nothing_new(tmp_path: Path):
    first = put(tmp_path, "One.", tags=["a"], parameters={"a": 1, "b": 2})
    put(tmp_path, "One.", tags=["b"])
    again = put(
        tmp_path, "One.", tags=["b"], parameters={"b": 2, "a": 1}, changelog="Other.", bump="major"
    )
    assert again.unchanged and (again.version, again.previous_version) == ("1.0.1", "1.0.0")
    assert again.changelog == "" and again.published_at == first.published_at
    assert acts.versions_of(tmp_path) == ["1.0.0", "1.0.1"]


def test_metadata_alone_make_a_version(tmp_path: Path):
    put(tmp_path, "One.", parameters={"stream": 1})
    assert put(tmp_path, "One.", parameters={"stream": True}).version == "1.0.1"
    assert put(tmp_path, "One.", license="MIT").version == "1.0.2"
    assert put(tmp_path, "One.").unchanged


def test_time_does_not_run_backwards(tmp_path: Path):
    put(tmp_path, "One.")
    done = put(tmp_path, "Two.", now=NOW - timedelta(days=1))
    assert done.published_at == "2026-01-31T09:30:15Z"
    assert list(check(str(tmp_path))) == []


def test_no_more_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(names, "VERSIONS_PER_REPO_MAX", 2)
    put(tmp_path, "One.")
    put(tmp_path, "Two.")
    assert acts.refusal(put, tmp_path, "Three.").code == "version_conflict"
    assert put(tmp_path, "Two.").unchanged


def test_a_record_that_could_not_be_read_is_refused(tmp_path: Path):
    large = {"a": [0] * (RECORD.bytes_max // 4)}
    assert acts.refusal(put, tmp_path, "One.", parameters=large).code == "validation_failed"
    assert list(tmp_path.iterdir()) == []


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
pieces = st.sampled_from(["{{a}}", "---\n", "tags: [a, B c]\n", "title: x\n", "\ufeff", "\r\n"])


@given(st.lists(st.lists(texts | pieces, min_size=1).map("".join).filter(str.strip), max_size=4))
def test_bytes_come_back(written: list[str]):
    with tempfile.TemporaryDirectory() as root:
        for text in written:
            if parse_document(text).fault:
                assert acts.refusal(put, root, text).code == "validation_failed"
                continue
            done = put(root, text)
            version = Version.parse(done.version)
            assert content.read_version(root, "ann", "story", version)[1] == text
            assert put(root, text).unchanged
        assert list(check(root)) == []
