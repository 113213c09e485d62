"""Machines that come back: after a restart that lost their cluster, or with objects that were moved here.

A move keeps spec and metadata, not status. So an annotation holds the address of a machine, from its first write on.
"""

from __future__ import annotations

from clusterwright import conditions
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import InfraMachine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.inmemory import bootstrap
from clusterwright.inmemory.boot import Boot
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.kubeadm.yamltext import dump
from clusterwright.runtime.client import Reader

ADDRESS = "inmemory.clusterwright.dev/address"
"""The annotation with the address of a machine whose VM was started."""
MOVED = "inmemory.clusterwright.dev/moved"
"""The annotation of a machine that was moved here."""


def addressed(obj: InfraMachine, address: str) -> InfraMachine:
    """Return the machine with its address in an annotation."""
    return _annotated(obj, ADDRESS, address)


def arrived(obj: InfraMachine, machine: Machine) -> InfraMachine:
    """Return the machine, marked if it was moved here: it has no VM status, though its Machine is provisioned."""
    is_silent = not conditions.has(obj.status.conditions, "VMProvisioned")
    return _annotated(obj, MOVED, "") if machine.spec.provider_id and is_silent else obj


def has_booted(obj: InfraMachine) -> bool:
    """Return whether its Node has joined before, here or elsewhere. A machine boots from its bootstrap data only once."""
    return MOVED in obj.metadata.annotations or conditions.is_true(obj.status.conditions, "NodeProvisioned")


def _annotated(obj: InfraMachine, name: str, value: str) -> InfraMachine:
    if obj.metadata.annotations.get(name) == value:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations={**obj.metadata.annotations, name: value}))


def known_address(obj: InfraMachine) -> str:
    """Return the previous address of the machine, if known."""
    said = next((a.address for a in obj.status.addresses if a.type == "InternalIP"), "")
    return said or obj.metadata.annotations.get(ADDRESS, "")


async def refounded(reader: Reader, scene: Scene, booted: Boot, ca: KeyPair | None) -> Boot:
    """Return a control plane machine that comes back to a cluster where `kubeadm init` never ran.

    If the machine that ran it is gone, this one restores what `kubeadm init` had created, as far as it is known.
    """
    if booted.founds or not booted.is_control_plane or scene.simulated.is_founded or await _has_founder(reader, scene):
        return booted
    configuration = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": scene.cluster.name,
        "controlPlaneEndpoint": scene.simulated.endpoint,
        "kubernetesVersion": scene.version,
    }
    return replace(booted, founds=True, ca=ca, cluster_configuration=dump(configuration))


async def _has_founder(reader: Reader, scene: Scene) -> bool:
    """Return whether a machine is left that ran `kubeadm init`: it will run it again."""
    namespace = scene.cluster.namespace
    labels = {CLUSTER_NAME_LABEL: scene.cluster.name, CONTROL_PLANE_LABEL: ""}
    for machine in await reader.list(Machine, namespace=namespace, labels=labels):
        name = machine.spec.bootstrap.data_secret_name
        secret = await reader.find(Secret, ObjectKey(namespace, name)) if name else None
        if secret is None or "value" not in secret.data:
            continue
        try:
            data = bootstrap.parse(secret.data["value"], secret.data.get("format", b"").decode("utf-8", "replace"), machine.metadata.name)
        except bootstrap.BootFailure:
            continue
        if data.command == "init":
            return True
    return False
