"""Wiring of the in-memory provider: what wakes it."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.infrastructure import DevCluster, DevMachine, DevMachinePool
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_POOL_NAME_LABEL
from clusterwright.controllers.inmemory.devcluster import make as make_clusters
from clusterwright.controllers.inmemory.devmachine import make as make_machines
from clusterwright.controllers.inmemory.devmachinepool import make as make_pools
from clusterwright.controllers.inmemory.owners import find_owner, owner_key
from clusterwright.controllers.kit.watching import owners
from clusterwright.controllers.wiring import ControllerDefinition
from clusterwright.inmemory.cloud import Cloud
from clusterwright.kubeadm.naming import label_value
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch

NAMES = ("devcluster", "devmachine", "devmachinepool")
"""What `controllers` makes."""


def controllers(cloud: Cloud) -> tuple[ControllerDefinition, ...]:
    """The provider's controllers, on one cloud."""
    return (
        ControllerDefinition(
            name="devcluster",
            kind=DevCluster,
            watches=(Watch(Cluster, cluster_to_dev_cluster, when=cluster_matters),),
            make=lambda dependencies: make_clusters(dependencies, cloud),
        ),
        ControllerDefinition(
            name="devmachine",
            kind=DevMachine,
            watches=(
                Watch(Machine, machine_to_dev_machine, when=machine_matters),
                Watch(DevCluster, dev_cluster_to_dev_machines, when=dev_cluster_matters),
                Watch(Cluster, cluster_to_dev_machines, when=cluster_matters),
                Watch(MachinePool, pool_to_dev_machines, when=pool_matters),
            ),
            make=lambda dependencies: make_machines(dependencies, cloud),
        ),
        ControllerDefinition(
            name="devmachinepool",
            kind=DevMachinePool,
            watches=(
                Watch(MachinePool, pool_to_dev_machine_pool, when=pool_matters),
                Watch(DevMachine, owners(INFRASTRUCTURE, "DevMachinePool")),
                Watch(Machine, machine_to_dev_machine_pool, when=deletion_matters),
                Watch(Cluster, cluster_to_dev_machine_pools, when=cluster_matters),
            ),
            make=make_pools,
        ),
    )


INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"


async def pool_to_dev_machine_pool(pool: MachinePool, reader: Reader) -> Sequence[ObjectKey]:
    """The DevMachinePool that a MachinePool refers to."""
    reference = pool.spec.template.spec.infrastructure_ref
    return [ObjectKey(pool.metadata.namespace, reference.name)] if reference.kind == "DevMachinePool" else []


async def pool_to_dev_machines(pool: MachinePool, reader: Reader) -> Sequence[ObjectKey]:
    """The machines of a MachinePool."""
    labels = {CLUSTER_NAME_LABEL: pool.spec.cluster_name, MACHINE_POOL_NAME_LABEL: label_value(pool.metadata.name)}
    return [m.key for m in await reader.list(DevMachine, namespace=pool.metadata.namespace, labels=labels)]


async def machine_to_dev_machine_pool(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
    """The DevMachinePool whose machine a Machine stands for."""
    pool = await find_owner(reader, machine, MachinePool)
    return [] if pool is None else await pool_to_dev_machine_pool(pool, reader)


async def cluster_to_dev_machine_pools(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """The DevMachinePools of a Cluster."""
    found = await reader.list(MachinePool, namespace=cluster.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster.metadata.name})
    return [key for pool in found for key in await pool_to_dev_machine_pool(pool, reader)]


def pool_matters(old: MachinePool | None, new: MachinePool | None) -> bool:
    """The spec of the MachinePool matters; its status does not."""
    return old is None or new is None or old.spec != new.spec


def deletion_matters(old: Machine | None, new: Machine | None) -> bool:
    """Whether a Machine comes, begins to go, is gone, or is marked to go first."""
    if old is None or new is None:
        return True
    was, now = old.metadata, new.metadata
    return was.deletion_timestamp != now.deletion_timestamp or was.annotations != now.annotations


async def cluster_to_dev_cluster(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """The DevCluster that a Cluster refers to."""
    reference = cluster.spec.infrastructure_ref
    return [ObjectKey(cluster.metadata.namespace, reference.name)] if reference and reference.kind == "DevCluster" else []


async def machine_to_dev_machine(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
    """The DevMachine that a Machine refers to."""
    reference = machine.spec.infrastructure_ref
    return [ObjectKey(machine.metadata.namespace, reference.name)] if reference.kind == "DevMachine" else []


async def dev_cluster_to_dev_machines(dev_cluster: DevCluster, reader: Reader) -> Sequence[ObjectKey]:
    """The DevMachines of the Cluster that owns a DevCluster."""
    owner = owner_key(dev_cluster, "Cluster")
    return [] if owner is None else await _dev_machines(owner, reader)


async def cluster_to_dev_machines(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """The DevMachines of a Cluster."""
    return await _dev_machines(cluster.key, reader)


async def _dev_machines(cluster: ObjectKey, reader: Reader) -> Sequence[ObjectKey]:
    found = await reader.list(DevMachine, namespace=cluster.namespace, labels={CLUSTER_NAME_LABEL: cluster.name})
    return [obj.key for obj in found]


def cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """Pause, the infrastructure's readiness and the control plane's initialization are all that machines wait for."""
    return old is None or new is None or _cluster_view(old) != _cluster_view(new)


def _cluster_view(cluster: Cluster) -> tuple[object, ...]:
    initialization = cluster.status.initialization
    return (
        cluster.spec.paused,
        cluster.spec.infrastructure_ref,
        initialization,
        [c.status for c in cluster.status.conditions if c.type == "ControlPlaneInitialized"],
    )


def machine_matters(old: Machine | None, new: Machine | None) -> bool:
    """Spec, labels and deletion of the Machine matter; its status does not."""
    return old is None or new is None or _machine_view(old) != _machine_view(new)


def _machine_view(machine: Machine) -> tuple[object, ...]:
    return machine.spec, machine.metadata.labels, machine.metadata.deletion_timestamp


def dev_cluster_matters(old: DevCluster | None, new: DevCluster | None) -> bool:
    """A DevCluster coming, going or becoming provisioned matters."""
    return old is None or new is None or old.status.initialization != new.status.initialization
