"""Numbers with their nouns, for messages. Pure."""


def counted(number: int, one: str, several: str = "") -> str:
    """``1 prompt``, ``2 prompts``, ``1,000 prompts``. ``several``: a plural that takes no ``s``."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
