"""The first part of a build: makes changes visible, at a cost that does not grow with the
catalogue. It writes repos' own files, their owners, and the first pages of lists.
"""

from builder import emit
from builder.emit.history import StalePage, Task
from builder.model.errors import ContentError, Faults
from builder.pipeline.changes import Changes
from builder.pipeline.context import Context, newest
from builder.store.state import State
from builder.store.state.left import files_left, is_urgent
from builder.store.state.repos import RepoRow
from builder.store.state.work import Work
from builder.store.withdrawn_files import read_parts


def make_visible(context: Context, found: Changes) -> None:
    """Write what has changed, and note the remaining work. Raises ContentError."""
    state = context.state
    begun = _note_begun(context, found)
    _write_withdrawn(context, found.withdrawn)
    archives = _write_repos(context, found.tasks)
    _forget_repos(state, found.removed)
    undone = state.todo.names(Work.REPO)
    for owner, name in (repo_id.split("/") for repo_id in begun):
        if f"{owner}/{name}" not in undone:
            _note_left(context, owner, name)
    if context.is_fresh:
        state.add_indexes()
        _note_lists(state, [tag for tag, _ in state.tags.counts()])
        for work in (Work.TAGS, Work.WITHDRAWN, Work.INDEX):
            state.todo.add(work)
    tags = state.todo.names(Work.FIRST_PAGES)
    pages = [
        page for tag in sorted(tags) for page in emit.catalogue.find_stale_first(state, tag or None)
    ]
    state.checkpoint()
    if state.todo.has(Work.WITHDRAWN):
        emit.catalogue.write_withdrawn_lines(state, context.site)
        state.todo.done(Work.WITHDRAWN)
    _write_owners(context, sorted(state.todo.names(Work.OWNER)))
    for owner in {task.owner for task in found.withdrawn.values()}:
        if state.owners.mark(owner) is None:
            # The owner had only withdrawn prompts, and the profile showed them.
            context.site.remove(*emit.catalogue.owner_files(owner))
    context.site.remove(*archives)  # The marketplaces do not name them any more.
    if context.is_fresh or state.todo.has(Work.FIXED):
        emit.fixed.write_fixed_files(context.settings, context.site)
        state.todo.done(Work.FIXED)
    if tags:
        _write_first_pages(context, pages)
    if tags or state.todo.has(Work.HOME):
        emit.catalogue.write_home(context.settings, state, context.site)
    state.todo.done(Work.HOME)
    state.todo.done(Work.FIRST_PAGES, tags)
    state.checkpoint()


def _note_begun(context: Context, found: Changes) -> set[str]:
    """Commit the list of repos to write, before the first file is touched. Returns the ids of those
    whose last build did not end.
    """
    state = context.state
    if found.home:
        state.put_home(*found.home)
        state.todo.add(Work.HOME)
    if found.tasks and state.pulls.shown() != newest(context.pulls):
        state.pulls.begin(*newest(context.pulls))
    repos = {*found.tasks, *found.withdrawn, *found.removed}
    state.todo.add(Work.OWNER, found.owners | {repo_id.split("/")[0] for repo_id in repos})
    begun = state.todo.names(Work.REPO)
    if not context.is_fresh:
        state.todo.add(Work.REPO, repos)
    state.checkpoint()
    return begun


def _write_withdrawn(context: Context, tasks: dict[str, Task]) -> None:
    """Remove repos without readable versions from the site, and write the reason."""
    state, faults = context.state, Faults()
    for repo_id, task in tasks.items():
        with faults:
            parts = read_parts(context.settings.content, repo_id, task.withdrawn)
            at = {"owner": task.owner, "name": task.name}
            context.site.put(at, emit.files.of_withdrawn_repo(context.settings, parts, **at))
            context.site.remove(
                *(
                    file
                    for file, match in files_left(context.site, **at)
                    if not match.route.name.startswith("withdrawn_repo")
                )
            )
            context.rendered += 1
            _forget_repo(state, repo_id, [repo_id])
            state.withdrawn.put(repo_id, task.mark, len(parts.versions), parts.lines(**at))
            _note_withdrawn(state)
            state.todo.done(Work.REPO, [repo_id])
    context.note_faults(faults)


