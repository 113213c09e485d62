"""Machines that come back: after a restart that kept nothing of their cluster, or with objects that were moved here.

A move takes spec and metadata along, not status. So the address of a machine is also written on it, with the first write that it gets.
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
"""On a machine whose VM was started: its address."""
MOVED = "inmemory.clusterwright.dev/moved"
"""On a machine that came here from elsewhere."""


def addressed(obj: InfraMachine, address: str) -> InfraMachine:
    """Return the machine with its address written on it."""
    return _annotated(obj, ADDRESS, address)


def arrived(obj: InfraMachine, machine: Machine) -> InfraMachine:
    """The machine, marked if it was moved here: it says nothing of its VM, though its Machine knows that it was provisioned."""
    is_silent = not conditions.has(obj.status.conditions, "VMProvisioned")
    return _annotated(obj, MOVED, "") if machine.spec.provider_id and is_silent else obj


def has_booted(obj: InfraMachine) -> bool:
    """Whether its Node has joined before, here or elsewhere: who has none is not moved. Machines boot from their bootstrap data once."""
    return MOVED in obj.metadata.annotations or conditions.is_true(obj.status.conditions, "NodeProvisioned")


def _annotated(obj: InfraMachine, name: str, value: str) -> InfraMachine:
    if obj.metadata.annotations.get(name) == value:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations={**obj.metadata.annotations, name: value}))


def known_address(obj: InfraMachine) -> str:
    """Return the address that the machine has had before, if any."""
    said = next((a.address for a in obj.status.addresses if a.type == "InternalIP"), "")
    return said or obj.metadata.annotations.get(ADDRESS, "")


async def refounded(reader: Reader, scene: Scene, booted: Boot, ca: KeyPair | None) -> Boot:
    """Return a control plane machine that comes back to a cluster where nobody has ever run `kubeadm init`.

    Where the machine that did is no longer there, it brings what that one had left, as far as it is still known.
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
    """Return whether a machine is left that founded the cluster: it will do so again."""
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
