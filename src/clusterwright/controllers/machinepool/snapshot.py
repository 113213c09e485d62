"""The snapshot of a MachinePool, and the outcome of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterwright.api.contract import CONTRACTS
from clusterwright.api.core import Cluster, Machine, MachinePool, MachineSpec
from clusterwright.api.core.shared import StatusVersion
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey, OwnerReference
from clusterwright.conditions import get, is_true
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.contract import field_of
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Found, Lookup
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.version_counts import of_machines

COUNTED = ("Ready", "Available", "UpToDate")
"""The conditions of Machines that a pool counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of its Cluster that a pool depends on."""

    initialized: bool
    """Whether ControlPlaneInitialized is True: Nodes may exist."""

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        return ClusterFacts(
            namespace=cluster.metadata.namespace,
            reference=owner_reference(cluster, controller=False),
            paused=bool(cluster.spec.paused),
            initialized=is_true(cluster.status.conditions, "ControlPlaneInitialized"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """The facts of a Machine that a pool counts and keeps."""

    key: ObjectKey
    statuses: Mapping[str, str]
    """The statuses of the counted conditions, if present."""
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owners: tuple[OwnerReference, ...]
    spec: MachineSpec
    version: StatusVersion
    """The Machine, reduced to what version counts need."""

    @staticmethod
    def of(machine: Machine) -> MachineFacts:
        """Return the facts of a Machine."""
        metadata, conditions = machine.metadata, (get(machine.status.conditions, type) for type in COUNTED)
        return MachineFacts(
            key=machine.key,
            statuses={c.type: c.status for c in conditions if c is not None},
            deleting=metadata.deletion_timestamp is not None,
            labels=metadata.labels,
            annotations=metadata.annotations,
            owners=metadata.owner_references,
            spec=machine.spec,
            version=next(iter(of_machines([machine])), StatusVersion()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSnapshot(Snapshot[MachinePool]):
    """A MachinePool, its Cluster and the objects that it refers to."""

    cluster: ClusterFacts
    bootstrap: Lookup = NOT_REFERENCED
    infrastructure: Lookup = NOT_REFERENCED

    @property
    def provisioned(self) -> bool:
        """Whether the pool reports its infrastructure as provisioned."""
        flags = self.object.status.initialization
        return flags is not None and bool(flags.infrastructure_provisioned)

    @property
    def data_secret_created(self) -> bool:
        """Whether the pool reports its bootstrap data as created."""
        flags = self.object.status.initialization
        return flags is not None and bool(flags.bootstrap_data_secret_created)

    @property
    def replicas(self) -> int:
        """The number of machines that the infrastructure reports."""
        return self.object.status.replicas or 0

    @property
    def ready_replicas(self) -> int:
        """The number of Nodes that were ready at the last check."""
        deprecated = self.object.status.deprecated
        return deprecated.v1beta1.ready_replicas if deprecated and deprecated.v1beta1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDone(PoolSnapshot):
    """The MachinePool at the end of the pass, and what the pass found after its actions.

    `nodes` are those of the workload cluster by providerID; None: they could not be listed. `machines` are those that count for the pool,
    after Machines were created for the infrastructure; None: they could not be listed.
    """

    nodes: Mapping[str, Node] | None = None
    machines: tuple[MachineFacts, ...] | None = None


# -------------------------------------------------------------------------------------------------- reading by contract


def infrastructure_provisioned(pool: Found) -> bool:
    """Return whether the infrastructure reports that it is provisioned. Raises MalformedField.

    The flag of the older contract counts in both: pools of the newer one also set it.
    """
    flags = (CONTRACTS[contract].infra_machine_pool.provisioned for contract in ("v1beta1", pool.contract))
    return any(field_of(pool, flag) is True for flag in flags)


def infrastructure_machine_kind(pool: Found) -> str:
    """Return the kind of the infrastructure's machines, empty if it has no such objects. Raises MalformedField."""
    return field_of(pool, CONTRACTS[pool.contract].infra_machine_pool.infrastructure_machine_kind) or ""


def provider_ids(pool: Found) -> tuple[str, ...] | None:
    """Return the provider IDs of the infrastructure's machines, in its order; None if not reported. Raises MalformedField."""
    return field_of(pool, CONTRACTS[pool.contract].infra_machine_pool.provider_id_list)


def infrastructure_replicas(pool: Found) -> int | None:
    """Return the number of the infrastructure's machines; None if not reported. Raises MalformedField."""
    return field_of(pool, CONTRACTS[pool.contract].infra_machine_pool.replicas)
