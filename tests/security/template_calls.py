"""Calls of the functions of templates, made from their signatures, that make them work hard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusterwright.gotemplate.functions import BUILTINS
from clusterwright.gotemplate.sprig import FUNCTIONS
from clusterwright.gotemplate.values import Int


def text(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


def samples(kind: str, size: int, *, nested: bool) -> list[Any]:
    """Return arguments of a type that make a function work hard."""
    twice: Any = "x"
    for _ in range(20 if nested else 1):
        twice = [twice, twice]
    texts = [text(p, size) for p in ("aB", "<\n", "a b", "1", "/../", "\u00e9\U0001f600", "=", "a1B2-")]
    lists = [list(map(str, range(size // 8))), [Int(n) for n in range(size // 8)], [["a", {"b": "c"}]] * (size // 8), twice]
    maps = [{f"k{n}": f"v{n}" for n in range(size // 8)}, {"scheme": texts[0], "host": texts[2]}]
    match kind:
        case "string":
            return ["(a|b)*a(a|b){20}c", "a", *texts]
        case "int":
            return [Int(n) for n in (1, size // 8, -1)]
        case "float":
            return [0.5]
        case "bool":
            return [True]
        case "dict":
            return maps
    return [*lists, *maps, *texts]


def calls(name: str, size: int, *, nested: bool = True) -> Iterator[list[Any]]:
    """Yield calls of a function, by its parameters."""
    kinds = getattr(FUNCTIONS.get(name), "parameters", "string any any" if name == "printf" else "any any").split()
    kinds = [k for kind in kinds for k in ([kind[:-3]] * 2 if kind.endswith("...") else [kind])]
    if name in BUILTINS:
        kinds = kinds[: int(min(BUILTINS[name].most, len(kinds)))]
    columns = [samples(kind, size, nested=nested) for kind in kinds]
    longest = max(map(len, columns), default=1)
    yield from ([column[(n * (at + 1)) % len(column)] for at, column in enumerate(columns)] for n in range(longest))
