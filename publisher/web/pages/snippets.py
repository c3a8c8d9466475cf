"""Steps and workflows to paste into a CI to publish from it: a step with a stored token, or whole
workflows without.

Pure functions; the results have no secrets. docs/generate.py writes the workflows into
docs/use/publish-from-ci.md, which explains them.
"""

import json
import re
from textwrap import indent

from builder.model.links import Links
from builder.model.routes import BY_NAME
from builder.model.service_urls import TRUSTED_URL
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

# In these templates, <name> is a gap.
_GITHUB = """\
name: Publish prompts
on:
  pull_request:
  push:
    branches: [<pattern>]
    paths: [<folder>]
  workflow_dispatch:
permissions:
  contents: read
env:
  HUB_URL: <url>
  HUB_OWNER: <owner>
jobs:
  check:
    if: github.event_name == 'pull_request'
    runs-on: ubuntu-latest
    steps:
      - uses: <checkout>
        with:
          persist-credentials: false
      - name: Say what changes
        run: |
<check>
  publish:
    if: github.ref == <ref>
    runs-on: ubuntu-latest
    permissions:
      contents: read
      id-token: write
    concurrency:
      group: publish-prompts
      queue: max
<environment>    steps:
      - uses: <checkout>
        with:
          fetch-depth: 0
      - name: Publish what has changed
        env:
          BEFORE: ${{ github.event.before }}
          AFTER: ${{ github.sha }}
          BRANCH: ${{ github.ref_name }}
        run: |
<script>"""
_GITHUB_RELEASE = """\
name: Release a prompt
on:
  workflow_dispatch:
    inputs:
      prompt: { description: Name of the prompt, required: true }
      version: { description: 'Version to release, also an older one', required: true }
      expected: { description: 'Version that is released now, or none', required: true }
permissions:
  id-token: write
jobs:
  release:
    if: github.ref == <ref>
    runs-on: ubuntu-latest
<environment>    steps:
      - name: Move the label
        env:
          HUB_URL: <url>
          HUB_OWNER: <owner>
          PROMPT: ${{ inputs.prompt }}
          VERSION: ${{ inputs.version }}
          EXPECTED: ${{ inputs.expected }}
          BY: ${{ github.actor }}
        run: |
<script>"""
_GITLAB = """\
workflow:
  auto_cancel:
    on_new_commit: none

.hub:
  image: alpine:3.22
  variables:
    HUB_URL: <url>
    HUB_OWNER: <owner>
  before_script:
    - apk add --no-cache curl git

check-prompts:
  extends: .hub
  stage: test
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
      changes: [<folder>]
  script:
    - |
<check>
publish-prompts:
  extends: .hub
  stage: deploy
  id_tokens:
    HUB_ID_TOKEN:
      aud: <url>
  rules:
    - if: $CI_COMMIT_BRANCH == <branch> && $CI_PIPELINE_SOURCE == "push"
      changes: [<folder>]
    - if: $CI_COMMIT_BRANCH == <branch> && $CI_PIPELINE_SOURCE == "web" && $PROMPT == null
  resource_group: publish-prompts
  interruptible: false
<environment>  variables:
    GIT_DEPTH: '0'
    BEFORE: $CI_COMMIT_BEFORE_SHA
    AFTER: $CI_COMMIT_SHA
    BRANCH: $CI_COMMIT_BRANCH
  script:
    - |
<script>"""
_GITLAB_RELEASE = """\
release-prompt:
  image: alpine:3.22
  stage: deploy
  id_tokens:
    HUB_ID_TOKEN:
      aud: <url>
  rules:
    - if: $CI_COMMIT_BRANCH == <branch> && $CI_PIPELINE_SOURCE == "web" && $PROMPT
      when: manual
      allow_failure: false
<environment>  variables:
    HUB_URL: <url>
    HUB_OWNER: <owner>
    GIT_STRATEGY: none
    BY: $GITLAB_USER_LOGIN
  before_script:
    - apk add --no-cache curl
  script:
    - |
<script>"""
_FETCH_CLIENT = """\
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(
  cd "$work"
  release=${HUB_URL%/}<release>
  curl -fsS --retry 5 --retry-connrefused --remote-name-all "$release/hub" "$release/hub.sha256"
  sha256sum -c hub.sha256
)
"""
_CHECK = """\
# Without a token: a pull request of a fork has none.
for path in <paths>; do
  [ ! -e "$path" ] || sh "$work/hub" check "$path"<shown>
done
"""
_RELEASE = """\
sh "$work/hub" label --trusted "$HUB_OWNER/$PROMPT" <label> "$VERSION" "By $BY" --expected "$EXPECTED"
"""  # noqa: E501
_EXCHANGE = r"""
# The job has one ID token, which counts once: one token of the hub for all its files.
answer=$(printf '{"token":"%s","repo":"%s/*"}' "$HUB_ID_TOKEN" "$HUB_OWNER" |
  curl -sS --retry 5 --retry-connrefused -H 'Content-Type: application/json' \
    --data-binary @- "${HUB_URL%/}<exchange>")
unset HUB_ID_TOKEN
HUB_TOKEN=$(printf '%s\n' "$answer" | sed -n 's/.*"token":"\([^"]*\)".*/\1/p')
refusal=$(printf '%s\n' "$answer" | sed -n 's/.*"message":"\(.*\)".*/\1/p')
: "${HUB_TOKEN:?${refusal:-That is no answer of a hub: is HUB_URL right?}}"
export HUB_TOKEN
"""
_PUSH_FILES = r"""
git fetch --quiet origin "$BRANCH"
# Without a commit to compare with, as on a first push, every file counts as changed.
before=$BEFORE
git cat-file -e "$before^{commit}" 2>/dev/null || before=$(git hash-object -t tree /dev/null)
# A folder with SKILL.md or PROMPT.md is one prompt, with all its files.
git ls-tree -r --name-only "$AFTER" prompts/ >"$work/all"
git diff --name-only --no-renames "$before" "$AFTER" -- <paths> | awk -F / '
  NR == FNR { there[$0]; if (NF == 3 && /\/(SKILL|PROMPT)\.md$/) there[$1 "/" $2 "/"]; next }
  { file = $0; sub(/^"/, "") } # as git begins unusual names
  ($1 "/" $2 "/") in there { $0 = $1 "/" $2; if (!printed[$0]++) print; next }
  file ~ /\.md"?$/ && !/\/README\.md$/ && file in there { print file }
' "$work/all" - >"$work/files"

failed=0
say() {
  printf '%s: %s\n' "$file" "$1"
}
while IFS= read -r file; do
  name=${file#prompts/} name=${name%.md}
  case $name in
    [!\"]*/*) say "not published: move it to prompts/"; continue ;;
    '' | *[!a-z0-9-]*) say "name the file as its prompt: a-z, 0-9 and hyphens"; failed=1; continue ;;
  esac
  if [ "$(git rev-parse -q --verify "FETCH_HEAD:$file")" != "$(git rev-parse "$AFTER:$file")" ]; then
    say "a later push has changed it, whose job publishes it"
    continue
  fi
  changelog=$(git log -1 --format=%s "$AFTER" -- "$file")
  bump=$(git log -1 --format='%(trailers:key=Bump,valueonly)' "$AFTER" -- "$file" | sed -n 1p)
  # From git: a checkout may have other line ends.
  rm -rf "$work/prompt"
  git ls-tree -r "$AFTER" "$file" | while read -r mode _ blob path; do
    case $mode in 100*) ;; *) continue ;; esac # a link, or another repository
    path=$work/prompt/${path#"$file/"}
    mkdir -p "${path%/*}"
    git cat-file blob "$blob" >"$path"
    [ "$mode" = 100644 ] || chmod +x "$path"
  done
  case $file in *.md) path=$work/prompt/$file ;; *) path=$work/prompt ;; esac
  sh "$work/hub" push <options>--bump "${bump:-auto}" --path "$file" \
    -- "$HUB_OWNER/$name" "$path" "$changelog" </dev/null || failed=1
done <"$work/files"
exit "$failed"
"""  # noqa: E501


