"""A series of versions from elsewhere: each is a version, whole, in order, or is refused."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.model import names
from builder.model.errors import RequestError
from builder.model.names import Version
from builder.store import content
from operate.content_check import check
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore
from publisher.write.publish import Past, Published, publish_past
from tests.publisher.write import acts

REPO = ("ann", "story")
AT = datetime(2024, 1, 1, tzinfo=UTC)


def past(*texts: str, ordinals: tuple[int, ...] = ()) -> list[Past]:
    return [
        Past(make_draft({"content": text}), AT, ordinal)
        for text, ordinal in itertools.zip_longest(texts, ordinals, fillvalue=0)
    ]


def put(root: Path, *texts: str, after: str = "", **more: object) -> list[str]:
    """The version and ordinal of each text, or the code of its error."""
    ordinals = more.pop("ordinals", ())
    done = publish_past(
        FolderStore(str(root)), *REPO, past(*texts, ordinals=ordinals), publisher="ann",
        after=Version.parse(after) if after else None, **more,
    )  # fmt: skip
    return [one.version if isinstance(one, Published) else one.code for one in done]


def ordinals_of(root: Path) -> list[int]:
    versions = content.list_versions(str(root), *REPO).versions
    return [content.read_record(str(root), *REPO, version).ordinal for version in versions]


def test_all_is_planned_in_a_dry_run_and_nothing_written(tmp_path: Path):
    planned = put(tmp_path, "One.", "One.", "Two.", dry_run=True)
    assert list(tmp_path.iterdir()) == []
    assert planned == put(tmp_path, "One.", "One.", "Two.") == ["1.0.0", "1.0.1", "1.0.2"]


def test_nothing_is_left_where_nothing_could_be_published(tmp_path: Path):
    many = " ".join(f"{{{{v{number}}}}}" for number in range(201))
    assert put(tmp_path, many) == ["validation_failed"]
    assert list(tmp_path.iterdir()) == []


def test_limits_refuse_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(names, "VERSIONS_PER_REPO_MAX", 2)
    monkeypatch.setattr(names, "ORDINAL_MAX", 5)
    found = put(tmp_path, "One.", "Two.", "Three.", ordinals=(6, 5, 0))
    assert found == ["version_conflict", "1.0.0", "version_conflict"]
    assert (ordinals_of(tmp_path), list(check(str(tmp_path)))) == ([5], [])
    assert put(tmp_path, "Four.", after="1.0.0") == ["version_conflict"]


def test_numbers_after_a_restore(tmp_path: Path):
    (tmp_path / "restored.json").write_text(
        '{"floor": 30000, "serial": 0, "at": "2024-01-01T00:00:00Z"}'
    )
    assert put(tmp_path, "One.", "Two.", ordinals=(1, 2)) == ["1.0.30000", "1.0.30001"]
    assert ordinals_of(tmp_path) == [30_000, 30_001]


def test_it_goes_on_after_what_the_caller_has_seen(tmp_path: Path):
    put(tmp_path, "One.")
    for after in ("", "1.0.1"):
        with pytest.raises(RequestError, match="Another process changed ann/story"):
            put(tmp_path, "Two.", after=after)
    assert put(tmp_path, "Two.", after="1.0.0") == ["1.0.1"]


def test_the_lock_is_held_to_the_end_and_no_longer(tmp_path: Path):
    series = publish_past(
        FolderStore(str(tmp_path)), *REPO, past("One.", "Two."), publisher="ann", after=None
    )
    assert next(series).version == "1.0.0"
    series.close()
    assert acts.put(tmp_path, "Mine.").version == "1.0.1"
