"""Handles that may be taken, and those that look like others."""

import pytest

from builder.model import names
from builder.model.errors import Detail, RequestError
from publisher.accounts.owners import skeleton
from publisher.accounts.people.signup import check_free_handle


def refusal(handle: str, *taken: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        check_free_handle(handle, taken)
    return caught.value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bob", "b0b"), ("lena", "1ena"), ("lena", "iena"), ("marc", "rnarc"), ("wolf", "vvolf"),
        ("dora", "clora"), ("sven", "5ven"), ("zoe", "2oe"), ("bea", "6ea"), ("greg", "9reg"),
        ("quinn", "guinn"), ("ann-lee", "annlee"), ("ann-lee", "a-n-n-lee"), ("vwv", "wvv"),
        ("d1m-w0w", "climvvovv"), ("modem", "rnoclern"),
    ],
)  # fmt: skip
def test_handles_that_look_alike(one: str, other: str):
    assert one != other and skeleton(one) == skeleton(other)
    for handle, taken in ((one, other), (other, one)):
        error = refusal(handle, "carl", taken)
        assert error.code == "validation_failed"
        assert error.details == [Detail("handle", str(error))]
        assert f"looks too much like {taken}, which is taken" in str(error)


def test_handles_that_do_not_look_alike():
    handles = (
        "ann anna bea carl e3 fay hal jan kim lou mara nan otto pat ray tom uta vic yann x7 4x 8x"
    )
    assert len({skeleton(handle) for handle in handles.split()}) == len(handles.split())
    for handle in handles.split():
        assert check_free_handle(handle, set(handles.split()) - {handle}) == handle


def test_taken():
    error = refusal("ann", "bob", "a-nn", "ann")
    assert (error.code, str(error)) == (
        "validation_failed", "ann is taken. Choose another handle."
    )  # fmt: skip
    assert check_free_handle("ann", []) == "ann"


@pytest.mark.parametrize("handle", ["admln", "adrnin", "l0g1n", "ap-i", "5ettings", "rncp", "1og"])
def test_what_looks_like_a_page_of_the_site(handle: str):
    error = refusal(handle)
    assert error.code == "validation_failed" and "which the site uses itself" in str(error)


@pytest.mark.parametrize(
    ("handle", "code"),
    [("admin", "name_reserved"), ("Ann", "invalid_name"), ("", "invalid_name"),
     ("a--b", "invalid_name"), ("аnn", "invalid_name"), ("x" * 40, "invalid_name")],
)  # fmt: skip
def test_what_is_no_handle_at_all(handle: str, code: str):
    assert refusal(handle).code == code


def test_every_reserved_handle_is_refused():
    for handle in names.RESERVED_OWNERS:
        assert refusal(handle).code == "name_reserved"
