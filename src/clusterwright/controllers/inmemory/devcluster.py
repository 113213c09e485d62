"""DevCluster and DockerCluster: an endpoint, and a workload cluster behind it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from clusterwright.api.copying import replace
from clusterwright.api.core import APIEndpoint, Cluster, FailureDomain
from clusterwright.api.infrastructure import DevInitializationStatus, InfraCluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import DEV_CLUSTER_FINALIZER, IN_MEMORY_LISTENER_ANNOTATION, MANAGED_BY_ANNOTATION
from clusterwright.controllers.inmemory.facts import ClusterFacts
from clusterwright.controllers.inmemory.kinds import Family, Simulated
from clusterwright.controllers.inmemory.others import ENDPOINT_GIVEN
from clusterwright.controllers.kit.owners import Unowned, find_owner, owner_key
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.inmemory import faults
from clusterwright.inmemory.cloud import Cloud, EndpointRefused, NoPortLeft
from clusterwright.runtime.errors import Terminal
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Snapshot[InfraCluster]):
    """The object and its Cluster, if that still exists."""

    cluster: ClusterFacts | None


ClusterPass = Pass[InfraCluster, View, View]
Owner = ClusterFacts | Unowned


def make(deps: Dependencies, cloud: Cloud, family: Family, simulated: Simulated) -> Reconciler:
    """Return the reconciler of a family's cluster kind, on a cloud."""
    shape = Shape(kind=family.cluster, finalizer=DEV_CLUSTER_FINALIZER, owned=("Paused",))
    return KindReconciler(deps, shape, DevClusters(deps, cloud, family, simulated))


