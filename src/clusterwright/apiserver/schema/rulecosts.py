"""Estimate the highest cost of a schema's CEL rules before they run: of each rule, and of all together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.apiserver.schema.celtypes import most_values, shape_of, type_of
from clusterwright.apiserver.schema.rules import compiled_rules
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.status import FieldError, forbidden
from clusterwright.cel.cost import UNBOUNDED, Shape, maximum_cost

EXPRESSION_LIMIT: Final = 10_000_000
TOTAL_LIMIT: Final = 100_000_000
_NAMED: Final = 4
"""The most rules that are named when all together cost too much; each has at least a hundredth of the limit."""
_ADVICE: Final = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"


_NAME: Final = Shape("string", 3 * 1024 * 1024 - 2, smallest=2)
_METADATA: Final = Shape("object", fields={"name": _NAME, "generateName": _NAME}, smallest=2)
_OF_RESOURCES: Final = {"apiVersion": _NAME, "kind": _NAME}


def cost_errors(node: Node, field: str, *, root: bool = False, messages: bool = False) -> list[FieldError]:
    """Return the rules and messages that may cost too much.

    `root`: the schema is that of a resource, which has a name. `messages`: include them in the sum.
    """
    costs = list(_costs(node, field, 1, root=root))
    errors = [_exceeded(path, f"estimated {what} cost", cost, EXPRESSION_LIMIT) for path, what, cost in costs if cost > EXPRESSION_LIMIT]
    summed = [(path, cost) for path, what, cost in costs if messages or what == "rule"]
    total = min(sum(cost for _, cost in summed), UNBOUNDED)
    if total > TOTAL_LIMIT:
        parts = "rule & messageExpression" if messages else "rule"
        text = f"contributed to estimated {parts} cost total exceeding cost limit for entire OpenAPIv3 schema"
        most = sorted((c for c in summed if c[1] >= TOTAL_LIMIT // 100), key=lambda c: -c[1])[:_NAMED]
        errors.extend(forbidden(path, text) for path, _ in most)
        what = f"x-kubernetes-validations estimated {parts} cost total for entire OpenAPIv3 schema"
        errors.append(_exceeded(field, what, total, TOTAL_LIMIT))
    return errors


def _exceeded(field: str, what: str, cost: int, limit: int) -> FieldError:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return forbidden(field, f"{what} exceeds budget by factor of {shown} {_ADVICE}")


def _costs(node: Node, field: str, times: int | None, *, root: bool = False) -> Iterator[tuple[str, str, int]]:
    """Yield path, kind and cost of each expression. `times` is how often values of the node can occur; None: unknown."""
    rules = node.source.get("x-kubernetes-validations") or ()
    shape = shape_of(node) if rules else None
    if shape is not None:
        root = root or node.embedded
        if root:
            shape = replace(shape, fields={**_OF_RESOURCES, **shape.fields, "metadata": _METADATA})
        yield from _of_rules(node, shape, field, times, root=root)
    for name, child in node.properties.items():
        yield from _costs(child, f"{field}.properties[{name}]", times)
    if node.additional is not None:
        yield from _costs(node.additional, f"{field}.additionalProperties", _multiplied(times, node.source.get("maxProperties")))
    if node.items is not None:
        yield from _costs(node.items, f"{field}.items", _multiplied(times, node.source.get("maxItems")))


def _multiplied(times: int | None, most: int | None) -> int | None:
    return None if times is None or most is None else min(times * max(most, 0), UNBOUNDED)


def _of_rules(node: Node, shape: Shape, field: str, times: int | None, *, root: bool) -> Iterator[tuple[str, str, int]]:
    variables = {"self": shape, "oldSelf": shape}
    for n, rule in enumerate(compiled_rules(node, type_of(node, root=root)[0])):
        here = f"{field}.x-kubernetes-validations[{n}]"
        if rule.program is not None:
            cost = maximum_cost(str(rule.source["rule"]), variables)
            yield f"{here}.rule", "rule", min(cost * (most_values(shape) if times is None else times), UNBOUNDED)
        if rule.message is not None:
            yield f"{here}.messageExpression", "messageExpression", maximum_cost(str(rule.source["messageExpression"]), variables)
