"""What vendors' modules do with the versions that they have read. Pure."""

from collections.abc import Iterable, Sequence

from publisher.importers.items import Revision


def left_out(kinds: Iterable[str]) -> list[str]:
    """A warning for each kind of thing in messages that is no text."""
    return [f"Left out {kind.replace('_', ' ')}: messages are text here." for kind in kinds]


def warn_once(revisions: Sequence[Revision]) -> list[Revision]:
    """The same revisions, where each warning stands only at the last one that has it."""
    told: set[str] = set()
    warned = []
    for one in reversed(revisions):
        fresh = [text for text in dict.fromkeys(one.warnings) if text not in told]
        told.update(fresh)
        warned.append(one._replace(warnings=fresh))
    return warned[::-1]
