"""Teams: owners without a sign-in, whose members publish for them under their own names; and the
actor: the person who acts, the owner for whom, and the way.

``by``: the member who makes a change; None for the operator, who may make any. ``now`` is an aware
datetime, by default the present. The methods raise RequestError ``storage_unavailable`` as the
database does.
"""

import hmac
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from builder.model import names
from builder.model.errors import OperatorError, RequestError
from builder.model.service_urls import ACCOUNT_URL
from publisher.accounts.database import Database, epoch_seconds
from publisher.accounts.events import Events
from publisher.accounts.owners import Owners
from publisher.accounts.token import SECRET_CHARS, Token, hash_secret, make_secret

# The roles of a team's members. People are maintainers of their own prompts.
MAINTAINER, WRITER = "maintainer", "writer"
ROLES = (WRITER, MAINTAINER)

# The most teams that a person may maintain and create another, and the most members and open links
# of a team.
MAINTAINED_MAX = 20
MEMBERS_MAX = 1000
LINKS_MAX = 100
LINK_SECONDS = 7 * 86_400
JOIN_URL = f"{ACCOUNT_URL}/join"


class Actor(NamedTuple):
    """``name``: whom records name. That is a person; for tokens of the operator and of trusted
    jobs, the owner. ``role`` is one of ROLES, or empty: ``name`` may do nothing for ``owner``.
    ``token``: None in the browser.
    """

    name: str
    owner: str
    role: str
    token: Token | None = None

    @property
    def how(self) -> str:
        """The way in which the actor acts, for people: ``in the browser``."""
        if not self.token:
            return "in the browser"
        source = self.token.source
        return f"by a job of {source.project}" if source else f"with token {self.token.name}"


class Member(NamedTuple):
    """A member of a team. ``since`` is epoch seconds."""

    person: str
    role: str
    since: int


