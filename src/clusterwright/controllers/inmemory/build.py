"""Wire the in-memory provider: what each change reconciles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.infrastructure import DevCluster, DevMachine, InfraCluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CORE_GROUP, MACHINE_POOL_NAME_LABEL
from clusterwright.controllers.inmemory.devcluster import make as make_clusters
from clusterwright.controllers.inmemory.devmachine import make as make_machines
from clusterwright.controllers.inmemory.devmachinepool import make as make_pools
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts, PoolFacts
from clusterwright.controllers.inmemory.kinds import DEV, DOCKER, GROUP, Family, Simulated
from clusterwright.controllers.inmemory.others import make as make_others
from clusterwright.controllers.kit.owners import find_owner, owner_key
from clusterwright.controllers.kit.watching import by_reference, of_cluster, owned
from clusterwright.controllers.wiring import Access, ControllerDefinition
from clusterwright.inmemory.cloud import Cloud
from clusterwright.kubeadm.naming import label_value
from clusterwright.runtime.client import Reader
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Mapper, Watch

OTHERS = "othercluster"
"""The controller that simulates machines of other providers on request."""
NAMES = (*(kind.__name__.lower() for family in (DEV, DOCKER) for kind in (family.cluster, family.machine, family.pool)), OTHERS)
"""The names of the controllers that `controllers` makes, with `docker`."""


def declared() -> tuple[ControllerDefinition, ...]:
    """Return the definitions of the provider's controllers, without a cloud to run on."""
    nowhere: Any = None  # a cloud is asked for only when a controller is made
    return controllers(nowhere, docker=True)


def controllers(cloud: Cloud, *, docker: bool = False, containers: bool = False) -> tuple[ControllerDefinition, ...]:
    """Return the provider's controllers, on one cloud; with `docker`, also for the Docker kinds and backends.

    With `containers`, another provider handles those, except for their pools.
    """
    simulated = Simulated(docker, containers)
    found = [one for family in simulated.families for one in _family(family, simulated, cloud)]
    found.append(_others(simulated))
    foreign = {DOCKER.cluster, DOCKER.machine} if containers else set()
    return tuple(replace(one, is_provider=True) for one in found if one.kind not in foreign)


def _family(family: Family, simulated: Simulated, cloud: Cloud) -> tuple[ControllerDefinition, ...]:
    machine, pool = family.machine, family.pool
    return (
        ControllerDefinition(
            name=family.cluster.__name__.lower(),
            kind=family.cluster,
            watches=(Watch(Cluster, owned(family.cluster), changed(ClusterFacts.of)),),
            make=lambda dependencies: make_clusters(dependencies, cloud, family, simulated),
        ),
        ControllerDefinition(
            name=machine.__name__.lower(),
            kind=machine,
            watches=(
                # owned, not referred to: a machine may have been ordered by another provider's controller
                Watch(Machine, owned(machine), changed(MachineFacts.of)),
                *(
                    Watch(
                        f.cluster,
                        infra_cluster_to_machines(family),
                        changed(lambda obj: obj.status.initialization),
                        why="machines wait for the simulated cluster behind it",
                    )
                    for f in simulated.families
                ),
                Watch(Cluster, of_cluster(machine), changed(ClusterFacts.of)),
                Watch(MachinePool, pool_to_machines(family), changed(PoolFacts.of)),
            ),
            make=lambda dependencies: make_machines(dependencies, cloud, family, simulated),
            access=(Access("secrets", "get"), Access("kubeadmconfigs.bootstrap.cluster.x-k8s.io", "get")),
        ),
        ControllerDefinition(
            name=pool.__name__.lower(),
            kind=pool,
            watches=(
                Watch(MachinePool, pool_to_infra_pool(family), changed(PoolFacts.of)),
                Watch(machine, owners(GROUP, pool.__name__)),
                Watch(Machine, machine_to_infra_pool(family), changed(MachineFacts.of)),
                Watch(Cluster, cluster_to_infra_pools(family), changed(ClusterFacts.of)),
            ),
            make=lambda dependencies: make_pools(dependencies, family, simulated),
            access=(
                Access(f"{machine.__name__.lower()}s.{GROUP}", "create patch delete"),
                Access("machines.cluster.x-k8s.io", "delete"),
            ),
        ),
    )


def _others(simulated: Simulated) -> ControllerDefinition:
    """Return the controller that simulates machines of other providers on request."""
    return ControllerDefinition(
        name=OTHERS,
        kind=Cluster,
        watches=(
            Watch(Machine, cluster_of, changed(_identified), why="machines with a providerID, or bootstrap data, are simulated"),
            Watch(DevMachine, cluster_of, _is_gone, why="a machine that is gone is created again"),
            Watch(DevCluster, owners(CORE_GROUP, "Cluster"), _is_gone, why="a cluster that is gone is created again"),
        ),
        make=lambda dependencies: make_others(dependencies, simulated),
        access=(Access(f"devclusters.{GROUP}", "create"), Access(f"devmachines.{GROUP}", "create")),
    )


def _identified(machine: Machine) -> tuple[str | None, str | None]:
    return machine.spec.provider_id, machine.spec.bootstrap.data_secret_name


async def cluster_of(obj: Any, _reader: Reader) -> Sequence[ObjectKey]:
    """Return the Cluster that the label of an object names."""
    name = obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    return [ObjectKey(obj.metadata.namespace, name)] if name else []


def _is_gone(old: Any | None, new: Any | None) -> bool:
    return new is None


def pool_to_infra_pool(family: Family) -> Mapper:
    """Return the infrastructure pool that a MachinePool refers to."""
    return by_reference(GROUP, family.pool.__name__, lambda pool: (pool.spec.template.spec.infrastructure_ref,))


def pool_to_machines(family: Family) -> Mapper:
    """Return the machines of a MachinePool."""

    async def map(pool: MachinePool, reader: Reader) -> Sequence[ObjectKey]:
        labels = {CLUSTER_NAME_LABEL: pool.spec.cluster_name, MACHINE_POOL_NAME_LABEL: label_value(pool.metadata.name)}
        return [m.key for m in await reader.list(family.machine, namespace=pool.metadata.namespace, labels=labels)]

    return map


def machine_to_infra_pool(family: Family) -> Mapper:
    """Return the infrastructure pool of the machine that a Machine represents."""
    infra_pool = pool_to_infra_pool(family)

    async def map(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
        pool = await find_owner(reader, machine, MachinePool)
        return [] if pool is None else [*await infra_pool(pool, reader)]

    return map


def cluster_to_infra_pools(family: Family) -> Mapper:
    """Return the infrastructure pools of a Cluster."""
    infra_pool = pool_to_infra_pool(family)

    async def map(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
        found = await reader.list(MachinePool, namespace=cluster.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster.metadata.name})
        return [key for pool in found for key in await infra_pool(pool, reader)]

    return map


def infra_cluster_to_machines(family: Family) -> Mapper:
    """Return the machines of the Cluster that owns an infrastructure cluster."""

    async def map(obj: InfraCluster, reader: Reader) -> Sequence[ObjectKey]:
        owner = owner_key(obj, "Cluster")
        if owner is None:
            return []
        found = await reader.list(family.machine, namespace=owner.namespace, labels={CLUSTER_NAME_LABEL: owner.name})
        return [machine.key for machine in found]

    return map
