"""DevCluster: an endpoint, and a workload cluster behind it."""

from __future__ import annotations

from msgspec.structs import replace

from clusterwright.api.core import APIEndpoint, Cluster, FailureDomain
from clusterwright.api.infrastructure import DevCluster, DevInitializationStatus
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import DEV_CLUSTER_FINALIZER, IN_MEMORY_LISTENER_ANNOTATION, MANAGED_BY_ANNOTATION
from clusterwright.controllers.inmemory.owners import find_owner
from clusterwright.controllers.wiring import Dependencies
from clusterwright.inmemory import faults
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.client import Original
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result


class DevClusterReconciler:
    """One pass over a DevCluster."""

    def __init__(self, dependencies: Dependencies, cloud: Cloud) -> None:
        self._client = dependencies.client
        self._clock = dependencies.clock
        self._patcher = Patcher(dependencies.client, dependencies.clock, dependencies.random)
        self._cloud = cloud

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the workload cluster into being, or away."""
        original = await self._client.read(DevCluster, key)
        if original is None or not _is_ours(original.object):
            return Result.await_change()
        finalization = await ensure_finalizer(self._patcher, original, DEV_CLUSTER_FINALIZER)
        if finalization in {Finalization.ADDED, Finalization.ABSENT}:
            return Result.await_change()
        cluster = await find_owner(self._client, original.object, Cluster)
        if cluster is None:
            if finalization is Finalization.CLEANUP:
                await self._release(original)
            return Result.await_change()
        check = await ensure_paused_condition(self._patcher, self._clock, original, cluster_paused=bool(cluster.spec.paused))
        if check.ends_pass:
            return Result.await_change()
        if finalization is Finalization.CLEANUP:
            await self._cloud.delete(cluster.key)
            await self._release(original)
            return Result.await_change()
        await self._patcher.patch(original, await self._provision(check.object, cluster), owned_conditions=("Paused",))
        return Result.await_change()

    async def _provision(self, obj: DevCluster, cluster: Cluster) -> DevCluster:
        wanted = faults.requested(obj.metadata.annotations, faults.CLUSTER_FAULTS)
        endpoint = obj.spec.control_plane_endpoint
        before = (endpoint.host, endpoint.port) if endpoint and endpoint.host and endpoint.port else None
        simulated = await self._cloud.ensure(cluster.key, before)
        await simulated.cut_off(cut=faults.UNREACHABLE in wanted)
        annotations = {**obj.metadata.annotations, IN_MEMORY_LISTENER_ANNOTATION: str(cluster.key)}
        domains = [d.strip() for d in annotations.get(faults.FAILURE_DOMAINS, "").split(",") if d.strip()]
        return replace(
            obj,
            metadata=replace(obj.metadata, annotations=annotations),
            spec=replace(obj.spec, control_plane_endpoint=endpoint if before else APIEndpoint(host=simulated.host, port=simulated.port)),
            status=replace(
                obj.status,
                initialization=DevInitializationStatus(provisioned=True),
                failure_domains=tuple(FailureDomain(name=d, control_plane=True) for d in domains) or obj.status.failure_domains,
            ),
        )

    async def _release(self, original: Original[DevCluster]) -> None:
        await self._patcher.patch(original, without_finalizer(original.object, DEV_CLUSTER_FINALIZER))


def _is_ours(obj: DevCluster) -> bool:
    return obj.spec.backend.in_memory is not None and MANAGED_BY_ANNOTATION not in obj.metadata.annotations
