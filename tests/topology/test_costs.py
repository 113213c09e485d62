"""What rules may cost, compared with what kube-apiserver's own estimator (v0.35.4) answers for the same expressions and schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterwright.apiserver.schema.celtypes import shape_of
from clusterwright.apiserver.schema.rulecosts import EXPRESSION_LIMIT, TOTAL_LIMIT
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.status import ErrorType
from clusterwright.cel.cost import maximum_cost
from clusterwright.topology.variables import validate_definitions

RECORDED = json.loads((Path(__file__).parent / "costs.json").read_text())


def test_every_expression_costs_what_upstream_says() -> None:
    shape = shape_of(Node(RECORDED["schema"]))
    assert shape is not None

    found = {rule: maximum_cost(rule, {"self": shape, "oldSelf": shape}) for rule in RECORDED["costs"]}

    assert found == RECORDED["costs"]
    assert len(found) >= 100


def fields(schema: Any) -> list[str]:
    errors = validate_definitions([{"name": "v", "schema": {"openAPIV3Schema": schema}}], "spec.variables")
    assert all(e.type is ErrorType.FORBIDDEN for e in errors)
    return [e.field.removeprefix("spec.variables[v].schema.openAPIV3Schema") for e in errors]


def texts(most: int | None, rule: str) -> Any:
    bounds = {} if most is None else {"maxItems": most}
    items = {"type": "string", "maxLength": 10}
    return {
        "type": "object",
        "properties": {"list": {"type": "array", "items": items, **bounds}},
        "x-kubernetes-validations": [{"rule": rule}],
    }


@pytest.mark.parametrize(("most", "refused"), [(10, False), (1000, False), (3000, True), (None, True)])
def test_a_rule_that_costs_too_much_is_refused(most: int | None, refused: bool) -> None:
    """VAR-22."""
    found = fields(texts(most, "self.list.all(x, self.list.all(y, x == y))"))

    assert (".x-kubernetes-validations[0].rule" in found) is refused
    assert bool(found) is refused


def test_rules_that_are_each_cheap_enough_can_cost_too_much_together() -> None:
    """VAR-24: the dearest four are named."""
    schema = texts(1000, "")
    schema["x-kubernetes-validations"] = [{"rule": "self.list.all(x, self.list.all(y, x == y))"}] * 30

    found = fields(schema)

    assert found == [*(f".x-kubernetes-validations[{n}].rule" for n in range(4)), ""]
    assert EXPRESSION_LIMIT < TOTAL_LIMIT


@pytest.mark.parametrize(("bounds", "refused"), [({"maxItems": 5}, False), ({}, True)])
def test_a_rule_costs_as_often_as_it_may_run(bounds: Any, refused: bool) -> None:
    schema = {
        "type": "array",
        "items": {"type": "string", "maxLength": 1000, "x-kubernetes-validations": [{"rule": "self.matches('^a+$')"}]},
        **bounds,
    }

    assert (".items.x-kubernetes-validations[0].rule" in fields(schema)) is refused


def test_a_message_that_costs_too_much_is_refused() -> None:
    schema = texts(None, "true")
    schema["x-kubernetes-validations"][0]["messageExpression"] = "self.list.map(x, self.list.map(y, y)).size() > 0 ? 'a' : 'b'"

    assert ".x-kubernetes-validations[0].messageExpression" in fields(schema)
