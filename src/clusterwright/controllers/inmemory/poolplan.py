"""Decide how many machines a pool has, which are created and which are deleted: pure functions and tables.

The machines are DevMachines or DockerMachines, for each of which the MachinePool makes a Machine; to remove a machine, delete its Machine,
so that its Node is drained first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import count, islice

from clusterwright.api.codec import to_json
from clusterwright.api.copying import replace
from clusterwright.api.core import MachinePool
from clusterwright.api.docker import DockerMachinePool
from clusterwright.api.infrastructure import DevMachinePool, DevMachinePoolInstance, InfraMachine, InfraMachinePool
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, DELETE_MACHINE_ANNOTATION, MACHINE_POOL_NAME_LABEL
from clusterwright.conditions import is_true
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts, PoolFacts
from clusterwright.controllers.inmemory.kinds import DEV, DOCKER
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.owned_machines import CREATION_WAIT, MOST_CREATED, creation_budget
from clusterwright.kubeadm.naming import label_value, shortened, suffix
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, false, guard, message, true

VERSION_ANNOTATION = "inmemory.clusterwright.dev/version"
"""The Kubernetes version that a pool's machine was made for: a machine with another version is replaced."""
MACHINE_KIND = {family.pool.__name__: family.machine.__name__ for family in (DEV, DOCKER)}
"""The kind of the machines of each pool kind."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine of the pool, and the Machine that represents it, once it exists."""

    infra: InfraMachine
    machine: MachineFacts | None = None

    @property
    def name(self) -> str:
        """The name of the machine."""
        return self.infra.metadata.name

    @property
    def leaves(self) -> bool:
        """Whether it is being removed."""
        gone = self.infra.metadata.deletion_timestamp is not None
        return gone or (self.machine is not None and self.machine.metadata.deletion_timestamp is not None)

    @property
    def is_ready(self) -> bool:
        """Whether its Node is ready."""
        return is_true(self.infra.status.conditions, "NodeProvisioned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolScene:
    """The pool as this pass leaves it so far, and its owners; both are None only while the pool is deleted."""

    now: datetime
    object: InfraMachinePool
    pool: PoolFacts | None = None
    cluster: ClusterFacts | None = None
    instances: tuple[Instance, ...] = ()
    strays: tuple[MachineFacts, ...] = ()
    """Machines that seem to represent no machine of the pool."""

    @property
    def wanted(self) -> int:
        """The wanted number of machines."""
        if self.pool is None or self.object.metadata.deletion_timestamp is not None:
            return 0
        return 1 if self.pool.spec.replicas is None else self.pool.spec.replicas

    @property
    def missing(self) -> int:
        """The number of missing machines; negative if there are too many."""
        return self.wanted - len(self.staying)

    @property
    def version(self) -> str:
        """The Kubernetes version of new machines."""
        return self.pool.spec.template.spec.version if self.pool else ""

    @property
    def staying(self) -> tuple[Instance, ...]:
        """The machines that are not being removed, oldest first."""
        return tuple(sorted((i for i in self.instances if not i.leaves), key=_age))

    @property
    def outdated(self) -> tuple[Instance, ...]:
        """The staying machines that were made for another version."""
        return tuple(i for i in self.staying if i.infra.metadata.annotations.get(VERSION_ANNOTATION, "") != self.version)


def _age(instance: Instance) -> tuple[str, str]:
    return str(instance.infra.metadata.creation_timestamp or ""), instance.name


# --------------------------------------------------------------------------------------------------------------- guards


@guard("metadata.deletionTimestamp is set")
def deleting(s: PoolScene) -> bool:
    return s.object.metadata.deletion_timestamp is not None


@guard("machines are left")
def machines_left(s: PoolScene) -> bool:
    return bool(s.instances)


@guard("the Cluster's infrastructure is provisioned")
def cluster_provisioned(s: PoolScene) -> bool:
    return s.cluster is not None and s.cluster.provisioned


@guard("the MachinePool has bootstrap data")
def has_bootstrap_data(s: PoolScene) -> bool:
    return s.pool is not None and bool(s.pool.spec.template.spec.bootstrap.data_secret_name)


@guard("there are fewer machines than are wanted")
def too_few(s: PoolScene) -> bool:
    return len(s.staying) < s.wanted


@guard("more machines are missing than are created at a time")
def far_too_few(s: PoolScene) -> bool:
    return s.missing > MOST_CREATED


@guard("there are more machines than are wanted")
def too_many(s: PoolScene) -> bool:
    return len(s.staying) > s.wanted


@guard("a machine was made for another version")
def any_outdated(s: PoolScene) -> bool:
    return bool(s.outdated)


@guard("a machine is not up yet, or on its way out")
def any_moving(s: PoolScene) -> bool:
    return any(i.leaves or not i.is_ready for i in s.instances)


@guard("as many machines are up as are wanted")
def all_up(s: PoolScene) -> bool:
    return sum(i.is_ready for i in s.staying) == s.wanted and not too_many(s)


@message("<n> of <m> machines are up[; 50 are created at a time, <k> are still to be created]")
def so_many_up(s: PoolScene) -> str:
    rest = f"; {MOST_CREATED} are created at a time, {s.missing} are still to be created" if s.missing > MOST_CREATED else ""
    return f"{sum(i.is_ready for i in s.staying)} of {s.wanted} machines are up{rest}"


# --------------------------------------------------------------------------------------------------------------- tables


class Act(Enum):
    """The action on the machines of a pool."""

    CREATE = "create the machines that are missing"
    REMOVE = "delete the Machines that are too many"
    REPLACE = "delete one outdated Machine; the next pass makes another"
    EMPTY = "delete all machines"
    RELEASE = "remove the finalizer"


# fmt: off
SCALE: Table[PoolScene] = Table(
    "Scale",
    Row("empty",           deleting & machines_left,                     KEEP,                                      act=Act.EMPTY),
    Row("release",         deleting,                                     KEEP,                                      act=Act.RELEASE),
    Row("no-cluster",      ~cluster_provisioned,                         KEEP),
    Row("remove",          too_many,                                     KEEP,                                      act=Act.REMOVE),
    Row("no-bootstrap",    ~has_bootstrap_data,                          KEEP),
    Row("create-some",     too_few & far_too_few,                        KEEP, requeue=CREATION_WAIT,               act=Act.CREATE),
    Row("create",          too_few,                                      KEEP,                                      act=Act.CREATE),
    Row("settling",        any_moving,                                   KEEP),
    Row("replace",         any_outdated,                                 KEEP,                                      act=Act.REPLACE),
    Row("settled",         OTHERWISE,                                    KEEP),
    at_most_one=[(too_few, too_many)],
    assuming=[~far_too_few | too_few],
    about="Outdated machines are replaced one by one, each when all others are up.",
)

READY: Table[PoolScene] = Table(
    "Ready",
    Row("deleting",        deleting,                                     false("Deleting")),
    Row("no-cluster",      ~cluster_provisioned,                         false("WaitingForClusterInfrastructureReady")),
    Row("no-bootstrap",    ~has_bootstrap_data & ~all_up,                false("WaitingForBootstrapData")),
    Row("up",              all_up,                                       true("Ready")),
    Row("scaling",         OTHERWISE,                                    false("MachinesNotUp", so_many_up)),
)
# fmt: on


# -------------------------------------------------------------------------------------------------------------- choices


def new_machines(s: PoolScene) -> list[Json]:
    """Return the machines that this pass creates: the missing ones, within the budget.

    Names are derived from the pool and a slot, so that a pass with a stale view creates the same names again, which is refused.
    """
    if s.pool is None:
        return []
    budget = creation_budget((i.infra.metadata.creation_timestamp for i in s.instances), s.now)
    return [_machine(s, s.pool, name) for name in islice(_free_names(s), max(min(s.missing, budget), 0))]


def _free_names(s: PoolScene) -> Iterator[str]:
    """Yield the names that no machine of the pool has, endlessly."""
    used = {i.name for i in s.instances}
    for slot in count():
        random = suffix(s.object.metadata.uid, str(slot))
        name = shortened(f"{s.object.metadata.name}-{random}", random)
        if name not in used:
            used.add(name)
            yield name


def _machine(s: PoolScene, pool: MachinePool, name: str) -> Json:
    labels = {CLUSTER_NAME_LABEL: pool.spec.cluster_name, MACHINE_POOL_NAME_LABEL: label_value(pool.metadata.name)}
    return {
        "apiVersion": s.object.api_version,
        "kind": MACHINE_KIND[s.object.kind],
        "metadata": {
            "name": name,
            "namespace": s.object.metadata.namespace,
            "labels": labels,
            "annotations": {VERSION_ANNOTATION: s.version},
            "ownerReferences": [to_json(owner_reference(s.object, controller=False))],
        },
        "spec": _machine_spec(s.object),
    }


def _machine_spec(pool: InfraMachinePool) -> Json:
    """Return the spec of a pool's machines."""
    match pool:
        case DevMachinePool(spec=spec) if spec.backend.in_memory is not None:
            return {"backend": {"inMemory": to_json(spec.backend.in_memory)}}
        case DevMachinePool(spec=spec):
            return {"backend": {"docker": to_json(spec.backend.docker) if spec.backend.docker is not None else {}}}
        case DockerMachinePool(spec=spec):
            return to_json(spec.template)
    return {}


def surplus(s: PoolScene) -> list[Instance]:
    """Return the machines to remove: user-marked ones first, then outdated ones, unready ones, the youngest."""
    outdated = {i.name for i in s.outdated}

    def order(instance: Instance) -> tuple[object, ...]:
        marked = instance.machine is not None and DELETE_MACHINE_ANNOTATION in instance.machine.metadata.annotations
        return not marked, instance.name not in outdated, instance.is_ready

    youngest_first = list(reversed(s.staying))
    return sorted(youngest_first, key=order)[: max(0, len(s.staying) - s.wanted)]


def with_status(s: PoolScene) -> InfraMachinePool:
    """Return the pool with the status of its machines; once up, it stays provisioned."""
    obj = s.object
    started = [i for i in s.staying if i.infra.spec.provider_id]
    ids = tuple(sorted(i.infra.spec.provider_id for i in started))
    instances = tuple(
        DevMachinePoolInstance(
            addresses=i.infra.status.addresses,
            instance_name=i.name,
            provider_id=i.infra.spec.provider_id or None,
            version=i.infra.metadata.annotations.get(VERSION_ANNOTATION) or None,
            ready=i.is_ready,
        )
        for i in s.staying
    )
    status = replace(
        obj.status,
        ready=obj.status.ready or (cluster_provisioned(s) and has_bootstrap_data(s) and len(ids) >= s.wanted),
        replicas=len(s.staying),
        infrastructure_machine_kind=MACHINE_KIND[obj.kind],
        instances=instances,
    )
    spec = replace(obj.spec, provider_id_list=ids)
    return obj if (spec, status) == (obj.spec, obj.status) else replace(obj, spec=spec, status=status)


def instances_of(machines: Sequence[InfraMachine], owners: Sequence[MachineFacts], kind: str) -> tuple[Instance, ...]:
    """Return every machine with its Machine."""
    by_name = {m.spec.infrastructure_ref.name: m for m in owners if m.spec.infrastructure_ref.kind == kind}
    return tuple(Instance(m, by_name.get(m.metadata.name)) for m in machines)


def strays_of(machines: Sequence[InfraMachine], owners: Sequence[MachineFacts], kind: str) -> tuple[MachineFacts, ...]:
    """Return Machines that were created for a machine while that was being removed: no machine will ever back them."""
    names = {m.metadata.name for m in machines}
    return tuple(
        m
        for m in owners
        if m.spec.infrastructure_ref.kind == kind
        and m.spec.infrastructure_ref.name not in names
        and m.metadata.deletion_timestamp is None
        and not m.spec.provider_id
    )
