"""Simulated machines for infrastructure that another provider manages: its Machines become Nodes, without a cloud that runs anything.

A Cluster asks for it. A DevCluster then stands behind its endpoint, and each Machine with a providerID gets a DevMachine with the same
one, as the machine of the other provider would have.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from clusterwright.api.codec import to_json
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.meta import Json, Object, OwnerReference
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wellknown import BOOT_MACHINES_ANNOTATION, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.controllers.inmemory.facts import ClusterFacts
from clusterwright.controllers.inmemory.kinds import Simulated
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import AlreadyExists
from clusterwright.runtime.reconcile import Reconciler

ENDPOINT_GIVEN: Final = "inmemory.clusterwright.dev/endpoint-given"
"""The annotation of a DevCluster whose endpoint is that of another provider."""
SOON: Final = timedelta(seconds=1)
MOST: Final = 50
"""The most machines that one pass creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The facts of a Machine that its simulated machine is made of."""

    owner: OwnerReference
    provider_id: str
    is_control_plane: bool

    @staticmethod
    def of(machine: Machine) -> Order:
        """Return the facts of a Machine."""
        return Order(
            owner=owner_reference(machine, controller=False),
            provider_id=machine.spec.provider_id or "",
            is_control_plane=CONTROL_PLANE_LABEL in machine.metadata.labels,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherView(Snapshot[Cluster]):
    """A Cluster that asks for simulated machines, and what is missing."""

    has_cluster: bool
    missing: tuple[Order, ...]
    """At most MOST of them."""
    has_more: bool


def make(deps: Dependencies, simulated: Simulated) -> Reconciler:
    """Return the reconciler of Clusters with infrastructure of others."""
    return KindReconciler(deps, Shape(kind=Cluster, owned=(), main=False), OtherClusters(deps, simulated))


class OtherClusters(Kind[Cluster, ClusterFacts, OtherView, OtherView]):
    """Creates the DevCluster and the DevMachines."""

    def __init__(self, deps: Dependencies, simulated: Simulated) -> None:
        self._client, self._clock, self._simulated = deps.client, deps.clock, simulated

    def concerns(self, obj: Cluster) -> bool:
        """Return whether the Cluster asks, and its infrastructure is not simulated anyway."""
        reference = obj.spec.infrastructure_ref
        is_asked = obj.metadata.annotations.get(BOOT_MACHINES_ANNOTATION, "").lower() == "true"
        return is_asked and reference is not None and self._simulated.cluster_kind(reference.kind) is None

    async def owner(self, obj: Cluster) -> ClusterFacts:
        """Return the facts of the Cluster itself: it may be paused."""
        return ClusterFacts.of(obj)

    async def observe(self, obj: Cluster, owner: ClusterFacts) -> OtherView | None:
        """Find what is missing; nothing is while the Cluster has no endpoint, or is deleted."""
        if obj.metadata.deletion_timestamp is not None or _endpoint(obj) is None:
            return None
        namespace, labels = obj.metadata.namespace, {CLUSTER_NAME_LABEL: obj.metadata.name}
        machines = await self._client.list(Machine, namespace=namespace, labels=labels)
        present = {one.metadata.name for one in await self._client.list(DevMachine, namespace=namespace, labels=labels)}
        missing = [
            Order.of(machine)
            for machine in sorted(machines, key=lambda one: one.metadata.name)
            if machine.spec.provider_id and machine.metadata.deletion_timestamp is None and machine.metadata.name not in present
        ]
        found = await self._client.find(DevCluster, obj.key)
        return OtherView(
            object=obj, now=self._clock.now(), has_cluster=found is not None, missing=tuple(missing[:MOST]), has_more=len(missing) > MOST
        )

    async def act(self, run: Pass[Cluster, OtherView, OtherView]) -> None:
        """Create what is missing."""
        namespace = run.object.metadata.namespace
        if not run.seen.has_cluster:
            owner = owner_reference(run.object, controller=False)
            made = _ordered(DevCluster, namespace, owner, {"controlPlaneEndpoint": _endpoint(run.object)})
            made["metadata"]["annotations"] = {ENDPOINT_GIVEN: ""}
            await self._create(made)
        for order in run.seen.missing:
            made = _ordered(DevMachine, namespace, order.owner, {"providerID": order.provider_id})
            role = {CONTROL_PLANE_LABEL: ""} if order.is_control_plane else {}
            made["metadata"]["labels"] = {CLUSTER_NAME_LABEL: run.object.metadata.name, **role}
            await self._create(made)
        if run.seen.has_more:
            run.vote(SOON)

    async def _create(self, obj: Json) -> None:
        with suppress(AlreadyExists):
            await self._client.create(obj)

    def conclude(self, run: Pass[Cluster, OtherView, OtherView]) -> None:
        """Set nothing: the Cluster has its own controller."""


def _endpoint(cluster: Cluster) -> Json | None:
    endpoint = cluster.spec.control_plane_endpoint
    return {"host": endpoint.host, "port": endpoint.port} if endpoint is not None and endpoint.host and endpoint.port else None


def _ordered(kind: type[Object], namespace: str, owner: OwnerReference, spec: Json) -> Json:
    """Return an object of the in-memory cloud, of the same name as its owner, which it follows into deletion."""
    gvk = gvk_of(kind)
    metadata = {"name": owner.name, "namespace": namespace, "ownerReferences": [to_json(owner)]}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {"backend": {"inMemory": {}}, **spec}}
