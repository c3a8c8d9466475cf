"""Trusted publishers: the CI jobs that may publish or move labels for an owner.

An owner names the project, the file that defines the job and, if wanted, the branch and the
environment. Anyone who may change that file in that place may publish. ``now`` is an aware
datetime, by default the present. The methods raise RequestError ``storage_unavailable`` as the
database does.
"""

import secrets
from datetime import datetime
from typing import NamedTuple

from builder.model.errors import Detail, RequestError, validation_failed
from publisher.accounts import clock
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.tokens import Accounts
from publisher.trusted.claims import Job
from publisher.trusted.issuers import Issuer
from publisher.trusted.publisher_fields import Entered, parse_fields

PUBLISHERS_PER_OWNER_MAX = 100


class TrustedPublisher(NamedTuple):
    """The conditions that a job must meet to publish for ``owner``. ``repo`` is empty for all of
    the owner's.

    ``issuer`` is the issuer's URL; ``project`` and, for GitHub, ``environment`` are folded as a
    Job's. ``project_id`` is the issuer's number of the project, empty until the first job.
    ``branch`` (``main``) is the one that a job must run on and its workflow file be read from; an
    empty one is any branch or tag. An empty ``environment`` is any, or none. ``used_at`` is None
    before the first use. ``labels`` are those that its jobs may move, joined by spaces; unless it
    ``publishes``, they do nothing else.
    """

    id: str
    owner: str
    repo: str
    issuer: str
    project: str
    project_id: str
    workflow: str
    branch: str
    environment: str
    added_at: int
    used_at: int | None
    labels: str = ""
    publishes: bool = True

    def scope(self) -> str:
        """The repos to which its jobs may publish, for people: ``ann/review``, or ``ann/*``."""
        return f"{self.owner}/{self.repo or '*'}"


_FIELDS = ", ".join(TrustedPublisher._fields)


class TrustedPublishers:
    """The trusted publishers of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = Events(database)

    def add(
        self, owner: str, issuer: Issuer, entered: Entered, *, now: datetime | None = None
    ) -> TrustedPublisher:
        """Trusts the jobs of a workflow file, for a repo, which need not exist, or for all.

        Raises RequestError ``validation_failed``, whose details name the fields of ``entered``;
        OperatorError for an unknown owner.
        """
        added_at = clock.seconds(now)
        fields, details = parse_fields(issuer, entered)
        if details:
            raise validation_failed(*details)
        with self._database.transaction():
            self._check_room(owner)
            publisher = TrustedPublisher(
                id=self._new_id(),
                owner=owner,
                issuer=issuer.url,
                added_at=added_at,
                used_at=None,
                **fields,
            )
            is_new = self._database.execute(
                f"INSERT INTO trusted_publisher ({_FIELDS}) "
                f"VALUES ({', '.join('?' * len(TrustedPublisher._fields))}) "
                "ON CONFLICT (owner, repo, issuer, project, workflow, branch, environment) "
                "DO NOTHING RETURNING 1",
                publisher._replace(publishes=int(publisher.publishes)),
            )
            if not is_new:
                raise validation_failed(
                    Detail("project", f"is already trusted: {_note(publisher)}")
                )
            self._note_event("publisher_added", publisher, now)
        return publisher

    def of(self, owner: str) -> list[TrustedPublisher]:
        """Returns the trusted publishers of an owner, by repo, project and age."""
        return self._find(
            "WHERE owner = ? ORDER BY repo, project, workflow, branch, environment, added_at", owner
        )

    def remove(
        self, owner: str, publisher_id: str, *, now: datetime | None = None
    ) -> TrustedPublisher:
        """Removes a trusted publisher; the tokens of its jobs are revoked at once.

        Raises RequestError ``not_found``.
        """
        with self._database.transaction():
            publisher = self._get(owner, publisher_id)
            self._database.execute("DELETE FROM trusted_publisher WHERE id = ?", (publisher.id,))
            self._revoke_tokens(publisher, now)
            self._note_event("publisher_removed", publisher, now)
        return publisher

    def matching(self, job: Job) -> list[TrustedPublisher]:
        """Returns the trusted publishers of all owners that match a job, by owner and repo."""
        # A publisher without a number matches any project of that name: the first job fixes the
        # number.
        return self._find(
            "WHERE issuer = ? AND project = ? AND workflow = ? AND branch IN ('', ?) "
            "AND environment IN ('', ?) AND project_id IN ('', ?) "
            "ORDER BY owner, repo, branch, environment, id",
            job.issuer,
            job.project,
            job.workflow,
            job.branch,
            job.environment,
            job.project_id,
        )

    def note_use(
        self, publisher: TrustedPublisher, job: Job, *, now: datetime | None = None
    ) -> None:
        """Notes that a job used it, and fixes the number of its project. When a project is deleted
        and another one takes its name, that one has another number.
        """
        used_by = f"{job.kind} {job.project} {job.workflow} {job.place()}"
        with self._database.transaction():
            self._database.execute(
                "UPDATE trusted_publisher SET used_at = ?, project_id = ? WHERE id = ?",
                (clock.seconds(now), job.project_id, publisher.id),
            )
            self._events.note(
                publisher.owner,
                "publisher_used",
                subject=publisher.id,
                note=f"{used_by} {job.run}".strip(),
                now=now,
            )

    def _check_room(self, owner: str) -> None:
        Accounts(self._database).check_known(owner)
        if len(self.of(owner)) >= PUBLISHERS_PER_OWNER_MAX:
            raise validation_failed(
                Detail(
                    "project",
                    f"is one too many: an owner has at most {PUBLISHERS_PER_OWNER_MAX} trusted "
                    "publishers. Remove one, or trust one for all prompts",
                )
            )

    def _get(self, owner: str, publisher_id: str) -> TrustedPublisher:
        """Returns a trusted publisher of an owner. Raises RequestError ``not_found``."""
        found = self._find("WHERE owner = ? AND id = ?", owner, publisher_id)
        if not found:
            raise RequestError(
                "not_found", "This trusted publisher does not exist any more. Reload the list."
            )
        return found[0]

    def _revoke_tokens(self, publisher: TrustedPublisher, now: datetime | None) -> None:
        self._database.execute(
            # A job may have its token through several publishers: their ids, joined by spaces.
            "UPDATE token SET revoked_at = ?1 WHERE owner = ?2 AND revoked_at IS NULL "
            "AND expires_at > ?1 AND ' ' || trusted_publisher || ' ' LIKE ?3",
            (clock.seconds(now), publisher.owner, f"% {publisher.id} %"),
        )

    def _note_event(self, kind: str, publisher: TrustedPublisher, now: datetime | None) -> None:
        note = _note(publisher)
        self._events.note(publisher.owner, kind, subject=publisher.id, note=note, now=now)

    def _find(self, clauses: str, *args: str) -> list[TrustedPublisher]:
        rows = self._database.execute(f"SELECT {_FIELDS} FROM trusted_publisher {clauses}", args)
        return [TrustedPublisher(*rest, bool(publishes)) for *rest, publishes in rows]

    def _new_id(self) -> str:
        while True:
            publisher_id = secrets.token_hex(4)
            if not self._find("WHERE id = ?", publisher_id):
                return publisher_id


def _note(publisher: TrustedPublisher) -> str:
    """Returns a description of a publisher, for the account's log."""
    branch = f" branch {publisher.branch}" if publisher.branch else ""
    environment = f" environment {publisher.environment}" if publisher.environment else ""
    job = f"{publisher.project} {publisher.workflow}{branch}{environment}"
    return f"{job} for {'' if publisher.publishes else 'labels of '}{publisher.scope()}"