def github_step(settings: Settings, owner: str, repo: str) -> str:
    """Returns a step of a GitHub Actions job that publishes a repo with a stored token."""
    links = Links(settings.base_url)
    urls = " ".join(links.file(route) for route in ("client_release", "client_checksum"))
    # Each command ends the job if it fails.
    install = f"curl -fsS --remote-name-all {urls}\nsha256sum -c hub.sha256\nchmod +x hub\n"
    file = f"prompts/{repo}.md"
    # An old job may be run again.
    is_latest = (
        'git fetch --quiet --depth 1 origin "$GITHUB_REF"\n'
        f"git diff --quiet HEAD FETCH_HEAD -- {file} || exit 0  # a later push has changed it\n"
    )
    push = f'./hub push -- {owner}/{repo} {file} "$(git log -1 --format=%s)"'
    secret = "${{ secrets.HUB_TOKEN }}"
    script = indent(install + is_latest + push, "    ")
    return f"- name: Publish\n  env:\n    HUB_TOKEN: {secret}\n  run: |\n{script}"


def shell_line(owner: str, repo: str) -> str:
    """Returns the command that publishes a repo by hand, with a gap for the token."""
    return f'HUB_TOKEN=… ./hub push {owner}/{repo} prompts/{repo}.md "What has changed"'


