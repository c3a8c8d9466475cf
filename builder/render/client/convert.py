"""Writes a prompt as a file of another format, for `hub cat --as`. The build inserts this into the
client, after ``builder/text/formats.py``.
"""

import json
import sys

from builder.text.formats import write_as

kind, record_path, text_path, target = sys.argv[1:]
try:
    with open(record_path, "rb") as file:
        record = json.loads(file.read().decode())["data"]
    with open(text_path, "rb") as file:
        # The written text must be the one that was verified.
        if file.read() != record["content"].encode():
            sys.exit(9)
    if "body" not in record or "messages" not in record:
        sys.exit(8)
    if not record["content"].endswith(record["body"]):
        sys.exit(9)
    written, losses = write_as(record, kind)
    data = written.encode()
except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
    sys.exit(9)
with open(target, "wb") as file:
    file.write(data)
for loss in losses:
    sys.stderr.write("hub: " + kind + " cannot hold " + loss + "\n")
