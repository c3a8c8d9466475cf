"""The pages of a prompt and of its versions. Pure, as builder.render.pages.

They are most of a site, so their templates are filled as frames (``Frames``). Therefore
this module applies the filters and loops that templates elsewhere apply to records.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from builder.model.answers import LabelMove, ListedVersion, Repo, Version
from builder.model.labels import Labels
from builder.model.plural import counted, day, human_size
from builder.model.records import Source
from builder.model.service_urls import COMPARE_URL
from builder.model.withdrawn import BECAUSE
from builder.render.changes_table import changes_table
from builder.render.chart import PRODUCTION, chart, rank, spark
from builder.render.derive import VERSIONS_WITH_PROMPT_MAX, Entries
from builder.render.pages import Pages, dated, hashed, line, lines, shortened
from builder.render.prompt_text import Shown
from builder.render.skills import marketplace_name, plugin_name
from builder.text.abilities import FindingChange
from builder.text.code_snippets import python_snippet, script_snippet
from builder.text.file_diff import FileChange
from builder.text.hidden_chars import Marks, visible
from builder.text.hunks import Readable, counts, file_hunks
from builder.text.interface import Change
from builder.text.readable import isolated
from builder.text.summary import has_own_description
from builder.text.values import as_text

# The most moves of labels in the table below their picture.
MOVES_MAX = 60
# A phone shows the first versions of the list, as its style sheet says; others are folded.
PHONE_MAX = 10
# A list of more model settings is folded.
PARAMETERS_MAX = 5


class Since(NamedTuple):
    """The changes since the previous version: for callers, of the text, files, and findings as
    ``abilities.compare`` yields them, or None if both versions are only texts. ``metadata``: as
    ``metadata_changes`` returns it, if the text is unchanged.
    """

    callers: Sequence[Change]
    text: Readable
    files: Sequence[FileChange]
    found: Sequence[FindingChange] | None
    metadata: str = ""


def version_page(
    pages: Pages,
    version: Version,
    labels: list[str],
    text: Shown,
    since: Since | None = None,
) -> bytes:
    """The page of a version that these labels name; ``since``: the changes since the previous
    version, if there is one.
    """
    owner, name, number = version.owner, version.name, version.version
    # The text comes first, because its hidden characters are counted before those of the changelog.
    marks = Marks(text.marks.left)
    start = shortened(version.changelog)
    lead = visible(start, marks)
    changelog = visible(version.changelog, marks) if start != version.changelog else ""
    counted_lines, changes = changes_since(pages, since, version, marks) if since else ("", "")
    return pages.fill_page(
        "version.html",
        **_fields(version, number, text, version.published_at),
        previous=version.previous or "",
        summary=line(version.changelog or f"Version {number} of {owner}/{name}."),
        lead=lead,
        changelog=changelog,
        glance=(glance := _glance(pages, labels)),
        use=_use(pages, version, number),
        facts=_facts(pages, version, version, glance),
        can_do=_can_do(pages, text, marks),
        changes=changes,
        counted_lines=counted_lines,
        diff_url=version.diff_url or "",
    )


def _fields(one: Repo | Version, number: str, text: Shown, time: str) -> dict[str, str]:
    """The parts of a version's page that its prompt's page also has."""
    return {
        "owner": one.owner,
        "name": one.name,
        "version": number,
        "title": one.title,
        "line": line(one.title),
        "day": day(time),
        "form": text.form,
        "text": text.text,
        "outline": text.outline,
        "files": text.panel,
    }


def changes_since(pages: Pages, since: Since, version: Version, marks: Marks) -> tuple[str, Markup]:
    """The number of lines changed since the previous version, and the changes as HTML."""
    previous, number = version.previous, version.version
    callers = pages.macro("callers.html", "for_applications")
    parts = [callers(since.callers, previous, number, marks)]
    has_files = since.found is not None
    what = "The text and files are" if has_files and not since.files else "The text is"
    same = f"{what} unchanged. {since.metadata}".strip()
    if since.found:
        can_do = pages.macro("can_do.html", "can_do_changes")
        parts.append(can_do(since.found, marks, has_note=False))
    parts.append(changes_table(since.text.rows, previous, number, marks, same))
    hunks = file_hunks(since.files)
    if has_files:  # Few versions have them, so their template is a macro.
        of_files = pages.macro("files.html", "file_changes")
        pairs = [*zip(since.files, hunks, strict=True)]
        repo = version.owner, version.name
        parts.append(of_files(pairs, previous, number, marks, repo=repo))
    return counts(since.text, *hunks), Markup("".join(parts))


def repo_page(
    pages: Pages,
    repo: Repo,
    about: str,
    entries: Entries,
    labels: Labels,
    text: Shown,
    by_day: Sequence[tuple[int, int]] = (),
) -> bytes:
    """The page of a prompt; ``by_day`` as in ``PullCounts``."""
    labelled = labels.by_version()
    newest = entries.newest[:VERSIONS_WITH_PROMPT_MAX]
    rows = [_version_row(pages, repo, one, labelled) for one in newest]
    return pages.fill_page(
        "repo.html",
        **_fields(repo, repo.latest_version, text, repo.updated_at),
        about=isolated(about) if has_own_description(repo.description, repo.body) else "",
        summary=line(about),
        pulls=counted(repo.pulls, "pull") if repo.pulls else "",
        tags=pages.macro("macros.html", "tag_links")(repo.tags),
        glance=(glance := _glance(pages, labelled.get(repo.latest_version, ()))),
        use=_use(pages, repo, repo.latest_version, entries.readable[0].raw_url, _followed(labels)),
        facts=_facts(
            pages,
            repo,
            entries.readable[0],
            glance,
            _elsewhere(pages, repo, labels),
            f"{repo.pulls:,}" if repo.pulls else "",
            spark(by_day),
        ),
        can_do=_can_do(pages, text, Marks(text.marks.left)),
        versions=lines(rows),
        older=f"{entries.count - len(rows):,}" if entries.count > len(rows) else "",
        has_others=entries.count > 1,
    )


def versions_page(pages: Pages, repo: Repo, entries: Entries, labels: Labels) -> bytes:
    """The page that lists the versions of a prompt."""
    marks = Marks()
    readable = [one.version for one in entries.newest if not one.withdrawn]
    labelled = labels.by_version()
    rows = [_versions_row(pages, repo, one, labelled, marks) for one in entries.newest]
    is_whole = len(rows) == entries.count
    moves = labels.newest_moves(MOVES_MAX)
    current = [labels.current[label] for label in _by_weight(labels.current)]
    options = pages.macro("versions_parts.html", "options")
    return pages.fill_page(
        "versions.html",
        owner=repo.owner,
        name=repo.name,
        title=repo.title,
        created=dated(repo.created_at),
        versions_count=f"{entries.count:,}",
        withdrawn_count=f"{entries.gone:,}" if entries.gone else "",
        listed_count="" if is_whole else f"{len(rows):,}",
        picture=chart(entries.newest[::-1], labels, entries.count),
        moves=pages.macro("versions_parts.html", "moves_table")(moves, marks),
        labels=pages.macro("versions_parts.html", "label_facts")(current),
        latest=repo.latest_version,
        has_choice=len(readable) > 1,
        from_options=options(readable, readable[min(1, len(readable) - 1)]),
        to_options=options(readable, readable[0]),
        versions=lines(rows),
        folded=str(max(len(rows) - PHONE_MAX, 0) or ""),
    )


def compare_page(pages: Pages, owner: str, name: str) -> bytes:
    """The page that compares versions of a prompt; only the names differ between prompts."""
    service = pages.root + COMPARE_URL.format(owner=owner, name=name)
    return pages.fill_page("compare.html", owner=owner, name=name, service=service)


def _can_do(pages: Pages, text: Shown, marks: Marks) -> Markup | str:
    if text.found is None:
        return ""
    return pages.macro("can_do.html", "can_do")(text.found, marks, text.files.places)


# What one does with the text, and the facts of a version


def _followed(labels: Labels) -> LabelMove | None:
    """The label that commands name: ``production``, else the one moved last."""
    moves = labels.current.values()
    return max(moves, key=lambda move: (move.label == PRODUCTION, move.moved_at), default=None)


def _use(
    pages: Pages,
    one: Repo | Version,
    version: str,
    pinned_url: str = "",
    followed: LabelMove | None = None,
) -> Markup:
    """The bar with the ways to use a version; or a prompt, by a label if it has any, whose latest
    ``version`` keeps the address ``pinned_url``.
    """
    label = followed.label if followed else ""
    ref = label or ("" if pinned_url else version)
    id = f"{one.owner}/{one.name}{ref and '@'}{ref}"
    at = {"owner": one.owner, "name": one.name, "label": label}
    plugin = f"{plugin_name(one.name)}@{marketplace_name(one.owner)}" if pinned_url else ""
    base_url = pages.links.base_url
    return pages.fill(
        "use.html",
        id=id,
        owner=one.owner,
        name=one.name,
        version=version,
        raw_url=pages.links.file("label_raw", **at) if label else one.raw_url,
        label=label,
        named=(followed and followed.version) or "",
        folder_files=f"{len(one.files) + 1} files" if one.files else "",
        plugin=plugin,
        # Both have quotation marks. Without them, most values need no escaping.
        python=escape(python_snippet(base_url, id, one)),
        script=escape(script_snippet(base_url, id, one)),
        pinned_url=pinned_url,
        has_variables=bool(one.variables),
        # The other button copies the text without front matter, filled in.
        has_raw=bool(one.variables) or one.body != one.content or "\\{{" in one.body,
    )


def _facts(
    pages: Pages,
    text: Repo | Version,
    publication: ListedVersion | Version,
    labels: Markup,
    elsewhere: Markup | str = "",
    pulls: str = "",
    reads: Markup | str = "",
) -> Markup:
    """The facts of a version: of its ``text``, and of its ``publication``. ``elsewhere``: labels
    of other versions; ``reads``: the picture of its pulls.
    """
    parameters = [
        pages.fill("parameter.html", name=name, value=as_text(value))
        for name, value in text.parameters.items()
    ]
    return pages.fill(
        "facts.html",
        version=publication.version,
        labels=labels,
        elsewhere=elsewhere,
        published=dated(publication.published_at),
        publisher=publication.publisher,
        source=_source_link(pages, publication.source),
        sha256=hashed(text.sha256),
        size=human_size(text.size + sum(file.size for file in text.files or ())),
        files_count=counted(len(text.files) + 1, "file") if text.files else "",
        license=text.license or "",
        pulls=pulls,
        reads=reads,
        parameters=lines(parameters),
        are_many=len(parameters) > PARAMETERS_MAX,
    )


def _version_row(
    pages: Pages, repo: Repo, one: ListedVersion, labelled: dict[str, list[str]]
) -> Markup:
    """A version in the margin of its prompt's page."""
    is_latest = one.version == repo.latest_version
    return pages.fill(
        "version_row.html",
        **_row_fields(repo, one),
        is_latest=is_latest,
        # The facts above have those of the latest version.
        labels="" if is_latest else _glance(pages, labelled.get(one.version, ())),
    )


