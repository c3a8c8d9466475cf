"""Reads files with the libraries of the environment that this runs in. Has nothing of the hub.

Takes a list of ``[format, text, inputs]`` as JSON, and gives a list of what the format's library
made of each: what the file says ``about`` itself, and prompty's ``messages`` with the inputs.
"""

import json
import os
import pathlib
import sys
import tempfile

import prompty
import skills_ref


def read_prompty(path, inputs):
    agent = prompty.load(path)
    about = agent.save()
    messages = prompty.prepare(agent, inputs)
    return {"about": about, "messages": [[one.role, one.parts[0].value] for one in messages]}


def read_skill(path):
    faults = skills_ref.validate(path.parent)
    if faults:
        raise ValueError(faults)
    return {"about": skills_ref.read_properties(path.parent).to_dict()}


def read(format, text, inputs):
    with tempfile.TemporaryDirectory() as folder:
        # A skill's folder has its name.
        name = text.split("name: ", 1)[1].split("\n", 1)[0]
        path = pathlib.Path(folder, name, "SKILL.md" if format == "skill" else "x.prompty")
        path.parent.mkdir()
        path.write_bytes(text.encode())
        return read_skill(path) if format == "skill" else read_prompty(path, inputs)


os.environ.update(NAME="replaced")
json.dump([read(*one) for one in json.load(sys.stdin)], sys.stdout)
