"""How long work tells how far it is."""

from collections.abc import Callable

# Called often, with what is being done, how much of it is, and of how much.
Progress = Callable[[str, int, int], None]
