"""Words that are close to one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def similar(word: str, known: Iterable[str]) -> str:
    """Return a question that names known words close to this one; empty if there is none."""
    found = get_close_matches(word, sorted(set(known)), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(found)}?" if found else ""
