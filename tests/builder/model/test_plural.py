"""How messages count."""

from builder.model.plural import counted


def test_one_is_singular_and_all_else_plural():
    told = [counted(number, "prompt") for number in (0, 1, 2, 1_000)]
    assert told == ["0 prompts", "1 prompt", "2 prompts", "1,000 prompts"]


def test_a_plural_of_its_own():
    assert counted(1, "query", "queries") == "1 query"
    assert counted(2, "query", "queries") == "2 queries"
