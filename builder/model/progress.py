"""Progress reports of long work."""

from collections.abc import Callable

# Called often: the step, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]
