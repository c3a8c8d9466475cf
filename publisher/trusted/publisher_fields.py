"""The fields that an owner enters for a trusted publisher: as they are stored, and their faults.
Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from builder.model import names
from builder.model.errors import Detail, RequestError
from publisher.trusted.claims import BRANCH_PREFIX, fold
from publisher.trusted.issuers import Issuer, Kind

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
