"""The functions of CEL on lists and sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from clusterwright.cel.metering import LONGEST_RANGE
from clusterwright.cel.overloads import Implementation, Library, checked, contains, equal
from clusterwright.cel.values import NONE, CelError, Optional

LIBRARY: Final = Library()


def _is_sorted(values: list[Any]) -> bool:
    return all(not b < a for a, b in itertools.pairwise(values))


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    total = values[0]
    for value in values[1:]:
        total = total + value
    return checked(total) if type(total) is int else total


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Implementation:
    def run(values: list[Any]) -> Any:
        if not values:
            raise CelError(f"{name} called on empty list")
        return choose(values)

    return run


def _first_index(values: list[Any], item: Any) -> int:
    return next((i for i, v in enumerate(values) if equal(v, item)), -1)


def _last_index(values: list[Any], item: Any) -> int:
    return next((i for i in range(len(values) - 1, -1, -1) if equal(values[i], item)), -1)


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    refused = (
        "negative indexes not supported" if start < 0 or end < 0
        else "start index must be less than or equal to end index" if start > end
        else f"list is length {len(values)}" if end > len(values)
        else ""
    )  # fmt: skip
    if refused:
        raise CelError(f"cannot slice({start}, {end}), {refused}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    out: list[Any] = []
    for value in values:
        if isinstance(value, list) and depth > 0:
            out.extend(_flatten(value, depth - 1))
        else:
            out.append(value)
    return out


def _range(size: int) -> list[int]:
    if size < 0:
        raise CelError(f"lists.range: size must be non-negative, got {size}")
    if size > LONGEST_RANGE:
        raise CelError(f"lists.range: size {size} exceeds maximum allowed ({LONGEST_RANGE})")
    return list(range(size))


def _distinct(values: list[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if not contains(out, value):
            out.append(value)
    return out


LIBRARY.define("list<A>.isSorted() bool", _is_sorted)
LIBRARY.define("list<A>.sum() A", _sum)
LIBRARY.define("list<A>.min() A", _extreme("min", min))
LIBRARY.define("list<A>.max() A", _extreme("max", max))
LIBRARY.define("list<A>.indexOf(A) int", _first_index)
LIBRARY.define("list<A>.lastIndexOf(A) int", _last_index)
LIBRARY.define("list<A>.slice(int, int) list<A>", _slice)
LIBRARY.define("list<list<A>>.flatten() list<A>", _flatten)
LIBRARY.define("list<dyn>.flatten(int) list<dyn>", _flatten)
LIBRARY.define("list<A>.distinct() list<A>", _distinct)
LIBRARY.define("list<A>.reverse() list<A>", lambda v: v[::-1])
LIBRARY.define("list<A>.sort() list<A>", sorted)
LIBRARY.define("list<A>.first() optional<A>", lambda v: Optional(v[0], True) if v else NONE)
LIBRARY.define("list<A>.last() optional<A>", lambda v: Optional(v[-1], True) if v else NONE)
LIBRARY.define("lists.range(int) list<int>", _range)
LIBRARY.define("sets.contains(list<A>, list<A>) bool", lambda a, b: all(contains(a, x) for x in b))
LIBRARY.define("sets.equivalent(list<A>, list<A>) bool", lambda a, b: all(contains(a, x) for x in b) and all(contains(b, x) for x in a))
LIBRARY.define("sets.intersects(list<A>, list<A>) bool", lambda a, b: any(contains(a, x) for x in b))
