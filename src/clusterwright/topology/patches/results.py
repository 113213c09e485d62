"""Taking patched templates over into the desired objects: the fields that patches may change, and those that the topology keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.api.jsonvalues import copied
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    CLONED_FROM_GROUP_KIND_ANNOTATION,
    CLONED_FROM_NAME_ANNOTATION,
    CLUSTER_NAME_LABEL,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_OWNED_LABEL,
    TOPOLOGY_POOL_NAME_LABEL,
)
from clusterwright.topology.model import Desired
from clusterwright.topology.patches.items import Item
from clusterwright.topology.paths import at, has

_Path = tuple[str, ...]
PROTECTED: Final[tuple[_Path, ...]] = (
    ("metadata", "labels", CLUSTER_NAME_LABEL),
    ("metadata", "labels", TOPOLOGY_OWNED_LABEL),
    ("metadata", "labels", TOPOLOGY_DEPLOYMENT_NAME_LABEL),
    ("metadata", "labels", TOPOLOGY_POOL_NAME_LABEL),
    ("metadata", "annotations", CLONED_FROM_NAME_ANNOTATION),
    ("metadata", "annotations", CLONED_FROM_GROUP_KIND_ANNOTATION),
)
"""Metadata that the topology sets; patches must not change it."""
PROTECTED_OF_CONTROL_PLANE: Final[tuple[_Path, ...]] = tuple(
    tuple(path.split("."))
    for path in (
        "spec.version",
        "spec.replicas",
        "spec.rollout.after",
        "spec.machineTemplate.metadata",
        "spec.machineTemplate.infrastructureRef",
        "spec.machineTemplate.spec.infrastructureRef",
        "spec.machineTemplate.readinessGates",
        "spec.machineTemplate.spec.readinessGates",
        "spec.machineTemplate.taints",
        "spec.machineTemplate.spec.taints",
        "spec.machineTemplate.nodeDrainTimeout",
        "spec.machineTemplate.nodeVolumeDetachTimeout",
        "spec.machineTemplate.nodeDeletionTimeout",
        "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds",
        "spec.machineTemplate.spec.deletion.nodeVolumeDetachTimeoutSeconds",
        "spec.machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds",
    )
)
"""Fields of a control plane that the topology sets; patches must not change them."""
_OF_TEMPLATES: Final[tuple[tuple[_Path, _Path], ...]] = tuple(
    (path, path)
    for path in (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "template", "spec"),
        ("spec", "template", "metadata", "labels"),
        ("spec", "template", "metadata", "annotations"),
    )
)
_OF_OBJECTS: Final[tuple[tuple[_Path, _Path], ...]] = (
    (("spec", "template", "spec"), ("spec",)),
    (("spec", "template", "metadata", "labels"), ("metadata", "labels")),
    (("spec", "template", "metadata", "annotations"), ("metadata", "annotations")),
)


class Misshapen(Exception):
    """A patched template does not fit the object that it should become."""


def take_over(items: Sequence[Item], desired: Desired) -> None:
    """Write the patched templates into the desired objects, in place; raises Misshapen."""
    for item in items:
        match item.role:
            case "infrastructureCluster":
                _to_object(desired.infrastructure_cluster, item.template)
            case "controlPlane":
                _to_object(desired.control_plane, item.template, *PROTECTED_OF_CONTROL_PLANE)
            case "controlPlaneMachine":
                assert desired.control_plane_machine is not None
                _copy_fields(desired.control_plane_machine, item.template, _OF_TEMPLATES, PROTECTED)
            case "machineDeployment":
                worker = desired.machine_deployments[item.topology_name]
                _copy_fields(worker.bootstrap if item.is_bootstrap else worker.infrastructure, item.template, _OF_TEMPLATES, PROTECTED)
            case "machinePool":
                worker = desired.machine_pools[item.topology_name]
                _to_object(worker.bootstrap if item.is_bootstrap else worker.infrastructure, item.template)


def _to_object(target: Json, template: Json, *protected: _Path) -> None:
    """Write into an object what its template says. The spec of an object must be an object."""
    spec = ("spec", "template", "spec")
    if has(template, *spec) and not isinstance(at(template, *spec), dict):
        raise _misshapen(target, ("spec",))
    _copy_fields(target, template, _OF_OBJECTS, (*protected, *PROTECTED))


def _copy_fields(target: Json, source: Json, fields: Sequence[tuple[_Path, _Path]], protected: Sequence[_Path]) -> None:
    """Copy the fields that the source has, each as a whole. Protected fields that the target has keep their values."""
    kept = [(path, at(target, *path)) for path in protected if has(target, *path)]
    for source_path, target_path in fields:
        if has(source, *source_path):
            _set(target, target, copied(at(source, *source_path)), target_path)
    for path, value in kept:
        _set(target, target, value, path)


def _set(obj: Json, json: Json, value: Any, path: _Path) -> None:
    for n, step in enumerate(path[:-1], 1):
        json = json.setdefault(step, {})
        if not isinstance(json, dict):
            raise _misshapen(obj, path[:n])
    json[path[-1]] = value


def _misshapen(target: Json, path: _Path) -> Misshapen:
    metadata = target.get("metadata") or {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return Misshapen(f"failed to apply patch to {target.get('kind')} {name}: {'.'.join(path)} is not an object")
