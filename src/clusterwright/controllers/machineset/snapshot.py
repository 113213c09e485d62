"""The snapshot of a MachineSet, and the outcome of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.api.core import Cluster, ContractVersionedObjectReference, Machine, MachineDeployment, MachineSet
from clusterwright.api.kubernetes import Node
from clusterwright.api.wellknown import (
    DISABLE_MACHINE_CREATE_ANNOTATION,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MOVE_MACHINES_TO_MACHINE_SET_ANNOTATION,
    RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION,
    REVISION_ANNOTATION,
    UPGRADE_STEP_ANNOTATION,
)
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.snapshots import ScaledSnapshot
from clusterwright.controllers.machineset.preflight import PASSED, Verdict
from clusterwright.controllers.owned_machines import awaits_acknowledgement


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of its Cluster that a MachineSet depends on."""

    control_plane_ref: ContractVersionedObjectReference | None = None
    topology_version: str = ""
    upgrade_step: str = ""
    """The intermediate version of a chained upgrade."""
    pinned: frozenset[str] = frozenset()
    """The topology names of MachineDeployments that are pinned to a version."""

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        topology = cluster.spec.topology
        return ClusterFacts(
            reference=owner_reference(cluster, controller=False),
            namespace=cluster.metadata.namespace,
            paused=bool(cluster.spec.paused),
            control_plane_ref=cluster.spec.control_plane_ref,
            topology_version=topology.version if topology else "",
            upgrade_step=cluster.metadata.annotations.get(UPGRADE_STEP_ANNOTATION, ""),
            pinned=frozenset(d.name for d in topology.workers.machine_deployments if d.version)
            if topology and topology.workers
            else frozenset(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentFacts:
    """The facts of its MachineDeployment that a MachineSet depends on."""

    replicas: int | None = None
    max_in_flight: int | str | None = None
    """How many Machines may be remediated at a time; None: unset."""
    revision: str = ""

    @staticmethod
    def of(deployment: MachineDeployment) -> DeploymentFacts:
        """Return the facts of a MachineDeployment."""
        remediation = deployment.spec.remediation
        return DeploymentFacts(
            replicas=deployment.spec.replicas,
            max_in_flight=remediation.max_in_flight if remediation else None,
            revision=deployment.metadata.annotations.get(REVISION_ANNOTATION, ""),
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why Machines could not be created: the v1beta1 reason and the error."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSetSnapshot(ScaledSnapshot[MachineSet]):
    """A MachineSet, its Cluster and MachineDeployment, and its Machines with their Nodes."""

    cluster: ClusterFacts
    deployment: DeploymentFacts | None = None
    machines: tuple[Machine, ...] | None = None
    """The Machines; None: they could not be listed."""
    missing: tuple[str, ...] = ()
    """The kinds of the templates that do not exist, bootstrap first."""
    nodes: Mapping[str, Node] | None = None
    """The readable Nodes of the Machines, by name; None: the workload cluster could not be reached."""
    failures: tuple[PassFailed, ...] = ()
    """The errors of failed reads."""
    features: Mapping[str, bool] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of Machines."""
        return len(self.machines or ())

    @property
    def unacknowledged(self) -> int:
        """How many Machines were moved here and do not count yet, while Machines are being moved here."""
        return sum(map(awaits_acknowledgement, self.machines or ())) if self.receives else 0

    @property
    def surplus(self) -> int:
        """How many Machines are too many."""
        return max(self.count - self.unacknowledged - self.desired, 0)

    @property
    def creation_disabled(self) -> bool:
        """Whether creation of Machines is disabled."""
        return self.metadata.annotations.get(DISABLE_MACHINE_CREATE_ANNOTATION) == "true"

    @property
    def moves_to(self) -> str:
        """The MachineSet that receives the surplus, to update it in place."""
        return self.metadata.annotations.get(MOVE_MACHINES_TO_MACHINE_SET_ANNOTATION, "")

    @property
    def receives(self) -> bool:
        """Whether other MachineSets move Machines here."""
        return bool(self.metadata.annotations.get(RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION))

    @property
    def in_deployment(self) -> bool:
        """Whether it carries the label of a MachineDeployment."""
        return MACHINE_DEPLOYMENT_NAME_LABEL in self.metadata.labels

    @property
    def is_current(self) -> bool:
        """Whether it is the one that its MachineDeployment rolls out, or stands alone."""
        return is_current_revision(self.object, self.deployment)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSetDone(MachineSetSnapshot):
    """The MachineSet at the end of the pass, and the effect of the pass on its Machines.

    `machines` are as the API server answered when they were written, without those that this pass creates or deletes.
    """

    kept: frozenset[str] = frozenset()
    """The Machines that this pass synced with the template and did not delete, by name."""
    preflight: Verdict = PASSED
    """The objections of the preflight checks against new Machines."""
    existing: tuple[Machine, ...] = ()
    """Our Machines on the API server. It is read before any Machine is created."""
    room: int | None = None
    """How many Machines the MachineDeployment may add; None: no limit is known."""
    postponed: int = 0
    """How many Machines this pass leaves to later ones, because one pass creates only so many."""
    refusal: Refusal | None = None
    """Why Machines were not created; None: nothing prevented it."""

    @property
    def to_create(self) -> int:
        """The number of missing Machines, within the room of the MachineDeployment."""
        missing = self.desired - max(len(self.existing), self.count)
        return missing if self.room is None else min(missing, self.room)


def is_current_revision(machine_set: MachineSet, deployment: DeploymentFacts | None) -> bool:
    """Return whether the MachineSet has the revision of its MachineDeployment, or has no MachineDeployment."""
    return deployment is None or machine_set.metadata.annotations.get(REVISION_ANNOTATION, "") == deployment.revision
