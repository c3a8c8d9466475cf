"""The pages of a prompt and of its versions. Pure, as builder.render.pages.

They are most of a site, so their templates are filled as frames (builder.render.frames). Therefore
this module applies the filters and loops that templates elsewhere apply to records.
"""

from collections.abc import Iterable
from itertools import accumulate

from markupsafe import Markup

from builder.model.labels import Labels
from builder.model.plural import counted, human_size
from builder.model.records import ListedVersion, Message, Repo, Source, Variable, Version
from builder.model.withdrawn import BECAUSE
from builder.render import derive, linked_data
from builder.render.code_snippets import python_snippet, script_snippet
from builder.render.files_panels import Since, changes_since, link_files, panels
from builder.render.pages import SHORTENED_CHARS, Pages, shortened
from builder.render.skills import marketplace_name, plugin_name
from builder.text.abilities import Findings
from builder.text.hidden_chars import Marks, visible
from builder.text.one_line import one_line
from builder.text.prompts import mark_variables
from builder.text.sources import built_from
from builder.text.values import as_text

# The most messages and characters that a page shows as a conversation. The page also has the whole
# text.
MESSAGES_SHOWN_MAX = 200
MESSAGES_CHARS_MAX = 50_000
# A prompt with more lines or characters is folded.
LINES_MAX = 40
CHARS_MAX = 3_000


def version_page(
    pages: Pages,
    version: Version,
    labels: list[str],
    since: Since | None = None,
    found: Findings | None = None,
) -> bytes:
    """The page of a version that these labels name; ``since``: the changes since the previous
    version, if there is one; ``found``: what it can do, None if it is only a text.
    """
    owner, name, number = version.owner, version.name, version.version
    id = f"{owner}/{name}"
    marks = Marks()
    # The text comes first, because its hidden characters are counted before those of the changelog.
    text = _text(pages, version, number, marks)
    changelog = visible(version.changelog, marks)
    changes: Markup | str = ""
    if since:
        changes = changes_since(pages, since, version.previous, number, marks)
    return pages.fill(
        "version.html",
        owner=owner,
        name=name,
        version=number,
        previous=version.previous or "",
        title=version.title,
        line=_line(f"{version.title} {number}"),
        summary=_line(version.changelog or f"Version {number} of {id}."),
        changelog=changelog,
        published_at=version.published_at,
        day=version.published_at[:10],
        publisher=version.publisher,
        source=built_from(version.source),
        run_url=_run_url(version.source),
        labels=_label_marks(pages, labels),
        text=text,
        use=_use(pages, version, f"{id}@{number}", f"{id} --version {number}"),
        files=panels(pages, version, number, found, marks),
        changes=changes,
        diff_url=version.diff_url or "",
    ).encode()


def repo_page(
    pages: Pages,
    repo: Repo,
    about: str,
    entries: list[ListedVersion],
    labels: Labels,
    found: Findings | None = None,
) -> bytes:
    """The page of a prompt; ``entries`` are all its versions, including withdrawn ones, oldest
    first; ``found`` as in ``version_page``.
    """
    id = f"{repo.owner}/{repo.name}"
    marks = Marks()
    text = _text(pages, repo, repo.latest_version, marks)
    newest_first = entries[: -derive.VERSIONS_WITH_PROMPT_MAX - 1 : -1]
    pinned_url = next(one.raw_url for one in reversed(entries) if not one.withdrawn)
    labelled = labels.by_version()
    rows = [_version_row(pages, repo, one, labelled, marks) for one in newest_first]
    return pages.fill(
        "repo.html",
        owner=repo.owner,
        name=repo.name,
        version=repo.latest_version,
        title=repo.title,
        about=about,
        line=_line(repo.title),
        summary=_line(about),
        data=linked_data.data_block(linked_data.creative_work(repo, pages.links)),
        updated_at=repo.updated_at,
        day=repo.updated_at[:10],
        versions_count=counted(repo.versions_count, "version"),
        pulls="" if repo.pulls is None else counted(repo.pulls, "pull"),
        license=repo.license or "",
        tags=pages.macro("macros.html", "tag_links")(repo.tags),
        text=text,
        use=_use(pages, repo, id, id, pinned_url, repo.license or ""),
        files=panels(pages, repo, repo.latest_version, found, marks),
        versions=_lines(rows),
        all_versions=counted(len(entries), "version") if len(entries) > 1 else "",
        labels=_label_panel(pages, repo, entries, labels, marks),
    ).encode()


