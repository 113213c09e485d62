"""Measure an evaluation in cel-go's units: one for a step or a call, a tenth for every character or element that is traversed.

Costs are charged before the work: neither time nor memory is spent on work beyond the limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from clusterwright.cel.syntax import Node
from clusterwright.cel.values import CelError
from clusterwright.golang.regex import BadPattern, program_size

CALL_LIMIT: Final = 1_000_000
"""The highest cost of one evaluation."""
OBJECT_LIMIT: Final = 10_000_000
"""The highest cost of all rules for one object."""

Cost = Callable[[Sequence[Any]], float]
_FREE: Final = frozenset({"const", "uint", "&&", "||", "?:"})


class CostExceeded(CelError):
    """The evaluation would cost too much."""


def charge(env: list[Any], units: float) -> None:
    """Subtract units from the budget, which is slot 0; raises CostExceeded."""
    env[0] -= units
    if env[0] < 0:
        raise CostExceeded("operation cancelled: actual cost limit exceeded")


def weight(node: Node) -> int:
    """Return the least cost of evaluating a node; the body of a comprehension counts once."""
    count, waiting = 0, [node]
    while waiting:
        found = waiting.pop()
        count += found.op not in _FREE
        waiting.extend(found.args)
    return count


def size(value: Any) -> int:
    """Return the number of characters or elements; 1 for other values."""
    return len(value) if isinstance(value, (str, bytes, list, dict)) else 1


def linear(values: Sequence[Any]) -> float:
    """Charge for traversing every argument once."""
    return 1 + 0.1 * sum(map(size, values))


def _product(values: Sequence[Any]) -> float:
    return 1 + size(values[0]) * size(values[-1])


def _search(values: Sequence[Any]) -> float:
    return 1 + 0.1 * size(values[0]) * max(1.0, 0.1 * size(values[1]))


def _regex(values: Sequence[Any]) -> float:
    """Charge as cel-go does, and more for a pattern with many states, because a search may visit all of them."""
    return 1 + 0.1 * (size(values[0]) + 1) * max(
        1.0, 0.25 * size(values[1]), (_states(values[1]) if isinstance(values[1], str) else 0) / _STATES
    )


@lru_cache(maxsize=512)
def _states(pattern: str) -> int:
    try:
        states = program_size(pattern)
    except BadPattern:
        return 0
    return states if states > _FEW_STATES else 0


_STATES: Final = 8
"""How many states cost as much as cel-go's charge for a character."""
_FEW_STATES: Final = 100
"""The number of states up to which a search is fast."""


def _replace(values: Sequence[Any]) -> float:
    text, old, new = values[0], values[1], values[2]
    if not all(isinstance(part, str) for part in (text, old, new)):
        return 1
    found = len(text) + 1 if old == "" else text.count(old)
    return 1 + 0.1 * (len(text) + found * len(new))


def _join(values: Sequence[Any]) -> float:
    parts = values[0] if isinstance(values[0], list) else []
    separator = size(values[1]) if len(values) > 1 else 0
    return 1 + 0.1 * (sum(map(size, parts)) + separator * len(parts))


_PRECISION: Final = re.compile(r"%\.([0-9]{1,8})")


def _format(values: Sequence[Any]) -> float:
    text, arguments = values
    digits = sum(map(int, _PRECISION.findall(text))) if isinstance(text, str) else 0
    return 1 + 0.1 * (size(text) + digits + sum(map(_deep, arguments if isinstance(arguments, list) else [])))


def _deep(value: Any) -> int:
    """Return the number of all values in a value."""
    if isinstance(value, dict):
        return 1 + sum(size(k) + _deep(v) for k, v in value.items())
    if isinstance(value, list):
        return 1 + sum(map(_deep, value))
    return size(value)


LONGEST_RANGE: Final = 1_000_000
"""The longest range; longer ones are refused, at no cost."""


def _count(values: Sequence[Any]) -> float:
    return 1 + (values[0] if isinstance(values[0], int) and 0 <= values[0] <= LONGEST_RANGE else 0)


def _elements(values: Sequence[Any]) -> float:
    return 1 + size(values[0])


def _squared(values: Sequence[Any]) -> float:
    return 1 + size(values[0]) ** 2


def _one(values: Sequence[Any]) -> float:
    del values
    return 1


CALLS: Final[dict[str, Cost]] = {
    "size": _one, "dyn": _one, "charAt": _one, "first": _one, "last": _one,
    "matches": _regex, "find": _regex, "findAll": _regex,
    "contains": _search, "indexOf": _search, "lastIndexOf": _search,
    "replace": _replace, "join": _join, "format": _format,
    "lists.range": _count,
    "sets.contains": _product, "sets.equivalent": _product, "sets.intersects": _product,
    "distinct": _squared,
    "sort": _elements, "sum": _elements, "min": _elements, "max": _elements, "isSorted": _elements, "reverse": _elements,
    "slice": _elements, "flatten": lambda values: 1 + 0.1 * _deep(values[0]),
}  # fmt: skip
"""Functions whose cost is not proportional to one traversal of their arguments."""
