"""Numbers and plurals in messages."""

from builder.model.plural import counted


def test_one_is_singular_and_all_else_plural():
    counts = [counted(number, "prompt") for number in (0, 1, 2, 1_000)]
    assert counts == ["0 prompts", "1 prompt", "2 prompts", "1,000 prompts"]
    assert [counted(number, "query", "queries") for number in (1, 2)] == ["1 query", "2 queries"]
