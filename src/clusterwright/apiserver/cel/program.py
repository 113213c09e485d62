"""Checking and compiling CEL: a syntax tree becomes a closure over an environment of slots.

Types are checked as far as they are known; where an operand is `dyn` (int-or-string, mixed lists) the overload is chosen at run
time. Work is counted in comprehension steps, so that no rule can run away with the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from clusterwright.apiserver.cel import functions as fn
from clusterwright.apiserver.cel.syntax import Node, SyntaxProblem, parse
from clusterwright.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    comparable,
    joined,
    list_of,
    map_of,
    optional_of,
)
from clusterwright.apiserver.cel.values import INT_MAX, INT_MIN, NONE, CelError, Optional, TypeValue, UInt, parse_duration, parse_timestamp
from clusterwright.apiserver.schema.regex import BadPattern, compile_go

Env = list[Any]
Run = Callable[[Env], Any]

CALL_LIMIT: Final = 1_000_000
"""Comprehension steps that one evaluation may take."""

_MISSING: Final = object()


class CompileError(Exception):
    """The expression does not compile. The text is what follows `compilation failed: `."""


class CostExceeded(CelError):
    """The evaluation took too many steps."""


class Program:
    """A compiled expression. `uses` are the variables that it reads; `type` is its result's."""

    __slots__ = ("_run", "_slots", "slots", "type", "uses")

    def __init__(self, run: Run, kind: Type, slots: dict[str, int], size: int, uses: frozenset[str]) -> None:
        self._run = run
        self.type = kind
        self.slots = slots
        self._slots = size
        self.uses = uses

    def evaluate(self, *values: Any) -> Any:
        """The result for the values of the variables, in the order of their declaration. Raises CelError."""
        env: Env = [None] * self._slots
        env[0] = CALL_LIMIT
        env[1 : 1 + len(values)] = values
        try:
            return self._run(env)
        except RecursionError:
            raise CelError("evaluation too deep") from None


def compile_expression(source: str, variables: Mapping[str, Type]) -> Program:
    """Compile; raises CompileError with positions as cel-go shows them."""
    try:
        tree = parse(source)
    except SyntaxProblem as e:
        raise CompileError(_report(source, [(e.offset, e.message)])) from None
    except RecursionError:
        raise CompileError("expression recursion limit exceeded") from None
    compiler = _Compiler(variables)
    try:
        run, kind = compiler.visit(tree)
    except RecursionError:
        raise CompileError("expression recursion limit exceeded") from None
    if compiler.problems:
        raise CompileError(_report(source, compiler.problems))
    return Program(run, kind, compiler.scope, compiler.size, frozenset(compiler.uses))


def _report(source: str, problems: list[tuple[int, str]]) -> str:
    out = []
    for offset, message in problems:
        start = source.rfind("\n", 0, offset) + 1
        end = source.find("\n", offset)
        line = source[start:] if end < 0 else source[start:end]
        number, column = source.count("\n", 0, offset) + 1, offset - start
        out.append(f"ERROR: <input>:{number}:{column + 1}: {message}\n | {line}\n | {'.' * column}^")
    return "\n".join(out)


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
_LITERALS: Final[dict[str, Callable[[str], Any]]] = {"timestamp": parse_timestamp, "duration": parse_duration, "matches": compile_go}
_MACROS_1: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})


def _no_overload(*_: Any) -> Any:
    raise CelError("no such overload")


