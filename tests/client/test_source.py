"""Rules that the client's source must follow."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from builder.model.records import CONTENT_BYTES_MAX
from builder.model.version_files import BYTES_HARD_MAX, BYTES_MAX, FILES_MAX, PATH_CHARS_MAX
from builder.render.clients import SHELL_CLIENT
from publisher.write.left_out import IGNORE_BYTES_MAX
from tests.client.shells import SHELLS, need

SOURCE = Path(SHELL_CLIENT).read_text(encoding="utf-8")
CURL_OLDEST = (7, 52)
# The curl release that added each option that the client uses, from curl's manual. The newest is
# --proto-redir.
CURL_OPTIONS = {
    "-q": (5, 0), "--config": (4, 10), "--silent": (4, 0), "--show-error": (5, 9),
    "--globoff": (7, 6), "--proto": (7, 20), "--proto-redir": (7, 20),
    "--connect-timeout": (7, 7), "--speed-limit": (4, 7), "--speed-time": (4, 7),
    "--user-agent": (4, 5), "--dump-header": (5, 7), "--output": (4, 0), "--write-out": (6, 5),
    "--url": (7, 5), "--noproxy": (7, 19), "--location": (4, 9), "--max-redirs": (7, 5),
    "--header": (5, 0), "--data-binary": (7, 2), "--data-urlencode": (7, 18), "--get": (7, 8),
    "--max-time": (4, 0), "--max-filesize": (7, 10),
    "--request": (6, 0),
}  # fmt: skip
OWN_OPTIONS = {
    "--version", "--force", "--offline", "--output", "--tag", "--page", "--help", "--trusted",
    "--label", "--expected", "--remove", "--file", "--check", "--as", "--strict", "--markdown",
    "--since", "--replace",
    # of git
    "--verify", "--is-shallow-repository", "--name-only", "--name-status", "--no-renames",
    "--relative", "--stdin", "--prefix", "--show-prefix", "--max-count", "--format", "--no-merges",
    "--is-ancestor", "--unshallow",
}  # fmt: skip


def test_shellcheck() -> None:
    need("shellcheck")
    done = subprocess.run(
        ["shellcheck", "--shell=sh", "--severity=style", SHELL_CLIENT],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_reads_it(shell: str, released: str) -> None:
    need(SHELLS[shell][0])
    done = subprocess.run([*SHELLS[shell], "-n", released], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_oldest_python_reads_it(released: str) -> None:
    functions, begin = "searcher|program", '"""Searches a cat'
    script = Path(released).read_text(encoding="utf-8")
    parts = re.findall(
        rf"^(?:{functions})\(\) \{{\n    cat <<'EOF'\n(.*?)^EOF\n\}}", script, re.S | re.M
    )
    assert len(parts) == 1 + functions.count("|")
    program = "".join(parts)
    assert program.startswith(begin)
    ast.parse(program, feature_version=(3, 7))
    # Linux takes no longer argument.
    assert len(program.encode()) < 128 * 1024


def test_the_oldest_curl_has_the_options() -> None:
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", SOURCE)) - OWN_OPTIONS
    # Those in a file for curl have no dashes.
    (configure,) = re.findall(r"^configure\(\) \{(.*?)^\}", SOURCE, re.S | re.M)
    used |= {"--output"} | {f"--{name}" for name in re.findall(r"[ '\"]([a-z-]+)\b", configure)}
    used &= CURL_OPTIONS.keys() | set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", SOURCE)) - OWN_OPTIONS
    assert used == set(CURL_OPTIONS) - {"-q"}
    assert max(CURL_OPTIONS.values()) == CURL_OPTIONS["--proto-redir"] < CURL_OLDEST


def test_the_limits_are_those_of_the_service() -> None:
    limits = {
        "content_bytes_max": CONTENT_BYTES_MAX,
        "files_max": FILES_MAX,
        "files_bytes_max": BYTES_MAX,
        "ignore_bytes_max": IGNORE_BYTES_MAX,
        "file_path_chars_max": PATH_CHARS_MAX,
    }
    for name, limit in limits.items():
        assert f"\n{name}={limit}\n" in SOURCE
    # An archive of the largest version, with its list, is an answer.
    answer_bytes_max = int(re.search(r"\nanswer_bytes_max=(\d+)\n", SOURCE)[1])
    assert answer_bytes_max > BYTES_HARD_MAX + CONTENT_BYTES_MAX + FILES_MAX * 2_000


def test_the_last_line_starts_it() -> None:
    assert SOURCE.endswith('\nmain "$@"\n')
    assert "\r" not in SOURCE
