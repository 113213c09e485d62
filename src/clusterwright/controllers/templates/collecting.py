"""The shared parts of both collectors: their steps of a pass, the templates in use, and the deletion of the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, MachineDeployment, MachineSet
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_DEPLOYMENT_NAME_LABEL, TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.external import ContractUnknown, contract_of
from clusterwright.controllers.kit.owners import ClusterFacts
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.paused import is_paused
from clusterwright.runtime.reconcile import Reconciler

T = TypeVar("T", bound=MachineSet | MachineDeployment)

Used = frozenset[tuple[str, str, str]]
"""Templates, by group, kind and name."""
CleanUp = Callable[[Dependencies, T], Awaitable[None]]
"""Delete what a deleted object leaves over. Raises ApiError."""


def collector(deps: Dependencies, kind: type[T], finalizer: str, clean_up: CleanUp[T]) -> Reconciler:
    """Return the reconciler that keeps objects of a topology by a finalizer until their templates are deleted."""
    shape = Shape(kind=kind, finalizer=finalizer, owned=(), main=False)
    return KindReconciler(deps, shape, Collector(deps, finalizer, clean_up))


class Collector(Kind[T, ClusterFacts, Snapshot[T], Snapshot[T]]):
    """Deletes the templates of an object that is being deleted. The kind's own controller writes its status."""

    def __init__(self, deps: Dependencies, finalizer: str, clean_up: CleanUp[T]) -> None:
        self._deps = deps
        self._finalizer = finalizer
        self._clean_up = clean_up

    def concerns(self, obj: T) -> bool:
        """Return whether the object belongs to a topology."""
        return TOPOLOGY_OWNED_LABEL in obj.metadata.labels

    async def owner(self, obj: T) -> ClusterFacts:
        """Read the Cluster; raises NotFound while it does not exist. A paused object counts like one of a paused Cluster."""
        found = ClusterFacts.of(await self._deps.client.get(Cluster, ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)))
        return replace(found, paused=is_paused(obj, cluster_paused=found.paused))

    async def observe(self, obj: T, owner: ClusterFacts) -> Snapshot[T] | None:
        """Return the object if it is being deleted; else skip it."""
        return None if obj.metadata.deletion_timestamp is None else Snapshot(now=self._deps.clock.now(), object=obj)

    async def act(self, run: Pass[T, Snapshot[T], Snapshot[T]]) -> None:
        """Delete the templates, then remove the finalizer."""
        await self._clean_up(self._deps, run.object)
        run.become(without_finalizer(run.object, self._finalizer))

    def conclude(self, run: Pass[T, Snapshot[T], Snapshot[T]]) -> None:
        """Set nothing: the kind's own controller writes the status."""
        return


def templates_of(obj: MachineSet | MachineDeployment) -> tuple[ContractVersionedObjectReference, ...]:
    """Return the references to the bootstrap template, if any, and to the infrastructure template."""
    spec = obj.spec.template.spec
    found = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return tuple(r for r in found if r is not None and r.name)


def _identity(reference: ContractVersionedObjectReference) -> tuple[str, str, str]:
    return (reference.api_group, reference.kind, reference.name)


async def in_use(deps: Dependencies, namespace: str, deployment: MachineDeployment | None, selector: dict[str, str]) -> Used:
    """Return the templates that the MachineDeployment and its undeleted MachineSets refer to; read from the API server."""
    sets = await deps.client.live.list(MachineSet, namespace=namespace, labels=selector)
    users: list[MachineSet | MachineDeployment] = [s for s in sets if s.metadata.deletion_timestamp is None]
    if deployment is not None and deployment.metadata.deletion_timestamp is None:
        users.append(deployment)
    return frozenset(_identity(r) for user in users for r in templates_of(user))


def by_deployment(name: str) -> dict[str, str]:
    """Return the selector of a MachineDeployment's MachineSets."""
    return {MACHINE_DEPLOYMENT_NAME_LABEL: name}


def by_topology(cluster: str) -> dict[str, str]:
    """Return the selector of all MachineSets of a topology."""
    return {CLUSTER_NAME_LABEL: cluster, TOPOLOGY_OWNED_LABEL: ""}


async def delete_unused(deps: Dependencies, obj: MachineSet | MachineDeployment, used: Used) -> None:
    """Delete the templates of an object that are not in use; raises PassFailed."""
    for reference in templates_of(obj):
        if _identity(reference) in used:
            continue
        key = ObjectKey(obj.metadata.namespace, reference.name)
        try:
            contract = await contract_of(deps.client, reference.api_group, reference.kind)
            with suppress(NotFound):
                await deps.client.delete(contract.gvk, key)
        except (ApiError, ContractUnknown) as error:
            raise PassFailed(f"failed to delete {reference.kind} {key} for {obj.kind} {obj.key}: {error}") from error
