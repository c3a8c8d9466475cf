"""Objects of the site, whose files are made together: what the parameters of routes name.

That is the site, an owner, a page of a list, a repo, and its versions, labels and refs. The id of
an object has its parameters: ``ada/review version 1.0.0``, ``ada/``, ``/ sort top page 2``.
"""

from collections.abc import Mapping

from builder.model.matching import Match
from builder.model.routes import BY_NAME, ROUTES, SORTS

SITE = "/"
# In an id, for the prompt of Langfuse's SDKs without a ref; no ref is equal.
NO_REF_ID = "-"
# The files of an object in the order of writing: each the number of its route, or its path if
# other parameters name it.
Names = list[int | str]

_NUMBERS = {route.name: number for number, route in enumerate(ROUTES)}


def id_of(at: Mapping[str, object]) -> str:
    """The id of the object that these parameters name."""
    rest = "".join(f" {key} {at[key]}" for key in at if key not in ("owner", "name"))
    return f"{at.get('owner', '')}/{at.get('name', '')}{rest}"


def params_of(object_id: str) -> dict[str, str]:
    """The parameters that name an object. Inverse of ``id_of``."""
    repo, *rest = object_id.split(" ")
    owner, name = repo.split("/")
    at = {key: value for key, value in (("owner", owner), ("name", name)) if value}
    return at | dict(zip(rest[::2], rest[1::2], strict=True))


def templates_of(names: Names) -> list[str]:
    """The templates of the paths of files."""
    return [one if isinstance(one, str) else ROUTES[one].file for one in names]


def named(name: str, at: Mapping[str, object]) -> tuple[int | str, str]:
    """The name in ``Names``, and the path, of a file of a route; or of this path."""
    return (name, name) if "/" in name else (_NUMBERS[name], BY_NAME[name].file_for(**at))


def objects_of(match: Match) -> list[str]:
    """The ids of the objects that a file can belong to."""
    route, at = match
    if "name" in at:
        what = next((key for key in ("version", "label", "ref") if key in at), "")
        if route.scope == "langfuse":
            return [f"{at['owner']}/{at['name']} ref {at.get('ref', NO_REF_ID)}"]
        found = id_of({key: at[key] for key in ("owner", "name", what) if key})
        if route.name in ("version_skill_archive", "version_plugin"):
            return [found, found.replace(" version ", " archive ")]
        return [found]
    if route.scope in ("list", "langfuse"):
        at = {"sort": SORTS[0], "page": "1"} | dict(at)
        at = {key: at[key] for key in ("tag", "sort", "page") if key in at}
    return [id_of(at)]
