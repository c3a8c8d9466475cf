"""The programs that a site gives to its readers, with its address, rules and limits inserted: the
clients for a shell, Python and JavaScript, and the script of pages that search.

A base URL has passed ``settings.parse_base_url``; rules are JSON in ASCII, from
``builder.search.rules``.
"""

import hashlib
import json
import os

from builder.render.colours import read_asset

# The folder also links to files of the packages for Python and npm, because packages cannot contain
# links.
_CLIENTS = os.path.join(os.path.dirname(__file__), "client")
SHELL_CLIENT = os.path.join(_CLIENTS, "hub")
# Modules of the builder, each with a second part for the client.
_SHARED = ("text/words.py", "search/plan.py")


def shell_client(base_url: str, rules: str) -> tuple[bytes, bytes]:
    """The client for a POSIX shell, and the input of ``sha256sum -c`` for a file named ``hub``."""
    baked = f"baked_url='{base_url}'\n".encode()
    script = _read("hub").replace(b"baked_url='http://127.0.0.1:8000'\n", baked)
    for name, source in {"search.py": search_program(rules), "show.py": _read("show.py")}.items():
        script = script.replace(f"# The build puts {name} here.\n".encode(), source)
    return script, f"{hashlib.sha256(script).hexdigest()}  hub\n".encode()


def search_program(rules: str) -> bytes:
    """The Python program with which the shell client searches a catalogue."""
    program = _read("search.py").replace(b'r"""{}"""', f'r"""{rules}"""'.encode())
    for name in _SHARED:
        module = _read(f"../../{name}")
        _, shared = module.split(b"# The build puts what follows into the shell client.\n")
        program = program.replace(f"# The build puts {name} here.\n".encode(), shared.lstrip())
    return program


def python_client(base_url: str) -> bytes:
    baked = f'\nBAKED_URL = "{base_url}"\n'.encode()
    return _read("hub_prompts.py").replace(b'\nBAKED_URL = ""\n', baked)


def script_client(base_url: str) -> tuple[bytes, bytes]:
    """The client for JavaScript, and its types."""
    baked = f"const BUILT_FOR = {json.dumps(base_url)};\n".encode()
    script = _read("hub.js").replace(b'const BUILT_FOR = "";\n', baked)
    return script, _read("hub.d.ts")


def search_script(rules: str) -> bytes:
    """The module with which browsers, which know combining marks, search a catalogue."""
    used = {name: rule for name, rule in json.loads(rules).items() if name != "COMBINING"}
    inserted = json.dumps(used, separators=(",", ":")).encode()
    return read_asset("catalogue.js").replace(b"RULES = {};", b"RULES = %b;" % inserted)


def _read(name: str) -> bytes:
    return read_asset(os.path.join(_CLIENTS, name))
