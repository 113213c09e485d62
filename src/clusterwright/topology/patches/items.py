"""The templates that patches apply to: one item each, with its holder, and the matching selectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from clusterwright.api.contract import ContractVersion
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import COPIES_OF_THE_OBJECT
from clusterwright.golang.quoting import quote
from clusterwright.topology.model import Blueprint, Desired, DesiredWorker
from clusterwright.topology.patches.variables import PatchVariables, Values

Role = Literal["infrastructureCluster", "controlPlane", "controlPlaneMachine", "machineDeployment", "machinePool"]
MACHINE_REF: Final = {
    "v1beta1": "spec.machineTemplate.infrastructureRef",
    "v1beta2": "spec.machineTemplate.spec.infrastructureRef",
}
_BOOTSTRAP: Final = "spec.template.spec.bootstrap.configRef"
_INFRASTRUCTURE: Final = "spec.template.spec.infrastructureRef"


_BECOME_OBJECTS: Final = frozenset({"infrastructureCluster", "controlPlane", "machinePool"})
"""Roles in which the topology makes an object of the template, not another template."""


class UnknownClass(Exception):
    """A worker names a class whose templates were not read."""


@dataclass(slots=True)
class Item:
    """A template of the class during patching. Each patch replaces `template` and never changes it."""

    uid: str
    role: Role
    template: Json
    holder: Json
    topology_name: str = ""
    worker_class: str = ""

    @property
    def is_bootstrap(self) -> bool:
        """Whether a worker is bootstrapped by it; else it is the worker's infrastructure."""
        return bool(self.holder["fieldPath"] == _BOOTSTRAP)

    def own_variables(self, variables: PatchVariables) -> Values:
        """Return the variables for this item only."""
        match self.role:
            case "infrastructureCluster":
                return {}
            case "controlPlane" | "controlPlaneMachine":
                return variables.control_plane
            case "machineDeployment":
                return variables.machine_deployments[self.topology_name]
            case "machinePool":
                return variables.machine_pools[self.topology_name]


def items_of(blueprint: Blueprint, desired: Desired, contract: ContractVersion) -> list[Item]:
    """Return the items, in order: infrastructure cluster, control plane, its machines, then the workers in topology order.

    Raises UnknownClass.
    """
    return [
        Item(f"item-{number}", place.role, _prepared(place), _holder(place.holder, place.field), place.topology_name, place.worker_class)
        for number, place in enumerate(_places(blueprint, desired, contract))
    ]


class _Place(NamedTuple):
    """A template of the class, the desired object that it becomes, and the object with the reference to that one."""

    role: Role
    template: Json
    made: Json
    holder: Json
    field: str
    topology_name: str = ""
    worker_class: str = ""


def _places(blueprint: Blueprint, desired: Desired, contract: ContractVersion) -> Iterator[_Place]:
    cluster, plane = desired.cluster, desired.control_plane
    yield _Place(
        "infrastructureCluster", blueprint.infrastructure_cluster, desired.infrastructure_cluster, cluster, "spec.infrastructureRef"
    )
    yield _Place("controlPlane", blueprint.control_plane, plane, cluster, "spec.controlPlaneRef")
    if blueprint.control_plane_machine is not None:
        assert desired.control_plane_machine is not None
        yield _Place("controlPlaneMachine", blueprint.control_plane_machine, desired.control_plane_machine, plane, MACHINE_REF[contract])
    topology = desired.cluster["spec"]["topology"].get("workers") or {}
    kinds: Sequence[tuple[Role, str, str, Any, dict[str, DesiredWorker]]] = (
        ("machineDeployment", "MachineDeployment", "machineDeployments", blueprint.machine_deployments, desired.machine_deployments),
        ("machinePool", "MachinePool", "machinePools", blueprint.machine_pools, desired.machine_pools),
    )
    for role, noun, key, templates, workers in kinds:
        for entry in topology.get(key) or ():
            name, worker_class = entry["name"], entry.get("class", "")
            if name in workers:
                if worker_class not in templates:
                    raise UnknownClass(f"failed to lookup {noun} class {quote(worker_class)} in ClusterClass")
                worker, of = workers[name], templates[worker_class]
                yield _Place(role, of.bootstrap, worker.bootstrap, worker.object, _BOOTSTRAP, name, worker_class)
                yield _Place(role, of.infrastructure, worker.infrastructure, worker.object, _INFRASTRUCTURE, name, worker_class)


def _holder(obj: Json, field: str) -> Json:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "namespace": obj["metadata"].get("namespace", ""),
        "name": obj["metadata"]["name"],
        "fieldPath": field,
    }


def _prepared(place: _Place) -> Json:
    """Return a template with the labels and annotations of the object that it becomes, without those of other tools.

    Patches see and change these, too: on templates at the top, of objects inside the template.
    """
    given = place.made.get("metadata") or {}
    metadata = {k: v for k, v in (place.template.get("metadata") or {}).items() if k != "managedFields"}
    own = {part: given[part] for part in ("labels", "annotations") if part in given}
    template = {**place.template}
    if place.role in _BECOME_OBJECTS:
        spec = template.get("spec") or {}
        inner = spec.get("template") or {}
        template["spec"] = {**spec, "template": {**inner, "metadata": {**(inner.get("metadata") or {}), **own}}}
    else:
        metadata |= own
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k not in COPIES_OF_THE_OBJECT}
    return {**template, "metadata": {**metadata, "annotations": annotations} if annotations else metadata}


def matches(selector: Json, item: Item) -> bool:
    """Return whether a selector of an inline patch matches the item."""
    if selector.get("apiVersion") != item.template.get("apiVersion") or selector.get("kind") != item.template.get("kind"):
        return False
    wanted = selector.get("matchResources") or {}
    match item.role:
        case "infrastructureCluster":
            return wanted.get("infrastructureCluster") is True
        case "controlPlane" | "controlPlaneMachine":
            return wanted.get("controlPlane") is True
        case "machineDeployment":
            return _is_named(wanted.get("machineDeploymentClass"), item.worker_class)
        case "machinePool":
            return _is_named(wanted.get("machinePoolClass"), item.worker_class)


def _is_named(wanted: Json | None, name: str) -> bool:
    """Return whether a name matches; the pattern may begin or end in a `*`, but not contain one elsewhere."""
    for pattern in (wanted or {}).get("names") or ():
        if pattern in ("*", name):
            return True
        if pattern.startswith("*") and name.endswith(pattern[1:]):
            return True
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return True
    return False
