"""Trusted publishers: the CI jobs that may publish or move labels for an owner; and the exchange of
a job's ID token for a token of the hub.

An owner names the project, the file that defines the job and, if wanted, the branch and the
environment. Anyone who may change that file in that place may publish. ``now`` is an aware
datetime, by default the present. The methods raise RequestError ``storage_unavailable`` as the
database does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from builder.model import names
from builder.model.errors import Detail, RequestError, validation_failed
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.token import Token
from publisher.accounts.tokens import Accounts
from publisher.trusted.issuers import BRANCH_PREFIX, Issuer, Job, Kind, fold

# The workflow files where an owner names none.
WORKFLOWS: Mapping[Kind, str] = {"github": "publish.yml", "gitlab": ".gitlab-ci.yml"}
ENVIRONMENT_CHARS_MAX = 255

_PROJECT_CHARS_MAX = 1000
# The longest path of a file, and the longest branch. Longer ones are refused.
_NAME_CHARS_MAX = 255
_GITHUB_FOLDER = ".github/workflows/"


class _Form(NamedTuple):
    """The syntax of an issuer's projects and workflow files, and its description in words."""

    project: re.Pattern[str]
    project_is: str
    workflow: re.Pattern[str]
    workflow_is: str


# Project URLs in git end in .git, project names do not.
_FORMS: Mapping[Kind, _Form] = {
    "github": _Form(
        re.compile(r"[a-z0-9][a-z0-9_-]{0,38}/(?!\.{1,2}$)[a-z0-9._-]{1,100}(?<!\.git)"),
        "must be OWNER/REPO, as GitHub shows it: octo/prompts",
        re.compile(r"[^/\\@]+\.ya?ml"),
        f"must be the name of a .yml or .yaml file in {_GITHUB_FOLDER}, with the same "
        "capitals: publish.yml",
    ),
    "gitlab": _Form(
        re.compile(r"[a-z0-9_][a-z0-9._-]*(?:/[a-z0-9_.][a-z0-9._-]*)+(?<!\.git)"),
        "must be GROUP/PROJECT with any groups between, as in the address of the project: "
        "acme/team/prompts",
        # Excludes a file of another project, which is FILE@GROUP/PROJECT or a URL.
        re.compile(r"(?!\.{0,2}/)(?!.*//)[^@:\\]*[^@:\\/]"),
        f"must be the path of a file of the project, from its top folder: {WORKFLOWS['gitlab']}",
    ),
}
# Nearly the rules of git-check-ref-format(1) (https://git-scm.com/docs/git-check-ref-format). A
# whole ref is excluded, as no one means it as a branch. So are quotes, as a rule of GitLab cannot
# contain them.
_branch = re.compile(
    r"(?!-|refs/)(?!.*(?:\.\.|//|/\.|@\{))[^./\s~^:?*\[\\\"][^\s~^:?*\[\\\"]*(?<![./])"
)
_project_id = re.compile(r"[0-9]{1,20}")


class Entered(NamedTuple):
    """A trusted publisher as an owner enters it.

    White space around the fields is dropped, ``.github/workflows/`` and ``refs/heads/`` too. An
    empty ``workflow`` is that of WORKFLOWS. An empty ``repo`` means all of the owner's.
    ``project_id`` may be left out: it is taken from the first job. ``labels``, which its jobs may
    move, have spaces or commas between them. Unless it ``publishes``, they do nothing else.
    """

    project: str
    workflow: str
    repo: str = ""
    branch: str = ""
    environment: str = ""
    project_id: str = ""
    labels: str = ""
    publishes: bool = True


def parse_fields(issuer: Issuer, entered: Entered) -> tuple[dict[str, Any], list[Detail]]:
    """Returns the fields as they are stored, and their faults."""
    labels, faults = parse_labels(entered.labels, publishes=entered.publishes)
    branch = entered.branch.strip()
    fields = {
        "repo": entered.repo.strip(),
        "project": fold(entered.project.strip()),
        "workflow": entered.workflow.strip(),
        "branch": branch.removeprefix(BRANCH_PREFIX),
        "environment": entered.environment.strip(),
        "project_id": entered.project_id.strip(),
        "labels": labels,
        "publishes": entered.publishes,
    }
    if issuer.kind == "github":
        fields["environment"] = fold(fields["environment"])
        fields["workflow"] = fields["workflow"].removeprefix(_GITHUB_FOLDER)
    fields["workflow"] = fields["workflow"] or WORKFLOWS[issuer.kind]
    # The bare prefix ``refs/heads/`` leaves an empty branch, which would mean any branch: a fault.
    return fields, [*_find_faults(issuer.kind, fields, has_branch=bool(branch)), *faults]


