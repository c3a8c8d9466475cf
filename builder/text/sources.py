"""The CI job that published a version, in words."""

from builder.model.records import Source

# The length to which git shortens hashes by default.
COMMIT_CHARS = 7


def built_from(source: Source | None) -> str:
    """A source for people: ``ada/prompts@1a2b3c4, run 812``, without parts that its token lacks.
    Empty if no CI job published.
    """
    if source is None:
        return ""
    commit = f"@{source.commit[:COMMIT_CHARS]}" if source.commit else ""
    path, _, number = (source.run_url or "").rpartition("/")
    run = f", {'job' if path.endswith('/jobs') else 'run'} {number}" if number else ""
    return f"{source.project}{commit}{run}"
