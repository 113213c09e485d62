"""The frozen snapshot of one pass over a Cluster, and the reads that make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TypeVar

from clusterwright.api.codec import DecodeError
from clusterwright.api.copying import replace
from clusterwright.api.core import (
    APIEndpoint,
    Cluster,
    ClusterClass,
    Machine,
    MachineDeployment,
    MachinePool,
    MachineReadinessGate,
    MachineSet,
    MachineSpec,
    MachineStatus,
    Topology,
)
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, CORE_GROUP, MACHINE_POOL_NAME_LABEL
from clusterwright.conditions import Reporter, is_false
from clusterwright.controllers.cluster.providers import Lookup
from clusterwright.controllers.external import group_of, is_owned_by
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, names_anything
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.version_counts import version_of
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.tables import Decision
from clusterwright.workload.access import Health

C = TypeVar("C", MachineDeployment, MachineSet, MachinePool, Machine)

_COUNTED = frozenset({"Ready", "Available", "UpToDate", "HealthCheckSucceeded", "OwnerRemediated"})
_LABELS = frozenset({CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, MACHINE_POOL_NAME_LABEL})


class MachineFacts(Machine):
    """The facts of a Machine that a Cluster counts. The version is the kubelet's, if known."""

    @staticmethod
    def of(machine: Machine) -> MachineFacts:
        """Return the facts of a Machine."""
        metadata, status = machine.metadata, machine.status
        return MachineFacts(
            metadata=ObjectMeta(
                name=metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
                labels={name: value for name, value in metadata.labels.items() if name in _LABELS},
                owner_references=metadata.owner_references,
                creation_timestamp=metadata.creation_timestamp,
                deletion_timestamp=metadata.deletion_timestamp,
            ),
            spec=MachineSpec(version=version_of(machine)),
            status=MachineStatus(
                node_ref=status.node_ref,
                conditions=tuple(replace(c, observed_generation=0) for c in status.conditions if c.type in _COUNTED),
            ),
        )


Child = MachineDeployment | MachineSet | MachinePool | MachineFacts


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """The facts that a Cluster takes from its ClusterClass."""

    availability_gates: tuple[MachineReadinessGate, ...] = ()

    @staticmethod
    def of(cluster_class: ClusterClass) -> ClassFacts:
        """Return the facts of a ClusterClass."""
        return ClassFacts(cluster_class.spec.availability_gates)


