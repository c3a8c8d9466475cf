"""Exchanges the ID token of a CI job for a token of the hub."""

from collections.abc import Sequence
from datetime import datetime

from builder.model.errors import RequestError
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.token import Token
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import Job
from publisher.trusted.publishers import TrustedPublisher, TrustedPublishers

# Stands for a repo's name: all repos that trust the job.
ALL = "*"


def exchange(
    database: Database, accounts: Accounts, job: Job, repo: str, now: datetime | None = None
) -> tuple[str, Token]:
    """Returns a token for a job's repos, and its text, which cannot be shown again.

    The token is good for ``repo`` (``owner/name``, well-formed) alone; with ``*`` as name, for all
    of the owner's repos that trust the job. A job's ID token can be exchanged once. A refusal does
    not use it up, so a job can try again when its owner has added it. Everything happens in one
    transaction.

    Raises RequestError ``token_expired``, ``invalid_token`` if it is used up,
    ``insufficient_scope`` if it is not trusted there, ``storage_unavailable``.
    """
    owner, _, name = repo.partition("/")
    publishers = TrustedPublishers(database)
    with database.transaction():
        _use_up(database, job, epoch_seconds(now))
        trusting = [
            one
            for one in publishers.matching(job)
            if one.owner == owner and (name == ALL or one.repo in ("", name))
        ]
        if not trusting:
            raise _not_trusted(job, repo)
        publishing = [one for one in trusting if one.publishes]
        if name == ALL:
            # A token has the same rights in all its repos: those of entries that publish.
            trusting = publishing or trusting
        for publisher in trusting:
            publishers.note_use(publisher, job, now=now)
        return accounts.create_trusted_token(
            owner,
            _repos(trusting) if name == ALL else [name],
            " ".join(one.id for one in trusting),
            now,
            source=job.source(),
            labels=_labels(trusting, is_one_repo=name != ALL),
            publishes=bool(publishing),
        )


def _use_up(database: Database, job: Job, seconds: int) -> None:
    # A row is deleted when its ID token expires. A token whose check began before that must not be
    # accepted after it.
    if seconds >= job.expires_at:
        raise RequestError(
            "token_expired", "The ID token has just expired. Get a new one and send it."
        )
    database.execute("DELETE FROM exchanged WHERE until <= ?", (seconds,))
    is_new = database.execute(
        "INSERT INTO exchanged VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1",
        (job.token_hash, job.expires_at),
    )
    if not is_new:
        raise RequestError(
            "invalid_token",
            "The ID token was used already (jti); each works once. Get a new one from the CI. "
            "A GitLab job has only one: ask for `OWNER/*` and use the returned token for all "
            "that the job publishes.",
        )


def _repos(trusting: Sequence[TrustedPublisher]) -> list[str]:
    """Returns the repos that the trusted publishers allow together; empty: all of the owner's."""
    repos = sorted({one.repo for one in trusting})
    return [] if "" in repos else repos


def _labels(trusting: Sequence[TrustedPublisher], *, is_one_repo: bool) -> list[str]:
    """Returns the labels that a job may move. In one repo, these are all that any of the publishers
    allows. In several, only those that all of them allow, as a token has the same labels in all its
    repos.
    """
    allowed = [set(one.labels.split()) for one in trusting]
    return sorted(set.union(*allowed) if is_one_repo else set.intersection(*allowed))


def _not_trusted(job: Job, repo: str) -> RequestError:
    environment = f"environment {job.environment}" if job.environment else "no environment"
    return RequestError(
        "insufficient_scope",
        f"This job matches no trusted publisher of {repo}: project {job.project} (id "
        f"{job.project_id}), workflow {job.workflow}, {job.place()}, {environment}, at "
        f"{job.issuer}. Add it in your account under Trusted publishers. If the project was "
        "deleted and created again, remove the old one there first.",
    )
