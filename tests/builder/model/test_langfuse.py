"""Under which refs Langfuse's SDKs find the versions of a repo."""

from builder.model.langfuse_records import NO_REF, Findable, refs_of


def test_without_labels_the_latest_is_the_default():
    versions = [Findable("1.0.0", 1, []), Findable("1.1.0", 2, [])]
    assert refs_of(versions) == [["1.0.0", "1"], ["1.1.0", "2", "latest", NO_REF]]


def test_production_is_the_default():
    versions = [Findable("1.0.0", 2, ["a", "production"]), Findable("9.0.0", 1, ["b"])]
    assert refs_of(versions) == [
        ["1.0.0", "2", "a", "production", NO_REF], ["9.0.0", "1", "b", "latest"],
    ]  # fmt: skip


def test_one_version_can_be_all():
    assert refs_of([Findable("1.0.0", 4, ["production"])]) == [
        ["1.0.0", "4", "production", "latest", NO_REF]
    ]
