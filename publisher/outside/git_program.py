"""Runs the program git: with limits of time, without prompts, and so that it can be stopped.

git's own settings apply, those of the user who runs the hub: credential helpers, proxies, keys.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from builder.model.errors import HubError
from builder.text.one_line import one_line

REMOTE = "hub"
# At most this many bytes of git's and the remote's output are read, and this many characters shown.
COMPLAINT_BYTES_MAX = 8 * 1024
COMPLAINT_CHARS_MAX = 500

_OPTIONS = (
    "gc.auto=0",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "core.hooksPath=/dev/null",
    "credential.interactive=false",
)
# Variables that would name another repository, or prompt on a user's screen.
_UNWANTED = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "SSH_ASKPASS",
)
_SSH_OPTIONS = (
    "-o BatchMode=yes -o ControlMaster=no -o ConnectTimeout=15 -o ServerAliveInterval=15 "
    "-o ServerAliveCountMax=2"
)
# Work on this machine ends after this time.
LOCAL_SECONDS = 300.0
_LAST_WORDS_SECONDS = 2.0
_user_in_url = re.compile(r"(?<=://)[^/@\s']+@")


class GitError(HubError):
    """git has failed, or the remote has refused. ``why`` is git's message, without credentials."""

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(f"{what}: {why}" if why else f"{what}.")
        self.why = why


class LocalGitError(GitError):
    """git has failed at work on the hub's own repository."""


class GitStopped(Exception):
    """The service is stopping."""


class Git:
    """The program, in one bare repository, with one remote named REMOTE. For one thread; ``stop``
    may be called from another.
    """

    def __init__(self, folder: str, remote: str) -> None:
        self.folder = folder
        self._environment = _environment(remote)
        self._remote = remote
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Ends the process that runs, and lets no other start."""
        with self._lock:
            self._is_stopped = True
            if self._process:
                _kill(self._process)

    def run(self, *arguments: str, seconds: float | None = None) -> bytes:
        """Returns the output of git. Raises GitError, LocalGitError, GitStopped."""
        with self.started(*arguments, seconds=seconds) as process:
            return process.stdout.read()

    @contextlib.contextmanager
    def started(
        self, *arguments: str, seconds: float | None = None, is_fed: bool = False
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Yields git while it runs, with a pipe of its output and, if ``is_fed``, one to write to;
        ``seconds`` is for an exchange with the remote. Raises as ``run``, at the end of the block.
        """
        allowed = seconds or LOCAL_SECONDS
        process = self._start(arguments, is_fed)
        late = threading.Event()
        timer = threading.Timer(allowed, lambda: (late.set(), _kill(process)))
        complaint = bytearray()
        reader = threading.Thread(target=_keep_start, args=(process.stderr, complaint), daemon=True)
        timer.start()
        reader.start()
        try:
            yield process
        except BrokenPipeError:
            pass  # git has ended, and its message says why
        except BaseException:
            _kill(process)
            raise
        finally:
            with contextlib.suppress(BrokenPipeError):
                if process.stdin:
                    process.stdin.close()
            status = process.wait()
            timer.cancel()
            # A process that git leaves behind, such as a credential helper's daemon, may hold the
            # pipe open.
            reader.join(_LAST_WORDS_SECONDS)
            process.stdout.close()
            with self._lock:
                self._process = None
        kind = GitError if seconds else LocalGitError
        if late.is_set():
            raise kind(f"git {arguments[0]} took longer than {allowed:g} seconds")
        if self._is_stopped:
            raise GitStopped
        if status:
            why = self.censored(complaint.decode(errors="replace"))
            raise kind(f"git {arguments[0]} failed", why)

    def _start(self, arguments: Iterable[str], is_fed: bool) -> subprocess.Popen[bytes]:
        options = [part for option in _OPTIONS for part in ("-c", option)]
        with self._lock:
            if self._is_stopped:
                raise GitStopped
            self._process = subprocess.Popen(
                ["git", f"--git-dir={self.folder}", *options, *arguments],
                env=self._environment,
                start_new_session=True,
                stdin=subprocess.PIPE if is_fed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            return self._process

    def censored(self, text: str) -> str:
        """Returns git's message, on one line of bounded length, without users and passwords of
        URLs.
        """
        user = _user_in_url.search(self._remote)
        if user:
            text = text.replace(user[0].rstrip("@"), "…")
        message = _user_in_url.sub("", " ".join(text.split()))
        return one_line(message, COMPLAINT_CHARS_MAX) or "it does not say why"


def _environment(remote: str) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    count = int(given["GIT_CONFIG_COUNT"]) if given.get("GIT_CONFIG_COUNT", "").isdecimal() else 0
    # In the environment and not in a file: the address may have a password in it.
    address = {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"remote.{REMOTE}.url",
        f"GIT_CONFIG_VALUE_{count}": os.path.abspath(remote) if os.path.isdir(remote) else remote,
    }
    return (
        given
        | address
        | {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSH_COMMAND": f"{_ssh_command(given)} {_SSH_OPTIONS}",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }
    )


def _ssh_command(environment: Mapping[str, str]) -> str:
    """Returns the command that the operator has set for git, or ssh."""
    own = environment.get("GIT_SSH_COMMAND")
    if own:
        return own
    found = subprocess.run(
        ["git", "config", "--global", "core.sshCommand"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=30,
    )
    return found.stdout.strip() or "ssh"


def _keep_start(pipe: IO[bytes], kept: bytearray) -> None:
    """Reads a pipe to the end, and keeps at most COMPLAINT_BYTES_MAX."""
    with pipe:
        while data := pipe.read1(65536):
            kept.extend(data[: COMPLAINT_BYTES_MAX - len(kept)])


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends git and all that it has started: ssh, helpers of its own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
