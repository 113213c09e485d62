"""Vectors of variables, translated to calls of `clusterwright.topology.variables`."""

from __future__ import annotations

import json
from typing import Any

from clusterwright.apiserver.status import OMITTED, FieldError, Verbatim
from clusterwright.topology import variables

FIELD = "spec.topology.variables"


def shown(error: FieldError) -> dict[str, Any]:
    value = error.value
    if value is OMITTED:
        text = ""
    elif isinstance(value, Verbatim):
        text = value.text
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return {"type": error.type.value[0], "field": error.field, "detail": error.detail, "value": text}


def default_variables(inputs: dict[str, Any]) -> dict[str, Any]:
    try:
        values = variables.default_values(inputs["values"], inputs["definitions"], FIELD, create=inputs["scope"] == "cluster")
    except variables.BadValues as e:
        return {"errors": [shown(x) for x in e.errors]}
    return {"values": values}


def validate_variables(inputs: dict[str, Any]) -> dict[str, Any]:
    errors = variables.validate_values(
        inputs["values"], inputs["oldValues"], inputs["definitions"], FIELD, complete=inputs["scope"] == "cluster"
    )
    return {"errors": [shown(e) for e in errors]}


def validate_class_variables(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"errors": [shown(e) for e in variables.validate_definitions(inputs["variables"], "spec.variables")]}


def topology_variables(inputs: dict[str, Any]) -> dict[str, Any]:
    old = inputs["oldCluster"]
    topology, errors = variables.default_and_validate(
        inputs["cluster"]["spec"]["topology"],
        old["spec"]["topology"] if old is not None else None,
        inputs["clusterClass"]["status"]["variables"],
    )
    return {"errors": [shown(e) for e in errors], "topology": topology}


OPERATIONS = {
    "default-variables": default_variables,
    "validate-variables": validate_variables,
    "validate-class-variables": validate_class_variables,
    "topology-variables": topology_variables,
}