class _Compiler:
    def __init__(self, variables: Mapping[str, Type]) -> None:
        self.scope: dict[str, int] = {}
        self.types: dict[str, Type] = {}
        self.size = 1
        self.uses: set[str] = set()
        self.problems: list[tuple[int, str]] = []
        self.declared = set(variables)
        self.mixed = False
        for name, kind in variables.items():
            self.scope[name] = self.size
            self.types[name] = kind
            self.size += 1

    def fail(self, node: Node, message: str) -> tuple[Run, Type]:
        self.problems.append((node.at, message))
        return _no_overload, DYN

    def visit(self, node: Node) -> tuple[Run, Type]:
        method = _VISITORS.get(node.op)
        if method is not None:
            return method(self, node)
        if node.op in _COMPARE:
            return self.compare(node)
        return self.arithmetic(node)

    # -- leaves

    def const(self, node: Node) -> tuple[Run, Type]:
        value = node.value
        if type(value) is int and not INT_MIN <= value <= INT_MAX:
            return self.fail(node, "invalid int literal")
        kind = {bool: BOOL, int: INT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}[type(value)]
        return lambda env: value, kind

    def uint(self, node: Node) -> tuple[Run, Type]:
        value = UInt(node.value)
        return lambda env: value, UINT

    def ident(self, node: Node) -> tuple[Run, Type]:
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
        (test, kind), (yes, a), (no, b) = (self.visit(n) for n in node.args)
        if kind.name not in ("bool", "dyn"):
            return self.fail(node, f"found no matching overload for '_?_:_' applied to '({kind}, {a}, {b})'")
        if not comparable(a, b):
            return self.fail(node, f"found no matching overload for '_?_:_' applied to '(bool, {a}, {b})'")
        return lambda env: yes(env) if test(env) else no(env), joined(a, b)

    def either(self, node: Node) -> tuple[Run, Type]:
        return self._logical(node, "_||_", True)

    def both(self, node: Node) -> tuple[Run, Type]:
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
            except CelError:
                if right(env) is decisive:
                    return bool(decisive)
                raise
            second = right(env)
            if second is decisive:
                return bool(decisive)
            if type(first) is not bool or type(second) is not bool:
                raise CelError("no such overload")
            return not decisive

        return run, BOOL

    def negation(self, node: Node) -> tuple[Run, Type]:
        run, kind = self.visit(node.args[0])
        if kind.name == "bool":
            return lambda env: not run(env), BOOL
        if kind.name != "dyn":
            return self.fail(node, f"found no matching overload for '!_' applied to '({kind})'")

        def checked(env: Env) -> bool:
            value = run(env)
            if type(value) is not bool:
                raise CelError("no such overload")
            return not value

        return checked, BOOL

    # -- comparison

    def equality(self, node: Node) -> tuple[Run, Type]:
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        if not comparable(a, b):
            return self.fail(node, f"found no matching overload for '_{node.op}_' applied to '({a}, {b})'")
        plain = a == b and a.name in ("string", "int", "bool", "timestamp", "duration", "bytes", "double")
        if node.op == "==":
            if plain:
                return lambda env: left(env) == right(env), BOOL
            return lambda env: fn.equal(left(env), right(env)), BOOL
        if plain:
            return lambda env: left(env) != right(env), BOOL
        return lambda env: not fn.equal(left(env), right(env)), BOOL

    def compare(self, node: Node) -> tuple[Run, Type]:
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        test = _COMPARE[node.op]
        if a.name == b.name and a.name in _ORDERED:
            return lambda env: test(left(env), right(env)), BOOL
        numeric = {a.name, b.name} <= _NUMBERS
        if not numeric and "dyn" not in (a.name, b.name):
            return self.fail(node, f"found no matching overload for '_{node.op}_' applied to '({a}, {b})'")

        def run(env: Env) -> bool:
            x, y = left(env), right(env)
            m, n = fn.runtime_name(x), fn.runtime_name(y)
            if (m == n and m in _ORDERED) or (m in _NUMBERS and n in _NUMBERS):
                return test(x, y)
            raise CelError("no such overload")

        return run, BOOL

    def membership(self, node: Node) -> tuple[Run, Type]:
        (item, a), (container, b) = (self.visit(n) for n in node.args)
        if b.name == "list":
            if not comparable(a, b.params[0]):
                return self.fail(node, f"found no matching overload for '@in' applied to '({a}, {b})'")
            if node.args[1].op == "list" and a.name == "string" and all(n.op == "const" for n in node.args[1].args):
                values = frozenset(n.value for n in node.args[1].args)
                return lambda env: item(env) in values, BOOL
            return lambda env: fn.contains(container(env), item(env)), BOOL
        if b.name == "map":
            if not comparable(a, b.params[0]):
                return self.fail(node, f"found no matching overload for '@in' applied to '({a}, {b})'")
            return lambda env: item(env) in container(env), BOOL
        if b.name != "dyn":
            return self.fail(node, f"found no matching overload for '@in' applied to '({a}, {b})'")

        def run(env: Env) -> bool:
            value, where = item(env), container(env)
            if type(where) is list:
                return fn.contains(where, value)
            if type(where) is dict:
                return value in where
            raise CelError("no such overload")

        return run, BOOL

    # -- arithmetic

    def arithmetic(self, node: Node) -> tuple[Run, Type]:
        (left, a), (right, b) = (self.visit(n) for n in node.args)
        op = node.op
        result = _arithmetic_type(op, a, b)
        if result is None:
            return self.fail(node, f"found no matching overload for '_{op}_' applied to '({a}, {b})'")
        if op == "+" and a.name == b.name == "string":
            return lambda env: left(env) + right(env), STRING
        operate = _OPERATIONS[op]
        return lambda env: operate(left(env), right(env)), result

    def minus(self, node: Node) -> tuple[Run, Type]:
        run, kind = self.visit(node.args[0])
        if kind.name not in ("int", "double", "dyn", "duration"):
            return self.fail(node, f"found no matching overload for '-_' applied to '({kind})'")

        def negate(env: Env) -> Any:
            value = run(env)
            if type(value) is int:
                return fn.checked(-value)
            if type(value) is float or type(value) is timedelta:
                return -value
            raise CelError("no such overload")

        return negate, kind

    # -- members

    def select(self, node: Node) -> tuple[Run, Type]:
        qualified = self._qualified(node)
        if qualified is not None:
            return qualified
        run, kind = self.visit(node.args[0])
        return self._member(node, run, kind, optional=False)

    def select_optional(self, node: Node) -> tuple[Run, Type]:
        run, kind = self.visit(node.args[0])
        return self._member(node, run, kind, optional=True)

    def _qualified(self, node: Node) -> tuple[Run, Type] | None:
        """google.protobuf.Timestamp and the like name types."""
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
            return _no_overload, DYN
        name, result, convert = found

        def get(value: Any) -> Any:
            if type(value) is not dict:
                raise CelError("no such overload")
            item = value.get(name, _MISSING)
            if item is _MISSING:
                raise CelError(f"no such key: {name}")
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
        return self._index(node, optional=False)

    def index_optional(self, node: Node) -> tuple[Run, Type]:
        return self._index(node, optional=True)

    def _index(self, node: Node, *, optional: bool) -> tuple[Run, Type]:
        (run, kind), (key, key_type) = (self.visit(n) for n in node.args)
        chained = kind.name == "optional"
        if chained:
            kind = kind.params[0]
        if kind.name == "list":
            if key_type.name not in ("int", "uint", "dyn", "double"):
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
                if type(at) is bool or not isinstance(at, (int, float)) or at != int(at):
                    raise CelError("no such overload")
                if not 0 <= at < len(value):
                    raise CelError(f"index out of bounds: {int(at)}")
                return value[int(at)]
            if type(value) is dict:
                if at not in value:
                    raise CelError(f"no such key: {at}")
                return value[at]
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
            if (type(value) is list and (type(at) is not int or not 0 <= at < len(value))) or (type(value) is dict and at not in value):
                return NONE
            return Optional(get(value, at), True)

        return maybe, optional_of(result)

    # -- literals

    def list_literal(self, node: Node) -> tuple[Run, Type]:
        parts = [self.visit(n) for n in node.args]
        runs = [r for r, _ in parts]
        flags: tuple[bool, ...] = node.value or ()
        self._same(node.args, [k for _, k in parts])
        item = _common([k.params[0] if f and k.params else k for (_, k), f in zip(parts, flags, strict=True)])
        if not any(flags):
            return lambda env: [r(env) for r in runs], list_of(item)

        def run(env: Env) -> list[Any]:
            out = []
            for r, optional in zip(runs, flags, strict=True):
                value = r(env)
                if not optional:
                    out.append(value)
                elif value.present:
                    out.append(value.value)
            return out

        return run, list_of(item)

    def _same(self, nodes: tuple[Node, ...], kinds: list[Type]) -> None:
        """Elements of a literal have one type, except in the arguments of format."""
        if self.mixed:
            return
        first = next((k for k in kinds if k.name not in ("dyn", "null")), None)
        for node, kind in zip(nodes, kinds, strict=True):
            if first is not None and not comparable(first, kind):
                self.problems.append((node.at, f"expected type '{first}' but found '{kind}'"))
                return

    def map_literal(self, node: Node) -> tuple[Run, Type]:
        parts = [self.visit(n) for n in node.args]
        flags: tuple[bool, ...] = node.value or ()
        pairs = [(parts[i][0], parts[i + 1][0]) for i in range(0, len(parts), 2)]
        key = _common([parts[i][1] for i in range(0, len(parts), 2)])
        value_types = [parts[i][1] for i in range(1, len(parts), 2)]
        self._same(node.args[::2], [parts[i][1] for i in range(0, len(parts), 2)])
        self._same(node.args[1::2], value_types)
        value = _common([k.params[0] if f and k.params else k for k, f in zip(value_types, flags, strict=True)])

        def run(env: Env) -> dict[Any, Any]:
            out = {}
            for (k, v), optional in zip(pairs, flags, strict=True):
                item = v(env)
                if optional:
                    if not item.present:
                        continue
                    item = item.value
                at = k(env)
                out[at] = item
            return out

        return run, map_of(key, value)

    # -- calls

    def call(self, node: Node) -> tuple[Run, Type]:
        if node.value == "has":
            return self.has(node)
        if node.value == "type" and len(node.args) == 1:
            run, _ = self.visit(node.args[0])
            return lambda env: fn.type_value(run(env)), TYPE
        self._check_literals(node.value, node.args)
        return self.dispatch(node, node.value, [self.visit(n) for n in node.args], receiver=False)

    def has(self, node: Node) -> tuple[Run, Type]:
        if len(node.args) != 1 or node.args[0].op != "select":
            return self.fail(node, "invalid argument to has() macro")
        target = node.args[0]
        run, kind = self.visit(target.args[0])
        if kind.name == "optional":
            kind = kind.params[0]
        found = self._field(target, kind)
        if found is None:
            return _no_overload, BOOL
        name = found[0]

        def test(env: Env) -> bool:
            value = run(env)
            if isinstance(value, Optional):
                value = value.value if value.present else {}
            if type(value) is not dict:
                raise CelError("no such overload")
            return name in value

        return test, BOOL

    def method(self, node: Node) -> tuple[Run, Type]:
        target, *arguments = node.args
        name = node.value
        if name in _MACROS_1 and arguments and arguments[0].op == "ident":
            return self.macro(node, target, arguments)
        if name in ("transformList", "transformMap", "transformMapEntry"):
            return self.transform(node, target, arguments)
        if name in ("optMap", "optFlatMap") and len(arguments) == 2:
            return self.opt_map(node, target, arguments)
        if target.op == "ident" and target.value not in self.scope and f"{target.value}.{name}" in fn.OVERLOADS:
            return self.dispatch(node, f"{target.value}.{name}", [self.visit(n) for n in arguments], receiver=False)
        mixed, self.mixed = self.mixed, self.mixed or name == "format"
        parts = [self.visit(n) for n in node.args]
        self.mixed = mixed
        self._check_literals(name, node.args)
        return self.dispatch(node, name, parts, receiver=True)

    def _check_literals(self, name: str, arguments: tuple[Node, ...]) -> None:
        """Literal arguments that can only fail are refused at once."""
        parse_literal = _LITERALS.get(name)
        if parse_literal is None or not arguments:
            return
        last = arguments[-1]
        if last.op == "const" and isinstance(last.value, str):
            try:
                parse_literal(last.value)
            except (CelError, BadPattern):
                self.problems.append((last.at, f"invalid {name} argument"))

    def dispatch(self, node: Node, name: str, parts: list[tuple[Run, Type]], *, receiver: bool) -> tuple[Run, Type]:
        runs, kinds = [r for r, _ in parts], [k for _, k in parts]
        overloads = fn.OVERLOADS.get(name, ())
        if not overloads:
            return self.fail(node, f"undeclared reference to '{name}' (in container '')")
        matching: list[tuple[fn.Overload, Type]] = []
        for overload in overloads:
            if overload.receiver != receiver or len(overload.params) != len(kinds):
                continue
            bound: dict[str, Type] = {}
            if all(fn.unify(p, k, bound) for p, k in zip(overload.params, kinds, strict=True)):
                matching.append((overload, fn.substitute(overload.result, bound)))
        if not matching:
            shown = ", ".join(map(str, kinds[1:] if receiver else kinds))
            applied = f"{kinds[0]}.({shown})" if receiver else f"({shown})"
            return self.fail(node, f"found no matching overload for '{name}' applied to '{applied}'")
        if len(matching) == 1 and not any(k.name == "dyn" for k in kinds):
            overload, result = matching[0]
            run = overload.run
            if len(runs) == 1:
                only = runs[0]
                return lambda env: run(only(env)), result
            if len(runs) == 2:
                first, second = runs
                return lambda env: run(first(env), second(env)), result
            return lambda env: run(*[r(env) for r in runs]), result
        candidates = [o for o, _ in matching]

        def choose(env: Env) -> Any:
            values = [r(env) for r in runs]
            for overload in candidates:
                if all(fn.fits(p, v) for p, v in zip(overload.params, values, strict=True)):
                    return overload.run(*values)
            raise CelError(f"no such overload: {name}")

        return choose, _common([r for _, r in matching])

    # -- macros

    def _declare(self, name: str, kind: Type) -> tuple[int, tuple[str, int | None, Type | None]]:
        saved = (name, self.scope.get(name), self.types.get(name))
        slot = self.size
        self.size += 1
        self.scope[name] = slot
        self.types[name] = kind
        return slot, saved

    def _restore(self, *saved: tuple[str, int | None, Type | None]) -> None:
        for name, slot, kind in saved:
            if slot is None or kind is None:
                self.scope.pop(name, None)
                self.types.pop(name, None)
            else:
                self.scope[name], self.types[name] = slot, kind

    def _range(self, node: Node, target: Node) -> tuple[Run, Type, Type]:
        run, kind = self.visit(target)
        if kind.name == "list":
            return run, INT, kind.params[0]
        if kind.name == "map":
            return run, kind.params[0], kind.params[1]
        if kind.name != "dyn":
            self.problems.append(
                (target.at, f"expression of type '{kind}' cannot be range of a comprehension (must be list, map, or dynamic)")
            )
        return run, DYN, DYN

    def macro(self, node: Node, target: Node, arguments: list[Node]) -> tuple[Run, Type]:
        name = node.value
        two = len(arguments) == 3 and arguments[1].op == "ident" and name in ("all", "exists", "existsOne", "exists_one")
        expected = 3 if two else (2, 3) if name == "map" else 2
        if (len(arguments) not in expected) if isinstance(expected, tuple) else len(arguments) != expected:
            return self.fail(node, f"found no matching overload for '{name}'")
        run, key_type, value_type = self._range(node, target)
        is_map = key_type is not INT
        if two:
            slot, saved = self._declare(arguments[0].value, key_type)
            slot2, saved2 = self._declare(arguments[1].value, value_type)
            body, kind = self.visit(arguments[2])
            self._restore(saved2, saved)
            iterate = _pairs(run, slot, slot2)
        else:
            variable = key_type if is_map and key_type is not DYN else value_type
            slot, saved = self._declare(arguments[0].value, variable)
            condition: Run | None = None
            if len(arguments) == 3:
                condition, kind = self.visit(arguments[1])
                self._needs_bool(arguments[1], kind)
            body, kind = self.visit(arguments[-1])
            self._restore(saved)
            if name == "map":
                return _map(run, slot, condition, body), list_of(kind)
            if name == "filter":
                self._needs_bool(arguments[1], kind)
                return _filter(run, slot, body), list_of(variable)
            iterate = _singles(run, slot)
        self._needs_bool(arguments[-1], kind)
        if name == "all":
            return _quantified(iterate, body, False), BOOL
        if name == "exists":
            return _quantified(iterate, body, True), BOOL
        return _exactly_one(iterate, body), BOOL

    def _needs_bool(self, node: Node, kind: Type) -> None:
        if kind.name not in ("bool", "dyn"):
            self.problems.append((node.at, f"expected type 'bool' but found '{kind}'"))

    def transform(self, node: Node, target: Node, arguments: list[Node]) -> tuple[Run, Type]:
        if len(arguments) not in (3, 4) or arguments[0].op != "ident" or arguments[1].op != "ident":
            return self.fail(node, f"found no matching overload for '{node.value}'")
        run, key_type, value_type = self._range(node, target)
        slot, saved = self._declare(arguments[0].value, key_type)
        slot2, saved2 = self._declare(arguments[1].value, value_type)
        condition = self.visit(arguments[2])[0] if len(arguments) == 4 else None
        body, kind = self.visit(arguments[-1])
        self._restore(saved2, saved)
        iterate = _pairs(run, slot, slot2)
        into_list = node.value == "transformList"
        entries = node.value == "transformMapEntry"

        def execute(env: Env) -> Any:
            out_list: list[Any] = []
            out_map: dict[Any, Any] = {}
            for _ in iterate(env):
                if condition is not None and not condition(env):
                    continue
                value = body(env)
                if into_list:
                    out_list.append(value)
                elif entries:
                    out_map.update(value)
                else:
                    out_map[env[slot]] = value
            return out_list if into_list else out_map

        if into_list:
            return execute, list_of(kind)
        return execute, kind if entries else map_of(key_type, kind)

    def opt_map(self, node: Node, target: Node, arguments: list[Node]) -> tuple[Run, Type]:
        run, kind = self.visit(target)
        if kind.name not in ("optional", "dyn") or arguments[0].op != "ident":
            return self.fail(node, f"found no matching overload for '{node.value}' applied to '{kind}.(...)'")
        slot, saved = self._declare(arguments[0].value, kind.params[0] if kind.params else DYN)
        body, result = self.visit(arguments[1])
        self._restore(saved)
        flat = node.value == "optFlatMap"

        def execute(env: Env) -> Optional:
            value = run(env)
            if not value.present:
                return NONE
            env[slot] = value.value
            out = body(env)
            if flat:
                inner: Optional = out
                return inner
            return Optional(out, True)

        return execute, result if flat else optional_of(result)


