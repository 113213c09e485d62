"""Check and compile CEL: a syntax tree becomes a closure over an environment of slots.

Types are checked as far as they are known; for an operand of type `dyn` (int-or-string, mixed lists) the overload is chosen at run time.
Work is charged in advance (`metering`), so that no rule can overload the server.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from clusterwright.cel import overloads as fn
from clusterwright.cel.catalogue import OVERLOADS
from clusterwright.cel.expressions import Expressions, no_overload
from clusterwright.cel.formatting import CLAUSES, interpolated, refused, to_string
from clusterwright.cel.literals import common, is_present
from clusterwright.cel.metering import CALL_LIMIT, CALLS, charge, linear, weight
from clusterwright.cel.moments import Timestamp, parse_duration, parse_timestamp
from clusterwright.cel.operations import MISSING, Env, Run, condition, exactly_one, filtered, find, mapped, pairs, quantified, singles
from clusterwright.cel.syntax import Node, SyntaxProblem, parse
from clusterwright.cel.types import BOOL, DYN, INT, TYPE, Type, list_of, map_of, optional_of
from clusterwright.cel.values import NONE, CelError, Optional
from clusterwright.golang.regex import compile_go


class CompileError(Exception):
    """The expression does not compile. The text follows `compilation failed: `."""


class NotInstantiated(CompileError):
    """The expression is valid, but a constant in it cannot be converted. The text follows `program instantiation failed: `."""


class Program:
    """A compiled expression. `uses` are the variables that it reads; `type` is the type of its result."""

    __slots__ = ("_run", "_slots", "slots", "type", "uses")

    def __init__(self, run: Run, kind: Type, slots: dict[str, int], size: int, uses: frozenset[str]) -> None:
        self._run = run
        self.type = kind
        self.slots = slots
        self._slots = size
        self.uses = uses

    def evaluate(self, *values: Any, budget: list[float] | None = None) -> Any:
        """Return the result for the values of the variables, in the order of their declaration. Raises CelError.

        `budget[0]`: the units that this and other evaluations may spend; the cost is subtracted.
        """
        env: Env = [None] * self._slots
        limit = env[0] = CALL_LIMIT if budget is None else min(CALL_LIMIT, budget[0])
        env[1 : 1 + len(values)] = values
        try:
            return self._run(env)
        except RecursionError:
            raise CelError("evaluation too deep") from None
        finally:
            if budget is not None:
                budget[0] -= limit - max(env[0], 0)


def compile_expression(source: str, variables: Mapping[str, Type], messages: Collection[str] = ()) -> Program:
    """Return a compiled program; raises CompileError with cel-go's positions. `messages`: types for `Name{field: value}`."""
    try:
        tree = parse(source)
    except SyntaxProblem as e:
        raise CompileError(_report(source, [(p.offset, p.message) for p in (*e.earlier, e)])) from None
    except RecursionError:
        raise CompileError("expression recursion limit exceeded") from None
    compiler = _Compiler(variables, messages)
    try:
        run, kind = compiler.visit(tree)
    except RecursionError:
        raise CompileError("expression recursion limit exceeded") from None
    if compiler.problems:
        raise CompileError(_report(source, compiler.problems))
    if compiler.impossible:
        raise NotInstantiated(compiler.impossible[0])
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


_LITERALS: Final[dict[str, Callable[[Any], Any]]] = {
    "timestamp": lambda v: parse_timestamp(v) if isinstance(v, str) else Timestamp(v * 10**9),
    "duration": lambda v: parse_duration(v) if isinstance(v, str) else None,
    "matches": lambda v: compile_go(v) if isinstance(v, str) else None,
}
_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})
_MACROS_1: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})


def _called(name: str, run: Callable[..., Any], values: list[Any]) -> Any:
    try:
        return run(*values)
    except (TypeError, AttributeError):
        raise _no_such(name, values) from None  # a value is not, or does not hold, what was declared


def _no_such(name: str, values: list[Any]) -> CelError:
    return CelError(f"no such overload: {name}({', '.join(fn.type_value(v).name for v in values)})")


def _insert(into: dict[Any, Any], entries: Any) -> None:
    """Add the entries of one map that transformMapEntry made."""
    if not isinstance(entries, dict):
        raise CelError(f"no such overload: cel.@mapInsert(map, {fn.type_value(entries).name})")
    for key, value in entries.items():
        if find(into, key) is not MISSING:
            raise CelError(f"insert failed: key {to_string(key)} already exists")
        into[key] = value


