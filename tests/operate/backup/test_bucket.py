"""A bucket as the place, on a server that speaks S3 and checks signatures."""

from pathlib import Path

import pytest

from builder.model.errors import OperatorError
from operate.backup import snapshots
from operate.backup.places import open_place
from operate.parallel import Work
from tests.operate.backup.conftest import Hub, settle
from tests.operate.deploy.conftest import PAGE_KEYS, S3
from tests.support.catalogues import read_tree


def test_back_up_verify_and_restore(hub: Hub, other: Hub, s3: S3, bucket: str) -> None:
    settle()
    place = open_place(f"s3://{bucket}/hubs/one", endpoint_url=s3.url)
    for number in range(16):
        hub.publish("many", f"Text {number}.")
    settle()
    assert hub.back_up(place).stored > PAGE_KEYS
    text = Path(hub.settings.content, "ann", "poem", "1.0.0.md").read_bytes()
    assert hub.back_up(place).stored == 0
    hub.withdraw("poem", "1.0.0")
    report = hub.back_up(place, keep=1)
    assert report.dropped == 2 and report.removed > 0
    checked = snapshots.verify(place, Work(2))
    assert (checked.snapshots, checked.faults) == ([report.id], [])
    keys = s3.etags(bucket)
    assert all(key.startswith("hubs/one/") for key in keys)
    assert len(keys) == checked.objects + 2
    assert text not in read_tree(hub.settings.content).values()
    assert other.restore(place).floor == 20_000
    tree = read_tree(other.settings.content)
    assert tree.pop("restored.json") and tree == read_tree(hub.settings.content)
    # So that the next one takes another.
    assert "hubs/one/restores/0001.json" in s3.etags(bucket)


def test_what_is_wrong_in_a_bucket(hub: Hub, other: Hub, s3: S3, bucket: str) -> None:
    place = open_place(f"s3://{bucket}", endpoint_url=s3.url)
    missing = open_place("s3://no-such-bucket", endpoint_url=s3.url)
    with pytest.raises(OperatorError, match=r"NoSuchBucket.*Create it"):
        hub.back_up(missing)
    hub.back_up(place)
    sha256 = next(iter(snapshots.choose(place).lists.values()))
    key = f"objects/{sha256[:2]}/{sha256[2:]}"
    s3.client.put_object(Bucket=bucket, Key=key, Body=b"x" * (65 * 1024 * 1024))
    with pytest.raises(OperatorError, match=r"has more than 67,108,864 bytes"):
        other.restore(place)
    s3.client.put_object(Bucket=bucket, Key=key, Body=b"[]")
    with pytest.raises(OperatorError, match="is damaged"):
        other.restore(place)