_VISITORS: Final[dict[str, Callable[[_Compiler, Node], tuple[Run, Type]]]] = {
    "const": _Compiler.const,
    "uint": _Compiler.uint,
    "ident": _Compiler.ident,
    "?:": _Compiler.conditional,
    "||": _Compiler.either,
    "&&": _Compiler.both,
    "!": _Compiler.negation,
    "neg": _Compiler.minus,
    "==": _Compiler.equality,
    "!=": _Compiler.equality,
    "in": _Compiler.membership,
    "select": _Compiler.select,
    "select?": _Compiler.select_optional,
    "index": _Compiler.index,
    "index?": _Compiler.index_optional,
    "list": _Compiler.list_literal,
    "map": _Compiler.map_literal,
    "call": _Compiler.call,
    "method": _Compiler.method,
}


def _common(kinds: list[Type]) -> Type:
    if not kinds:
        return DYN
    result = kinds[0]
    for kind in kinds[1:]:
        result = joined(result, kind)
    return result


# ---------------------------------------------------------------- comprehensions


def _items(value: Any, env: Env) -> list[Any]:
    if type(value) is list:
        items = value
    elif type(value) is dict:
        items = list(value)
    else:
        raise CelError("no such overload")
    env[0] -= len(items) + 1
    if env[0] < 0:
        raise CostExceeded("operation cancelled: actual cost limit exceeded")
    return items