def _write_repos(context: Context, tasks: dict[str, Task]) -> list[str]:
    """Write repos; returns archives of skills that only the old files of their owners name."""
    state, archives = context.state, []
    if not tasks:
        return archives
    try:
        rendered = emit.pool.render_repos([*tasks.values()], context.settings, context.site)
        for done, (row, objects) in enumerate(rendered):
            context.request.progress("Writing prompts", done, len(tasks))
            context.rendered += 1
            old = None if context.is_fresh else tasks[row.id].old or state.repos.get(row.id)
            state.repos.put(row, old)
            if context.is_fresh:
                state.files.flush()
                continue  # All lists will be written.
            state.withdrawn.remove(row.id)
            state.todo.add(Work.EXAMPLES)
            if not old or old.search_digest != row.search_digest:
                state.todo.add(Work.INDEX_REPO, [row.id])
            if not old or _place(old) != _place(row):
                _note_change(state, old, row)
            archives += _drop_lost(context, row.id, objects)
            state.todo.done(Work.REPO, [row.id])
    except ContentError as error:
        context.note_faults(error.faults)
    return archives


def _forget_repos(state: State, removed: list[str]) -> None:
    for repo_id in removed:
        _forget_repo(state, repo_id, [])
        if state.withdrawn.remove(repo_id):
            _note_withdrawn(state)
    state.todo.done(Work.REPO, removed)


def _forget_repo(state: State, repo_id: str, kept: list[str]) -> None:
    """Remove a repo from lists. The files of its objects become orphans, except those ``kept``."""
    for lost in state.files.replace(repo_id, kept).values():
        state.orphans.add(lost)
    old = state.repos.get(repo_id)
    if old:
        state.repos.remove(old)
        state.todo.add(Work.INDEX_REPO, [repo_id])
        _note_change(state, old, None)


def _drop_lost(context: Context, repo_id: str, objects: list[str]) -> list[str]:
    """Drop the files that the objects of a repo no longer have: those of labels and refs at once,
    because a removed label must not be found after its removal. Returns archives of skills, which
    their owners' old files name.
    """
    archives = []
    for object_id, lost in context.state.files.replace(repo_id, objects).items():
        what = object_id.partition(" ")[2].partition(" ")[0]
        if what in ("label", "ref"):
            context.site.remove(*lost)
            continue
        context.state.orphans.add(lost)
        if what == "archive":
            # A version that has got files has an archive of its own.
            kept = context.state.files.of(object_id.replace(" archive ", " version "))
            archives += {*lost} - {*kept}
    return archives


def _note_left(context: Context, owner: str, name: str) -> None:
    """Find the files of a killed build that the repo no longer has."""
    wanted = context.state.files.of_repo(f"{owner}/{name}")
    for file, match in files_left(context.site, owner, name):
        if file not in wanted:
            if is_urgent(match):
                context.site.remove(file)
            context.state.orphans.add([file])


def _place(row: RepoRow) -> tuple[object, ...]:
    """The content of a repo in lists, its positions, and the names of its files."""
    return row.digest, row.line, row.trend, row.names, row.gone


def _note_change(state: State, old: RepoRow | None, new: RepoRow | None) -> None:
    old_tags = old.tags.split() if old else []
    new_tags = new.tags.split() if new else []
    _note_lists(state, [*old_tags, *new_tags])
    if old_tags != new_tags:
        state.todo.add(Work.TAGS)
    if (old.gone if old else b"") != (new.gone if new else b""):
        state.todo.add(Work.WITHDRAWN)
    state.passes.note_behind()


def _note_withdrawn(state: State) -> None:
    """Note that a repo without readable versions has changed; its versions count for the serial."""
    state.todo.add(Work.WITHDRAWN)
    state.todo.add(Work.CATALOGUE)
    state.passes.note_behind()


def _note_lists(state: State, tags: list[str]) -> None:
    """Note that the lists of these tags and of all repos have changed."""
    for kind in (Work.FIRST_PAGES, Work.LIST):
        state.todo.add(kind, ["", *tags])
    state.todo.add(Work.CATALOGUE)


def _write_owners(context: Context, owners: list[str]) -> None:
    faults = Faults()
    for owner in owners:
        with faults:
            emit.catalogue.write_owner(owner, context.settings, context.state, context.site)
            context.state.todo.done(Work.OWNER, [owner])
    context.note_faults(faults)


def _write_first_pages(context: Context, pages: list[StalePage]) -> None:
    place = context.settings, context.state, context.site
    if context.state.todo.has(Work.TAGS):
        emit.catalogue.write_tags(*place)
        context.state.todo.done(Work.TAGS)
    for page in pages:
        emit.catalogue.write_page(page, *place)
    emit.catalogue.write_feed(*place)
