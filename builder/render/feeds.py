"""Atom feeds (RFC 4287): the newest repos of the catalogue and of an owner, a repo's versions.

Pure. A feed's time is that of its newest entry, so no clock is needed. A feed's id is its own
URL, and an entry's id is the URL of its page: both are unique and permanent.

Also the files for crawlers: ``robots.txt`` and ``llms.txt``.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from builder.model import answers
from builder.model.answers import RepoSummary
from builder.model.labels import NO_LABELS, Labels
from builder.model.links import Links
from builder.model.service_urls import ACCOUNT_URL
from builder.model.settings import Settings
from builder.render.pages import pages_of
from builder.text.one_line import one_line

ENTRIES_MAX = 50
# The update time of a feed without entries.
EMPTY_UPDATED = "1970-01-01T00:00:00Z"

# Characters that an XML 1.0 document cannot contain, not even escaped.
_forbidden = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
_decode_summary = msgspec.json.Decoder(RepoSummary).decode


def catalogue_feed(settings: Settings, summaries: list[bytes]) -> bytes:
    """The feed of all repos, from the summaries of the newest, as JSON."""
    links = Links(settings.base_url)
    repos = [_decode_summary(summary) for summary in summaries[:ENTRIES_MAX]]
    return _feed(
        url=links.page("feed"),
        page=links.page("list_page", sort="new"),
        head=f"<title>{_text(settings.site_name) or 'Prompts'}: new prompts</title>\n",
        updated=max((repo.updated_at for repo in repos), default=EMPTY_UPDATED),
        entries=(_repo_entry(repo, links) for repo in repos),
    )


def owner_feed(settings: Settings, user: answers.User, summaries: list[bytes]) -> bytes:
    """The feed of an owner's repos, from their summaries as JSON, latest updated first."""
    links = Links(settings.base_url)
    repos = [_decode_summary(summary) for summary in summaries[:ENTRIES_MAX]]
    return _feed(
        url=links.page("owner_feed", owner=user.handle),
        page=links.page("owner_page", owner=user.handle),
        head=f"<title>Prompts of {_text(user.name) or user.handle}</title>\n"
        f"{_optional('subtitle', user.bio)}{_author(user.handle, links)}",
        updated=max((repo.updated_at for repo in repos), default=user.joined_at),
        entries=(_repo_entry(repo, links) for repo in repos),
    )


def repo_feed(
    settings: Settings,
    repo: answers.Repo,
    newest_first: Sequence[answers.VersionEntry],
    labels: Labels = NO_LABELS,
) -> bytes:
    """The feed of a repo's versions, with their changelogs, and of the moves of its labels."""
    links = Links(settings.base_url)
    at = {"owner": repo.owner, "name": repo.name}
    entries = [
        (version.published_at, _version_entry(repo, version, links))
        for version in newest_first[:ENTRIES_MAX]
    ]
    if labels.history:
        # The publication that carried a move has the same time; the stable sort keeps it below the
        # move.
        moves = labels.newest_moves(ENTRIES_MAX)
        entries = [*((one[1].moved_at, _move_entry(repo, *one, links)) for one in moves), *entries]
        entries.sort(key=lambda entry: entry[0], reverse=True)
        del entries[ENTRIES_MAX:]
    return _feed(
        url=links.page("repo_feed", **at),
        page=repo.url,
        head=f"<title>{_text(repo.title) or repo.name}</title>\n"
        f"{_optional('subtitle', repo.description)}{_author(repo.owner, links)}",
        updated=max(time for time, _ in entries),
        entries=(entry for _, entry in entries),
    )


def _feed(url: str, page: str, head: str, updated: str, entries: Iterable[str]) -> bytes:
    # URLs, names, versions and times have no character that XML would escape.
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{url}</id>\n{head}<updated>{updated}</updated>\n"
        f'<link rel="self" type="application/atom+xml" href="{url}"/>\n'
        f'<link rel="alternate" type="text/html" href="{page}"/>\n'
        f"{''.join(entries)}</feed>\n"
    ).encode()


def _entry(
    id: str, title: str, times: str, author: str, page: str, summary: str, tags: str = ""
) -> str:
    """An entry. ``id``, ``title``, ``page`` and ``summary`` are texts; the others are elements."""
    return (
        f"<entry>\n<id>{id}</id>\n<title>{title}</title>\n{times}{author}"
        f'<link rel="alternate" type="text/html" href="{page}"/>\n'
        f"{tags}<summary>{summary}</summary>\n</entry>\n"
    )


