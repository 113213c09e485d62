"""Comprehensions and arithmetic: the run-time operations of compiled expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from clusterwright.cel import overloads as fn
from clusterwright.cel.metering import CostExceeded, charge
from clusterwright.cel.moments import Duration, Timestamp
from clusterwright.cel.types import DURATION, DYN, TIMESTAMP, Type, joined
from clusterwright.cel.values import INT_MIN, CelError, UInt

Env = list[Any]
Run = Callable[[Env], Any]


_NUMBERS: Final = frozenset({"int", "uint", "double"})


MISSING: Final = object()
"""Stands for a missing key of a map."""


def condition(run: Run, kind: Type) -> Run:
    """Return a condition's value, which must be a bool; its type is known only at run time."""
    if kind.name == "bool":
        return run

    def checked(env: Env) -> bool:
        value = run(env)
        if type(value) is not bool:
            raise CelError("no such overload")
        return value

    return checked


def find(where: dict[Any, Any], key: Any) -> Any:
    """Return a map's value for a key, or MISSING. In Python true equals 1, and false 0; in CEL they do not."""
    try:
        item = where.get(key, MISSING)
    except TypeError:
        return MISSING  # what cannot be a key is none
    if item is not MISSING and type(key) is not str and key in (0, 1):
        probe = _Probe(key)
        where.get(probe)
        return item if fn.equal(key, probe.found) else MISSING
    return item


class _Probe:
    """Finds the actual key of a map that equals a given one, which a look-up does not return."""

    __slots__ = ("found", "key")

    def __init__(self, key: Any) -> None:
        self.key = self.found = key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        self.found = other
        return bool(self.key == other)


# ---------------------------------------------------------------- comprehensions


def _items(value: Any, env: Env, weight: int) -> list[Any]:
    if type(value) is list:
        items = value
    elif type(value) is dict:
        items = list(value)
    else:
        raise CelError("no such overload")
    charge(env, len(items) * weight + 1)
    return items


def singles(run: Run, slot: int, weight: int) -> Callable[[Env], Any]:
    """Iterate over items (or keys) with one variable."""

    def iterate(env: Env) -> Any:
        for item in _items(run(env), env, weight):
            env[slot] = item
            yield None

    return iterate


def pairs(run: Run, slot: int, slot2: int, weight: int) -> Callable[[Env], Any]:
    """Iterate over indices (or keys) and values with two variables."""

    def iterate(env: Env) -> Any:
        value = run(env)
        if type(value) is dict:
            _items(value, env, weight)
            for key, item in value.items():
                env[slot], env[slot2] = key, item
                yield None
            return
        for i, item in enumerate(_items(value, env, weight)):
            env[slot], env[slot2] = i, item
            yield None

    return iterate


def quantified(iterate: Callable[[Env], Any], body: Run, decisive: bool) -> Run:
    """Evaluate `all` or `exists`: an error counts only if no item decides."""

    def run(env: Env) -> bool:
        problem: CelError | None = None
        for _ in iterate(env):
            try:
                if body(env) is decisive:
                    return bool(decisive)
            except CostExceeded:
                raise
            except CelError as e:
                problem = problem or e
        if problem is not None:
            raise problem
        return not decisive

    return run


def exactly_one(iterate: Callable[[Env], Any], body: Run) -> Run:
    """Evaluate `exists_one`."""

    def run(env: Env) -> bool:
        count = 0
        for _ in iterate(env):
            if body(env):
                count += 1
        return count == 1

    return run


def mapped(run: Run, slot: int, condition: Run | None, body: Run, weight: int) -> Run:
    """Evaluate `map`, with an optional condition."""

    def execute(env: Env) -> list[Any]:
        out = []
        for item in _items(run(env), env, weight):
            env[slot] = item
            if condition is None or condition(env):
                out.append(body(env))
        return out

    return execute


def filtered(run: Run, slot: int, body: Run, weight: int) -> Run:
    """Evaluate `filter`."""

    def execute(env: Env) -> list[Any]:
        out = []
        for item in _items(run(env), env, weight):
            env[slot] = item
            if body(env):
                out.append(item)
        return out

    return execute


# ---------------------------------------------------------------- arithmetic


def arithmetic_type(op: str, a: Type, b: Type) -> Type | None:
    """Return the type of a result; None for an undefined operation."""
    if "dyn" in (a.name, b.name):
        return DYN if a.name == b.name else (a if b.name == "dyn" else b) if op not in "+-" else DYN
    if a.name == b.name and a.name in _NUMBERS:
        return a if op != "%" or a.name != "double" else None
    if op == "+":
        if a.name == b.name and a.name in ("string", "bytes", "duration"):
            return a
        if a.name == b.name == "list":
            return joined(a, b)
        if {a.name, b.name} == {"timestamp", "duration"}:
            return TIMESTAMP
    if op == "-":
        if a.name == b.name == "timestamp":
            return DURATION
        if b.name == "duration" and a.name in ("timestamp", "duration"):
            return a
    return None


def _add(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return fn.checked(a + b)
        if kind in (float, str, bytes, list, Duration):
            return a + b
        if kind is UInt:
            return fn.checked_uint(a + b)
    elif kind is Timestamp and type(b) is Duration:
        return a.later(b)
    elif kind is Duration and type(b) is Timestamp:
        return b.later(a)
    raise CelError("no such overload")


def _subtract(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is int and type(b) is int:
        return fn.checked(a - b)
    if kind is type(b):
        if kind in (float, Duration):
            return a - b
        if kind is UInt:
            return fn.checked_uint(a - b)
        if kind is Timestamp:
            return a.since(b)
    elif kind is Timestamp and type(b) is Duration:
        return a.earlier(b)
    raise CelError("no such overload")


def _multiply(a: Any, b: Any) -> Any:
    if type(a) is type(b):
        if type(a) is int:
            return fn.checked(a * b)
        if type(a) is float:
            return a * b
        if type(a) is UInt:
            return fn.checked_uint(a * b)
    raise CelError("no such overload")


def _divide(a: Any, b: Any) -> Any:
    if type(a) is type(b):
        if type(a) is float:
            if b == 0:
                return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
            return a / b
        if isinstance(a, int) and type(a) is not bool:
            if b == 0:
                raise CelError("division by zero")
            quotient = abs(a) // abs(b)
            return fn.checked(quotient if (a < 0) == (b < 0) else -quotient) if type(a) is int else UInt(quotient)
    raise CelError("no such overload")


def _modulo(a: Any, b: Any) -> Any:
    if type(a) is type(b) and isinstance(a, int) and type(a) is not bool:
        if b == 0:
            raise CelError("modulus by zero")
        if a == INT_MIN and b == -1:
            raise CelError("integer overflow")
        remainder = abs(a) % abs(b)
        return type(a)(remainder if a >= 0 else -remainder)
    raise CelError("no such overload")


OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide, "%": _modulo}
