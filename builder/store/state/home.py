"""What the operator says of the hub, as the last build read it."""

from builder.store.state.meta import Meta


class Home:
    """Two facts: the mark of ``home.md``, and its text."""

    def __init__(self, meta: Meta) -> None:
        self._meta = meta

    def mark(self) -> str | None:
        """The mark of the file that was read; None before the first build."""
        return self._meta.get("home mark")

    def text(self) -> str:
        return self._meta.get("home text") or ""

    def put(self, mark: str, text: str) -> None:
        self._meta.put("home mark", mark)
        self._meta.put("home text", text)
