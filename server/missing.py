"""The reason why a URL of the table of routes has no file, and the message for the reader.

It is the same on the embedded server and on every host that can check if a file exists.
"""

from typing import NamedTuple

from builder.model.errors import LANGFUSE_NOT_FOUND
from builder.model.routes import BY_NAME, SORTS, Route

WITHDRAWN = "withdrawn"

# Messages by code; parameters of the URL are in braces.
MESSAGES = {
    LANGFUSE_NOT_FOUND: "No prompt '{owner}/{name}', or none with this version or label. "
    f"{BY_NAME['catalogue'].url} lists all prompts, {BY_NAME['versions'].url} the versions of one.",
    "label_not_found": "{owner}/{name} has no label {label}. "
    f"{BY_NAME['labels'].url} lists its labels.",
    "not_found": "Nothing at this address. The first version of a prompt has no diff, and a prompt "
    "that never had a label has no list of labels.",
    "page_not_found": "The list has fewer pages. meta.pages in page 1 has their number.",
    "repo_not_found": "No prompt '{owner}/{name}'. "
    f"{BY_NAME['catalogue'].url} lists all prompts.",
    "tag_not_found": f"No prompt has the tag '{{tag}}'. {BY_NAME['tags'].url} lists all tags.",
    "user_not_found": "No user '{owner}'. "
    f"{BY_NAME['catalogue'].url} lists all prompts with their owners.",
    "version_not_found": "{owner}/{name} has no version {version}. "
    f"{BY_NAME['versions'].url} lists its versions.",
}
LATEST_ELSEWHERE = (
    f"The latest version of {{owner}}/{{name}} is at {BY_NAME['repo'].url}, its text at "
    f"{BY_NAME['raw'].url}."
)
LANGFUSE_NO_PAGE = (
    "The list has no such page: it ends before, or no prompt has this tag. meta.totalPages of the "
    "first page has the number of pages."
)

NO_FILE = (
    "{owner}/{name} {version} has no such file. "
    f"{BY_NAME['version'].url} lists its files, if it has any."
)
NO_ARCHIVE = (
    "{owner}/{name} {version} has no archive: the latest version has one, and each version with "
    f"files. Its skill is at {BY_NAME['version_skill'].url}."
)
NO_PLUGIN = (
    "{owner}/{name} {version} has no plugin: only the latest version with files has one. Its skill "
    f"is at {BY_NAME['version_skill'].url}."
)


class Reason(NamedTuple):
    """The error has ``code`` if the file of the template ``witness`` exists. A reason without a
    witness always applies. ``text`` replaces the message of the code.
    """

    witness: str
    code: str
    text: str = ""

    @property
    def message(self) -> str:
        return self.text or MESSAGES[self.code]


def withdrawn(route: Route) -> list[str]:
    """Templates of the files that say why a file of a route was withdrawn. The first that exists is
    sent instead, with the status of ``WITHDRAWN``.
    """
    if route.scope not in ("files", "version", "label", "repo"):
        return []
    page = "" if route.has_json_errors else "_page"
    named = [f"withdrawn_version{page}"] if "{version}" in route.file else []
    return [BY_NAME[name].file for name in [*named, f"withdrawn_repo{page}"]]


def reasons(route: Route) -> list[Reason]:
    """The reasons why a file of a route may be missing though no file of ``withdrawn`` exists. The
    first that applies counts, and the last always applies.
    """
    if route.scope == "langfuse":
        # This also covers withdrawn versions: the SDKs treat any other status as a failure and
        # continue to use their cached copy.
        text = "" if "{name}" in route.file else LANGFUSE_NO_PAGE
        return [Reason("", LANGFUSE_NOT_FOUND, text)]
    found = []
    if route.name == "diff":
        found.append(Reason(BY_NAME["version"].file, "not_found"))
    if route.name == "tag_list":
        first = route.file.replace("{sort}", SORTS[0]).replace("{page}", "1")
        found.append(Reason(first, "page_not_found"))
    if route.name == "version_skill_archive":
        found.append(Reason(BY_NAME["version"].file, "not_found", NO_ARCHIVE))
    if route.scope == "files":
        text = NO_PLUGIN if route.name == "version_plugin" else NO_FILE
        found.append(Reason(BY_NAME["version"].file, "not_found", text))
    if "{version}" in route.file:
        found.append(Reason(BY_NAME["repo"].file, "version_not_found"))
    if route.scope == "label":
        code = "label_not_found" if "{label}" in route.file else "not_found"
        found.append(Reason(BY_NAME["repo"].file, code))
    if "{name}" in route.file:
        code = "repo_not_found"
    elif "{owner}" in route.file:
        code = "user_not_found"
    elif route.name == "tag_list":
        code = "tag_not_found"
    else:
        code = "page_not_found" if route.scope == "list" else "not_found"
    return [*found, Reason("", code)]
