"""Where limits are counted together with other processes, for the commands that publish."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publisher.nodes.limits import SharedCounts


def counting(
    url: str | None, base_url: str
) -> contextlib.AbstractContextManager[SharedCounts | None]:
    """The counts that all nodes of this hub share; None without a URL. Raises OperatorError."""
    if not url:
        return contextlib.nullcontext()
    from publisher.nodes.limits import SharedCounts  # an optional library

    return SharedCounts(url, base_url)