@dataclass(frozen=True)
class Descendants:
    """Every object that carries the Cluster's name label in its namespace, by name. Machines of pools are workers."""

    machine_deployments: tuple[MachineDeployment, ...] = ()
    machine_sets: tuple[MachineSet, ...] = ()
    machine_pools: tuple[MachinePool, ...] = ()
    control_plane_machines: tuple[MachineFacts, ...] = ()
    worker_machines: tuple[MachineFacts, ...] = ()

    @cached_property
    def own_worker_machines(self) -> tuple[MachineFacts, ...]:
        """Return worker Machines that do not belong to a MachinePool."""
        return tuple(m for m in self.worker_machines if MACHINE_POOL_NAME_LABEL not in m.metadata.labels)

    @cached_property
    def unhealthy_machines(self) -> tuple[MachineFacts, ...]:
        """Return Machines that a health check found unhealthy, without those of pools."""
        machines = (m for m in (*self.control_plane_machines, *self.worker_machines) if MACHINE_POOL_NAME_LABEL not in m.metadata.labels)
        return tuple(m for m in machines if is_false(m.status.conditions, "HealthCheckSucceeded"))

    @cached_property
    def machines_to_be_remediated(self) -> tuple[MachineFacts, ...]:
        """Return unhealthy Machines that their owner must replace."""
        return tuple(m for m in self.unhealthy_machines if is_false(m.status.conditions, "OwnerRemediated"))


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of listing: everything or an error; and the control-plane Machines, if those could be listed."""

    descendants: Descendants | None
    control_plane_machines: tuple[MachineFacts, ...] | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The reporters of a condition, with their statuses, and whether anything has to be reported."""

    reporters: Sequence[Reporter]
    statuses: frozenset[str]
    has_messages: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot(Snapshot[Cluster]):
    """A Cluster and all the facts that its tables read."""

    infrastructure: Lookup = NOT_REFERENCED
    control_plane: Lookup = NOT_REFERENCED
    listing: Listing = field(default_factory=lambda: Listing(None, None))
    cluster_class: ClassFacts | None = None
    health: Health = field(default_factory=Health)
    connection_grace: timedelta = timedelta(seconds=50)
    features: Mapping[str, bool] = field(default_factory=dict)
    gathered: dict[str, Gathered] = field(default_factory=dict, compare=False, repr=False)
    """A cache of the descendants' reports by table, shared by several guards of a table. It holds no fact of its own."""

    @property
    def cluster(self) -> Cluster:
        """The Cluster."""
        return self.object

    @property
    def descendants(self) -> Descendants | None:
        """All objects that carry the Cluster's label; None: they could not be listed."""
        return self.listing.descendants

    @property
    def control_plane_machines(self) -> tuple[MachineFacts, ...] | None:
        """The control-plane Machines, known even if other descendants could not be listed."""
        return self.listing.control_plane_machines

    @property
    def waiting_for_topology(self) -> bool:
        """Whether the references of a managed topology are still missing, so that no phase acts."""
        spec = self.cluster.spec
        return (
            self.has_topology
            and not self.deleting
            and not (names_anything(spec.control_plane_ref) and names_anything(spec.infrastructure_ref))
        )

    @property
    def has_topology(self) -> bool:
        """Whether the Cluster has a ClusterClass."""
        return has_topology(self.cluster)

    @property
    def infrastructure_kind(self) -> str:
        """The kind that spec.infrastructureRef names."""
        reference = self.cluster.spec.infrastructure_ref
        return reference.kind if reference else ""

    @property
    def control_plane_kind(self) -> str:
        """The kind that spec.controlPlaneRef names."""
        reference = self.cluster.spec.control_plane_ref
        return reference.kind if reference else ""

    @property
    def provisioned(self) -> bool:
        """status.initialization.infrastructureProvisioned, which never becomes false again."""
        initialization = self.cluster.status.initialization
        return bool(initialization and initialization.infrastructure_provisioned)

    @property
    def initialized(self) -> bool:
        """status.initialization.controlPlaneInitialized, which never becomes false again."""
        initialization = self.cluster.status.initialization
        return bool(initialization and initialization.control_plane_initialized)

    @property
    def endpoint_valid(self) -> bool:
        """Whether the API server's endpoint is known."""
        return is_valid(self.cluster.spec.control_plane_endpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDone(ClusterSnapshot):
    """The Cluster at the end of the pass, and the progress of its deletion."""

    deletion: Decision | None = None
    """The next step of the deletion; None: the Cluster is not being deleted."""
    delete_failed: bool = False
    """Whether a deletion failed in this pass."""


def has_topology(cluster: Cluster) -> bool:
    """Return whether the Cluster is managed by a ClusterClass; an empty topology does not count."""
    return cluster.spec.topology is not None and cluster.spec.topology != Topology()


def is_valid(endpoint: APIEndpoint | None) -> bool:
    """Return whether the endpoint can be connected to: it has a host and a port."""
    return endpoint is not None and endpoint.host != "" and endpoint.port != 0


def is_child_of(metadata: ObjectMeta, cluster: Cluster) -> bool:
    """Return whether the object belongs to the Cluster directly; raises ValueError for malformed ownerReferences."""
    for reference in metadata.owner_references:
        group_of(reference.api_version)
    return is_owned_by(metadata, CORE_GROUP, "Cluster", cluster.metadata.name)


def owned_children(seen: ClusterSnapshot) -> tuple[Child, ...]:
    """Return the direct children of the Cluster, in the order of deletion; control-plane Machines only if no control plane owns them.

    Raises ValueError for malformed ownerReferences.
    """
    all_of = seen.descendants or Descendants()
    standalone = not names_anything(seen.cluster.spec.control_plane_ref)
    candidates: list[Child] = [*all_of.machine_pools, *all_of.machine_deployments, *all_of.machine_sets, *all_of.worker_machines]
    candidates += all_of.control_plane_machines if standalone else ()
    return tuple(c for c in candidates if is_child_of(c.metadata, seen.cluster))


# ---------------------------------------------------------------------------------------------- reads


async def list_descendants(reader: Reader, cluster: Cluster, *, machine_pools: bool) -> Listing:
    """Return all objects with the Cluster's label; if one list fails, all of it is unknown."""
    error = ""

    async def listed(kind: type[C]) -> tuple[C, ...]:
        nonlocal error
        try:
            return tuple(await reader.list(kind, namespace=cluster.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster.metadata.name}))
        except (ApiError, DecodeError) as failure:  # one object that cannot be understood makes the list no list
            error = error or f"failed to list {kind.__name__}s for cluster {cluster.key}: {failure}"
            return ()

    deployments, sets = await listed(MachineDeployment), await listed(MachineSet)
    pools = await listed(MachinePool) if machine_pools else ()
    first_error, error = error, ""
    machines = tuple(map(MachineFacts.of, await listed(Machine)))
    control_plane = tuple(m for m in machines if is_control_plane_machine(m.metadata, cluster))
    if first_error or error:
        return Listing(None, None if error else control_plane, first_error or error)
    names = {m.metadata.name for m in control_plane}
    workers = tuple(m for m in machines if m.metadata.name not in names)
    return Listing(Descendants(deployments, sets, pools, control_plane, workers), control_plane)


def is_control_plane_machine(metadata: ObjectMeta, cluster: Cluster) -> bool:
    """Return whether a Machine is labelled as control plane, or owned by the object that spec.controlPlaneRef names."""
    if CONTROL_PLANE_LABEL in metadata.labels:
        return True
    reference = cluster.spec.control_plane_ref
    return reference is not None and bool(reference.name) and is_owned_by(metadata, reference.api_group, reference.kind, reference.name)


async def find_cluster_class(reader: Reader, cluster: Cluster) -> ClassFacts | None:
    """Return the facts of a managed Cluster's class. A missing class does not block the deletion of the Cluster; else raise."""
    topology = cluster.spec.topology
    if topology is None or not has_topology(cluster):
        return None
    key = ObjectKey(topology.class_ref.namespace or cluster.metadata.namespace, topology.class_ref.name)
    try:
        return ClassFacts.of(await reader.get(ClusterClass, key))
    except NotFound as error:
        if cluster.metadata.deletion_timestamp is not None:
            return None
        error.add_note(f"failed to get ClusterClass {key}")
        raise
    except ApiError as error:
        error.add_note(f"failed to get ClusterClass {key}")
        raise
