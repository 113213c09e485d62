"""Compile syntax trees to closures, checking types as far as they are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from clusterwright.cel import overloads as fn
from clusterwright.cel.formatting import show_double, to_string
from clusterwright.cel.literals import Literals
from clusterwright.cel.metering import CostExceeded, charge, size
from clusterwright.cel.operations import MISSING, OPERATIONS, Env, Run, arithmetic_type, condition, find
from clusterwright.cel.syntax import Node
from clusterwright.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    UINT,
    Type,
    comparable,
    joined,
    list_of,
    map_of,
    optional_of,
)
from clusterwright.cel.values import INT_MAX, INT_MIN, NONE, CelError, Optional, TypeValue, UInt

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_ORDERED: Final = frozenset({"int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration"})
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_TYPE_NAMES: Final = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "type": TYPE,
}


def no_overload(*_: Any) -> Any:
    """Raise an error: a stand-in for code that did not compile."""
    raise CelError("no such overload")


class Expressions(Literals):
    """Compiles everything except calls: leaves, logic, comparison, arithmetic, members, literals."""

    def __init__(self, variables: Mapping[str, Type], messages: Collection[str] = ()) -> None:
        self.messages = messages
        self.scope: dict[str, int] = {}
        self.types: dict[str, Type] = {}
        self.size = 1
        self.uses: set[str] = set()
        self.problems: list[tuple[int, str]] = []
        self.impossible: list[str] = []
        """The errors of constants that can never be converted."""
        self.declared = set(variables)
        self.mixed = False
        self.elements = {}
        for name, kind in variables.items():
            self.scope[name] = self.size
            self.types[name] = kind
            self.size += 1

    def fail(self, node: Node, message: str) -> tuple[Run, Type]:
        """Record a problem; the result stands in for the expression."""
        self.problems.append((node.at, message))
        return no_overload, DYN

    def visit(self, node: Node) -> tuple[Run, Type]:
        """Return the closure and the type of a node."""
        name = _VISITORS.get(node.op)
        if name is not None:
            made: tuple[Run, Type] = getattr(self, name)(node)
            return made
        if node.op in _COMPARE:
            return self.compare(node)
        return self.arithmetic(node)

    # -- leaves

    def const(self, node: Node) -> tuple[Run, Type]:
        """Return a literal."""
        value = node.value
        if type(value) is int and not INT_MIN <= value <= INT_MAX:
            return self.fail(node, "invalid int literal")
        if type(value) is float and math.isinf(value):
            return self.fail(node, "invalid double literal")
        kind = {bool: BOOL, int: INT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}[type(value)]
        return lambda env: value, kind

    def uint(self, node: Node) -> tuple[Run, Type]:
        """Return an unsigned literal."""
        if node.value >= 1 << 64:
            return self.fail(node, "invalid uint literal")
        value = UInt(node.value)
        return lambda env: value, UINT

    def ident(self, node: Node) -> tuple[Run, Type]:
        """Return a variable, or the name of a type."""
        name = node.value
        slot = self.scope.get(name)
        if slot is not None:
            if name in self.declared:
                self.uses.add(name)
            return lambda env: env[slot], self.types[name]
        if name in _TYPE_NAMES:
            value = TypeValue(name)
            return lambda env: value, TYPE
        return self.fail(node, f"undeclared reference to '{name}' (in container '')")

    # -- logic

    def conditional(self, node: Node) -> tuple[Run, Type]:
        """Compile `a ? b : c`."""
        (run, kind), (yes, a), (no, b) = (self.visit(n) for n in node.args)
        test = condition(run, kind)
        if kind.name not in ("bool", "dyn"):
            return self.fail(node, f"found no matching overload for '_?_:_' applied to '({kind}, {a}, {b})'")
        if not comparable(a, b):
            return self.fail(node, f"found no matching overload for '_?_:_' applied to '(bool, {a}, {b})'")
        return lambda env: yes(env) if test(env) else no(env), joined(a, b)

    def either(self, node: Node) -> tuple[Run, Type]:
        """Compile `a || b`."""
        return self._logical(node, "_||_", True)

    def both(self, node: Node) -> tuple[Run, Type]:
        """Compile `a && b`."""
        return self._logical(node, "_&&_", False)

    def _logical(self, node: Node, name: str, decisive: bool) -> tuple[Run, Type]:
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        if a.name not in ("bool", "dyn") or b.name not in ("bool", "dyn"):
            return self.fail(node, f"found no matching overload for '{name}' applied to '({a}, {b})'")

        def run(env: Env) -> bool:
            # an error on one side does not matter when the other side decides
            try:
                first = left(env)
                if first is decisive:
                    return bool(decisive)
            except CostExceeded:
                raise
            except CelError as error:
                try:
                    if right(env) is decisive:
                        return bool(decisive)
                except CostExceeded:
                    raise
                except CelError:
                    pass  # of two errors the first is told
                raise error from None
            second = right(env)
            if second is decisive:
                return bool(decisive)
            if type(first) is not bool or type(second) is not bool:
                raise CelError("no such overload")
            return not decisive

        return run, BOOL

    def negation(self, node: Node) -> tuple[Run, Type]:
        """Compile `!a`."""
        run, kind = self.visit(node.args[0])
        if kind.name not in ("bool", "dyn"):
            return self.fail(node, f"found no matching overload for '!_' applied to '({kind})'")
        test = condition(run, kind)
        return lambda env: not test(env), BOOL

    # -- comparison

    def equality(self, node: Node) -> tuple[Run, Type]:
        """Compile `a == b`, `a != b`."""
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        if not comparable(a, b):
            return self.fail(node, f"found no matching overload for '_{node.op}_' applied to '({a}, {b})'")
        unordered = a.unordered if a.unordered is not None else b.unordered
        if unordered is not None and a.name == b.name == "list":
            wanted = node.op == "=="

            def regardless_of_order(env: Env) -> bool:
                x, y = left(env), right(env)
                charge(env, size(x) * size(y))
                return fn.equal_unordered(x, y, unordered) is wanted

            return regardless_of_order, BOOL
        plain = a == b and a.name in ("string", "int", "bool", "timestamp", "duration", "bytes", "double")
        if plain and a.name not in ("string", "bytes"):
            if node.op == "==":
                return lambda env: left(env) == right(env), BOOL
            return lambda env: left(env) != right(env), BOOL
        is_equal = node.op == "=="

        def compared(env: Env) -> bool:
            x, y = left(env), right(env)
            charge(env, 0.1 * min(size(x), size(y)))
            return bool(x == y if plain else fn.equal(x, y)) is is_equal

        return compared, BOOL

    def compare(self, node: Node) -> tuple[Run, Type]:
        """Compile `a < b` and the like."""
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        test = _COMPARE[node.op]
        numeric = {a.name, b.name} <= _NUMBERS
        if not numeric and "dyn" not in (a.name, b.name) and not (a.name == b.name and a.name in _ORDERED):
            return self.fail(node, f"found no matching overload for '_{node.op}_' applied to '({a}, {b})'")

        def run(env: Env) -> bool:
            x, y = left(env), right(env)
            m, n = fn.runtime_name(x), fn.runtime_name(y)
            if (m == n and m in _ORDERED) or (m in _NUMBERS and n in _NUMBERS):
                return test(x, y)
            raise CelError("no such overload")

        return run, BOOL

    def membership(self, node: Node) -> tuple[Run, Type]:
        """Compile `a in b`."""
        (item, a), (container, b) = (self.visit(n) for n in node.args)
        if b.name == "list":
            if not comparable(a, b.params[0]):
                return self.fail(node, f"found no matching overload for '@in' applied to '({a}, {b})'")
            if node.args[1].op == "list" and not node.args[1].args:
                return lambda env: False, BOOL  # whatever is looked for is not looked at
            if node.args[1].op == "list" and a.name == "string" and all(n.op == "const" for n in node.args[1].args):
                values = frozenset(n.value for n in node.args[1].args)
                return lambda env: item(env) in values, BOOL

            def looked_for(env: Env) -> bool:
                what, where = item(env), container(env)
                charge(env, size(where))
                return fn.contains(where, what)

            return looked_for, BOOL
        if b.name == "map":
            if not comparable(a, b.params[0]):
                return self.fail(node, f"found no matching overload for '@in' applied to '({a}, {b})'")
            return lambda env: find(container(env), item(env)) is not MISSING, BOOL
        if b.name != "dyn":
            return self.fail(node, f"found no matching overload for '@in' applied to '({a}, {b})'")

        def run(env: Env) -> bool:
            value, where = item(env), container(env)
            charge(env, size(where) if type(where) is list else 1)
            if type(where) is list:
                return fn.contains(where, value)
            if type(where) is dict:
                return find(where, value) is not MISSING
            raise CelError("no such overload")

        return run, BOOL

    # -- arithmetic

    def arithmetic(self, node: Node) -> tuple[Run, Type]:
        """Compile `a + b` and the like."""
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        op = node.op
        result = arithmetic_type(op, a, b)
        if result is None:
            return self.fail(node, f"found no matching overload for '_{op}_' applied to '({a}, {b})'")
        operate = OPERATIONS[op]
        if op == "+" and a.name not in _NUMBERS:

            def joined_up(env: Env) -> Any:
                x, y = left(env), right(env)
                charge(env, 0.1 * (size(x) + size(y)))
                return operate(x, y)

            return joined_up, result
        return lambda env: operate(left(env), right(env)), result

    def minus(self, node: Node) -> tuple[Run, Type]:
        """Compile `-a`."""
        run, kind = self.visit(node.args[0])
        if kind.name not in ("int", "double", "dyn"):
            return self.fail(node, f"found no matching overload for '-_' applied to '({kind})'")

        def negate(env: Env) -> Any:
            value = run(env)
            if type(value) is int:
                return fn.checked(-value)
            if type(value) is float:
                return -value
            raise CelError("no such overload")

        return negate, kind

    # -- members

    def select(self, node: Node) -> tuple[Run, Type]:
        """Compile `a.b`."""
        qualified = self._qualified(node)
        if qualified is not None:
            return qualified
        run, kind = self.visit(node.args[0])
        return self._member(node, run, kind, optional=False)

    def select_optional(self, node: Node) -> tuple[Run, Type]:
        """Compile `a.?b`."""
        run, kind = self.visit(node.args[0])
        return self._member(node, run, kind, optional=True)

    def _qualified(self, node: Node) -> tuple[Run, Type] | None:
        """Compile qualified type names like google.protobuf.Timestamp."""
        parts = [node.value]
        inner = node.args[0]
        while inner.op == "select":
            parts.append(inner.value)
            inner = inner.args[0]
        if inner.op != "ident" or inner.value in self.scope:
            return None
        name = ".".join([inner.value, *reversed(parts)])
        if name in ("google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.URL"):
            value = TypeValue(name)
            return lambda env: value, TYPE
        return None

    def _field(self, node: Node, kind: Type) -> tuple[str, Type, Callable[[Any], Any] | None] | None:
        name: str = node.value
        if kind.fields is not None:
            found = kind.fields.get(name)
            if found is None:
                self.problems.append((node.at, f"undefined field '{name}'"))
                return name, DYN, None
            return found.name, found.type, found.convert
        if kind.name == "map":
            return name, kind.params[1], None
        if kind.name == "dyn":
            return name, DYN, None
        self.problems.append((node.at, f"type '{kind}' does not support field selection"))
        return None

    def _member(self, node: Node, run: Run, kind: Type, *, optional: bool) -> tuple[Run, Type]:
        chained = kind.name == "optional"
        if chained:
            kind = kind.params[0]
        found = self._field(node, kind)
        if found is None:
            return no_overload, DYN
        name, result, convert = found
        written: str = node.value

        def get(value: Any) -> Any:
            if type(value) is not dict:
                raise CelError("no such overload")
            item = value.get(name, MISSING)
            if item is MISSING:
                raise CelError(f"no such key: {written}")
            return item if convert is None else convert(item)

        if not optional and not chained:
            return lambda env: get(run(env)), result

        def maybe(env: Env) -> Optional:
            value = run(env)
            if isinstance(value, Optional):
                if not value.present:
                    return NONE
                value = value.value
            if type(value) is not dict or name not in value:
                return NONE
            return Optional(get(value), True)

        return maybe, optional_of(result)

    def index(self, node: Node) -> tuple[Run, Type]:
        """Compile `a[b]`."""
        return self._index(node, optional=False)

    def index_optional(self, node: Node) -> tuple[Run, Type]:
        """Compile `a[?b]`."""
        return self._index(node, optional=True)

    def _index(self, node: Node, *, optional: bool) -> tuple[Run, Type]:
        (run, kind), (key, key_type) = (self.visit(n) for n in node.args)
        chained = kind.name == "optional"
        if chained:
            kind = kind.params[0]
        if kind.name == "list":
            if key_type.name not in ("int", "uint", "dyn"):
                return self.fail(node, f"found no matching overload for '_[_]' applied to '({kind}, {key_type})'")
            result = kind.params[0]
        elif kind.name == "map":
            if not comparable(kind.params[0], key_type):
                return self.fail(node, f"found no matching overload for '_[_]' applied to '({kind}, {key_type})'")
            result = kind.params[1]
        elif kind.name == "dyn":
            result = DYN
        else:
            return self.fail(node, f"found no matching overload for '_[_]' applied to '({kind}, {key_type})'")

        def get(value: Any, at: Any) -> Any:
            if type(value) is list:
                if type(at) is bool or not isinstance(at, (int, float)):
                    raise CelError(f"unsupported index type '{fn.shown_name(fn.runtime_name(at))}' in list")
                if isinstance(at, float) and not at.is_integer():
                    raise CelError(f"unsupported index value {show_double(at)} in list")
                if not 0 <= at < len(value):
                    raise CelError(f"index out of bounds: {int(at)}")
                return value[int(at)]
            if type(value) is dict:
                item = find(value, at)
                if item is MISSING:
                    raise CelError(f"no such key: {to_string(at)}")
                return item
            raise CelError("no such overload")

        if not optional and not chained:
            return lambda env: get(run(env), key(env)), result

        def maybe(env: Env) -> Optional:
            value = run(env)
            if isinstance(value, Optional):
                if not value.present:
                    return NONE
                value = value.value
            at = key(env)
            if type(value) is dict and find(value, at) is MISSING:
                return NONE
            if type(value) is list and isinstance(at, (int, float)) and not 0 <= at < len(value):
                return NONE
            return Optional(get(value, at), True)

        return maybe, optional_of(result)

    # -- literals


_VISITORS: Final = {
    "const": "const",
    "uint": "uint",
    "ident": "ident",
    "?:": "conditional",
    "||": "either",
    "&&": "both",
    "!": "negation",
    "neg": "minus",
    "==": "equality",
    "!=": "equality",
    "in": "membership",
    "select": "select",
    "select?": "select_optional",
    "index": "index",
    "index?": "index_optional",
    "list": "list_literal",
    "map": "map_literal",
    "message": "message",
    "call": "call",
    "method": "method",
}
