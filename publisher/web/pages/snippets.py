"""Jobs to paste into a CI: whole workflows for GitHub and GitLab, or a step with a stored token.

Pure functions; the results have no secrets. The jobs themselves are in `templates/*.yml`, with gaps
like <name>. docs/generate.py writes them into docs/use/publish-from-ci.md, which explains them.
"""

import json
import re
from functools import cache
from pathlib import Path
from textwrap import indent

from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from publisher.trusted.issuers import Kind
from publisher.trusted.publishers import TrustedPublisher

# Stands for an unknown repo's name.
ANY_NAME = "NAME"
SECRET_COMMAND = "gh secret set HUB_TOKEN"

# The label of the version that users get: a job that is started by hand moves it.
RELEASED = "production"
# Pinned by its commit: a tag can move.
CHECKOUT = "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2"


def github_step(settings: Settings, owner: str, repo: str) -> str:
    """Returns a step of a GitHub Actions job that publishes a repo with a stored token. It needs a
    checkout with the whole history.
    """
    return _fill(
        _template("github-step.yml"),
        url=_scalar(settings.base_url),
        owner=_scalar(owner),
        release=_release_path(),
        paths=_paths(repo),
    )


def shell_line(owner: str, repo: str) -> str:
    """Returns the command that publishes a repo by hand, with a gap for the token."""
    return f'HUB_TOKEN=… ./hub push {owner}/{repo} prompts/{repo}.md "What has changed"'


def workflow(base_url: str, kind: Kind, publisher: TrustedPublisher) -> str:
    """Returns the whole file, as YAML, whose jobs a trusted publisher trusts. For a publisher that
    only moves labels with GitLab, it is the job to add to that file. The job moves RELEASED, or the
    first label.

    Where any branch is trusted, it publishes from the default one.
    """
    branch, environment = publisher.branch, publisher.environment
    template = kind
    labels = publisher.labels.split()
    if not publisher.publishes:
        environment = environment or RELEASED
        template = f"{kind}-release"
    folder = "'prompts/**'"
    if publisher.repo:
        folder = f"'prompts/{publisher.repo}.md', 'prompts/{publisher.repo}/**'"
    default = "format('refs/heads/{0}', github.event.repository.default_branch)"
    environment_line = f"environment: {_scalar(environment)}\n" if environment else ""
    return _fill(
        _template(f"{template}.yml"),
        url=_scalar(base_url),
        owner=_scalar(publisher.owner),
        folder=folder,
        paths=_paths(publisher.repo),
        checkout=CHECKOUT,
        release=_release_path(),
        pattern=_scalar(_as_pattern(branch or "main")),
        ref=_expression(f"refs/heads/{branch}") if branch else default,
        # In the quotes of such a rule no character is special, and a branch has no such quotes.
        branch=f'"{branch}"' if branch else "$CI_DEFAULT_BRANCH",
        environment=indent(environment_line, "    " if kind == "github" else "  "),
        labels="".join(f"--label {label} " for label in labels),
        label=RELEASED if RELEASED in labels else "".join(labels[:1]),
    )


@cache
def _template(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text()


def _release_path() -> str:
    return BY_NAME["client_release"].url.rpartition("/")[0]


def _paths(repo: str) -> str:
    """Returns where the prompt of a repo may be, as words of a shell; of all repos for none."""
    return f"prompts/{repo}.md prompts/{repo}" if repo else "prompts"


def _fill(text: str, **gaps: str) -> str:
    return re.sub(r"<(\w+)>", lambda found: gaps[found[1]], text)


def _scalar(text: str) -> str:
    """Returns a text as YAML: plain where that is unambiguous, else a string of JSON, which is
    YAML.
    """
    is_plain = re.fullmatch(r"[A-Za-z][\w./:-]*[\w/]", text, re.ASCII)
    is_word = re.fullmatch(r"yes|no|on|off|true|false|null", text, re.IGNORECASE)
    return text if is_plain and not is_word else json.dumps(text, ensure_ascii=False)


def _expression(text: str) -> str:
    """Returns a text as a string of GitHub's expressions."""
    return "'" + text.replace("'", "''") + "'"


def _as_pattern(branch: str) -> str:
    """Returns the pattern of GitHub for branches that matches this branch alone."""
    return re.sub(r"^!|\+", r"\\\g<0>", branch)