def versions_page(pages: Pages, repo: Repo, entries: list[ListedVersion], labels: Labels) -> bytes:
    """The page that lists the versions of a prompt; ``entries`` as in ``repo_page``."""
    marks = Marks()
    newest_first = entries[: -derive.VERSIONS_SHOWN_MAX - 1 : -1]
    readable = [one.version for one in reversed(entries) if not one.withdrawn][:2]
    compared_from = readable[1] if readable[1:] else ""
    labelled = labels.by_version()
    rows = [_versions_row(pages, repo, one, labelled, compared_from, marks) for one in newest_first]
    is_whole = len(newest_first) == len(entries)
    return pages.fill(
        "versions.html",
        owner=repo.owner,
        name=repo.name,
        title=repo.title,
        created_at=repo.created_at,
        day=repo.created_at[:10],
        versions_count=counted(len(entries), "version"),
        listed_count="" if is_whole else f"{len(newest_first):,}",
        versions=_lines(rows),
    ).encode()


def compare_page(pages: Pages, owner: str, name: str) -> bytes:
    """The page that compares versions of a prompt; only the names differ between prompts."""
    return pages.fill("compare.html", owner=owner, name=name).encode()


def _line(text: str) -> str:
    return one_line(text, SHORTENED_CHARS)


def _lines(parts: Iterable[Markup], between: str = "\n") -> Markup:
    return Markup(between.join(parts))


# The text, and the form that fills in its variables


def _text(pages: Pages, one: Repo | Version, number: str, marks: Marks) -> Markup:
    front = one.content[: len(one.content) - len(one.body)]
    body = one.body.lstrip("\r\n") if front else one.body
    shown_front = visible(front, marks)
    shown_body = link_files(pages, one, number, _marked(body, marks))
    messages = _shown_messages(one.messages or [])
    shown_messages = [
        pages.fill(
            "message.html",
            role=message.role,
            title=message.role.capitalize(),
            index=str(index),
            number=str(index + 1),
            text=_marked(message.content, marks),
        )
        for index, message in enumerate(messages)
    ]
    left = len(one.messages or []) - len(messages)
    at = {"owner": one.owner, "name": one.name, "version": number}
    return pages.fill(
        "prompt_text.html",
        name=one.name,
        raw=pages.file_url("version_raw", **at),
        skill=pages.file_url("version_skill", **at),
        record=pages.file_url("version", **at),
        size=human_size(one.size),
        is_long=body.count("\n") >= LINES_MAX or len(body) > CHARS_MAX,
        has_raw=bool(one.variables or front or "\\{{" in body),
        is_cut=marks.is_cut,
        front=shown_front,
        skip=str(_utf16_length(front)),
        body=shown_body,
        messages=_lines(shown_messages),
        messages_left=counted(left, "more message is", "more messages are") if left else "",
        variables_count=str(len(one.variables)),
        variables=_lines(
            (
                _variable(pages, variable, f"fill-{number}", marks)
                for number, variable in enumerate(one.variables, 1)
            ),
            "\n\n",
        ),
    )


def _variable(pages: Pages, variable: Variable, id: str, marks: Marks) -> Markup:
    default = "" if variable.default is None else as_text(variable.default)
    options = one_of = Markup()
    if variable.enum or variable.type == "boolean":
        values = [*map(as_text, variable.enum or (True, False))]
        options = Markup(pages.render("options.html", values=values, default=default).decode())
        if variable.enum:
            one_of = Markup(", ").join(Markup('<code dir="auto">%s</code>') % one for one in values)
    return pages.fill(
        "variable.html",
        id=id,
        name=variable.name,
        type=variable.type if variable.type != "string" else "",
        is_required=bool(variable.required),
        is_number=variable.type in ("integer", "number"),
        description=visible(variable.description, marks),
        has_default=variable.default is not None,
        default=default,
        shown_default=shortened(default),
        example="" if variable.example is None else shortened(as_text(variable.example)),
        one_of=one_of,
        options=options,
    )


def _shown_messages(messages: list[Message]) -> list[Message]:
    """The first messages, within the limits of a page."""
    lengths = accumulate(len(message.content) for message in messages[:MESSAGES_SHOWN_MAX])
    return messages[: sum(length <= MESSAGES_CHARS_MAX for length in lengths)]