def _row_fields(repo: Repo, one: ListedVersion) -> dict[str, str | bool]:
    return {
        "owner": repo.owner,
        "name": repo.name,
        "version": one.version,
        "because": BECAUSE[one.withdrawn.reason] if one.withdrawn else "",
        "withdrawn": dated(one.withdrawn.at) if one.withdrawn else "",
        "has_changes": bool(one.diff_url),
        "published": dated(one.published_at),
    }


def _versions_row(
    pages: Pages,
    repo: Repo,
    one: ListedVersion,
    labelled: dict[str, list[str]],
    marks: Marks,
) -> Markup:
    """A version in the list of all versions."""
    first_line = one.changelog.strip().partition("\n")[0].rstrip()
    return pages.fill(
        "versions_row.html",
        **_row_fields(repo, one),
        note=visible(shortened(one.withdrawn.note), marks) if one.withdrawn else "",
        labels=_label_marks(pages, labelled.get(one.version, ())),
        changelog=visible(shortened(first_line), marks),
        # Most are the owner.
        publisher=one.publisher if one.publisher != repo.owner else "",
        source=_source_link(pages, one.source),
        size=human_size(one.size),
    )


def _source_link(pages: Pages, source: Source | None) -> Markup | str:
    return pages.macro("labels.html", "source_link")(source) if source else ""


