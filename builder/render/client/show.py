"""Prints the lists of the shell client: `versions` and `search`. The build inserts this into the
client, after ``search.py`` if a catalogue is searched. It uses only Python 3.7.
"""

import json
import os
import sys
import unicodedata

kind, path, query, tags, page = sys.argv[1:]
sys.stdout.reconfigure(errors="replace")
sys.stderr.reconfigure(errors="replace")


def stop(status, message):
    sys.stderr.write(f"hub: {message}\n")
    sys.exit(status)


def clean(value):
    """One line of text without characters that control a terminal."""
    text = " ".join(str("" if value is None else value).split())
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))


def matches(lines):
    """The result of a query in a catalogue, as from the API, but without searching texts."""
    wanted = {tag for tag in tags.split(",") if tag}
    repos = [json.loads(line) for line in lines]
    about = {}
    if not query:
        found = [repo for repo in repos if wanted <= set(repo["tags"])]
    elif len(query) > RULES["QUERY_CHARS_MAX"]:
        stop(5, f"the query is too long: it may have {RULES['QUERY_CHARS_MAX']} characters")
    elif not query_words(query):
        stop(5, "the query has no word. Add a letter or digit")
    else:
        found, about = Catalogue(repos).search(query, wanted)
    size = RULES["PAGE_SIZE"]
    pages = max(1, -(-len(found) // size))
    if int(page) > pages:
        stop(3, f"no page {page}: the last page is {pages}")
    start = (int(page) - 1) * size
    meta = {"page": page, "pages": pages, "total": len(found), **about}
    return {"data": found[start : start + size], "meta": meta}


def answers(meta):
    """True if a list answers the request. A plain file host ignores the query."""
    return (
        meta["page"] == int(page)
        and (meta["q"] or "") == query
        and set((meta["tag"] or "").split(",")) == set(tags.split(","))
    )


def notes(meta):
    """Notes on how a query was understood."""
    for one in meta.get("corrected") or ():
        yield f"no prompt has '{clean(one['from'])}': searched for '{clean(one['to'])}' instead"
    if meta.get("match") == "some" and meta["total"]:
        yield "no prompt has all of these words. These are the closest"


def note_of(entry):
    """The note on a version: its changelog, or its withdrawal."""
    withdrawn = entry.get("withdrawn")
    return (
        f"Withdrawn ({withdrawn['reason']}): {withdrawn['note']}"
        if withdrawn
        else entry["changelog"]
    )


def built_from(entry):
    """The CI job that published a version: its project, commit and run. Empty if none did."""
    source = entry.get("source")
    if not source:
        return ""
    commit = "@" + source["commit"][:7] if source["commit"] else ""
    kind, _, number = (source["run_url"] or "").rpartition("/")
    run = ", {} {}".format("job" if kind.endswith("/jobs") else "run", number) if number else ""
    return source["project"] + commit + run


def row(entry):
    if kind == "versions":
        return [
            entry["version"],
            entry["published_at"],
            int(entry["size"]),
            entry["sha256"],
            note_of(entry),
            built_from(entry),
        ]
    return [
        f"{entry['owner']}/{entry['name']}",
        entry["latest_version"],
        entry["title"],
        ",".join(entry["tags"]),
        entry["description"],
    ]


def show(rows):
    """Prints rows for a reader at a terminal."""
    for first, second, third, *others in rows:
        if kind == "versions":
            print(f"{first}  {second[:10]}  {int(third):,} bytes")
            texts = others[1:]
        else:
            print(first, second, sep="  ")
            texts = [third, others[-1]]
        for text in filter(None, texts):
            print("   ", text)


try:
    with open(path, encoding="utf-8") as file:
        answer = (matches if kind == "matches" else json.load)(file)
    rows = [[clean(cell) for cell in row(entry)] for entry in answer["data"]]
    meta = answer["meta"]
    number, pages, total = int(meta["page"]), int(meta["pages"]), int(meta["total"])
    fits = kind != "repos" or answers(meta)
    said = [*notes(meta)]
except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
    if kind == "repos":
        sys.exit(9)
    stop(6, "the answer is not from a hub. Check HUB_URL")
if not fits:
    sys.exit(9)
try:
    if sys.stdout.isatty():
        show(rows)
    else:
        for cells in rows:
            print(*cells, sep="\t")
    sys.stdout.flush()
except OSError as error:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes the rest at exit.
    if not isinstance(error, BrokenPipeError):
        stop(1, f"cannot write: {error.strerror}")
sys.stderr.writelines(f"hub: {one}\n" for one in said)
if not rows:
    sys.stderr.write("hub: no prompts found\n")
elif pages > 1:
    sys.stderr.write(f"hub: page {number} of {pages}, {total:,} in all\n")
