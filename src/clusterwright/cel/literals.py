"""List and map literals in expressions."""

from __future__ import annotations

from typing import Any

from clusterwright.cel.operations import Env, Run
from clusterwright.cel.overloads import type_value
from clusterwright.cel.syntax import Node
from clusterwright.cel.types import (
    DYN,
    Type,
    comparable,
    joined,
    list_of,
    map_of,
)
from clusterwright.cel.values import CelError, Optional


class Literals:
    """Compiles list and map literals; the rest of the compiler visits their content."""

    mixed: bool
    """Whether elements may have different types: in the arguments of format."""
    problems: list[tuple[int, str]]
    elements: dict[int, list[Type]]
    """The types of the elements of list literals, by the identity of their nodes."""

    def visit(self, node: Node) -> tuple[Run, Type]:
        """Return the closure and the type of a node."""
        raise NotImplementedError

    def list_literal(self, node: Node) -> tuple[Run, Type]:
        """Compile `[a, b]`."""
        parts = [self.visit(n) for n in node.args]
        runs = [r for r, _ in parts]
        flags: tuple[bool, ...] = node.value or ()
        self.elements[id(node)] = [k for _, k in parts]
        self._same(node.args, [k for _, k in parts])
        item = common([k.params[0] if f and k.params else k for (_, k), f in zip(parts, flags, strict=True)])
        if not any(flags):
            return lambda env: [r(env) for r in runs], list_of(item)

        def run(env: Env) -> list[Any]:
            out = []
            for r, optional in zip(runs, flags, strict=True):
                value = r(env)
                if not optional:
                    out.append(value)
                elif is_present(value):
                    out.append(value.value)
            return out

        return run, list_of(item)

    def _same(self, nodes: tuple[Node, ...], kinds: list[Type]) -> None:
        """Check that the elements of a literal have one type, except in the arguments of format."""
        if self.mixed:
            return
        first = next((k for k in kinds if k.name not in ("dyn", "null")), None)
        for node, kind in zip(nodes, kinds, strict=True):
            if first is not None and not comparable(first, kind):
                self.problems.append((node.at, f"expected type '{first}' but found '{kind}'"))
                return

    def map_literal(self, node: Node) -> tuple[Run, Type]:
        """Compile `{a: b}`."""
        parts = [self.visit(n) for n in node.args]
        flags: tuple[bool, ...] = node.value or ()
        pairs = [(parts[i][0], parts[i + 1][0]) for i in range(0, len(parts), 2)]
        key = common([parts[i][1] for i in range(0, len(parts), 2)])
        value_types = [parts[i][1] for i in range(1, len(parts), 2)]
        self._same(node.args[::2], [parts[i][1] for i in range(0, len(parts), 2)])
        self._same(node.args[1::2], value_types)
        value = common([k.params[0] if f and k.params else k for k, f in zip(value_types, flags, strict=True)])

        def run(env: Env) -> dict[Any, Any]:
            out = {}
            for (k, v), optional in zip(pairs, flags, strict=True):
                item = v(env)
                if optional:
                    if not is_present(item):
                        continue
                    item = item.value
                at = k(env)
                try:
                    out[at] = item
                except TypeError:
                    raise CelError(f"unsupported key type: {type_value(at).name}") from None
            return out

        return run, map_of(key, value)


def is_present(value: Any) -> bool:
    """Return whether an optional has a value; raises CelError for other values."""
    if not isinstance(value, Optional):
        raise CelError("no such overload")
    return value.present


def common(kinds: list[Type]) -> Type:
    """Return the common type of several values."""
    if not kinds:
        return DYN
    result = kinds[0]
    for kind in kinds[1:]:
        result = joined(result, kind)
    return result
