"""Copies all accounts from one database into another that has none."""

from builder.model.errors import OperatorError
from publisher.accounts.database import Database

# Owners first, as the other tables refer to them. Each database numbers events itself; they keep
# their order.
TABLES = {
    "owner": "*",
    "token": "*",
    "answer": "*",
    "event": "owner, at, kind, subject, address, note, author",
    "password": "*",
    "invitation": "*",
    "session": "*",
    "identity": "*",
    "trusted_publisher": "*",
    "trusted_only": "*",
    "exchanged": "*",
    "protected_label": "*",
    "draft": "*",
    "member": "*",
    "team_link": "*",
}


def copy_accounts(source: Database, target: Database) -> int:
    """Copies all accounts, or nothing; returns how many owners there are. Leaves a target with the
    same owners as it is.

    Raises OperatorError where the target has other owners; RequestError ``storage_unavailable``.
    """
    owners = "SELECT * FROM owner ORDER BY handle"
    with source.transaction(), target.transaction():
        if there := target.execute(owners):
            if there == source.execute(owners):
                return len(there)
            raise OperatorError(
                "There are other accounts where they are to be copied. Copy into an empty database."
            )
        for table, columns in TABLES.items():
            names = "" if columns == "*" else f" ({columns})"
            order = " ORDER BY id" if table == "event" else ""
            for row in source.execute(f"SELECT {columns} FROM {table}{order}"):
                # PostgreSQL cannot store this character in a text
                # (https://www.postgresql.org/docs/current/datatype-character.html); the title of a
                # draft can have it.
                values = [one.replace("\0", "�") if isinstance(one, str) else one for one in row]
                marks = ", ".join("?" * len(values))
                target.execute(f"INSERT INTO {table}{names} VALUES ({marks})", values)
        ((owners,),) = target.execute("SELECT count(*) FROM owner")
    return owners