def _label_marks(pages: Pages, labels: Iterable[str]) -> Markup:
    """The labels, each after a space."""
    mark = pages.macro("labels.html", "label_mark")
    return Markup("".join(f" {mark(label)}" for label in _by_weight(labels)))


def _glance(pages: Pages, labels: Sequence[str]) -> Markup:
    """The labels of a version in a line: two, or the first and the number of others."""
    if len(labels) < 3:
        return _label_marks(pages, labels)
    return _label_marks(pages, _by_weight(labels)[:1]) + " " + _more_labels(len(labels) - 1)


def _more_labels(count: int) -> Markup:
    return Markup(f'+{count}<span class="unseen"> labels</span>')


def _by_weight(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=rank)


def _elsewhere(pages: Pages, repo: Repo, labels: Labels) -> Markup:
    """The labels that name other versions than the latest, in a line: the first with its version,
    and the number of others.
    """
    found = {label: v for label, v in labels.versions().items() if v != repo.latest_version}
    if not found:
        return Markup()
    first, *others = _by_weight(found)
    return pages.fill(
        "elsewhere.html",
        owner=repo.owner,
        name=repo.name,
        label=pages.macro("labels.html", "label_mark")(first),
        version=found[first],
        others=_more_labels(len(others)) if others else "",
    )