def releases(publisher: TrustedPublisher) -> bool:
    """True if its workflow moves labels by hand, and publishes nothing."""
    return RELEASED in publisher.labels.split()


def workflow(base_url: str, kind: Kind, publisher: TrustedPublisher) -> str:
    """Returns the whole file, as YAML, whose jobs a trusted publisher trusts. For a publisher that
    releases with GitLab, it is the job to add to that file.

    Where any branch is trusted, it publishes from the default one.
    """
    branch, environment = publisher.branch, publisher.environment
    if releases(publisher):
        environment = environment or RELEASED
        script = _FETCH_CLIENT + _RELEASE
        template = _GITHUB_RELEASE if kind == "github" else _GITLAB_RELEASE
    else:
        exchange = "" if kind == "github" else _EXCHANGE
        script = _FETCH_CLIENT + exchange + _PUSH_FILES
        template = _GITHUB if kind == "github" else _GITLAB
    paths, folder = "prompts", "'prompts/**'"
    if publisher.repo:
        paths = f"prompts/{publisher.repo}.md prompts/{publisher.repo}"
        folder = f"'prompts/{publisher.repo}.md', 'prompts/{publisher.repo}/**'"
    labels = "".join(f"--label {label} " for label in publisher.labels.split())
    shell = {
        "release": BY_NAME["client_release"].url.rpartition("/")[0],
        "exchange": TRUSTED_URL,
        "options": f"{'--trusted ' if kind == 'github' else ''}{labels}",
        "paths": paths,
        "shown": ' --markdown >>"$GITHUB_STEP_SUMMARY"' if kind == "github" else "",
        "label": RELEASED,
    }
    default = "format('refs/heads/{0}', github.event.repository.default_branch)"
    environment_line = f"environment: {_scalar(environment)}\n" if environment else ""
    at, script_at = ("    ", 10) if kind == "github" else ("  ", 6)
    return _fill(
        template,
        url=_scalar(base_url),
        owner=_scalar(publisher.owner),
        folder=folder,
        checkout=CHECKOUT,
        pattern=_scalar(_as_pattern(branch or "main")),
        ref=_expression(f"refs/heads/{branch}") if branch else default,
        # In the quotes of such a rule no character is special, and a branch has no such quotes.
        branch=f'"{branch}"' if branch else "$CI_DEFAULT_BRANCH",
        environment=indent(environment_line, at),
        check=indent(_fill(_FETCH_CLIENT + _CHECK, **shell), " " * script_at),
        script=indent(_fill(script, **shell), " " * script_at),
    )


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
