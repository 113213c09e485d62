"""The snapshot of a Machine, and the outcome of a pass.

Failed reads are values here, because tables have rows for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clusterwright.api.core import Cluster, ContractVersionedObjectReference, Machine, MachineDeployment, MachineSet, MachineTemplateSpec
from clusterwright.api.kubernetes import Node
from clusterwright.api.wellknown import MACHINE_DEPLOYMENT_NAME_LABEL, REVISION_ANNOTATION
from clusterwright.conditions import get
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.lookup import Lookup
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.workload.access import Health

GRACE_PERIOD = timedelta(minutes=5)
"""How long the last known Node conditions are kept while the cluster cannot be reached; the flag's default."""


# ------------------------------------------------------------------------------------------ what Machines come from


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of its Cluster that a Machine depends on."""

    labels: Mapping[str, str]
    deleting: bool
    provisioned: bool
    """`status.initialization.infrastructureProvisioned`."""
    initialized: bool
    """Whether ControlPlaneInitialized is True."""
    initialized_at: datetime | None
    control_plane_ref: ContractVersionedObjectReference | None

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        flags = cluster.status.initialization
        initialized = get(cluster.status.conditions, "ControlPlaneInitialized")
        return ClusterFacts(
            reference=owner_reference(cluster, controller=False),
            namespace=cluster.metadata.namespace,
            labels=cluster.metadata.labels,
            paused=bool(cluster.spec.paused),
            deleting=cluster.metadata.deletion_timestamp is not None,
            provisioned=flags is not None and bool(flags.infrastructure_provisioned),
            initialized=initialized is not None and initialized.status == "True",
            initialized_at=initialized.last_transition_time if initialized is not None else None,
            control_plane_ref=cluster.spec.control_plane_ref,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerFacts:
    """The facts of the MachineSet or MachineDeployment of a Machine."""

    described: str
    template: MachineTemplateSpec
    created: datetime | None
    revision: str
    deployment: str
    """The MachineDeployment of a MachineSet."""
    rollout_after: datetime | None = None

    @staticmethod
    def of(obj: MachineSet | MachineDeployment) -> OwnerFacts:
        """Return the facts of a MachineSet or MachineDeployment."""
        rollout = obj.spec.rollout if isinstance(obj, MachineDeployment) else None
        return OwnerFacts(
            described=f"{obj.kind} {obj.key}",
            template=obj.spec.template,
            created=obj.metadata.creation_timestamp,
            revision=obj.metadata.annotations.get(REVISION_ANNOTATION, "0"),
            deployment=obj.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL, ""),
            rollout_after=rollout.after if rollout is not None else None,
        )


# --------------------------------------------------------------------------------------------------------- the Node


@dataclass(frozen=True, slots=True)
class NodeUnsought:
    """The Node was not looked for: no providerID is known."""


@dataclass(frozen=True, slots=True)
class NodeMissing:
    """No Node has the Machine's providerID."""


@dataclass(frozen=True, slots=True)
class NodeOutOfReach:
    """There is no connection to the workload cluster."""

    error: Exception


@dataclass(frozen=True, slots=True)
class NodeUnreadable:
    """The workload cluster answered with an error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class NodeFound:
    """The Node before this pass wrote to it; and the error of that write, if any."""

    node: Node
    sync_error: Exception | None = None


NodeLookup = NodeUnsought | NodeMissing | NodeOutOfReach | NodeUnreadable | NodeFound


# ----------------------------------------------------------------------------------------------------- the snapshot


@dataclass(frozen=True, slots=True)
class Stage:
    """Reason and message of a condition about progress: of the deletion, or of an in-place update."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSnapshot(Snapshot[Machine]):
    """A Machine, its Cluster and owners, and the objects that it refers to."""

    cluster: ClusterFacts
    bootstrap: Lookup
    infrastructure: Lookup
    machine_set: OwnerFacts | None = None
    deployment: OwnerFacts | None = None
    health: Health = field(default_factory=Health)
    grace_period: timedelta = GRACE_PERIOD
    features: Mapping[str, bool] = field(default_factory=dict)

    @property
    def machine(self) -> Machine:
        """The Machine."""
        return self.object

    @property
    def bootstrap_kind(self) -> str:
        """The kind of the bootstrap config; empty if there is none."""
        ref = self.machine.spec.bootstrap.config_ref
        return ref.kind if ref else ""

    @property
    def infrastructure_kind(self) -> str:
        """The kind of the infrastructure machine."""
        return self.machine.spec.infrastructure_ref.kind

    @property
    def data_secret_created(self) -> bool:
        """The one-way flag of the bootstrap data."""
        flags = self.machine.status.initialization
        return flags is not None and bool(flags.bootstrap_data_secret_created)

    @property
    def provisioned(self) -> bool:
        """The one-way flag of the infrastructure."""
        flags = self.machine.status.initialization
        return flags is not None and bool(flags.infrastructure_provisioned)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDone(MachineSnapshot):
    """The Machine at the end of the pass, and its progress."""

    node: NodeLookup = NodeUnsought()
    """The Node. The pass finds it by a providerID that it may just have copied, then writes to it."""
    deletion: Stage | None = None
    """The progress of the deletion; None: the Machine is not being deleted, or there is nothing to report."""
    updating: Stage | None = None
    """The progress of an in-place update; None: there was none."""