class Teams:
    """The teams of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owners = Owners(database)
        self._events = Events(database)

    def role(self, team: str, person: str) -> str:
        """Returns the role of a person; empty for one who is no member."""
        rows = self._database.execute(
            "SELECT role FROM member WHERE team = ? AND person = ?", (team, person)
        )
        return rows[0][0] if rows else ""

    def of(self, person: str) -> dict[str, str]:
        """Returns the role of a person in each of their teams that is not locked, by handle."""
        rows = self._database.execute(
            "SELECT team, role FROM member JOIN owner ON handle = team "
            "WHERE person = ? AND locked_at IS NULL ORDER BY team",
            (person,),
        )
        return dict(rows)

    def members(self, team: str) -> list[Member]:
        """Returns the members, the maintainers first."""
        rows = self._database.execute(
            "SELECT person, role, since FROM member WHERE team = ? ORDER BY role, person", (team,)
        )
        return [Member(*row) for row in rows]

    def maintainers(self, team: str) -> list[str]:
        """Returns the handles of the maintainers, sorted; without those who are locked, unless all
        are.
        """
        rows = self._database.execute(
            "SELECT person, locked_at FROM member JOIN owner ON handle = person "
            "WHERE team = ? AND role = ? ORDER BY person",
            (team, MAINTAINER),
        )
        return [person for person, at in rows if at is None] or [person for person, _ in rows]

    def list(self) -> list[tuple[str, int, str, int]]:
        """Returns the handle, the number of members, the maintainers (joined by spaces) and the
        time of creation of each team.
        """
        rows = self._database.execute(
            "SELECT handle, created_at, person, role FROM owner LEFT JOIN member ON team = handle "
            "WHERE kind = 'team' ORDER BY handle, person"
        )
        listed = []
        for (team, at), group in groupby(rows, key=lambda row: row[:2]):
            roles = {person: role for _, _, person, role in group if person}
            maintainers = " ".join(one for one in roles if roles[one] == MAINTAINER)
            listed.append((team, len(roles), maintainers, at))
        return listed

    def create(self, team: str, maintainer: str, *, now: datetime | None = None) -> None:
        """Creates a team with its first member. An owner without a sign-in becomes one.

        Raises RequestError ``invalid_name``, ``name_reserved``; OperatorError for an owner who
        signs in, who is a member of a team, or who is one already.
        """
        with self._database.transaction():
            if not self._owners.is_known(names.check_owner(team)):
                self._owners.add_owner(team, now)
            elif why := self._why_no_team(team):
                raise OperatorError(f"{team} cannot become a team: {why}. Choose another handle.")
            self._database.execute("UPDATE owner SET kind = 'team' WHERE handle = ?", (team,))
            self._put(team, maintainer, MAINTAINER, epoch_seconds(now))
            self._events.note(team, "team_made", note=maintainer, now=now)

    def _why_no_team(self, handle: str) -> str:
        if self._owners.is_team(handle):
            return f"it is one already. To add a member, run `hubctl team add {handle} PERSON`"
        ways = (
            ("password", "owner", "it is a person, who has a password"),
            ("identity", "owner", "it is a person, who signs in with a provider"),
            ("invitation", "owner", "it has an invitation to sign in"),
            ("member", "person", "it is a member of another team"),
        )
        for table, column, why in ways:
            sql = f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1"
            if self._database.execute(sql, (handle,)):
                return why
        return ""

    def put(
        self,
        team: str,
        person: str,
        role: str,
        *,
        by: str | None = None,
        now: datetime | None = None,
    ) -> bool:
        """Adds a member, or gives one another role. True if that changed anything.

        Raises RequestError ``insufficient_scope`` unless ``by`` is a maintainer now,
        ``last_maintainer``, ``not_found`` for an unknown team or person.
        """
        with self._database.transaction():
            self._check_may(team, by)
            before = self.role(team, person)
            if before == role:
                return False
            self._check_leaves_one(team, person, before)
            self._put(team, person, role, epoch_seconds(now))
            kind = "member_role" if before else "member_added"
            note = f"{person} as {role}"
            self._events.note(team, kind, subject=person, note=note, now=now)
        return True

    def remove(
        self, team: str, person: str, *, by: str | None = None, now: datetime | None = None
    ) -> None:
        """Removes a member. Each may remove themselves. Raises as ``put``; ``not_found`` also for
        one who is no member.
        """
        with self._database.transaction():
            if by != person:
                self._check_may(team, by)
            before = self.role(team, person)
            if not before:
                raise RequestError("not_found", f"{person} is not a member of {team}.")
            self._check_leaves_one(team, person, before)
            self._database.execute(
                "DELETE FROM member WHERE team = ? AND person = ?", (team, person)
            )
            self._events.note(team, "member_removed", subject=person, note=person, now=now)

    def invite(self, team: str, role: str, by: str, *, now: datetime | None = None) -> str:
        """Returns the code of a link with which one person joins, good for a week, as long as its
        maker is a maintainer. Raises as ``put``; ``rate_limited`` for too many open links.
        """
        secret, at = make_secret(), epoch_seconds(now)
        with self._database.transaction():
            self._check_may(team, by)
            self._database.execute("DELETE FROM team_link WHERE expires_at <= ?", (at,))
            ((count,),) = self._database.execute(
                "SELECT count(*) FROM team_link WHERE team = ?", (team,)
            )
            if count >= LINKS_MAX:
                raise RequestError(
                    "rate_limited",
                    f"{team} has {count} open links, which is the limit. Add people by their "
                    "handles, or wait until a link is used or expires.",
                )
            self._database.execute(
                "INSERT INTO team_link VALUES (?, ?, ?, ?, ?)",
                (hash_secret(secret), team, role, by, at + LINK_SECONDS),
            )
            self._events.note(team, "team_link_made", note=role, now=now)
        return secret

    def join(self, code: str, person: str, *, now: datetime | None = None) -> tuple[str, str]:
        """Uses up the code of a link, or the whole link; returns the team and the role.

        A member keeps a higher role. Raises RequestError ``invalid_token`` for a code that is not
        good, whatever the reason.
        """
        digest = hash_secret(code.strip().rpartition("#")[2][:SECRET_CHARS])
        with self._database.transaction():
            # The maker may have left, have another role, or be locked by now.
            rows = self._database.execute(
                "SELECT hash, team_link.team, team_link.role FROM team_link "
                "JOIN member ON member.team = team_link.team AND person = made_by "
                "JOIN owner ON handle = made_by AND locked_at IS NULL "
                "WHERE hash = ? AND expires_at > ? AND member.role = ?",
                (digest, epoch_seconds(now), MAINTAINER),
            )
            if not any(hmac.compare_digest(hash, digest) for hash, *_ in rows):
                raise RequestError(
                    "invalid_token",
                    "This link is not valid: it was used, expired after a week, or copied "
                    "incompletely, or its maker is no maintainer any more. Ask a maintainer of "
                    "the team for a new one.",
                )
            ((_, team, role),) = rows
            self._database.execute("DELETE FROM team_link WHERE hash = ?", (digest,))
            before = self.role(team, person)
            if before != MAINTAINER and before != role:
                self._put(team, person, role, epoch_seconds(now))
                note = f"{person} as {role}"
                self._events.note(team, "member_joined", note=note, now=now)
        return team, max(before, role, key=("", *ROLES).index)

    def _put(self, team: str, person: str, role: str, at: int) -> None:
        if not self._owners.is_known(names.check_owner(person)) or self._owners.is_team(person):
            raise RequestError(
                "not_found", f"No account named {person}. Members are people who have an account."
            )
        if len(self.members(team)) >= MEMBERS_MAX and not self.role(team, person):
            raise RequestError(
                "rate_limited", f"{team} has {MEMBERS_MAX:,} members, which is the limit."
            )
        self._database.execute(
            "INSERT INTO member VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (team, person) DO UPDATE SET role = ?3",
            (team, person, role, at),
        )

    def _check_may(self, team: str, by: str | None) -> None:
        if not self._owners.is_team(team):
            raise RequestError("not_found", f"No team {team}.")
        role = MAINTAINER if by is None else self.role(team, by)
        if not role:
            raise RequestError("insufficient_scope", f"You are not a member of {team}.")
        if role != MAINTAINER:
            raise RequestError(
                "insufficient_scope",
                f"Only maintainers change the members of {team}: "
                f"{', '.join(self.maintainers(team))}.",
            )

    def _check_leaves_one(self, team: str, person: str, before: str) -> None:
        if before == MAINTAINER and not {*self.maintainers(team)} - {person}:
            raise RequestError(
                "last_maintainer",
                f"{team} would have no maintainer. Make another member a maintainer first.",
            )
