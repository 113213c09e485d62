"""DevCluster: an endpoint, and a workload cluster behind it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from clusterwright.api.core import APIEndpoint, Cluster, FailureDomain
from clusterwright.api.infrastructure import DevCluster, DevInitializationStatus
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import DEV_CLUSTER_FINALIZER, IN_MEMORY_LISTENER_ANNOTATION, MANAGED_BY_ANNOTATION
from clusterwright.controllers.inmemory.owners import find_owner, owner_key, unless_paused
from clusterwright.controllers.wiring import Dependencies
from clusterwright.inmemory import faults
from clusterwright.inmemory.cloud import Cloud, EndpointRefused, NoPortLeft
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import Terminal
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Result


class DevClusterReconciler:
    """One pass over a DevCluster."""

    def __init__(self, dependencies: Dependencies, cloud: Cloud) -> None:
        self._client = dependencies.client
        self._clock = dependencies.clock
        self._events = dependencies.events
        self._patcher = Patcher(dependencies.client, dependencies.clock, dependencies.random)
        self._cloud = cloud
        self._is_restored = False
        self._restoring = asyncio.Lock()
        self._refusals: dict[ObjectKey, str] = {}

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the workload cluster into being, or away."""
        await self._restore()
        original = await self._client.read(DevCluster, key)
        if original is None or not _is_ours(original.object):
            return Result.await_change()
        finalization = await ensure_finalizer(self._patcher, original, DEV_CLUSTER_FINALIZER)
        if finalization in {Finalization.ADDED, Finalization.ABSENT}:
            return Result.await_change()
        is_deleting = finalization is Finalization.CLEANUP
        cluster = await find_owner(self._client, original.object, Cluster)
        if cluster is None:
            return await self._tear_down(original) if is_deleting else Result.await_change()
        obj = await unless_paused(self._patcher, self._clock, original, cluster)
        if obj is None:
            return Result.await_change()
        if is_deleting:
            return await self._tear_down(original)
        try:
            provisioned = await self._provision(obj, cluster)
        except (EndpointRefused, NoPortLeft, faults.UnknownFault) as error:
            self._events.record(original.object, "Warning", "EndpointRefused", str(error))
            raise Terminal(str(error)) from error
        await self._patcher.patch(original, provisioned, owned_conditions=("Paused",))
        return Result.await_change()

    async def _restore(self) -> None:
        """Once, before anything else: give every cluster of an earlier life its endpoint back, so that no new one takes it."""
        async with self._restoring:
            if self._is_restored:
                return
            for obj in await self._client.list(DevCluster):
                endpoint = _endpoint(obj)
                is_provisioned = obj.status.initialization is not None and bool(obj.status.initialization.provisioned)
                if not _is_ours(obj) or endpoint is None or not is_provisioned:
                    continue
                try:
                    self._cloud.reserve(_listener(obj), endpoint)
                except EndpointRefused as error:
                    self._refusals[obj.key] = str(error)
            self._is_restored = True

    async def _provision(self, obj: DevCluster, cluster: Cluster) -> DevCluster:
        wanted = faults.requested(obj.metadata.annotations, faults.CLUSTER_FAULTS)
        if self._cloud.find(cluster.key) is None and (refusal := self._refusals.get(obj.key)):
            raise EndpointRefused(refusal)
        endpoint = obj.spec.control_plane_endpoint
        simulated = await self._cloud.ensure(cluster.key, _endpoint(obj))
        await simulated.cut_off(cut=faults.UNREACHABLE in wanted)
        annotations = {**obj.metadata.annotations, IN_MEMORY_LISTENER_ANNOTATION: str(cluster.key)}
        domains = [d.strip() for d in annotations.get(faults.FAILURE_DOMAINS, "").split(",") if d.strip()]
        if endpoint is None or not endpoint.host:
            endpoint = APIEndpoint(host=simulated.host, port=simulated.port)
        return replace(
            obj,
            metadata=replace(obj.metadata, annotations=annotations),
            spec=replace(obj.spec, control_plane_endpoint=endpoint),
            status=replace(
                obj.status,
                initialization=DevInitializationStatus(provisioned=True),
                failure_domains=tuple(FailureDomain(name=d, control_plane=True) for d in domains),
            ),
        )

    async def _tear_down(self, original: Original[DevCluster]) -> Result:
        obj = original.object
        if IN_MEMORY_LISTENER_ANNOTATION in obj.metadata.annotations:
            await self._cloud.delete(_listener(obj))
        elif (owner := owner_key(obj, "Cluster")) is not None:
            await self._cloud.delete(owner)
        self._refusals.pop(obj.key, None)
        await self._patcher.patch(original, without_finalizer(obj, DEV_CLUSTER_FINALIZER))
        return Result.await_change()


def _is_ours(obj: DevCluster) -> bool:
    return obj.spec.backend.in_memory is not None and MANAGED_BY_ANNOTATION not in obj.metadata.annotations


def _endpoint(obj: DevCluster) -> tuple[str, int] | None:
    endpoint = obj.spec.control_plane_endpoint
    return (endpoint.host, endpoint.port) if endpoint and endpoint.host and endpoint.port else None


def _listener(obj: DevCluster) -> ObjectKey:
    """The Cluster whose listener a DevCluster has; raises EndpointRefused."""
    namespace, slash, name = obj.metadata.annotations.get(IN_MEMORY_LISTENER_ANNOTATION, "").partition("/")
    if not slash or namespace != obj.metadata.namespace:
        raise EndpointRefused(f"annotation {IN_MEMORY_LISTENER_ANNOTATION} does not name a Cluster of this namespace")
    return ObjectKey(namespace, name)