class DevClusters(Kind[InfraCluster, Owner, View, View]):
    """Creates and removes workload clusters."""

    def __init__(self, deps: Dependencies, cloud: Cloud, family: Family, simulated: Simulated) -> None:
        self._client = deps.client
        self._clock = deps.clock
        self._cloud = cloud
        self._family = family
        self._simulated = simulated
        self._is_restored = False
        self._restoring = asyncio.Lock()
        self._refusals: dict[ObjectKey, str] = {}
        self._listeners: dict[ObjectKey, ObjectKey] = {}

    def concerns(self, obj: InfraCluster) -> bool:
        """Return whether the object is simulated, and not managed externally."""
        return self._simulated.has_cluster(obj) and MANAGED_BY_ANNOTATION not in obj.metadata.annotations

    async def gone(self, key: ObjectKey) -> None:
        """Let go of a workload cluster whose finalizer was removed by a move: it belongs to another plane now."""
        self._refusals.pop(key, None)
        if (cluster := self._listeners.pop(key, None)) is not None:
            await self._cloud.delete(cluster)

    async def owner(self, obj: InfraCluster) -> Owner | None:
        """Return the Cluster, waiting for it, unless the object is deleted."""
        await self._restore()
        cluster = await find_owner(self._client, obj, Cluster)
        if cluster is None:
            return None if obj.metadata.deletion_timestamp is None else Unowned()
        return ClusterFacts.of(cluster)

    async def observe(self, obj: InfraCluster, owner: Owner) -> View | None:
        """Return the view; skip a deleted object that is not ours to clean up."""
        if obj.metadata.deletion_timestamp is not None and DEV_CLUSTER_FINALIZER not in obj.metadata.finalizers:
            return None
        return View(object=obj, now=self._clock.now(), cluster=owner if isinstance(owner, ClusterFacts) else None)

    async def act(self, run: ClusterPass) -> None:
        """Create or remove the workload cluster."""
        cluster = run.seen.cluster
        if cluster is None or run.object.metadata.deletion_timestamp is not None:
            await self._tear_down(run)
            return
        try:
            run.become(await self._provision(run.object, cluster))
        except (EndpointRefused, NoPortLeft, faults.UnknownFault) as error:
            run.record("Warning", "EndpointRefused", str(error))
            raise Terminal(str(error)) from error

    def conclude(self, run: ClusterPass) -> None:
        """Set nothing: provisioning has written the status."""

    async def _restore(self) -> None:
        """Give every existing cluster its endpoint back once after a start, before a new cluster can take it."""
        async with self._restoring:
            if self._is_restored:
                return
            for family in self._simulated.families:
                for obj in await self._client.list(family.cluster):
                    self._give_back(obj, is_mine=family is self._family)
            self._is_restored = True

    def _give_back(self, obj: InfraCluster, *, is_mine: bool) -> None:
        endpoint = _endpoint(obj)
        is_provisioned = obj.status.initialization is not None and bool(obj.status.initialization.provisioned)
        if not self.concerns(obj) or endpoint is None or not is_provisioned:
            return
        try:
            self._cloud.reserve(_listener(obj), endpoint, given=ENDPOINT_GIVEN in obj.metadata.annotations)
        except EndpointRefused as error:
            if is_mine:  # else the controller of its kind says so
                self._refusals[obj.key] = str(error)

    async def _provision(self, obj: InfraCluster, cluster: ClusterFacts) -> InfraCluster:
        wanted = faults.requested(obj.metadata.annotations, faults.CLUSTER_FAULTS)
        if self._cloud.find(cluster.key) is None and (refusal := self._refusals.get(obj.key)):
            raise EndpointRefused(refusal)
        endpoint = obj.spec.control_plane_endpoint
        given = ENDPOINT_GIVEN in obj.metadata.annotations
        simulated = await self._cloud.ensure(cluster.key, _endpoint(obj), port=endpoint.port if endpoint else 0, given=given)
        self._listeners[obj.key] = cluster.key
        await simulated.cut_off(cut=faults.UNREACHABLE in wanted)
        annotations = {**obj.metadata.annotations, IN_MEMORY_LISTENER_ANNOTATION: str(cluster.key)}
        named = [d.strip() for d in annotations.get(faults.FAILURE_DOMAINS, "").split(",") if d.strip()]
        domains = tuple(FailureDomain(name=d, control_plane=True) for d in named) or obj.declared_domains
        if endpoint is None or not endpoint.host:
            endpoint = APIEndpoint(host=simulated.host, port=simulated.port)
        return replace(
            obj,
            metadata=replace(obj.metadata, annotations=annotations),
            spec=replace(obj.spec, control_plane_endpoint=endpoint),
            status=replace(
                obj.status,
                initialization=DevInitializationStatus(provisioned=True),
                failure_domains=domains,
            ),
        )

    async def _tear_down(self, run: ClusterPass) -> None:
        obj = run.object
        try:
            if IN_MEMORY_LISTENER_ANNOTATION in obj.metadata.annotations:
                await self._cloud.delete(_listener(obj))
            elif (owner := owner_key(obj, "Cluster")) is not None:
                await self._cloud.delete(owner)
        except EndpointRefused as error:
            raise Terminal(str(error)) from error
        self._refusals.pop(obj.key, None)
        self._listeners.pop(obj.key, None)
        run.become(without_finalizer(obj, DEV_CLUSTER_FINALIZER))


def _endpoint(obj: InfraCluster) -> tuple[str, int] | None:
    endpoint = obj.spec.control_plane_endpoint
    return (endpoint.host, endpoint.port) if endpoint and endpoint.host and endpoint.port else None


def _listener(obj: InfraCluster) -> ObjectKey:
    """Return the Cluster that has a listener; raises EndpointRefused."""
    namespace, slash, name = obj.metadata.annotations.get(IN_MEMORY_LISTENER_ANNOTATION, "").partition("/")
    if not slash or namespace != obj.metadata.namespace:
        raise EndpointRefused(f"annotation {IN_MEMORY_LISTENER_ANNOTATION} does not name a Cluster of this namespace")
    return ObjectKey(namespace, name)
