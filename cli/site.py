"""Brings the built site up to date after a command has changed the content."""

from collections.abc import Iterable

from builder.model.errors import HubError, OperatorError
from builder.store.site import is_built
from builder.store.state.serving import site_settings
from cli.build import ON_WAIT
from cli.options import Places
from cli.standard_error import Progress, say


def update_site(places: Places, changed: Iterable[tuple[str, str | None]], done: str) -> bool:
    """Build these repos with the settings of the site, if it exists; with a database, its nodes do
    that. ``done``: the change, for messages. Returns False if the settings are unknown, and prints
    a message. Raises OperatorError.
    """
    # Loaded late: few commands build.
    from builder.pipeline.build import build

    content, out, state, database_url = places
    if database_url or not is_built(out):
        return True
    try:
        settings = site_settings(content, out, state)
        if settings is None:
            say(
                f"{done}, but no build with the state folder {state} has ended, so the settings of "
                f"the site in {out} are unknown. Run `hubctl build` with the options of the site."
            )
            return False
        with Progress() as progress:
            build(settings, changed=changed, progress=progress, on_wait=ON_WAIT)
    except HubError as error:
        raise OperatorError(
            f"{done}, but the site in {out} is not up to date: {error}\nThen run `hubctl build`."
        ) from error
    say(f"The site in {out} is up to date.")
    return True