def _singles(run: Run, slot: int) -> Callable[[Env], Any]:
    def iterate(env: Env) -> Any:
        for item in _items(run(env), env):
            env[slot] = item
            yield None

    return iterate


def _pairs(run: Run, slot: int, slot2: int) -> Callable[[Env], Any]:
    def iterate(env: Env) -> Any:
        value = run(env)
        if type(value) is dict:
            _items(value, env)
            for key, item in value.items():
                env[slot], env[slot2] = key, item
                yield None
            return
        for i, item in enumerate(_items(value, env)):
            env[slot], env[slot2] = i, item
            yield None

    return iterate


def _quantified(iterate: Callable[[Env], Any], body: Run, decisive: bool) -> Run:
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


def _exactly_one(iterate: Callable[[Env], Any], body: Run) -> Run:
    def run(env: Env) -> bool:
        count = 0
        for _ in iterate(env):
            if body(env):
                count += 1
        return count == 1

    return run


def _map(run: Run, slot: int, condition: Run | None, body: Run) -> Run:
    def execute(env: Env) -> list[Any]:
        out = []
        for item in _items(run(env), env):
            env[slot] = item
            if condition is None or condition(env):
                out.append(body(env))
        return out

    return execute


def _filter(run: Run, slot: int, body: Run) -> Run:
    def execute(env: Env) -> list[Any]:
        out = []
        for item in _items(run(env), env):
            env[slot] = item
            if body(env):
                out.append(item)
        return out

    return execute


