"""Simulated machines for infrastructure that another provider manages: its Machines become Nodes, without a cloud that runs anything.

A Cluster asks for it. A DevCluster then stands behind its endpoint, and each Machine with a providerID gets a DevMachine with the same
one, as the machine of the other provider would have. Providers of bare metal may set it only when they have found the Node by a label
from the machine's metadata: then a Machine counts as soon as its infrastructure reports addresses, and its Node has no providerID.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from clusterwright.api.codec import to_json
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, OwnerReference, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wellknown import BOOT_MACHINES_ANNOTATION, BOOT_UNIDENTIFIED, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.controllers.inmemory.facts import ClusterFacts
from clusterwright.controllers.inmemory.kinds import Simulated
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.inmemory.distributions import HOST, METADATA, UNIDENTIFIED
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import AlreadyExists, ApiError
from clusterwright.runtime.reconcile import Reconciler

ENDPOINT_GIVEN: Final = "inmemory.clusterwright.dev/endpoint-given"
"""The annotation of a DevCluster whose endpoint is that of another provider."""
BARE_METAL_HOST: Final = "metal3.io/BareMetalHost"
"""The annotation of a Metal3Machine with its host."""
_HOSTS: Final = GroupVersionKind("metal3.io", "v1alpha1", "BareMetalHost")
SOON: Final = timedelta(seconds=1)
MOST: Final = 50
"""The most machines that one pass creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The facts of a Machine that its simulated machine is made of."""

    owner: OwnerReference
    provider_id: str
    is_control_plane: bool
    notes: Mapping[str, str] = field(default_factory=dict)
    """The annotations of a machine without providerID."""

    @staticmethod
    def of(machine: Machine, notes: Mapping[str, str] | None = None) -> Order:
        """Return the facts of a Machine."""
        return Order(
            owner=owner_reference(machine, controller=False),
            provider_id=machine.spec.provider_id or "",
            is_control_plane=CONTROL_PLANE_LABEL in machine.metadata.labels,
            notes=notes or {},
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
        self._client, self._clock, self._simulated, self._dynamic = deps.client, deps.clock, simulated, deps.dynamic

    def concerns(self, obj: Cluster) -> bool:
        """Return whether the Cluster asks, and its infrastructure is not simulated anyway."""
        reference = obj.spec.infrastructure_ref
        return _asked(obj) in {"true", BOOT_UNIDENTIFIED} and reference is not None and self._simulated.cluster_kind(reference.kind) is None

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
        missing = []
        for machine in sorted(machines, key=lambda one: one.metadata.name):
            if machine.metadata.deletion_timestamp is not None or machine.metadata.name in present:
                continue
            if machine.spec.provider_id:
                missing.append(Order.of(machine))
            elif _asked(obj) == BOOT_UNIDENTIFIED and (order := await self._unidentified(machine)):
                missing.append(order)
        found = await self._client.find(DevCluster, obj.key)
        return OtherView(
            object=obj, now=self._clock.now(), has_cluster=found is not None, missing=tuple(missing[:MOST]), has_more=len(missing) > MOST
        )

    async def _unidentified(self, machine: Machine) -> Order | None:
        """Return the order of a machine without providerID that runs: it has bootstrap data, and its infrastructure has addresses."""
        if not machine.spec.bootstrap.data_secret_name:
            return None
        try:
            found = (await get_external(self._client, machine.spec.infrastructure_ref, machine.metadata.namespace)).object
        except (ApiError, ContractUnknown):
            return None  # its change wakes the Cluster
        await self._dynamic.ensure(found.gvk, clusters_by_label)
        if not found.at("status", "addresses"):
            return None
        notes, name = {UNIDENTIFIED: ""}, found.at("status", "metaData", "name")
        if isinstance(name, str):
            notes[METADATA] = name
        if host := found.metadata.annotations.get(BARE_METAL_HOST, ""):
            notes[HOST] = json.dumps(await self._identity(host))
        return Order.of(machine, notes)

    async def _identity(self, host: str) -> Json:
        """Return the metadata that a host of metal3 gives its machine, as Ironic's config drive has them."""
        namespace, _, name = host.partition("/")
        try:
            found = await self._client.live.find(_HOSTS, ObjectKey(namespace, name))
        except ApiError:
            return {}
        names = dict.fromkeys(("name", "local-hostname", "local_hostname", "metal3-name"), name)
        return {"uuid": found.metadata.uid, "metal3-namespace": namespace, **names} if found is not None else {}

    async def act(self, run: Pass[Cluster, OtherView, OtherView]) -> None:
        """Create what is missing."""
        namespace = run.object.metadata.namespace
        if not run.seen.has_cluster:
            owner = owner_reference(run.object, controller=False)
            made = _ordered(DevCluster, namespace, owner, {"controlPlaneEndpoint": _endpoint(run.object)})
            made["metadata"]["annotations"] = {ENDPOINT_GIVEN: ""}
            await self._create(made)
        for order in run.seen.missing:
            made = _ordered(DevMachine, namespace, order.owner, {"providerID": order.provider_id} if order.provider_id else {})
            if order.notes:
                made["metadata"]["annotations"] = dict(order.notes)
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


async def clusters_by_label(obj: Unstructured, _reader: Reader) -> Sequence[ObjectKey]:
    """Return the Cluster that the label of an infrastructure machine names."""
    name = obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    return [ObjectKey(obj.metadata.namespace, name)] if name else []


def _asked(cluster: Cluster) -> str:
    return cluster.metadata.annotations.get(BOOT_MACHINES_ANNOTATION, "").lower()


def _endpoint(cluster: Cluster) -> Json | None:
    endpoint = cluster.spec.control_plane_endpoint
    return {"host": endpoint.host, "port": endpoint.port} if endpoint is not None and endpoint.host and endpoint.port else None


def _ordered(kind: type[Object], namespace: str, owner: OwnerReference, spec: Json) -> Json:
    """Return an object of the in-memory cloud, of the same name as its owner, which it follows into deletion."""
    gvk = gvk_of(kind)
    metadata = {"name": owner.name, "namespace": namespace, "ownerReferences": [to_json(owner)]}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {"backend": {"inMemory": {}}, **spec}}
