"""Functions on lists. None changes its argument."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from clusterwright.gotemplate.sprig.numbers import to_int
from clusterwright.gotemplate.sprig.signatures import Library, Lists, Strings
from clusterwright.gotemplate.sprig.strings import text_of, texts_of
from clusterwright.gotemplate.values import is_true, kind_of, to_bytes

LIBRARY: Final = Library()


def same(a: Any, b: Any) -> bool:
    """Return whether values are deeply equal in Go: values of different types never are."""
    waiting = [(a, b)]
    while waiting:
        a, b = waiting.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            waiting.extend((a[k], b[k]) for k in a)
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            waiting.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True


def _key(value: Any) -> Hashable:
    """Return a key that is equal for two values exactly if `same` returns True."""
    if isinstance(value, dict):
        return type(value), frozenset((k, _key(v)) for k, v in value.items())
    if isinstance(value, list):
        return type(value), tuple(map(_key, value))
    return type(value), value if value == value else object()  # noqa: PLR0124 - not a number is not even equal to itself


def _elements(value: Any, purpose: str) -> list[Any]:
    if value is None:
        raise TypeError("runtime error: invalid memory address or nil pointer dereference")
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"Cannot {purpose} type {kind_of(value).value}")
    return list(value)


def _contains(needle: Any, haystack: Any) -> bool:
    return haystack is not None and any(same(needle, h) for h in _elements(haystack, "find has on"))


def _unique(value: Any) -> list[Any]:
    found: dict[Hashable, Any] = {}
    for item in _elements(value, "find uniq on"):
        found.setdefault(_key(item), item)
    return list(found.values())


def _without(value: Any, *omitted: Any) -> list[Any]:
    keys = set(map(_key, omitted))
    return [item for item in _elements(value, "find without on") if _key(item) not in keys]


def _chunks(size: int, value: Any) -> Lists:
    elements = _elements(value, "chunk")
    if size <= 0:
        raise ValueError("runtime error: makeslice: len out of range")
    return Lists(elements[i : i + size] for i in range(0, len(elements), size))


def _slice(value: Any, *bounds: Any) -> Any:
    elements = _elements(value, "slice")
    if not elements:
        return None
    start = to_int(bounds[0]) if bounds else 0
    end = to_int(bounds[1]) if len(bounds) > 1 else len(elements)
    if not 0 <= start <= end <= len(elements):
        raise ValueError("reflect.Value.Slice: slice index out of bounds")
    return elements[start:end]


def _sorted(value: Any) -> Strings:
    return Strings(sorted(texts_of(value), key=to_bytes) if isinstance(value, (list, tuple)) else [text_of(value)])


def _with_must(names: str, parameters: str, function: Any, *, weight: int = 1, deep: bool = False) -> None:
    """Define functions twice: the second name returns its error, which makes no difference in templates."""
    both = " ".join(f"{n} must{n[0].upper()}{n[1:]}" for n in names.split())
    LIBRARY.define(both, parameters, function, weight=weight, deep=deep)


LIBRARY.define("list tuple", "any...", lambda *v: list(v))
LIBRARY.define("concat", "any...", lambda *v: [x for part in v for x in _elements(part, "concat")])
LIBRARY.define("sortAlpha", "any", _sorted, deep=True, weight=2)
_with_must("append push", "any any", lambda v, item: [*_elements(v, "push on"), item])
_with_must("prepend", "any any", lambda v, item: [item, *_elements(v, "prepend on")])
_with_must("first", "any", lambda v: next(iter(_elements(v, "find first on")), None))
_with_must("last", "any", lambda v: next(reversed(_elements(v, "find last on")), None))
_with_must("rest", "any", lambda v: _elements(v, "find rest on")[1:])
_with_must("initial", "any", lambda v: _elements(v, "find initial on")[:-1])
_with_must("reverse", "any", lambda v: _elements(v, "find reverse on")[::-1])
_with_must("compact", "any", lambda v: [x for x in _elements(v, "compact on") if is_true(x)])
_with_must("uniq", "any", _unique, deep=True)
_with_must("without", "any any...", _without, deep=True)
_with_must("has", "any any", _contains, deep=True)
_with_must("slice", "any any...", _slice)
_with_must("chunk", "int any", _chunks)
