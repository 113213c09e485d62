"""The functions of CEL on lists and sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any, Final

from clusterwright.cel.metering import LONGEST_RANGE
from clusterwright.cel.moments import Duration
from clusterwright.cel.operations import OPERATIONS
from clusterwright.cel.overloads import Implementation, Library, equal, key, keys, runtime_name
from clusterwright.cel.values import NONE, CelError, Optional, UInt

LIBRARY: Final = Library()


_SUMMED: Final = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}
"""The types whose values can be summed, with the value that a sum starts from."""
_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _comes_first(a: Any, b: Any) -> bool:
    """Return whether one is less than the other; False if they cannot be compared."""
    kinds = {runtime_name(a), runtime_name(b)}
    if kinds <= {"int", "uint", "double"} or len(kinds) == 1:
        return bool(a < b)
    return False


def _is_ordered(values: list[Any]) -> list[Any]:
    if any(runtime_name(value) not in _ORDERED for value in values):
        raise TypeError
    return values


def _is_sorted(values: list[Any]) -> bool:
    return not any(_comes_first(b, a) for a, b in itertools.pairwise(_is_ordered(values)))


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    kind = runtime_name(values[0])
    if kind not in _SUMMED:
        raise TypeError  # which the caller says in the words of the call
    total = _SUMMED[kind]
    for value in values:
        total = OPERATIONS["+"](total, value)
    return total


def _extreme(name: str, is_better: Callable[[Any, Any], bool]) -> Implementation:
    def run(values: list[Any]) -> Any:
        if not values:
            raise CelError(f"{name} called on empty list")
        best, *others = _is_ordered(values)
        for value in others:
            if is_better(value, best):
                best = value
        return best

    return run


def _sort(values: list[Any]) -> list[Any]:
    if len({runtime_name(value) for value in values}) > 1:
        raise CelError("list elements must have the same type")
    return sorted(_is_ordered(values))


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
    found: dict[Hashable, Any] = {}
    for value in values:
        found.setdefault(key(value), value)
    return list(found.values())


for _kind in _SUMMED:
    LIBRARY.define(f"list<{_kind}>.sum() {_kind}", _sum)
for _kind in _ORDERED:
    LIBRARY.define(f"list<{_kind}>.isSorted() bool", _is_sorted)
    LIBRARY.define(f"list<{_kind}>.min() {_kind}", _extreme("min", _comes_first))
    LIBRARY.define(f"list<{_kind}>.max() {_kind}", _extreme("max", lambda a, b: _comes_first(b, a)))
    LIBRARY.define(f"list<{_kind}>.sort() list<{_kind}>", _sort)
LIBRARY.define("list<A>.indexOf(A) int", _first_index)
LIBRARY.define("list<A>.lastIndexOf(A) int", _last_index)
LIBRARY.define("list<A>.slice(int, int) list<A>", _slice)
LIBRARY.define("list<list<A>>.flatten() list<A>", _flatten)
LIBRARY.define("list<dyn>.flatten(int) list<dyn>", _flatten)
LIBRARY.define("list<A>.distinct() list<A>", _distinct)
LIBRARY.define("list<A>.reverse() list<A>", lambda v: v[::-1])
LIBRARY.define("list<A>.first() optional<A>", lambda v: Optional(v[0], True) if v else NONE)
LIBRARY.define("list<A>.last() optional<A>", lambda v: Optional(v[-1], True) if v else NONE)
LIBRARY.define("lists.range(int) list<int>", _range)
LIBRARY.define("sets.contains(list<A>, list<A>) bool", lambda a, b: keys(a) >= keys(b))
LIBRARY.define("sets.equivalent(list<A>, list<A>) bool", lambda a, b: keys(a) == keys(b))
LIBRARY.define("sets.intersects(list<A>, list<A>) bool", lambda a, b: not keys(a).isdisjoint(keys(b)))
