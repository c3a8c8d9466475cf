"""The records: what is accepted, what is filled in, and the order of their keys."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import answers, records
from builder.model.records import OwnerFile, Variable, VersionFile

GOOD_VERSION = {
    "publisher": "ann",
    "published_at": "2025-01-31T09:30:00Z",
    "sha256": "0" * 64,
    "title": "A title",
}
GOOD_OWNER = {"name": "Ann", "joined_at": "2025-01-31T09:30:00Z"}


def version_file(**fields) -> VersionFile:
    return msgspec.json.decode(msgspec.json.encode(GOOD_VERSION | fields), type=VersionFile)


def owner_file(**fields) -> OwnerFile:
    return msgspec.json.decode(msgspec.json.encode(GOOD_OWNER | fields), type=OwnerFile)


def test_defaults_of_a_version_file():
    record = version_file()
    assert (record.changelog, record.description, record.tags) == ("", "", [])
    assert (record.license, record.variables, record.parameters) == (None, [], {})
    assert version_file().tags is not record.tags


def test_defaults_of_an_owner_file():
    assert (owner_file().bio, owner_file().url) == ("", None)


def test_a_variable_is_required_unless_it_has_a_default():
    assert msgspec.convert({"name": "a"}, Variable).required is True
    assert msgspec.convert({"name": "a", "default": 0}, Variable).required is False
    assert msgspec.convert({"name": "a", "default": 0, "required": True}, Variable).required
    assert not msgspec.convert({"name": "a", "required": False}, Variable).required
    variable = msgspec.convert({"name": "a"}, Variable)
    assert msgspec.to_builtins(variable) == {
        "name": "a", "description": "", "type": "string", "required": True, "default": None,
        "example": None, "enum": None,
    }  # fmt: skip


BAD_TIMES = [
    "", "2025-01-31", "2025-01-31T09:30:00", "2025-01-31T09:30:00+00:00", "2025-01-31 09:30:00Z",
    "2025-01-31T09:30:00.5Z", "2025-01-31T09:30Z", "2025-02-30T09:30:00Z", "2025-13-01T09:30:00Z",
    "2025-01-31T25:00:00Z", "2025-01-31T09:60:00Z", "2025-01-31T09:30:61Z", "0000-01-01T00:00:00Z",
    "2025-01-31T09:30:00Z\n", "2025-01-31T09:30:0Z\n", "２025-01-31T09:30:00Z",
    "2025-01-31t09:30:00z", "+025-01-31T09:30:00Z", "2025-W05-5T09:30:00Z",
]  # fmt: skip


@pytest.mark.parametrize("time", BAD_TIMES)
def test_a_bad_time_is_refused(time):
    with pytest.raises(ValueError):
        records.check_time(time)
    with pytest.raises(msgspec.ValidationError):
        version_file(published_at=time)
    with pytest.raises(msgspec.ValidationError):
        owner_file(joined_at=time)


@given(st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "Z"))
def test_every_real_second_is_a_time(time):
    assert records.check_time(time) == time
    assert version_file(published_at=time).published_at == time


BAD_FIELDS = [
    {"extra": 1}, {"tags": ["a", "a"]}, {"tags": ["A"]}, {"tags": ["a\n"]}, {"tags": [""]},
    {"tags": ["a b"]}, {"tags": "a"}, {"tags": [f"t{n}" for n in range(11)]}, {"tags": ["a" * 49]},
    {"tags": None}, {"publisher": "ann\n"}, {"publisher": "Ann"}, {"publisher": "a" * 40},
    {"sha256": "0" * 63}, {"sha256": "0" * 64 + "\n"}, {"sha256": "0" * 63 + "\n"},
    {"sha256": "A" * 64}, {"title": ""}, {"title": "  "}, {"title": "two\nlines"},
    {"title": "A title\n"}, {"title": "a\u2028b"}, {"title": "t" * 201}, {"title": None},
    {"description": "d" * 2001}, {"changelog": "c" * 8193}, {"license": ""},
    {"license": "l" * 101}, {"parameters": []}, {"parameters": None},
    {"variables": [{"name": "a"}, {"name": "a"}]}, {"variables": [{"name": "1a"}]},
    {"variables": [{"name": "a\n"}]}, {"variables": [{"name": "a" * 65}]},
    {"variables": [{"name": "a", "typ": "string"}]}, {"variables": [{"name": "a", "type": "text"}]},
    {"variables": [{"name": f"v{n}"} for n in range(201)]}, {"variables": [{}]},
]  # fmt: skip


@pytest.mark.parametrize("fields", BAD_FIELDS, ids=lambda fields: str(fields)[:60])
def test_a_bad_field_of_a_version_is_refused(fields):
    with pytest.raises(msgspec.ValidationError):
        version_file(**fields)


@pytest.mark.parametrize("missing", list(GOOD_VERSION))
def test_a_version_without_a_required_field_is_refused(missing):
    fields = {key: value for key, value in GOOD_VERSION.items() if key != missing}
    with pytest.raises(msgspec.ValidationError, match=missing):
        msgspec.convert(fields, VersionFile)


@pytest.mark.parametrize(
    "fields",
    [
        {"email": "ann@example.org"}, {"name": ""}, {"name": "n" * 201}, {"bio": "b" * 2001},
        {"url": "javascript:alert(1)"}, {"url": "ftp://ann.example"}, {"url": ""},
        {"url": "//ann.example"}, {"url": "https://" + "u" * 500},
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_field_of_an_owner_is_refused(fields):
    with pytest.raises(msgspec.ValidationError):
        owner_file(**fields)


def test_the_limits_themselves_are_allowed():
    record = version_file(
        title="t" * 200, description="d" * 2000, changelog="c" * 8192, license="l" * 100,
        tags=[f"t{n}" + "x" * 46 for n in range(10)],
        variables=[{"name": f"v{n:063}"} for n in range(200)],
    )  # fmt: skip
    assert len(record.tags) == 10
    assert len(record.variables) == 200


# The contract's section "Records": every key, in its order.
SUMMARY = (
    "owner name title description tags latest_version versions_count pulls created_at "
    "updated_at url"
)
ENTRY = (
    "version previous changelog publisher published_at sha256 size raw_url diff_url ordinal source"
)
VERSION = (
    f"{ENTRY} owner name title description tags content body messages variables parameters license "
    "files content_sha256"
)
KEYS = {
    answers.RepoSummary: SUMMARY,
    answers.Repo: f"{SUMMARY} content body messages variables parameters license sha256 size "
    "changelog raw_url versions_url labels files content_sha256",
    answers.VersionEntry: ENTRY,
    answers.Version: VERSION,
    answers.ListedVersion: f"{ENTRY} withdrawn labels",
    answers.Withdrawal: "at reason note",
    answers.LabelMove: "label version previous moved_at moved_by note source",
    answers.LabelledVersion: f"{VERSION} label moved_at",
    answers.Tag: "name count",
    answers.User: "handle name bio url joined_at repos_count pulls kind repos",
    records.Variable: "name description type required default example enum",
    answers.ListMeta: "page pages total page_size sort tag q owner label match corrected matches "
    "facets",
    answers.CatalogueLine: "owner name title description tags latest_version sha256 words kind "
    "labels",
    answers.ErrorEnvelope: "error",
    answers.ErrorDetail: "field message",
}


@pytest.mark.parametrize("record", KEYS, ids=lambda record: record.__name__)
def test_the_order_of_keys(record):
    keys = KEYS[record].split()
    assert list(record.__struct_fields__) == keys
    encoded = msgspec.json.encode(record(**dict.fromkeys(keys, "")))
    assert list(msgspec.json.decode(encoded)) == keys


def test_an_error_has_details_only_where_there_are_some():
    body = answers.ErrorBody("not_found", "Look elsewhere.")
    assert msgspec.json.encode(answers.ErrorEnvelope(body)) == (
        b'{"error":{"code":"not_found","message":"Look elsewhere."}}'
    )
    body.details = [answers.ErrorDetail("tags", "twice")]
    assert msgspec.json.encode(body).endswith(b',"details":[{"field":"tags","message":"twice"}]}')


def test_no_public_record_has_room_for_an_email_address():
    for record in KEYS:
        assert not any("mail" in key for key in record.__struct_fields__)