def _marked(text: str, marks: Marks) -> Markup:
    r"""A prompt with its variables marked; ``\{{`` is shown as it is."""
    return Markup(mark_variables(str(visible(text, marks)), _mark_variable))


def _mark_variable(name: str, placeholder: str) -> str:
    return f'<mark class="variable" data-name="{name}">{placeholder}</mark>'


def _utf16_length(text: str) -> int:
    """The length as JavaScript counts it."""
    return len(text.encode("utf-16-le")) // 2


# The panels beside the text


def _use(
    pages: Pages, one: Repo | Version, id: str, pull: str, pinned_url: str = "", license: str = ""
) -> Markup:
    """The panel on how to load the text that ``id`` names. ``pull``: the arguments of
    `hub pull`.
    """
    base_url = pages.links.base_url
    page = pages.links.page("repo_page", owner=one.owner, name=one.name)
    plugin = label = ""
    if isinstance(one, Repo):
        plugin = f"{plugin_name(one.name)}@{marketplace_name(one.owner)}"
        label = next(iter(one.labels or ()), "")
    parameters = [
        pages.fill("parameter.html", name=name, value=as_text(value))
        for name, value in one.parameters.items()
    ]
    return pages.fill(
        "use.html",
        id=id,
        pull=pull,
        version=one.latest_version if isinstance(one, Repo) else one.version,
        raw_url=one.raw_url,
        skill_url=page if plugin else f"{page}/{one.version}",
        label_url=f"{page}/labels/{label}" if label else "",
        plugin=plugin,
        market_url=pages.links.page("marketplace", owner=one.owner),
        python=python_snippet(base_url, id, one),
        script=script_snippet(base_url, id, one),
        pinned_url=pinned_url,
        license=license,
        size=human_size(one.size),
        files_count=counted(len(one.files), "file") if one.files else "",
        sha256=one.sha256,
        parameters=_lines(parameters),
    )


def _version_row(
    pages: Pages, repo: Repo, one: ListedVersion, labelled: dict[str, list[str]], marks: Marks
) -> Markup:
    """A version on the page of its prompt."""
    return pages.fill(
        "version_row.html",
        **_row_fields(repo, one),
        note=visible(one.withdrawn.note, marks) if one.withdrawn else "",
        labels=_label_marks(pages, labelled.get(one.version, ()), after=" "),
        changelog=visible(one.changelog, marks),
    )


def _row_fields(repo: Repo, one: ListedVersion) -> dict[str, str | bool]:
    return {
        "owner": repo.owner,
        "name": repo.name,
        "version": one.version,
        "because": BECAUSE[one.withdrawn.reason] if one.withdrawn else "",
        "has_changes": bool(one.diff_url),
        "published_at": one.published_at,
        "day": one.published_at[:10],
    }


def _versions_row(
    pages: Pages,
    repo: Repo,
    one: ListedVersion,
    labelled: dict[str, list[str]],
    compared_from: str,
    marks: Marks,
) -> Markup:
    """A version in the list of all versions."""
    first_line = one.changelog.strip().partition("\n")[0].rstrip()
    return pages.fill(
        "versions_row.html",
        **_row_fields(repo, one),
        is_from=one.version == compared_from,
        is_to=one.version == repo.latest_version,
        note=visible(shortened(one.withdrawn.note), marks) if one.withdrawn else "",
        labels=_label_marks(pages, labelled.get(one.version, ()), before=" "),
        changelog=visible(shortened(first_line), marks),
        publisher=one.publisher,
        source=built_from(one.source),
        run_url=_run_url(one.source),
        size=human_size(one.size),
    )


def _run_url(source: Source | None) -> str:
    return (source and source.run_url) or ""


def _label_marks(
    pages: Pages, labels: Iterable[str], *, before: str = "", after: str = ""
) -> Markup:
    mark = pages.macro("labels.html", "label_mark")
    return Markup("".join(f"{before}{mark(label)}{after}" for label in labels))


def _label_panel(
    pages: Pages, repo: Repo, entries: list[ListedVersion], labels: Labels, marks: Marks
) -> Markup | str:
    """The labels of a prompt, their versions and moves; empty if it never had a label."""
    histories = derive.label_histories(labels)
    if not histories:
        return ""
    carried = derive.carried_by_last(histories, entries)
    more = len(labels.history) - len(histories)
    panel = pages.macro("labels.html", "label_panel")
    return panel(repo, histories, carried, more, marks)
