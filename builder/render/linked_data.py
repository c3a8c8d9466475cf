"""Metadata of pages for machines: JSON-LD in the terms of schema.org.

Pure. Nothing here is markup: it becomes a data block of a page, which is never run as a script.
"""

import re
from typing import Any

from markupsafe import Markup
from msgspec import json

from builder.model.answers import Repo
from builder.model.links import Links
from builder.model.settings import Settings

# Characters that could end a script element, begin a comment in it, or end a line of JavaScript. In
# JSON they occur only in strings, where an escape means the same.
_special = re.compile("[<>&\u2028\u2029]")


def website(settings: Settings) -> dict[str, Any]:
    """The hub, with the URL of its search."""
    links = Links(settings.base_url)
    return {
        "@context": "https://schema.org",
        "@type": "WebSite",
        "name": settings.site_name,
        "url": links.page("home"),
        "potentialAction": {
            "@type": "SearchAction",
            "target": {
                "@type": "EntryPoint",
                "urlTemplate": links.page("search_page") + "?q={search_term_string}",
            },
            "query-input": "required name=search_term_string",
        },
    }


def creative_work(repo: Repo, links: Links) -> dict[str, Any]:
    """A repo as it is now."""
    work = {
        "@context": "https://schema.org",
        "@type": "CreativeWork",
        "name": repo.title,
        "description": repo.description,
        "url": repo.url,
        "version": repo.latest_version,
        "dateCreated": repo.created_at,
        "dateModified": repo.updated_at,
        "keywords": repo.tags,
        "author": {
            "@type": "Person",
            "name": repo.owner,
            "url": links.page("owner_page", owner=repo.owner),
        },
        "isAccessibleForFree": True,
        "encoding": {
            "@type": "MediaObject",
            "contentUrl": repo.raw_url,
            "encodingFormat": "text/plain",
            "sha256": repo.sha256,
        },
    }
    if repo.license:
        # By name, because the property takes no text, and the licence's URL is unknown.
        work["license"] = {"@type": "CreativeWork", "name": repo.license}
    return work


def data_block(value: dict[str, Any]) -> Markup:
    """JSON as the content of a script element of a data type, where entities are not decoded."""
    text = json.encode(value).decode()
    return Markup(_special.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
