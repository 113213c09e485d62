"""The templates that patches apply to: one item each, with its holder, and the matching selectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from clusterwright.api.contract import ContractVersion
from clusterwright.api.meta import Json
from clusterwright.golang.quoting import quote
from clusterwright.topology.model import Blueprint, Desired, DesiredWorker
from clusterwright.topology.patches.variables import HIDDEN_ANNOTATIONS, PatchVariables, Values

Role = Literal["infrastructureCluster", "controlPlane", "controlPlaneMachine", "machineDeployment", "machinePool"]
MACHINE_REF: Final = {
    "v1beta1": "spec.machineTemplate.infrastructureRef",
    "v1beta2": "spec.machineTemplate.spec.infrastructureRef",
}
_BOOTSTRAP: Final = "spec.template.spec.bootstrap.configRef"
_INFRASTRUCTURE: Final = "spec.template.spec.infrastructureRef"


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
        Item(f"item-{number}", role, _clean(template), _holder(holder, field), name, worker_class)
        for number, (role, template, holder, field, name, worker_class) in enumerate(_places(blueprint, desired, contract))
    ]


_Place = tuple[Role, Json, Json, str, str, str]


def _places(blueprint: Blueprint, desired: Desired, contract: ContractVersion) -> Iterator[_Place]:
    yield "infrastructureCluster", blueprint.infrastructure_cluster, desired.cluster, "spec.infrastructureRef", "", ""
    yield "controlPlane", blueprint.control_plane, desired.cluster, "spec.controlPlaneRef", "", ""
    if blueprint.control_plane_machine is not None:
        yield "controlPlaneMachine", blueprint.control_plane_machine, desired.control_plane, MACHINE_REF[contract], "", ""
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
                holder = workers[name].object
                yield role, templates[worker_class].bootstrap, holder, _BOOTSTRAP, name, worker_class
                yield role, templates[worker_class].infrastructure, holder, _INFRASTRUCTURE, name, worker_class


def _holder(obj: Json, field: str) -> Json:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "namespace": obj["metadata"].get("namespace", ""),
        "name": obj["metadata"]["name"],
        "fieldPath": field,
    }


def _clean(template: Json) -> Json:
    """Return a template without metadata that other tools keep in it."""
    metadata = {k: v for k, v in (template.get("metadata") or {}).items() if k != "managedFields"}
    if metadata.get("annotations"):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k not in HIDDEN_ANNOTATIONS}
    return {**template, "metadata": metadata}


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