# ---------------------------------------------------------------- arithmetic


def _arithmetic_type(op: str, a: Type, b: Type) -> Type | None:
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


def _same_kind(a: Any, b: Any) -> bool:
    return fn.runtime_name(a) == fn.runtime_name(b)


def _add(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return fn.checked(a + b)
        if kind in (float, str, bytes, list, timedelta):
            return a + b
        if kind is UInt:
            return UInt(a + b)
    elif {kind, type(b)} == {datetime, timedelta}:
        return a + b
    raise CelError("no such overload")


def _subtract(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is int and type(b) is int:
        return fn.checked(a - b)
    if kind is type(b) and kind in (float, datetime, timedelta):
        return a - b
    if kind is UInt and type(b) is UInt:
        if b > a:
            raise CelError("unsigned integer overflow")
        return UInt(a - b)
    if kind is datetime and type(b) is timedelta:
        return a - b
    raise CelError("no such overload")


def _multiply(a: Any, b: Any) -> Any:
    if type(a) is type(b):
        if type(a) is int:
            return fn.checked(a * b)
        if type(a) is float:
            return a * b
        if type(a) is UInt:
            return UInt(a * b)
    raise CelError("no such overload")


def _divide(a: Any, b: Any) -> Any:
    if type(a) is type(b):
        if type(a) is float:
            if b == 0:
                return float("nan") if a == 0 else float("inf") if a > 0 else float("-inf")
            return a / b
        if isinstance(a, int) and type(a) is not bool:
            if b == 0:
                raise CelError("division by zero")
            quotient = abs(a) // abs(b)
            return type(a)(quotient if (a < 0) == (b < 0) else -quotient)
    raise CelError("no such overload")


def _modulo(a: Any, b: Any) -> Any:
    if type(a) is type(b) and isinstance(a, int) and type(a) is not bool:
        if b == 0:
            raise CelError("modulus by zero")
        remainder = abs(a) % abs(b)
        return type(a)(remainder if a >= 0 else -remainder)
    raise CelError("no such overload")


_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide, "%": _modulo}
