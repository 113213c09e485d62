"""The owner and label of a Machine, and the adoption of the objects that it refers to. Pure."""

from __future__ import annotations

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import Json, OwnerReference, Unstructured
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_NAME_LABEL,
    CORE_GROUP,
    MACHINE_POOL_NAME_LABEL,
    MACHINE_SET_NAME_LABEL,
)
from clusterwright.controllers.external import Reference
from clusterwright.controllers.kit.adopt import owned_metadata, owner_reference
from clusterwright.controllers.machine.snapshot import MachineSnapshot
from clusterwright.controllers.machine.status import is_control_plane

_ADOPTED_LABELS = (MACHINE_SET_NAME_LABEL, MACHINE_POOL_NAME_LABEL, CONTROL_PLANE_NAME_LABEL)


def with_owner_and_label(s: MachineSnapshot) -> Machine:
    """Return the Machine with the label of its Cluster; the Cluster owns a stand-alone one, so that both are deleted together."""
    machine = s.machine
    metadata = machine.metadata
    labels = {**metadata.labels, CLUSTER_NAME_LABEL: machine.spec.cluster_name}
    owners = metadata.owner_references
    if is_stand_alone(machine) and not any(o.kind == "Cluster" and _group(o) == CORE_GROUP for o in owners):
        owners = (*owners, s.cluster.reference)
    if labels == metadata.labels and owners == metadata.owner_references:
        return machine
    return replace(machine, metadata=replace(metadata, labels=labels, owner_references=owners))


def is_stand_alone(machine: Machine) -> bool:
    """Return whether the Machine has no controller, and no label that announces one."""
    controlled = any(o.controller for o in machine.metadata.owner_references)
    return not controlled and not any(label in machine.metadata.labels for label in _ADOPTED_LABELS)


def _group(owner: OwnerReference) -> str:
    return owner.api_version.rpartition("/")[0]


def adoption(machine: Machine, control_plane: Reference | None, obj: Unstructured) -> Json | None:
    """Return a merge patch that makes the Machine the controller of the object; None if it is. Raises AlreadyControlled.

    References to owners from before the Machine existed are dropped.
    """

    def made_it(reference: OwnerReference) -> bool:
        named = (_group(reference), reference.kind)
        if named == (CORE_GROUP, "MachineSet"):
            return True
        return is_control_plane(machine) and control_plane is not None and named == (control_plane.api_group, control_plane.kind)

    labels = {CLUSTER_NAME_LABEL: machine.spec.cluster_name}
    return owned_metadata(obj, owner_reference(machine, controller=True), labels, drops=made_it)
