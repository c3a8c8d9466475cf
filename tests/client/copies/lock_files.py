"""A lock file, its lines, and the files beside it, for tests of hub lock, sync and update."""

from pathlib import Path

from tests.client.shells import Client
from tests.client.site import ONE, TWO, sha256

STORY = b"Tell a story.\n"
REVIEW = f"ann/review production 1.1.0 {sha256(TWO)} prompts/review.md\n"
PINNED = f"ann/review 1.0.0 1.0.0 {sha256(ONE)} old.md\n"
TALE = f"ann/story latest 1.0.0 {sha256(STORY)} prompts/ann/story.md\n"
RUN_SYNC = "run `hub sync` to bring the files\n"


def write_lock(client: Client, *lines: str) -> Path:
    path = client.work / "prompts.lock"
    path.write_text("".join(lines))
    return path


def files(client: Client) -> dict[str, bytes]:
    """All that is in the folder of the lock file, but for that file."""
    found = {
        str(path.relative_to(client.work)): path.read_bytes()
        for path in client.work.rglob("*")
        if path.is_file()
    }
    found.pop("prompts.lock", None)
    return found
