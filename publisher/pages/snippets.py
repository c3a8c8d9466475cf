"""What to paste into a CI to publish from it: a step with a stored token, whole workflows without.

Pure functions of the settings; nothing secret is in what they give. They are what
docs/publish-from-ci.md has at greater length.
"""

import json
import re
from textwrap import indent

from builder.derive import Links
from builder.routes import TRUSTED_URL
from builder.settings import Settings
from publisher.trusted.issuers import Kind
from publisher.trusted.publishers import TrustedPublisher

# Stands for a repo's name where it is not known.
ANY_NAME = "NAME"
SECRET_COMMAND = "gh secret set HUB_TOKEN"

# The same text again makes no new version, so all files can be sent each time.
_EACH_FILE = """\
for file in prompts/*.md; do
  name=$(basename "$file" .md)
  {push} "{owner}/$name" "$file" "{changelog}"
done"""

_GITHUB_CHANGELOG = "$(git log -1 --format=%s)"
_GITHUB = """\
# .github/workflows/{workflow}
name: Publish prompts
on:
  push:
    branches: [{branch}]
    paths: ['prompts/*.md']
  workflow_dispatch:
permissions:
  contents: read
  id-token: write
concurrency: publish-prompts
jobs:
  publish:
    runs-on: ubuntu-latest
{environment}\
    steps:
      - uses: actions/checkout@v4
      - name: Publish
        run: |
{script}"""

_GITLAB_CHANGELOG = "$CI_COMMIT_TITLE"
_GITLAB = """\
# {workflow}
publish-prompts:
  image: alpine:3.22
  rules:
    - if: $CI_COMMIT_BRANCH == {branch}
      changes: ['prompts/*.md']
  resource_group: publish-prompts
{environment}\
  id_tokens:
    HUB_ID_TOKEN:
      aud: {base_url}
  script:
    - apk add --no-cache curl
    - |
{script}"""
# An ID token of GitLab counts once, and so is exchanged for a token that is good for all files.
_EXCHANGE = """\
answer=$(printf '{{"token": "%s", "repo": "{owner}/*"}}' "$HUB_ID_TOKEN" |
  curl -fsS -H 'Content-Type: application/json' --data-binary @- {url})
export HUB_TOKEN=$(printf '%s' "$answer" | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')"""


def github_step(settings: Settings, owner: str, repo: str) -> str:
    """A step of a GitHub Actions job that publishes a repo with a stored token."""
    push = f'./hub push {owner}/{repo} prompts/{repo}.md "{_GITHUB_CHANGELOG}"'
    script = indent("\n".join([*_install(settings), push]), "    ")
    secret = "${{ secrets.HUB_TOKEN }}"
    return f"- name: Publish\n  env:\n    HUB_TOKEN: {secret}\n  run: |\n{script}"


def shell_line(owner: str, repo: str) -> str:
    """How to publish a repo by hand; with a gap where the token goes."""
    return f'HUB_TOKEN=… ./hub push {owner}/{repo} prompts/{repo}.md "What has changed"'


def workflow(settings: Settings, kind: Kind, publisher: TrustedPublisher) -> str:
    """The whole file, as YAML, of which a trusted publisher trusts the jobs."""
    changelog = _GITHUB_CHANGELOG if kind == "github" else _GITLAB_CHANGELOG
    lines = _install(settings)
    if publisher.repo:
        repo = f"{publisher.owner}/{publisher.repo}"
        lines.append(f'./hub push --trusted {repo} prompts/{publisher.repo}.md "{changelog}"')
    else:
        push = "./hub push --trusted"
        if kind == "gitlab":
            url = settings.base_url + TRUSTED_URL
            lines.append(_EXCHANGE.format(owner=publisher.owner, url=url))
            push = "./hub push"
        lines.append(_EACH_FILE.format(push=push, owner=publisher.owner, changelog=changelog))
    told = f"environment: {_quoted(publisher.environment)}\n" if publisher.environment else ""
    if kind == "github":
        template, told_by, script_by = _GITHUB, 4, 10
        branch = _quoted(_as_pattern(publisher.branch or "main"))
    else:
        template, told_by, script_by = _GITLAB, 2, 6
        # Within quotes of such a rule nothing is special, and a branch has no such quotes.
        branch = f'"{publisher.branch}"' if publisher.branch else "$CI_DEFAULT_BRANCH"
    return template.format(
        workflow=publisher.workflow,
        branch=branch,
        environment=indent(told, " " * told_by),
        base_url=settings.base_url,
        script=indent("\n".join(lines), " " * script_by),
    )


def _quoted(text: str) -> str:
    """A text as YAML, which takes a string of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _as_pattern(branch: str) -> str:
    """What matches this branch alone, of GitHub's patterns for branches."""
    return re.sub(r"^!|\+", r"\\\g<0>", branch)


def _install(settings: Settings) -> list[str]:
    """Commands that fetch the client and check it, each of which ends a job that it fails in."""
    links = Links(settings.base_url)
    urls = " ".join(links.file(route) for route in ("client_release", "client_checksum"))
    return [f"curl -fsS --remote-name-all {urls}", "sha256sum -c hub.sha256", "chmod +x hub"]
