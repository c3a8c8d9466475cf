"""Programs of others that come from npm, with a Node that is new enough for them."""

from pathlib import Path

NODE = Path(__file__).parent
PACKAGES = NODE / "node_modules"
PROGRAMS = PACKAGES / ".bin"
