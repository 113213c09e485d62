"""Find known words that are similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def similar(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests similar known words; empty if there are none."""
    found = get_close_matches(word, sorted(set(known)), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(found)}?" if found else ""
