"""A hook of mkdocs: pages about tasks come first in the search of the site, rendered tables and references last."""

from __future__ import annotations

from typing import Any, Final

BOOSTS: Final = (("tables/", 0.2), ("adr/", 0.2), ("commands.md", 0.5), ("python.md", 0.5), ("incidents.md", 0.5), ("apiserver.md", 0.5))
"""How much a page counts, by the beginning of its path. Sections of the navigation: `SECTIONS`; everything else counts once."""
SECTIONS: Final = {"Tasks": 8.0, "Start": 4.0, "Find out": 2.0}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Set the weight of a page, unless the page itself does."""
    path = page.file.src_uri
    section = page.parent.title if page.parent is not None else ""
    weight = next((boost for beginning, boost in BOOSTS if path.startswith(beginning)), SECTIONS.get(section, 1.0))
    page.meta.setdefault("search", {"boost": weight})
    return markdown
