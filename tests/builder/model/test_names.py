"""Grammar and limits of names, versions and bumps."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import names
from builder.model.errors import RequestError
from builder.model.names import RESERVED_OWNERS, Version
from builder.model.routes import ROUTES, SORTS
from builder.model.service_urls import ACCOUNT_URL, HEALTH_URL, MCP_URL, PUBLISH_URL, READY_URL
from tests.support.depth import searching

CONTRACT_RESERVED = """
    api cli clients mcp tags users assets docs feed search connect account settings top new trending
    static admin about login logout healthz readyz log langfuse
""".split()

parts = st.integers(0, names.VERSION_PART_MAX)
versions = st.builds(Version, parts, parts, parts)
bumps = st.sampled_from(names.BUMPS)


def code_of(function, *args) -> str:
    with pytest.raises(RequestError) as caught:
        function(*args)
    return caught.value.code


@pytest.mark.parametrize("name", ["a", "7", "a-b", "a1-2b-c", "0", "a" * 39])
def test_a_good_name_is_returned(name):
    assert names.check_owner(name) == name
    assert names.check_repo(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "-", "-a", "a-", "a--b", "a_b", "a.b", "a b", " a", "a\n", "a\0", "a/b", "..", "é",
     "٣", "a" * 65],
)  # fmt: skip
def test_a_bad_name_is_refused(name):
    assert code_of(names.check_owner, name) == "invalid_name"
    assert code_of(names.check_repo, name) == "invalid_name"


def test_each_kind_of_name_has_its_length():
    assert (names.OWNER_CHARS_MAX, names.REPO_CHARS_MAX, names.TAG_CHARS_MAX) == (39, 64, 48)
    assert code_of(names.check_owner, "a" * 40) == "invalid_name"
    assert names.check_repo("a" * 64)
    assert code_of(names.check_repo, "a" * 65) == "invalid_name"


@searching(30)
@given(st.text(max_size=70))
def test_names_are_as_the_contract_says(text):
    expected = re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) is not None and len(text) <= 39
    assert names.is_name(text, 39) is expected


@given(st.from_regex(r"[A-Za-z0-9]+(-[A-Za-z0-9]+){0,3}", fullmatch=True))
def test_an_error_for_upper_case_has_the_lower_case_spelling(text):
    text = text[:39].rstrip("-")
    if text == text.lower():
        assert names.check_owner(text) == text
        return
    with pytest.raises(RequestError, match=f"'{text.lower()}'") as caught:
        names.check_owner(text)
    assert (caught.value.code, caught.value.status) == ("invalid_name", 400)


def test_a_reserved_owner_is_a_name_but_not_for_a_new_one():
    assert names.check_owner("api") == "api"
    with pytest.raises(RequestError) as caught:
        names.check_new_owner("api")
    assert (caught.value.code, caught.value.status) == ("name_reserved", 422)
    assert code_of(names.check_new_owner, "Api") == "invalid_name"
    assert names.check_new_owner("ann") == "ann"


@pytest.mark.parametrize("name", ["con", "prn", "aux", "nul", "com0", "com9", "lpt0", "lpt9"])
@pytest.mark.parametrize("kind", ["owner", "prompt", "tag", "label"])
def test_no_new_name_is_that_of_a_device_of_windows(name, kind):
    assert code_of(names.check_new, kind, name, kind) == "name_reserved"
    assert names.check_possible_owner(name) == names.check_repo(name) == name
    assert code_of(names.check_new_owner, name) == "name_reserved"
    assert names.is_label(name)


def test_a_label_with_an_extension_is_that_device_too():
    assert code_of(names.check_new, "label", "nul.v1", "label") == "name_reserved"
    for free in ("null", "com", "com10", "lpt", "con-1", "v1.nul", "a.con"):
        assert names.check_new("label", free, "label") == free


def test_index_and_404_are_reserved_for_prompts_alone():
    for name in ("index", "404"):
        assert code_of(names.check_new, "prompt", name, "name") == "name_reserved"
        assert names.check_new("tag", name, "tags") == name


def first_segments() -> set[str]:
    """The first segments below the base URL in the table of routes, of URLs and of files."""
    segments = set()
    for path in [PUBLISH_URL, *(path for route in ROUTES for path in (route.url, route.file))]:
        # Other files with an extension, such as robots.txt, are at no owner's address.
        first = path.strip("/").split("/")[0].removesuffix(".html")
        segments.update(SORTS if first == "{sort}" else [first] if "." not in first else [])
    return segments - {"", "{owner}"}


def test_the_addresses_of_the_site_and_of_the_contract_are_reserved_and_no_others():
    assert first_segments() >= {"api", "tags", "assets", "top", "404", "index"}
    services = {url.split("/")[1] for url in (HEALTH_URL, READY_URL, ACCOUNT_URL, MCP_URL)}
    assert first_segments() | services | set(CONTRACT_RESERVED) == RESERVED_OWNERS
    assert all(names.is_name(name, names.OWNER_CHARS_MAX) for name in RESERVED_OWNERS)


def test_the_error_names_the_address_and_another_handle():
    with pytest.raises(RequestError, match=r"/docs is an address .* such as docs-team\."):
        names.check_new_owner("docs")


@given(versions)
def test_a_version_is_read_as_it_prints(version):
    assert Version.parse(str(version)) == version


@given(st.text(alphabet="0123456789.v-+ \n٣", max_size=14))
def test_versions_are_as_the_contract_says(text):
    number = r"(0|[1-9][0-9]{0,8})"
    if re.fullmatch(rf"{number}\.{number}\.{number}", text):
        assert str(Version.parse(text)) == text
    else:
        assert code_of(Version.parse, text) == "invalid_version"


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.-3", "v1.2.3", "1.2.3\n", "1.2.1000000000"]
)
def test_a_bad_version_is_refused(text):
    assert code_of(Version.parse, text) == "invalid_version"


@given(versions, bumps)
def test_a_bump_is_the_least_version_above_with_lower_parts_zero(version, kind):
    index = names.BUMPS.index(kind)
    if version[index] == names.VERSION_PART_MAX:
        assert code_of(version.bump, kind) == "version_conflict"
        return
    bumped = version.bump(kind)
    assert bumped > version
    assert bumped[:index] == version[:index]
    assert bumped[index] == version[index] + 1
    assert not any(bumped[index + 1 :])


@pytest.mark.parametrize(
    "label",
    ["production", "a", "7-up", "a.b_c-d", "eu--west", "v1.x", "latest-1", "2026-11-01", "json",
     "a" * 36],
)  # fmt: skip
def test_a_good_label_is_returned(label):
    assert names.check_label(label) == names.check_new_label(label) == label
    assert names.is_label(label)


@pytest.mark.parametrize(
    "label",
    ["", "-a", "a-", ".a", "a.", "_a", "a b", "a\n", "a\0", "a/b", "..", "Production", "é", "٣",
     "a" * 37],
)  # fmt: skip
def test_a_bad_label_is_refused(label):
    for check in (names.check_label, names.check_new_label):
        assert code_of(check, label) == "invalid_label"
    assert not names.is_label(label)


@pytest.mark.parametrize(
    "label",
    ["latest", "1", "007", "1.2", "1.2.0", "v1", "v1.2.0", "1.2.0-rc.1", "v1.2.0-beta", "1.2.3.4",
     "a.json", "a.txt", "a.body", "1.2.0.json"],
)  # fmt: skip
def test_a_reserved_label_is_in_the_grammar_but_not_for_a_version(label):
    assert names.check_label(label) == label
    assert code_of(names.check_new_label, label) == "name_reserved"
    assert not names.is_label(label)


def test_an_error_for_an_upper_case_label_has_the_lower_case_spelling():
    with pytest.raises(RequestError, match="'production'") as caught:
        names.check_label("Production")
    assert caught.value.status == 400


@given(st.text(alphabet="az09.-_AÉ \n", max_size=40))
def test_labels_are_as_the_contract_says(text):
    if re.fullmatch(r"[a-z0-9]([a-z0-9._-]{0,34}[a-z0-9])?", text):
        assert names.check_label(text) == text
    else:
        assert code_of(names.check_label, text) == "invalid_label"
