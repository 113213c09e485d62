"""Estimate the highest cost of an expression before it runs, from the largest sizes of the values that it reads.

The unit is that of kube-apiserver: reading a variable or member costs 1, ten characters of a string 1, and so on. Only upper bounds are
kept, except for sizes, whose lower bound is needed for replacing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from clusterwright.cel.catalogue import OVERLOADS
from clusterwright.cel.syntax import Node, parse

UNBOUNDED: Final = (1 << 64) - 1
_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25
_LIST, _MAP = 10, 30
_FORMAT_REGEX: Final = 128
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


class Size(NamedTuple):
    """The number of elements, characters or bytes of a value."""

    least: int
    most: int


UNKNOWN: Final = Size(0, UNBOUNDED)
ONE: Final = Size(1, 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """The possible values of a place: their type, their largest size, and the places below them."""

    kind: str
    most: int = 0
    fields: Mapping[str, Shape] = field(default_factory=dict)
    item: Shape | None = None
    """The shape of the items of lists and maps."""
    smallest: int = 1
    """The shortest JSON of such a value; it limits how many of them a request can hold."""


_KEY: Final = Shape("string")


@dataclass(frozen=True, slots=True)
class _Value:
    cost: int
    kind: str = "dyn"
    shape: Shape | None = None
    size: Size | None = None
    item: Size | None = None
    """The shape of the items of a list or the values of a map that an expression created."""
    of: str = "dyn"
    """The type of these items."""

    @property
    def extent(self) -> Size:
        if self.size is not None:
            return self.size
        if self.shape is not None:
            return Size(0, self.shape.most)
        return ONE if self.kind in _SCALARS else UNKNOWN


def maximum_cost(expression: str, variables: Mapping[str, Shape]) -> int:
    """Return the highest cost of a valid expression."""
    return _Estimate(dict(variables)).visit(parse(expression)).cost


def _bounded(value: float) -> int:
    return UNBOUNDED if value >= UNBOUNDED else math.ceil(value)


def _times(size: Size, factor: float) -> int:
    return _bounded(size.most * factor)


def _product(a: int, b: int) -> int:
    return min(a * b, UNBOUNDED)


def _union(a: Size, b: Size) -> Size:
    return Size(min(a.least, b.least), max(a.most, b.most))


class _Estimate:
    def __init__(self, variables: dict[str, Shape]) -> None:
        self._scope: dict[str, _Value] = {name: _Value(1, shape.kind, shape) for name, shape in variables.items()}
        self._root = next(iter(variables.values()), None)

    def visit(self, node: Node) -> _Value:
        op = node.op
        if op in ("const", "uint"):
            return _constant(node.value)
        if op == "ident":
            return self._scope.get(node.value) or _Value(1, "type", None, Size(0, 0))
        if op in ("&&", "||"):
            return _Value(_sum(self.visit(a).cost for a in node.args), "bool")
        if op == "?:":
            condition, yes, no = map(self.visit, node.args)
            kind = yes.kind if yes.kind == no.kind else "dyn"
            item = _union(yes.item, no.item) if yes.item and no.item else None
            return _Value(_sum((condition.cost, max(yes.cost, no.cost))), kind, None, _union(yes.extent, no.extent), item)
        if op in ("select", "select?"):
            return self._select(node)
        if op in ("index", "index?"):
            value, index = map(self.visit, node.args)
            below = value.shape.item if value.shape is not None else None
            return _Value(_sum((value.cost, index.cost, 1)), below.kind if below else "dyn", below, value.item)
        if op in ("list", "map"):
            return self._literal(node)
        if op == "call":
            return self._call(node)
        if op == "method":
            return self._method(node)
        return self._operator(op, [self.visit(a) for a in node.args])

    def _select(self, node: Node) -> _Value:
        value = self.visit(node.args[0])
        optional = node.op == "select?" or value.kind == "optional"
        cost = value.cost + (node.op == "select?" or value.kind in ("map", "object"))
        shape = value.shape
        below = shape.fields.get(node.value) or (shape.item if shape.kind == "map" else None) if shape is not None else None
        return _Value(cost, "optional" if optional else below.kind if below else "dyn", below)

    def _literal(self, node: Node) -> _Value:
        parts = [self.visit(a) for a in node.args]
        values = parts if node.op == "list" else parts[1::2]
        item = Size(0, 0) if not values else Size(min(v.extent.least for v in values), max(v.extent.most for v in values))
        size, kinds = Size(len(values), len(values)), {v.kind for v in values}
        of = kinds.pop() if len(kinds) == 1 else "dyn"
        return _Value(_sum([*(p.cost for p in parts), _LIST if node.op == "list" else _MAP]), node.op, None, size, item, of)

    def _operator(self, op: str, parts: list[_Value]) -> _Value:
        cost, kinds = _sum(p.cost for p in parts), {p.kind for p in parts}
        if op in ("==", "!=") or (op in ("<", "<=", ">", ">=") and kinds & {"string", "bytes", "dyn"}):
            return _Value(_sum((cost, _times(min((p.extent for p in parts), key=lambda s: s.most), _TRAVERSAL))), "bool")
        if op == "in":
            size = parts[1].extent if parts[1].kind in ("list", "dyn") else ONE
            return _Value(_sum((cost, size.most)), "bool")
        if op == "+" and kinds & {"string", "bytes", "list", "dyn"}:
            a, b = parts[0].extent, parts[1].extent
            size = Size(a.least + b.least, min(a.most + b.most, UNBOUNDED))
            kind = parts[0].kind if parts[0].kind != "dyn" else parts[1].kind
            item = _union(parts[0].item, parts[1].item) if parts[0].item and parts[1].item else None
            return _Value(_sum((cost, 1 if kind == "list" else _times(size, _TRAVERSAL))), kind, None, size, item)
        kind = "bool" if op in ("!", "<", "<=", ">", ">=") else parts[0].kind
        return _Value(_sum((cost, 1)), kind if kind in _SCALARS else "dyn")

    # -- calls

    def _call(self, node: Node) -> _Value:
        if node.value == "has":
            return _Value(self.visit(node.args[0].args[0]).cost, "bool")
        parts = [self.visit(a) for a in node.args]
        if node.value == "dyn":
            (only,) = parts
            return _Value(only.cost + 1, only.kind, only.shape, only.size, only.item)
        return self._function(node.value, None, parts)

    def _method(self, node: Node) -> _Value:
        target, *arguments = node.args
        if node.value in _MACROS and len(arguments) >= 2 and arguments[0].op == "ident":
            return self._macro(node.value, self.visit(target), arguments)
        if node.value in ("optMap", "optFlatMap"):
            value = self.visit(target)
            with_value = self._with({arguments[0].value: _Value(1, "dyn", value.shape)}, arguments[1])
            return _Value(_sum((_product(value.cost, 2), with_value.cost, 3)), "optional")
        if target.op == "ident" and target.value not in self._scope and f"{target.value}.{node.value}" in OVERLOADS:
            return self._function(f"{target.value}.{node.value}", None, [self.visit(a) for a in arguments])
        return self._function(node.value, self.visit(target), [self.visit(a) for a in arguments])

    def _function(self, name: str, target: _Value | None, arguments: list[_Value]) -> _Value:
        spent = _sum([*(a.cost for a in arguments), target.cost if target is not None else 0])
        operands = ([target] if target is not None else []) + arguments
        known = _FUNCTIONS.get(name)
        cost, size = known(operands) if known is not None and operands else (1, None)
        results = {o.result.name for o in OVERLOADS.get(name, ()) if len(o.params) == len(operands)}
        kind = results.pop() if len(results) == 1 else "dyn"
        return _Value(_sum((spent, cost)), kind, None, size)

    # -- macros

    def _with(self, variables: Mapping[str, _Value], body: Node) -> _Value:
        before = self._scope
        self._scope = {**before, **variables}
        try:
            return self.visit(body)
        finally:
            self._scope = before

    def _macro(self, name: str, over: _Value, arguments: list[Node]) -> _Value:
        two = len(arguments) >= 3 and arguments[1].op == "ident" and name not in {"map", "filter"}
        below = over.shape.item if over.shape is not None else None
        # as kube-apiserver counts: items of what an expression made are taken to be as large as the root
        value = _Value(1, below.kind if below else over.of, below or self._root)
        key = _Value(1, "string", _KEY) if over.kind == "map" else _Value(1, "int", None, ONE)
        variables = {arguments[0].value: key if two or over.kind == "map" else value}
        if two:
            variables[arguments[1].value] = value
        bodies = [self._with(variables, a) for a in arguments[2 if two else 1 :]]
        begin, step, end = _MACROS[name](bodies)
        size = over.extent if name in _MAKE_LISTS else None
        made = variables[arguments[0].value] if name == "filter" else bodies[-1]
        kind = _MAKE_LISTS.get(name, "bool")
        return _Value(_sum((over.cost, begin, end, _product(over.extent.most, step))), kind, None, size, made.extent, made.kind)


def _sum(costs: Iterable[int]) -> int:
    return min(sum(costs), UNBOUNDED)


def _constant(value: Any) -> _Value:
    if isinstance(value, (str, bytes)):
        return _Value(0, "string" if isinstance(value, str) else "bytes", None, Size(len(value), len(value)))
    kinds: dict[type, str] = {bool: "bool", int: "int", float: "double", type(None): "null"}
    return _Value(0, kinds.get(type(value), "uint"), None, ONE)


_MAKE_LISTS: Final = {"map": "list", "filter": "list", "transformList": "list", "transformMap": "map", "transformMapEntry": "map"}


def _when(bodies: list[_Value], step: int) -> int:
    """Return a conditional step, if there is one."""
    return _sum([*(b.cost for b in bodies[:-1]), step]) if len(bodies) > 1 else step


_MACROS: Final[dict[str, Callable[[list[_Value]], tuple[int, int, int]]]] = {
    # before the loop, for each item (condition of the loop and step), after the loop
    "all": lambda b: (0, _sum((3, b[-1].cost)), 1),
    "exists": lambda b: (0, _sum((4, b[-1].cost)), 1),
    "exists_one": lambda b: (0, _sum((2, b[-1].cost)), 2),
    "existsOne": lambda b: (0, _sum((2, b[-1].cost)), 2),
    "map": lambda b: (_LIST, _when(b, _sum((12, b[-1].cost))), 1),
    "filter": lambda b: (_LIST, _sum((13, b[-1].cost)), 1),
    "transformList": lambda b: (_LIST, _when(b, _sum((12, b[-1].cost))), 1),
    "transformMap": lambda b: (_MAP, _when(b, _sum((3, b[-1].cost))), 1),
    "transformMapEntry": lambda b: (_MAP, _when(b, _sum((3, b[-1].cost))), 1),
}


# ----------------------------------------------------------------------------------------- functions

_Costed = tuple[int, Size | None]


def _traversal(factor: float = _TRAVERSAL, *, same_size: bool = False) -> Callable[[list[_Value]], _Costed]:
    """Return a cost proportional to the first operand."""
    return lambda o: (_times(o[0].extent, factor), o[0].extent if same_size else None)


def _pattern(o: list[_Value]) -> _Costed:
    text, pattern = o[0].extent, o[1].extent if len(o) > 1 else UNKNOWN
    cost = _product(_times(Size(0, min(text.most + 1, UNBOUNDED)), _TRAVERSAL), _times(pattern, _REGEX))
    return cost, Size(0, text.most)


def _contains(o: list[_Value]) -> _Costed:
    return _product(_times(o[0].extent, _TRAVERSAL), _times(o[1].extent, _TRAVERSAL)) if len(o) > 1 else 1, None


def _affix(o: list[_Value]) -> _Costed:
    return (_times(o[1].extent, _TRAVERSAL) if len(o) > 1 else 1), None


def _items(o: list[_Value]) -> _Costed:
    """Return the cost of functions that read every item of a list, or every character."""
    shape = o[0].shape
    if o[0].kind == "string":
        return _times(o[0].extent, _TRAVERSAL), None
    each = 1
    if shape is not None and shape.item is not None and shape.item.kind in ("string", "bytes"):
        each += _times(Size(0, shape.item.most), _TRAVERSAL)
    return _product(o[0].extent.most, each), None


def _replace(o: list[_Value]) -> _Costed:
    text, old, new = (p.extent for p in (*o, *[o[0]] * 3)[:3])
    if old.least == 0:
        most = _sum((_product(min(text.most + 1, UNBOUNDED), new.most), text.most))
    elif new.most <= old.least:
        most = text.most
    else:
        most = _product(_bounded(text.most / old.least), new.most)
    return _times(text, 2 * _TRAVERSAL), Size(0, most)


def _split(o: list[_Value]) -> _Costed:
    return _times(o[0].extent, 2 * _TRAVERSAL), Size(0, o[0].extent.most)


def _join(o: list[_Value]) -> _Costed:
    count = o[0].extent
    item = Size(0, o[0].shape.item.most) if o[0].shape is not None and o[0].shape.item is not None else UNKNOWN
    most = _product(count.most, item.most)
    if len(o) > 1:
        most = _sum((most, _product(max(count.most - 1, 0), o[1].extent.most)))
    return _times(Size(0, most), _TRAVERSAL), Size(0, most)


def _pairs(factor: int) -> Callable[[list[_Value]], _Costed]:
    """Return the cost of comparing every item of one list with every item of the other."""
    return lambda o: (_sum((1, _product(_product(o[0].extent.most, o[1].extent.most), factor))) if len(o) > 1 else 1, None)


def _to_bytes(o: list[_Value]) -> _Costed:
    if o[0].kind not in ("string", "dyn"):
        return 1, None
    return _times(o[0].extent, _TRAVERSAL), Size(o[0].extent.least, min(o[0].extent.most * 4, UNBOUNDED))


def _to_string(o: list[_Value]) -> _Costed:
    if o[0].kind not in ("bytes", "dyn"):
        return 1, None
    return _times(o[0].extent, _TRAVERSAL), o[0].extent


def _quoted(o: list[_Value]) -> _Costed:
    return _times(o[0].extent, _TRAVERSAL), Size(o[0].extent.least + 2, min(o[0].extent.most * 2 + 2, UNBOUNDED))


def _addresses(cost: int) -> Callable[[list[_Value]], _Costed]:
    return lambda o: (_sum((cost, _times(o[1].extent, _TRAVERSAL) if len(o) > 1 and o[1].kind == "string" else 0)), None)


def _named_format(o: list[_Value]) -> _Costed:
    return _bounded(_times(o[-1].extent, _TRAVERSAL) * _FORMAT_REGEX * _REGEX), None


_FUNCTIONS: Final[dict[str, Callable[[list[_Value]], _Costed]]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _items),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url", "jsonpatch.escapeKey"), _traversal(same_size=True)),
    **dict.fromkeys(("cidr", "ip", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "format"), _traversal()),
    **dict.fromkeys(("find", "findAll", "matches"), _pattern),
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _pairs(1)),
    "sets.equivalent": _pairs(2),
    "ip.isCanonical": _traversal(2 * _TRAVERSAL),
    "contains": _contains,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quoted,
    "containsIP": _addresses(4),
    "containsCIDR": _addresses(7),
    "validate": _named_format,
}
"""Functions that cost more than 1, with the size of their result."""
