"""Counts the modules of the builder that a build of one changed prompt enters, and the pairs of
modules in which the first calls the second. Run it from any folder:

    .venv/bin/python bench/walk.py
"""

import sys
from pathlib import Path
from types import FrameType

from report import print_table, scratch_folder

PROJECT = Path(__file__).parent.parent
sys.path.insert(0, str(PROJECT))

from builder.model.request_bodies import Draft  # noqa: E402
from builder.model.settings import Settings  # noqa: E402
from builder.pipeline.build import build  # noqa: E402
from publisher.write.durable import FolderStore  # noqa: E402
from publisher.write.publish import publish  # noqa: E402

BUILDER = f"{PROJECT / 'builder'}/"
# The packages that decide and create; the others provide their types, reading and writing.
MAKERS = ("pipeline", "emit", "render")


class Walk:
    """While entered, notes the calls between modules of the builder; not those of templates."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.calls: set[tuple[str, str]] = set()

    def __enter__(self) -> "Walk":
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        module = _module(frame)
        if event != "call" or not module:
            return
        self.modules.add(module)
        caller = frame.f_back
        while caller and not _module(caller):
            caller = caller.f_back
        if caller and _module(caller) != module:
            self.calls.add((_module(caller), module))


def _module(frame: FrameType) -> str:
    """The module of a call, relative to the builder; empty for other code."""
    path = frame.f_code.co_filename
    is_ours = path.startswith(BUILDER) and "/templates/" not in path
    return path[len(BUILDER) :].removesuffix(".py") if is_ours else ""


def main() -> None:
    with scratch_folder(None) as folder:
        settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/state")
        Path(settings.content).mkdir()
        store = FolderStore(settings.content)
        for name in ("a", "b"):
            publish(
                store, "ada", name, Draft(content="Hello {{name}}", tags=["x"]), publisher="ada"
            )
            build(settings)
        publish(store, "ada", "a", Draft(content="Hello again, {{name}}"), publisher="ada")
        with Walk() as walk:
            build(settings, changed=[("ada", "a")])
    rows = []
    for title, packages in (("deciding and creating", MAKERS), ("all of the builder", None)):
        inside = {one for one in walk.modules if not packages or one.split("/")[0] in packages}
        pairs = [pair for pair in walk.calls if inside.issuperset(pair)]
        rows.append((title, len(inside), len(pairs)))
    print_table("A build of one changed prompt", ("packages", "modules", "calls"), rows)


if __name__ == "__main__":
    main()
