"""What both collectors share: whose turn it is, which templates are in use, and how the others are deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from clusterwright.api.core import Cluster, MachineDeployment, MachineSet
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    PAUSED_ANNOTATION,
    TOPOLOGY_OWNED_LABEL,
)
from clusterwright.controllers.external import ContractUnknown, contract_of
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Result

T = TypeVar("T", bound=MachineSet | MachineDeployment)
STEP = "reconcile"

Used = frozenset[tuple[str, str, str]]
"""Templates, by group, kind and name."""


class Collector(Generic[T]):
    """Holds an object that belongs to a topology by a finalizer, until its templates are cleaned up."""

    def __init__(self, deps: Dependencies, kind: type[T], finalizer: str, clean_up: Callable[[Dependencies, T], Awaitable[None]]) -> None:
        self._deps = deps
        self._kind = kind
        self._finalizer = finalizer
        self._clean_up = clean_up
        self._patcher = Patcher(deps.client, deps.clock, deps.random)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        original = await self._deps.client.read(self._kind, key)
        if original is None or TOPOLOGY_OWNED_LABEL not in original.object.metadata.labels:
            return self._end(key, "not-ours")
        obj = original.object
        cluster = await self._deps.client.get(Cluster, ObjectKey(key.namespace, obj.spec.cluster_name))
        is_deleting = obj.metadata.deletion_timestamp is not None
        if not is_deleting and await ensure_finalizer(self._patcher, original, self._finalizer) is Finalization.ADDED:
            return self._end(key, "finalizer-added")
        if cluster.spec.paused or PAUSED_ANNOTATION in obj.metadata.annotations:
            return self._end(key, "paused")
        if not is_deleting:
            return self._end(key, "resting")
        await self._clean_up(self._deps, obj)
        if self._finalizer in obj.metadata.finalizers:
            with suppress(NotFound):
                await self._patcher.patch(original, without_finalizer(obj, self._finalizer))
        return self._end(key, "collected")

    def _end(self, key: ObjectKey, step: str) -> Result:
        self._deps.trace(key, {STEP: step})
        return Result.await_change()


def templates_of(obj: MachineSet | MachineDeployment) -> tuple[ContractVersionedObjectReference, ...]:
    """Bootstrap template, if there is one, and infrastructure template."""
    spec = obj.spec.template.spec
    found = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return tuple(r for r in found if r is not None and r.name)


def _identity(reference: ContractVersionedObjectReference) -> tuple[str, str, str]:
    return (reference.api_group, reference.kind, reference.name)


async def in_use(deps: Dependencies, namespace: str, deployment: MachineDeployment | None, selector: dict[str, str]) -> Used:
    """The templates that living MachineSets of the selector, and the MachineDeployment, refer to. Asked of the API server itself."""
    sets = await deps.client.live.list(MachineSet, namespace=namespace, labels=selector)
    users: list[MachineSet | MachineDeployment] = [s for s in sets if s.metadata.deletion_timestamp is None]
    if deployment is not None and deployment.metadata.deletion_timestamp is None:
        users.append(deployment)
    return frozenset(_identity(r) for user in users for r in templates_of(user))


def by_deployment(name: str) -> dict[str, str]:
    """The MachineSets of a MachineDeployment."""
    return {MACHINE_DEPLOYMENT_NAME_LABEL: name}


def by_topology(cluster: str) -> dict[str, str]:
    """The MachineSets of a whole topology."""
    return {CLUSTER_NAME_LABEL: cluster, TOPOLOGY_OWNED_LABEL: ""}


async def delete_unused(deps: Dependencies, obj: MachineSet | MachineDeployment, used: Used) -> None:
    """Delete the templates of an object that nobody uses any more; raises PassFailed."""
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
