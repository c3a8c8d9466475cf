"""Notes what commands have changed in the activity of its owner."""

import os

from builder.model.errors import HubError
from cli.options import Places
from cli.standard_error import say


def note_change(places: Places, kind: str, owner: str, what: str) -> None:
    """Note a change in the activity of its owner, if the hub has an account of the owner. Print a
    warning where that fails: the change is made. ``what`` begins with the prompt.
    """
    # Loaded late: many hubs have no accounts.
    from publisher.accounts.database import open_accounts
    from publisher.accounts.events import Events
    from publisher.accounts.owners import Owners
    from publisher.accounts.sqlite_engine import ACCOUNTS_FILE

    if not places.database_url and not os.path.exists(f"{places.state}/{ACCOUNTS_FILE}"):
        return
    try:
        with open_accounts(places.database_url or places.state) as database:
            if Owners(database).is_known(owner):
                Events(database).note(owner, kind, subject=what.partition(" ")[0], note=what)
    except HubError as error:
        say(f"Warning: the activity of {owner} does not have this change. {error}")
