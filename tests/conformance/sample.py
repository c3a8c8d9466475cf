"""The catalogue that our own hosts are tested with: some of the sample, and much that is hard to
serve.
"""

import shutil
from pathlib import Path

from tests.support.catalogues import (
    moment,
    write_label,
    write_owner,
    write_version,
    write_withdrawn,
)
from tests.support.servers import SAMPLE

OF_SAMPLE = ("ines-caldeira", "kestrel-lab", "mara-okafor", "sam-ferreira")
MANY = 60
# A repo of the sample that was withdrawn.
WITHDRAWN = ("odd", "taken-back")
# A secret in the content of withdrawn versions.
SECRET = "sk-conformance-1f4e"
CONTENT_BYTES_MAX = 256 * 1024

# An answer with this text comes from outside the site. It lies beside the sites of our own hosts,
# and an operator may put it beside another.
CANARY = "conformance canary 6f1d: this file is outside of the site and nobody may read it"
CANARY_FILES = ("canary.txt", "canary.json", "canary.html", "canary")


def write_sample(root: Path) -> None:
    """Write the catalogue as a content folder."""
    for owner in OF_SAMPLE:
        shutil.copytree(SAMPLE / owner, root / owner)
    # More than a page of everything, and of one tag.
    for number in range(MANY):
        write_version(
            root, "many", f"prompt-{number:02}", "1.0.0", f"Say {{{{what}}}} {number} times.\n",
            tags=["bulk"] + ["even"] * (number % 2 == 0) + ["third"] * (number % 3 == 0),
            published_at=moment(number // 2), description=f"Number {number} of many.",
        )  # fmt: skip
    write_owner(root, "odd", name='Odd <script>alert("1")</script> & Söhne', bio="Ζ 語 🎉")
    texts = {
        "crlf": "One line.\r\nAnother.\r\n{{what}}\r",
        "bom": "\ufeffBegins with a mark.\n",
        "unicode": "Ünïcödé 語 🎉 \u2028 \u202e {{ thing }} \\{{literal}}\n",
        "front": "---\ntitle: In front\n---\nSay {{what}}.\n",
        "chat": "---\ntitle: Chat\n---\nBe kind.\n"
        '{{role "user"}}\n{{what}} é語\n{{role "assistant"}}\n',
        "nothing-but-front": "---\ntitle: Nothing else\n---\n",
        "markup": "<script>alert('x')</script> {{7*7}} ${7*7} <%= 7 %> & </pre>\n",
        "large": ("A line of a large prompt, é語.\n" * 9000).encode()[:CONTENT_BYTES_MAX].decode(
            errors="ignore"
        ),
        "short": "x",
    }  # fmt: skip
    for name, text in texts.items():
        write_version(
            root, "odd", name, "1.0.0", text, tags=["odd"], title=f"<b>{name}</b> & 'more'",
            parameters={"temperature": 0.2, "top_p": 1e-7, "seed": 12, "stop": ["é", "\t"]},
        )  # fmt: skip
    # Versions whose order is not that of their names, and a version with the text of the one
    # before.
    for version in ("1.0.0", "1.9.0", "1.10.0", "2.0.0", "10.0.0"):
        write_version(
            root, "odd", "history", version, f"Version {version} of {{{{it}}}}.\n",
            tags=["history", "odd"], changelog=f"Now {version}. <i>é</i>",
        )  # fmt: skip
    write_version(
        root, "odd", "history", "10.0.1", "Version 10.0.0 of {{it}}.\n", tags=["history", "odd"],
        changelog="Only the title.", title="Another title",
    )  # fmt: skip
    write_version(
        root, "odd", "folder", "1.0.0", "Run run.sh with {{what}}.\n",
        {"run.sh": b"#!/bin/sh\n", "a/b-c_d/e+f@2.html": b"<script>alert(1)</script>\n",
         "a/image.png": bytes(range(256)), "empty": b"", "a/index.html.bin/LICENSE": b"Free.\n"},
    )  # fmt: skip
    # Labels with a common start, a moved one and a removed one.
    for number, (label, version) in enumerate(
        [("a", "1.0.0"), ("a.b", "1.9.0"), ("a.b-c_d", "2.0.0"), ("a", "10.0.1"), ("gone", "1.0.0"),
         ("gone", None), ("x" * 36, "1.10.0")],
        1,
    ):  # fmt: skip
        write_label(root, "odd/history", number, label, version, note=f"Move <{number}> é")
    # The first, one in between and the latest version are withdrawn; and a whole repo.
    for version in ("1.0.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4"):
        secret = SECRET if version[-1] in "024" else "nothing"
        write_version(
            root, "odd", "leaky", version, f"{version} {{{{it}}}} {secret}\n",
            files={"conf/key.ini": secret.encode(), "key": secret.encode()},
            tags=["odd"], changelog=f"Now {version}",
        )  # fmt: skip
    write_label(root, "odd/leaky", 1, "stable", "1.0.2")
    write_withdrawn(root, "odd/leaky", "1.0.0", reason="error")
    write_withdrawn(
        root, "odd/leaky", "1.0.2", note="It had <a key> é", labels=["stable"], label_number=2
    )
    write_withdrawn(root, "odd/leaky", "1.0.4", reason="owner")
    write_version(root, *WITHDRAWN, "1.0.0", f"{SECRET}\n", tags=["odd"])
    write_withdrawn(root, "/".join(WITHDRAWN), reason="legal")


def write_canaries(folder: Path) -> None:
    """Write files that no reader may see into a folder beside a site."""
    for name in CANARY_FILES:
        (folder / name).write_text(CANARY, encoding="utf-8")
