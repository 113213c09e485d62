"""English as messages need it: plurals of kinds, and lists of names that stay short."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.api.contract import pluralize


def plural(word: str) -> str:
    """Return the English plural, keeping the case of what stays: Machine -> Machines, Policy -> Policies, Class -> Classes."""
    if word.endswith("S"):
        return f"{word}es"  # an abbreviation
    many = pluralize(word.lower())
    stays = next((n for n, (one, other) in enumerate(zip(word.lower(), many, strict=False)) if one != other), len(word))
    return word[:stays] + many[stays:]


def names_with_limit(names: Iterable[str], limit: int) -> str:
    """`a, b, c, ... (4 more)`: the first `limit` names as they come, and how many follow."""
    listed = list(names)
    if len(listed) <= limit:
        return ", ".join(listed)
    return ", ".join(listed[:limit]) + f", ... ({len(listed) - limit} more)"
