"""English as messages need it: plurals of kinds, and lists of names that stay short."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_IRREGULAR: Final = {
    "child": "children", "person": "people", "datum": "data", "data": "data", "metadata": "metadata", "series": "series",
    "index": "indices", "matrix": "matrices", "vertex": "vertices", "analysis": "analyses", "axis": "axes", "basis": "bases",
    "media": "media", "chassis": "chassis", "information": "information", "equipment": "equipment", "sheep": "sheep",
}  # fmt: skip


def plural(word: str) -> str:
    """The English plural, keeping the case of what stays: Machine -> Machines, Policy -> Policies, Class -> Classes."""
    lower = word.lower()
    for ending, many in _IRREGULAR.items():
        if lower.endswith(ending) and (lower == ending or word[-len(ending)].isupper()):
            kept = word[: len(word) - len(ending)]
            return kept + (many.capitalize() if word[len(kept)].isupper() else many)
    if lower.endswith("y") and len(word) > 1 and lower[-2] not in "aeiou":
        return word[:-1] + "ies"
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word + "s"


def names_with_limit(names: Iterable[str], limit: int) -> str:
    """`a, b, c, ... (4 more)`: the first `limit` names as they come, and how many follow."""
    listed = list(names)
    if len(listed) <= limit:
        return ", ".join(listed)
    return ", ".join(listed[:limit]) + f", ... ({len(listed) - limit} more)"