class _Compiler(Expressions):
    """Compiles calls and macros, in addition to expressions."""

    # -- calls

    def message(self, node: Node) -> tuple[Run, Type]:
        """Compile `Name{field: value}`: plain data, whatever its name; `Name.field{}` is a part of `Name{}`."""
        name, fields = node.value
        if name.split(".")[0] not in self.messages:
            return self.fail(node, f"undeclared reference to '{name}' (in container '')")
        runs = [self.visit(n)[0] for n in node.args]

        def make(env: Env) -> dict[str, Any]:
            out: dict[str, Any] = {}
            for (field, optional), run in zip(fields, runs, strict=True):
                value = run(env)
                if not optional:
                    out[field] = value
                elif is_present(value):
                    out[field] = value.value
            return out

        return make, DYN

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
            return self.fail(node.args[0] if node.args else node, "invalid argument to has() macro")
        target = node.args[0]
        run, kind = self.visit(target.args[0])
        if kind.name == "optional":
            kind = kind.params[0]
        found = self._field(target, kind)
        if found is None:
            return no_overload, BOOL
        name = found[0]

        def test(env: Env) -> bool:
            value = run(env)
            if isinstance(value, Optional):
                value = value.value if value.present else {}
            return type(value) is dict and name in value  # what has no fields, null among it, has not this one

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
        if target.op == "ident" and target.value not in self.scope and f"{target.value}.{name}" in OVERLOADS:
            return self.dispatch(node, f"{target.value}.{name}", [self.visit(n) for n in arguments], receiver=False)
        mixed, self.mixed = self.mixed, self.mixed or name == "format"
        parts = [self.visit(n) for n in node.args]
        self.mixed = mixed
        self._check_literals(name, node.args)
        if name == "format" and target.op == "const" and isinstance(target.value, str) and [n.op for n in arguments] == ["list"]:
            self._check_format(node, target.value, arguments[0])
        return self.dispatch(node, name, parts, receiver=True)

    def _check_format(self, node: Node, text: str, listed: Node) -> None:
        """Check a literal format against literal arguments."""
        kinds = self.elements[id(listed)]
        at = node.at

        def check(index: int, verb: str, precision: int) -> str:
            nonlocal at
            del precision
            if kinds[index].name not in (*CLAUSES[verb.lower()][0], "dyn"):
                at = listed.args[index].at
                raise refused(verb, kinds[index].name)
            return ""

        try:
            _, used = interpolated(text, len(kinds), check)
            if len(kinds) > used:
                raise CelError(f"too many arguments supplied to string.format (expected {used}, got {len(kinds)})")
        except CelError as e:
            self.problems.append((at, str(e)))

    def _check_literals(self, name: str, arguments: tuple[Node, ...]) -> None:
        """Refuse literal arguments that always fail."""
        parse_literal = _LITERALS.get(name)
        if parse_literal is None or not arguments:
            return
        last = arguments[-1]
        if last.op == "const" and type(last.value) in (str, int):
            try:
                parse_literal(last.value)
            except (CelError, ValueError):
                self.problems.append((last.at, f"invalid {name} argument"))

    def _convert(self, run: Callable[..., Any], constant: Any) -> None:
        """Convert constants once, before type checks."""
        try:
            run(constant)
        except CelError as e:
            self.impossible.append(str(e))

    def dispatch(self, node: Node, name: str, parts: list[tuple[Run, Type]], *, receiver: bool) -> tuple[Run, Type]:
        runs, kinds = [r for r, _ in parts], [k for _, k in parts]
        overloads = OVERLOADS.get(name, ())
        if not overloads:
            return self.fail(node, f"undeclared reference to '{name}' (in container '')")
        cost = CALLS.get(name, linear)
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
            if name in _CONVERSIONS and node.args[0].op in ("const", "uint"):
                self._convert(run, node.args[0].value)

            def charged(env: Env) -> Any:
                values = [r(env) for r in runs]
                charge(env, cost(values))
                return _called(name, run, values)

            return charged, result
        candidates = [o for o, _ in matching]

        def choose(env: Env) -> Any:
            values = [r(env) for r in runs]
            charge(env, cost(values))
            for overload in candidates:
                if all(fn.fits(p, v) for p, v in zip(overload.params, values, strict=True)):
                    return _called(name, overload.run, values)
            raise _no_such(name, values)

        return choose, common([r for _, r in matching])

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
            body = self._condition(arguments[2])
            self._restore(saved2, saved)
            iterate = pairs(run, slot, slot2, 1 + weight(arguments[2]))
        else:
            variable = key_type if is_map and key_type is not DYN else value_type
            slot, saved = self._declare(arguments[0].value, variable)
            if name == "map":
                test = self._condition(arguments[1]) if len(arguments) == 3 else None
                body, kind = self.visit(arguments[-1])
                self._restore(saved)
                return mapped(run, slot, test, body, 1 + sum(map(weight, arguments[1:]))), list_of(kind)
            body = self._condition(arguments[-1])
            self._restore(saved)
            if name == "filter":
                return filtered(run, slot, body, 1 + weight(arguments[1])), list_of(variable)
            iterate = singles(run, slot, 1 + weight(arguments[-1]))
        if name == "all":
            return quantified(iterate, body, False), BOOL
        if name == "exists":
            return quantified(iterate, body, True), BOOL
        return exactly_one(iterate, body), BOOL

    def _condition(self, node: Node) -> Run:
        run, kind = self.visit(node)
        if kind.name not in ("bool", "dyn"):
            self.problems.append((node.at, f"expected type 'bool' but found '{kind}'"))
        return condition(run, kind)

    def transform(self, node: Node, target: Node, arguments: list[Node]) -> tuple[Run, Type]:
        if len(arguments) not in (3, 4) or arguments[0].op != "ident" or arguments[1].op != "ident":
            return self.fail(node, f"found no matching overload for '{node.value}'")
        run, key_type, value_type = self._range(node, target)
        slot, saved = self._declare(arguments[0].value, key_type)
        slot2, saved2 = self._declare(arguments[1].value, value_type)
        test = self._condition(arguments[2]) if len(arguments) == 4 else None
        body, kind = self.visit(arguments[-1])
        self._restore(saved2, saved)
        iterate = pairs(run, slot, slot2, 1 + sum(map(weight, arguments[2:])))
        into_list = node.value == "transformList"
        entries = node.value == "transformMapEntry"

        def execute(env: Env) -> Any:
            out_list: list[Any] = []
            out_map: dict[Any, Any] = {}
            for _ in iterate(env):
                if test is not None and not test(env):
                    continue
                value = body(env)
                if into_list:
                    out_list.append(value)
                elif entries:
                    _insert(out_map, value)
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

        def execute(env: Env) -> Any:
            value = run(env)
            if not is_present(value):
                return NONE
            env[slot] = value.value
            out = body(env)
            return out if flat else Optional(out, True)

        return execute, result if flat else optional_of(result)
