"""All variables of a Cluster: cluster-wide values, and the overrides of control plane, MachineDeployments and MachinePools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.apiserver.schema.structural import copy_json
from clusterwright.apiserver.status import FieldError
from clusterwright.topology.variables.values import BadValues, default_values, validate_values

_TOPOLOGY = "spec.topology"


def default_and_validate(topology: Json, old: Json | None, definitions: Sequence[Json]) -> tuple[Json, list[FieldError]]:
    """Return a topology with its defaults, and all errors of its variables.

    `old` is the topology that is replaced, or None; `definitions` are `status.variables` of the class. Values that cannot be defaulted
    stay, and errors found by both stages appear twice.
    """
    defaulted, errors = default_topology(topology, definitions)
    return defaulted, [*errors, *validate_topology(defaulted, old, definitions)]


def default_topology(topology: Json, definitions: Sequence[Json]) -> tuple[Json, list[FieldError]]:
    """Return a topology with the defaults of its variables, and the errors that prevented defaults."""
    out = copy_json(topology)
    errors: list[FieldError] = []
    for field, holder, key, create in _lists(out):
        try:
            values = default_values(holder.get(key) or [], definitions, field, create=create)
        except BadValues as e:
            errors.extend(e.errors)
            continue
        if values or key in holder:
            holder[key] = values
    return out, errors


def validate_topology(topology: Json, old: Json | None, definitions: Sequence[Json]) -> list[FieldError]:
    """Return all errors of a topology's variables."""
    before = {field: holder.get(key) or [] for field, holder, key, _ in _lists(old or {})}
    errors: list[FieldError] = []
    for field, holder, key, create in _lists(topology):
        errors.extend(validate_values(holder.get(key) or [], before.get(field, []), definitions, field, complete=create, null="null"))
    return errors


def _lists(topology: Json) -> Iterator[tuple[str, Json, str, bool]]:
    """Yield each list of values: its path, the object that has it, its key there, and whether it is the cluster-wide one.

    Overrides appear only if they exist.
    """
    yield f"{_TOPOLOGY}.variables", topology, "variables", True
    for path, entry in _overriding(topology):
        variables: Any = entry.get("variables") or {}
        if variables.get("overrides"):
            yield f"{_TOPOLOGY}.{path}.variables.overrides", variables, "overrides", False


def _overriding(topology: Json) -> Iterator[tuple[str, Json]]:
    yield "controlPlane", topology.get("controlPlane") or {}
    workers = topology.get("workers") or {}
    for kind in ("machineDeployments", "machinePools"):
        for entry in workers.get(kind) or ():
            yield f"workers.{kind}[{entry.get('name') or ''}]", entry
