"""English words in messages: plurals of kinds, and short lists of names."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.api.contract import pluralize


def plural(word: str) -> str:
    """Return the English plural, keeping the case: Machine -> Machines, Policy -> Policies, Class -> Classes."""
    if word.endswith("S"):
        return f"{word}es"  # an abbreviation
    many = pluralize(word.lower())
    stays = next((n for n, (one, other) in enumerate(zip(word.lower(), many, strict=False)) if one != other), len(word))
    return word[:stays] + many[stays:]


def names_with_limit(names: Iterable[str], limit: int) -> str:
    """Return `a, b, c, ... (4 more)`: the first `limit` names in their order, and the number of the others."""
    listed = list(names)
    if len(listed) <= limit:
        return ", ".join(listed)
    return ", ".join(listed[:limit]) + f", ... ({len(listed) - limit} more)"
