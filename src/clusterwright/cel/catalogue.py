"""All functions that expressions can call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.cel import functions, kubernetes, lists
from clusterwright.cel.overloads import Library, Overload


def _joined(*libraries: Library) -> dict[str, list[Overload]]:
    joined: dict[str, list[Overload]] = {}
    for library in libraries:
        for name, overloads in library.items():
            joined.setdefault(name, []).extend(overloads)
    return joined


OVERLOADS: Final[Mapping[str, list[Overload]]] = _joined(functions.LIBRARY, lists.LIBRARY, kubernetes.LIBRARY)
