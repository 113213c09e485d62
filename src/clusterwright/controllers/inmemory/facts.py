"""The facts that simulated clusters, machines and pools take from their owners. Watches compare them."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.core import Cluster, ContractVersionedObjectReference, Machine, MachinePool, MachineStatus
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.api.wellknown import DELETE_MACHINE_ANNOTATION, PENDING_HOOKS_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION
from clusterwright.conditions import is_true
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference

_ANNOTATIONS = frozenset({DELETE_MACHINE_ANNOTATION, PENDING_HOOKS_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of a Cluster that its simulated machines wait for."""

    infrastructure_ref: ContractVersionedObjectReference | None
    provisioned: bool
    initialized: bool

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        flags = cluster.status.initialization
        return ClusterFacts(
            reference=owner_reference(cluster, controller=False),
            namespace=cluster.metadata.namespace,
            paused=bool(cluster.spec.paused),
            infrastructure_ref=cluster.spec.infrastructure_ref,
            provisioned=flags is not None and bool(flags.infrastructure_provisioned),
            initialized=is_true(cluster.status.conditions, "ControlPlaneInitialized"),
        )


class MachineFacts(Machine):
    """The facts of a Machine that its simulated machine depends on."""

    @staticmethod
    def of(machine: Machine) -> MachineFacts:
        """Return the facts of a Machine."""
        metadata = machine.metadata
        return MachineFacts(
            metadata=ObjectMeta(
                name=metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
                labels=metadata.labels,
                annotations={name: value for name, value in metadata.annotations.items() if name in _ANNOTATIONS},
                owner_references=metadata.owner_references,
                deletion_timestamp=metadata.deletion_timestamp,
            ),
            spec=machine.spec,
            status=MachineStatus(node_info=machine.status.node_info),
        )


class PoolFacts(MachinePool):
    """The facts of a MachinePool that its simulated pool depends on: its spec."""

    @staticmethod
    def of(pool: MachinePool) -> PoolFacts:
        """Return the facts of a MachinePool."""
        metadata = pool.metadata
        return PoolFacts(metadata=ObjectMeta(name=metadata.name, namespace=metadata.namespace, uid=metadata.uid), spec=pool.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """The owners of a simulated object; None for owners that are gone, which happens during deletion."""

    cluster_key: ObjectKey
    cluster: ClusterFacts | None
    machine: MachineFacts | None = None
    pool: PoolFacts | None = None

    @property
    def paused(self) -> bool:
        """Whether the Cluster is paused."""
        return self.cluster is not None and self.cluster.paused