def parse_labels(text: str, *, publishes: bool = True) -> tuple[str, list[Detail]]:
    """Returns the labels as they are stored, and their faults."""
    labels = list(dict.fromkeys(text.replace(",", " ").split()))
    return " ".join(labels), [*_find_label_faults(labels, publishes)]


def _find_label_faults(labels: list[str], publishes: bool) -> Iterator[Detail]:
    if not labels and not publishes:
        yield Detail("labels", "name at least one label: its jobs can do nothing else")
    if len(labels) > names.LABELS_PER_REPO_MAX:
        message = f"name at most {names.LABELS_PER_REPO_MAX} labels, not {len(labels):,}"
        yield Detail("labels", message)
    for label in labels:
        try:
            names.check_new_label(label)
        except RequestError as error:
            yield Detail("labels", str(error))


def _find_faults(kind: Kind, fields: Mapping[str, Any], *, has_branch: bool) -> Iterator[Detail]:
    form = _FORMS[kind]
    if fields["repo"]:
        try:
            names.check_repo(fields["repo"])
        except RequestError as error:
            yield Detail("repo", str(error))
    is_short = len(fields["project"]) <= _PROJECT_CHARS_MAX
    if not is_short or not form.project.fullmatch(fields["project"]):
        yield Detail("project", form.project_is)
    if not _is_fit(form.workflow, fields["workflow"]):
        yield Detail("workflow", form.workflow_is)
    if has_branch and not _is_fit(_branch, fields["branch"]):
        yield Detail(
            "branch",
            f"must be a branch, not a tag, of at most {_NAME_CHARS_MAX} characters, with the "
            "same capitals as in git: main; leave it empty for any branch or tag",
        )
    environment = fields["environment"]
    if len(environment) > ENVIRONMENT_CHARS_MAX or not environment.isprintable():
        yield Detail(
            "environment",
            f"must be one line of at most {ENVIRONMENT_CHARS_MAX} characters; leave it empty "
            "for any",
        )
    if fields["project_id"] and not _project_id.fullmatch(fields["project_id"]):
        message = "must be digits; leave it empty to take the number of the first job"
        yield Detail("project_id", message)


def _is_fit(pattern: re.Pattern[str], name: str) -> bool:
    is_line = len(name) <= _NAME_CHARS_MAX and name.isprintable()
    return is_line and pattern.fullmatch(name) is not None


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
        added_at = epoch_seconds(now)
        fields, details = parse_fields(issuer, entered)
        if details:
            raise validation_failed(*details)
        with self._database.transaction():
            self._check_room(owner)
            publisher = TrustedPublisher(
                id=self._database.new_id("trusted_publisher"),
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
            found = self._find("WHERE owner = ? AND id = ?", owner, publisher_id)
            if not found:
                raise RequestError(
                    "not_found", "This trusted publisher does not exist any more. Reload the list."
                )
            (publisher,) = found
            self._database.execute("DELETE FROM trusted_publisher WHERE id = ?", (publisher.id,))
            self._database.execute(
                # A job may have its token through several publishers: their ids, joined by spaces.
                "UPDATE token SET revoked_at = ?1 WHERE owner = ?2 AND revoked_at IS NULL "
                "AND expires_at > ?1 AND ' ' || trusted_publisher || ' ' LIKE ?3",
                (epoch_seconds(now), owner, f"% {publisher.id} %"),
            )
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
                (epoch_seconds(now), job.project_id, publisher.id),
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

    def _note_event(self, kind: str, publisher: TrustedPublisher, now: datetime | None) -> None:
        note = _note(publisher)
        self._events.note(publisher.owner, kind, subject=publisher.id, note=note, now=now)

    def _find(self, clauses: str, *args: str) -> list[TrustedPublisher]:
        rows = self._database.execute(f"SELECT {_FIELDS} FROM trusted_publisher {clauses}", args)
        return [TrustedPublisher(*rest, bool(publishes)) for *rest, publishes in rows]


def _note(publisher: TrustedPublisher) -> str:
    """Returns a description of a publisher, for the account's log."""
    branch = f" branch {publisher.branch}" if publisher.branch else ""
    environment = f" environment {publisher.environment}" if publisher.environment else ""
    job = f"{publisher.project} {publisher.workflow}{branch}{environment}"
    return f"{job} for {'' if publisher.publishes else 'labels of '}{publisher.scope()}"


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
