"""The process that deploys for a service: in the service's own, comparing and signing requests
would slow publications.

A line of JSON comes on standard input for each deployment, and goes to standard output when it has
ended. The first line of output says whether the destination can be used at all. The process ends
with its input; whoever cannot wait may kill it, and the next deployment goes on there. Of several
nodes, it changes nothing when it is not this node's turn, whether the service lives or not.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from builder.model.errors import HubError, OperatorError
from builder.store.site import read_hub
from operate.deploy.compare import Plan
from operate.deploy.destination import Destination, open_destination
from operate.deploy.job import Job
from operate.deploy.options import Options
from operate.deploy.order import match_key
from operate.deploy.run import Report, deploy, deploy_changes
from operate.deploy.snapshot import Taken
from publisher.log import configure_logging

if TYPE_CHECKING:
    from publisher.nodes.turn import Turn

# Publications and readers go first.
NICENESS = 10
STOP_SECONDS = 5.0
TOLD_FILES_MAX = 1_000
# A process that has compared no more is kept for the next deployment.
KEPT_OBJECTS_MAX = 20_000


class Changes(NamedTuple):
    """What builds have made of a site. ``copies``: where the written files are as they were then,
    and ``marks`` theirs; ``gone``: the files that were removed; ``serial``: that of the lists.
    """

    copies: dict[str, str]
    marks: dict[str, str]
    gone: list[str]
    serial: int | None


class Done(NamedTuple):
    """What a deployment came to. ``serial``: that of the lists which are there now. ``files``: the
    site's files that it put (True) or deleted; None for more than ``TOLD_FILES_MAX``.
    """

    report: Report
    serial: int | None
    files: dict[str, bool] | None


class Unfinished(OperatorError):
    """A deployment that failed. ``files``: as in ``Done``, what it may have done before that; None
    where that is not known.
    """

    def __init__(self, message: str, files: dict[str, bool] | None = None) -> None:
        super().__init__(message)
        self.files = files


class Worker:
    """The process, from the side of the service. ``turn``: it deploys only while that is ours."""

    def __init__(self, job: Job, turn: "Turn | None" = None) -> None:
        self._job = job
        self._turn = turn and turn.told
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_ended = False

    def start(self) -> None:
        """Raises OperatorError if the destination cannot be used at all."""
        # Only modules of this very installation, whatever the current folder holds.
        place = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        given = os.environ.get("PYTHONPATH")
        with self._lock:
            if self._is_ended:
                raise Unfinished("The service ends.")
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [place, given]))},
                text=True,
                start_new_session=True,  # Ctrl-C is for the service, which ends this one itself
            )
        try:
            job = self._job._asdict() | {"options": self._job.options._asdict()}
            self._ask({"job": job, "turn": self._turn})
        except BaseException:
            self.stop()
            raise

    def deploy(self, changes: Changes | None, generation: int | None = None) -> Done:
        """Deploy the changes, or whatever differs (None), in a generation of the turn. Raises
        Unfinished.
        """
        if not self._process:
            self.start()
        is_small = False
        try:
            told = self._ask({"changes": changes and changes._asdict(), "generation": generation})
            done = Done(**told | {"report": Report(**told["report"])})
            # To compare many objects takes memory that a process does not give back.
            is_small = sum(done.report[:4]) <= KEPT_OBJECTS_MAX
            return done
        finally:
            if not is_small:
                self.stop()

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            told = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise Unfinished("The process that deploys has ended. A new one starts.") from None
        if "message" in told:
            raise Unfinished(**told)
        return told

    def end(self) -> None:
        """End the process at once, whatever it is doing, from any thread. No other one starts."""
        with self._lock:
            self._is_ended = True
            if self._process:
                self._process.terminate()

    def stop(self) -> None:
        """End the process and wait until it is gone."""
        with self._lock:
            process, self._process = self._process, None
        if not process:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not sent is for nobody
                stream.close()


def main(lines: IO[str], answers: IO[str]) -> None:
    """Deploy what is asked for, until ``lines`` end."""
    os.nice(NICENESS)
    configure_logging()
    told = json.loads(lines.readline() or "null")
    if told is None:
        return
    job = Job(**told["job"] | {"options": Options(**told["job"]["options"])})
    turn = _turn_of(told["turn"])
    generation: int | None = None

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def check() -> None:
        if turn:
            turn.check(generation)

    try:
        destination = open_destination(
            job.destination,
            endpoint_url=job.endpoint_url,
            apart_from=(job.out, job.state),
            check=check,
        )
    except HubError as error:
        answer({"message": str(error)})
        return
    with contextlib.closing(destination):
        answer({})
        for line in lines:
            asked = json.loads(line)
            changes = asked["changes"]
            generation = asked["generation"]
            files: dict[str, bool] = {}
            try:
                done = _deploy(job, destination, Changes(**changes) if changes else None, files)
            except Exception as error:
                # The edge of the process: whatever it was, the service logs it and tries again.
                is_known = isinstance(error, HubError)
                message = str(error) if is_known else f"{type(error).__name__}: {error}"
                answer({"message": message, "files": _bounded(files)})
            else:
                answer(done._asdict() | {"report": done.report._asdict()})


def _turn_of(told: dict[str, Any] | None) -> "Turn | None":
    if told is None:
        return None
    from publisher.nodes.turn import open_turn  # only hubs of several nodes need it

    return open_turn(**told)


def _note(files: dict[str, bool], plan: Plan) -> None:
    """Note the files whose objects are about to change."""
    for put in plan.puts():
        files[put.file] = True
    for step in plan.deletes():
        if found := match_key(step.key):
            # Of a file that stays, a key may go.
            files.setdefault(found.file, False)


def _bounded(files: dict[str, bool]) -> dict[str, bool] | None:
    return files if len(files) <= TOLD_FILES_MAX else None


def _deploy(
    job: Job, destination: Destination, changes: Changes | None, files: dict[str, bool]
) -> Done:
    on_plan = partial(_note, files)
    if changes is None:
        hub = read_hub(job.out)  # before the files are looked at, so it says no more than they have
        report = deploy(job.out, job.state, destination, job.options, on_plan=on_plan)
        serial = hub.serial if hub else None
    else:
        taken = Taken(changes.marks, changes.copies)
        report = deploy_changes(
            taken, changes.gone, job.state, destination, job.options, on_plan=on_plan
        )
        serial = changes.serial
    return Done(report, serial, _bounded(files))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the service was killed meanwhile
        main(sys.stdin, sys.stdout)
