"""The passes over an InfraMachine and an InfraCluster: the contract around the two steps of a provider."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from clusterwright.api.copying import replace
from clusterwright.api.core import APIEndpoint, Cluster, Machine
from clusterwright.api.infrastructure import DevInitializationStatus
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import MANAGED_BY_ANNOTATION
from clusterwright.controllers.kit.owners import find_owner
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind
from clusterwright.provider.bootstrap import data_secret_name
from clusterwright.provider.clusters import InfraClusters, Site
from clusterwright.provider.conditions import CLUSTER_READY, READY, Answered, View
from clusterwright.provider.failures import Attempts, ProvisionFailed
from clusterwright.provider.machines import Gone, InfraMachines, Pending, Server
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.finalizers import without_finalizer

D = TypeVar("D", bound=Server | Gone | Site)


@dataclass(frozen=True, slots=True)
class Belonging:
    """The owners of an object; a deleted object may have outlived both."""

    machine: Machine | None
    cluster: Cluster | None

    @property
    def paused(self) -> bool:
        """Whether the Cluster is paused."""
        return self.cluster is not None and bool(self.cluster.spec.paused)


def in_one_line(text: str) -> str:
    """Return the lines of a message as one: summaries of the Machine would make a bullet of each, empty ones too."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


class _Steps(Kind[Any, Belonging, View, Answered], Generic[D]):
    """The common steps of both kinds: create, check, remove."""

    def __init__(self, provider: InfraMachines[Any] | InfraClusters[Any], clock: Clock) -> None:
        self._provider = provider
        self._client = provider.client
        self._clock = clock
        self._attempts = Attempts(provider.look, provider.longest_wait)

    def concerns(self, obj: Any) -> bool:
        return self._provider.concerns(obj)

    def forget(self, key: ObjectKey) -> None:
        self._attempts.forget(key)

    @abstractmethod
    def may_act(self, seen: View) -> bool:
        """Return whether all prerequisites exist."""

    @abstractmethod
    def provision(self, seen: View) -> Awaitable[D | Pending | None]: ...

    @abstractmethod
    def remove(self, seen: View) -> Awaitable[bool]: ...

    @abstractmethod
    def answered(self, done: Answered, answer: D) -> Answered:
        """Return the outcome with the provider's answer."""

    async def act(self, run: Pass[Any, View, Answered]) -> None:
        provider, seen, key = self._provider, run.seen, run.object.key
        try:
            if seen.deleting:
                await self._remove(run)
                return
            if not self.may_act(seen):
                return
            answer = await self.provision(seen)
        except ProvisionFailed as error:
            failure = in_one_line(str(error))
            run.done = replace(run.done, failure=failure, facts=error.facts)
            run.record("Warning", "DeletionFailed" if seen.deleting else "ProvisioningFailed", failure)
            run.vote(self._attempts.failed(key, seen.now))
            return
        self._attempts.forget(key)
        is_pending = answer is None or isinstance(answer, Pending)
        if isinstance(answer, Pending):
            run.done = replace(run.done, pending=in_one_line(answer.message), facts=answer.facts)
        elif answer is not None:
            run.done = self.answered(replace(run.done, facts=answer.facts), answer)
        if not provider.makes:
            run.vote(provider.look if is_pending or run.done.stopped else provider.look_when_up)

    async def _remove(self, run: Pass[Any, View, Answered]) -> None:
        try:
            is_gone = await self.remove(run.seen)
        except NotFound:  # what was to be deleted went meanwhile; the next look, of a cache that knows of it, sees what is left
            is_gone = False
        if is_gone:
            run.become(without_finalizer(run.object, self._provider.finalizer))
        elif not self._provider.makes:
            run.vote(self._provider.look)


