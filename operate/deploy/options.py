"""How an operator wants a site deployed. Commands load this to know their options."""

from typing import NamedTuple


class Options(NamedTuple):
    """``jobs``: how many at once. ``everything``: upload also what is current. ``delete``: remove
    what the site has no more. ``files_only``: no keys for URLs. ``dry``: only tell.
    ``guarded``: the destination itself keeps the site of a private hub from strangers.
    """

    jobs: int = 16
    everything: bool = False
    delete: bool = True
    files_only: bool = False
    dry: bool = False
    guarded: bool = False