def _by(publisher: str, owner: str) -> str:
    """The author of an entry in a feed of ``owner``, who may have no page here."""
    return "" if publisher == owner else f"<author><name>{publisher}</name></author>\n"


def _repo_entry(repo: RepoSummary, links: Links) -> str:
    return _entry(
        repo.url,
        _text(repo.title) or repo.name,
        f"<published>{repo.created_at}</published>\n<updated>{repo.updated_at}</updated>\n",
        _author(repo.owner, links),
        repo.url,
        _text(repo.description) or f"{repo.owner}/{repo.name}",
        "".join(f'<category term="{tag}"/>\n' for tag in repo.tags),
    )


def _version_entry(repo: answers.Repo, version: answers.VersionEntry, links: Links) -> str:
    number = version.version
    url = links.page("version_page", owner=repo.owner, name=repo.name, version=number)
    # Not the repo's title, which a later version may change.
    title = f"{repo.owner}/{repo.name} {number}"
    author = _by(version.publisher, repo.owner)
    summary = _text(version.changelog) or f"Version {number}"
    updated = f"<updated>{version.published_at}</updated>\n"
    return _entry(url, title, updated, author, url, summary)


def _move_entry(repo: answers.Repo, number: int, move: answers.LabelMove, links: Links) -> str:
    """``number``: the number of the move among those of its label, from 1."""
    place, page = f"#move-{move.label}-{number}", repo.url
    # A prompt has a page of versions from its second one on.
    if repo.versions_count > 1:
        page = links.page("versions_page", owner=repo.owner, name=repo.name) + place
    change = "removed" if move.version is None else f"is {move.version}"
    if move.version and move.previous:
        change = f"moved from {move.previous} to {move.version}"
    title = f"{repo.owner}/{repo.name} {move.label} {change}"
    author = _by(move.moved_by, repo.owner)
    summary = _text(move.note) or f"Label {move.label} {change}"
    updated = f"<updated>{move.moved_at}</updated>\n"
    return _entry(repo.url + place, title, updated, author, page, summary)


def _author(owner: str, links: Links) -> str:
    uri = links.page("owner_page", owner=owner)
    return f"<author><name>{owner}</name><uri>{uri}</uri></author>\n"


def _optional(element: str, text: str) -> str:
    shown = _text(text)
    return f"<{element}>{shown}</{element}>\n" if shown else ""


def _text(text: str) -> str:
    """The content of an element of plain text; empty if nothing would be visible."""
    return escape(_forbidden.sub("", text).strip(), quote=False)


PROMPTS_MAX = 20
DESCRIPTION_CHARS_MAX = 200
TITLE_CHARS_MAX = 200

_markup = re.compile(r"[\\`*_\[\]<>]")


def robots(settings: Settings) -> bytes:
    """``robots.txt`` (RFC 9309): allows everything but the account settings, and names the sitemap.

    Crawlers request it only at the root of a host. If the base URL has a path, it has no
    effect, unless the host's own ``robots.txt`` includes the sitemap's line. A private
    hub disallows everything.
    """
    if settings.private:
        return b"User-agent: *\nDisallow: /\n"
    sitemap = Links(settings.base_url).page("sitemap")
    account = settings.base_path + ACCOUNT_URL
    # For some crawlers the first matching rule counts, for others the longest. Without the $,
    # owners whose names begin with that word would be disallowed, too.
    rules = f"Disallow: {account}$\nDisallow: {account}/\nAllow: /\n"
    return f"User-agent: *\n{rules}\nSitemap: {sitemap}\n".encode()


def llms(settings: Settings, top: list[bytes]) -> bytes:
    """``llms.txt`` (llmstxt.org), from the summaries of the first repos, as JSON."""
    links = Links(settings.base_url)
    repos = [
        (
            _plain(repo.title, TITLE_CHARS_MAX) or repo.name,
            links.file("raw", owner=repo.owner, name=repo.name),
            _plain(repo.description, DESCRIPTION_CHARS_MAX),
        )
        for repo in map(_decode_summary, top)
    ]
    title = _plain(settings.site_name, TITLE_CHARS_MAX) or "Hub"
    return pages_of(settings).render("llms.txt", title=title, repos=repos)


def _plain(text: str, chars_max: int) -> str:
    """Untrusted text as one line of Markdown without markup."""
    return _markup.sub(r"\\\g<0>", one_line(text, chars_max))