class MachineSteps(_Steps[Server | Gone]):
    """The steps of a pass over an InfraMachine."""

    def __init__(self, machines: InfraMachines[Any], clock: Clock) -> None:
        super().__init__(machines, clock)
        self._machines = machines

    async def owner(self, obj: Any) -> Belonging | None:
        """Return the Machine and its Cluster, waiting for both, unless the object is deleted."""
        is_deleted = obj.metadata.deletion_timestamp is not None
        machine = await find_owner(self._client, obj, Machine)
        if machine is None:
            return Belonging(None, None) if is_deleted else None
        cluster = await self._client.find(Cluster, ObjectKey(obj.metadata.namespace, machine.spec.cluster_name))
        return None if cluster is None and not is_deleted else Belonging(machine, cluster)

    async def observe(self, obj: Any, owner: Belonging) -> View | None:
        """Return what the machine waits for; None for a deleted one without resources."""
        if obj.metadata.deletion_timestamp is not None and self._machines.finalizer not in obj.metadata.finalizers:
            return None
        latch = owner.cluster.status.initialization if owner.cluster is not None else None
        return View(
            object=obj,
            now=self._clock.now(),
            cluster=owner.cluster,
            machine=owner.machine,
            is_cluster_provisioned=latch is not None and bool(latch.infrastructure_provisioned),
            has_data=owner.machine is not None and bool(await data_secret_name(self._client, owner.machine)),
        )

    def may_act(self, seen: View) -> bool:
        """Return whether the machine was created, or can be."""
        return seen.machine is not None and (seen.is_provisioned or (seen.is_cluster_provisioned and seen.has_data))

    def provision(self, seen: View) -> Awaitable[Server | Gone | Pending | None]:
        """Call the provider to create the machine."""
        assert seen.machine is not None
        return self._machines.provision(seen.object, seen.machine)

    def remove(self, seen: View) -> Awaitable[bool]:
        """Call the provider to remove it."""
        return self._machines.remove(seen.object, seen.machine)

    def answered(self, done: Answered, answer: Server | Gone) -> Answered:
        """Write the machine's state into the fields of the contract."""
        if isinstance(answer, Gone):
            return replace(done, gone=in_one_line(answer.message) or "the machine is gone")
        obj = done.object
        status = replace(
            obj.status,
            initialization=DevInitializationStatus(provisioned=True),
            addresses=tuple(answer.addresses),
            failure_domain=answer.failure_domain or obj.status.failure_domain,
        )
        obj = replace(obj, spec=replace(obj.spec, provider_id=answer.provider_id), status=status)
        return replace(done, object=obj, stopped=in_one_line(answer.stopped))

    def conclude(self, run: Pass[Any, View, Answered]) -> None:
        """Set the conditions."""
        run.conclude(*self._machines.conditions, READY)


class ClusterSteps(_Steps[Site]):
    """The steps of a pass over an InfraCluster."""

    def __init__(self, clusters: InfraClusters[Any], clock: Clock) -> None:
        super().__init__(clusters, clock)
        self._clusters = clusters

    def concerns(self, obj: Any) -> bool:
        """Return whether the object is this provider's; somebody else writes those that are managed externally."""
        return MANAGED_BY_ANNOTATION not in obj.metadata.annotations and super().concerns(obj)

    async def owner(self, obj: Any) -> Belonging | None:
        """Return the Cluster, waiting for it, unless the object is deleted."""
        cluster = await find_owner(self._client, obj, Cluster)
        return None if cluster is None and obj.metadata.deletion_timestamp is None else Belonging(None, cluster)

    async def observe(self, obj: Any, owner: Belonging) -> View | None:
        """Return the object with its Cluster; None for a deleted one without resources."""
        if obj.metadata.deletion_timestamp is not None and self._clusters.finalizer not in obj.metadata.finalizers:
            return None
        return View(object=obj, now=self._clock.now(), cluster=owner.cluster)

    def may_act(self, seen: View) -> bool:
        """Return whether there is a Cluster."""
        return seen.cluster is not None

    def provision(self, seen: View) -> Awaitable[Site | Pending | None]:
        """Call the provider to create the infrastructure."""
        assert seen.cluster is not None
        return self._clusters.provision(seen.object, seen.cluster)

    def remove(self, seen: View) -> Awaitable[bool]:
        """Call the provider to remove it."""
        return self._clusters.remove(seen.object, seen.cluster)

    def answered(self, done: Answered, answer: Site) -> Answered:
        """Write the infrastructure's state into the fields of the contract. An endpoint that is set stays."""
        obj = done.object
        status = replace(
            obj.status, initialization=DevInitializationStatus(provisioned=True), failure_domains=tuple(answer.failure_domains)
        )
        present = obj.spec.control_plane_endpoint
        spec = obj.spec
        if answer.host and not (present and present.host):
            spec = replace(spec, control_plane_endpoint=APIEndpoint(host=answer.host, port=answer.port))
        return replace(done, object=replace(obj, spec=spec, status=status), stopped=in_one_line(answer.stopped))

    def conclude(self, run: Pass[Any, View, Answered]) -> None:
        """Set the conditions."""
        run.conclude(*self._clusters.conditions, CLUSTER_READY)
