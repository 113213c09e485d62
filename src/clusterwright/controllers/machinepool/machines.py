"""The Machines of a pool: one for each machine of its infrastructure, with the same name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterwright.api.codec import to_json
from clusterwright.api.core import Machine, MachinePool
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_POOL_NAME_LABEL
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.kubeadm.naming import label_value

FIELD_MANAGER = "machinepool-controller"
_MACHINE = Machine()


def pool_labels(pool: MachinePool) -> dict[str, str]:
    """Return the labels of a pool's objects."""
    return {MACHINE_POOL_NAME_LABEL: label_value(pool.metadata.name), CLUSTER_NAME_LABEL: pool.spec.cluster_name}


def belongs(machine: Machine, pool: MachinePool) -> bool:
    """Return whether a Machine with the pool's labels counts for it: it has no other controller."""
    controller = machine.metadata.controller
    return controller is None or controller.uid == pool.metadata.uid


def by_infrastructure(machines: Sequence[Machine]) -> dict[str, Machine]:
    """Return Machines by the name of their infrastructure machine, which may differ from their own; the first one counts."""
    return {m.spec.infrastructure_ref.name: m for m in reversed(machines)}


def intent(pool: MachinePool, infra: Unstructured, present: Machine | None, nodes: Mapping[str, Node]) -> Json:
    """Return the intent to apply to the Machine: only the pool's fields, so that others may set the rest."""
    template = pool.spec.template.metadata
    metadata: Json = {
        "name": present.metadata.name if present else infra.key.name,
        "namespace": pool.metadata.namespace,
        "labels": {**(template.labels if template else {}), **pool_labels(pool)},
        "ownerReferences": [to_json(owner_reference(pool, controller=True))],
    }
    if template and template.annotations:
        metadata["annotations"] = dict(template.annotations)
    if present is not None:
        metadata["uid"] = present.metadata.uid  # a Machine that is gone meanwhile must not come back
    gvk = infra.gvk
    spec: Json = {
        "clusterName": pool.spec.cluster_name,
        "bootstrap": {"dataSecretName": ""},
        "infrastructureRef": {"apiGroup": gvk.group, "kind": gvk.kind, "name": infra.key.name},
    }
    # a version that was known stays while its Node is out of sight
    if version := kubelet_version(infra, nodes) or (present.spec.version if present else ""):
        spec["version"] = version
    return {"apiVersion": _MACHINE.api_version, "kind": _MACHINE.kind, "metadata": metadata, "spec": spec}


def kubelet_version(infra: Unstructured, nodes: Mapping[str, Node]) -> str:
    """Return the kubelet version of an infrastructure machine's Node; empty if unknown."""
    provider_id = infra.at("spec", "providerID")
    node = nodes.get(provider_id) if isinstance(provider_id, str) and provider_id else None
    info = node.status.node_info if node else None
    return info.kubelet_version if info else ""
