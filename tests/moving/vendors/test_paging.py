"""Lists in pages: their end, and answers that are none."""

from typing import Any

import pytest

from moving.vendors.api import ApiError
from moving.vendors.paging import ENTRIES_MAX, list_entries, path_part


def ask_for(*answers: Any) -> tuple[list[Any], list[tuple[int, int]]]:
    """The entries of these pages, and the requests that were sent."""
    requests: list[tuple[int, int]] = []

    def ask(page: int, count: int) -> Any:
        requests.append((page, count))
        return answers[page - 1]

    return list(list_entries(ask, "repos", "id", "/repos")), requests


def test_all_pages_come():
    ada, bob, eve = [{"id": name} for name in ("ada", "bob", "eve")]
    entries, requests = ask_for({"repos": [ada, bob], "total": 3}, {"repos": [eve], "total": 3})
    assert (entries, requests) == ([ada, bob, eve], [(1, 0), (2, 2)])
    # A list that is shorter than it says has an end, too.
    assert ask_for({"repos": [ada], "total": 3}, {"repos": []}) == ([ada], [(1, 0), (2, 1)])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([], "no list of repos"), ({"data": []}, "no list of repos"), (None, "no list of repos"),
        ({"repos": ["x"], "total": 1}, "no list of repos"),
        ({"repos": [{}], "total": 1}, "no list of repos"),
        ({"repos": [{"id": 1}], "total": 1}, "no list of repos"),
        ({"repos": [{"id": "a"}]}, "no list of repos"),
        ({"repos": [{"id": "a"}], "total": "1"}, "no list of repos"),
        ({"repos": [{"id": "a"}], "total": ENTRIES_MAX + 1}, "more than 100,000 repos"),
    ],
)  # fmt: skip
def test_an_answer_of_another_kind_is_asked_for_once(answer, message):
    with pytest.raises(ApiError, match=message):
        ask_for(answer)


def test_any_text_is_a_part_of_a_path():
    assert path_part("a/../b?\ud800") == "a%2F..%2Fb%3F%ED%A0%80"
