"""What one pass sees of a MachineSet's world, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Condition, ObjectMeta, V1Beta1Condition
from clusterwright.api.wellknown import (
    DISABLE_MACHINE_CREATE_ANNOTATION,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MOVE_MACHINES_TO_MACHINE_SET_ANNOTATION,
    RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION,
    REVISION_ANNOTATION,
)
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.machineset.preflight import Verdict
from clusterwright.controllers.owned_machines import awaits_acknowledgement


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why Machines could not be created: the v1beta1 reason and the error."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSetSnapshot:
    """A MachineSet and all that its tables ask about.

    `object` is the MachineSet as read, then as the phases changed it. `machines` are those it owns when its status is
    concluded, before what this pass creates or deletes shows.
    """

    now: datetime
    object: MachineSet
    cluster: Cluster
    deployment: MachineDeployment | None = None
    machines: tuple[Machine, ...] | None = None
    """None: they could not be listed."""
    missing: tuple[str, ...] = ()
    """The kinds of the templates that do not exist, bootstrap first."""
    kept: frozenset[str] = frozenset()
    """The Machines that this pass brought in step with the template and did not delete, by name."""
    nodes: Mapping[str, Node] | None = None
    """The Nodes of the Machines that could be read, by name."""
    existing: tuple[Machine, ...] | None = None
    """The Machines of ours that the API server itself shows; None: it was not asked, because none is to be created."""
    room: int | None = None
    """How many Machines the MachineDeployment may have beyond those that there are; None: it was not asked, or there is no limit."""
    preflight: Verdict | None = None
    """None: the checks were not made."""
    refusal: Refusal | None = None
    """Machines were to be created, and could not be."""
    failures: tuple[PassFailed, ...] = ()
    """What went wrong while all this was read."""
    features: Mapping[str, bool] = field(default_factory=dict)
    gathered: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def metadata(self) -> ObjectMeta:
        """The MachineSet's metadata."""
        return self.object.metadata

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions as decided so far."""
        return self.object.status.conditions

    @property
    def v1beta1_conditions(self) -> tuple[V1Beta1Condition, ...]:
        """The v1beta1 conditions as decided so far."""
        deprecated = self.object.status.deprecated
        return deprecated.v1beta1.conditions if deprecated and deprecated.v1beta1 else ()

    @property
    def deleting(self) -> bool:
        """The MachineSet is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def replicas(self) -> int | None:
        """`spec.replicas`."""
        return self.object.spec.replicas

    @property
    def desired(self) -> int:
        """How many Machines there shall be; none while deleting."""
        return 0 if self.deleting else self.replicas or 0

    @property
    def count(self) -> int:
        """How many Machines there are."""
        return len(self.machines or ())

    @property
    def unacknowledged(self) -> int:
        """How many of them were moved here and do not count yet, while Machines are being moved here."""
        return sum(map(awaits_acknowledgement, self.machines or ())) if self.receives else 0

    @property
    def surplus(self) -> int:
        """How many Machines are too many."""
        return max(self.count - self.unacknowledged - self.desired, 0)

    @property
    def creation_disabled(self) -> bool:
        """Nobody may create Machines for it."""
        return self.metadata.annotations.get(DISABLE_MACHINE_CREATE_ANNOTATION) == "true"

    @property
    def moves_to(self) -> str:
        """The MachineSet that takes over the surplus, to update it in place."""
        return self.metadata.annotations.get(MOVE_MACHINES_TO_MACHINE_SET_ANNOTATION, "")

    @property
    def receives(self) -> bool:
        """Other MachineSets move Machines here."""
        return bool(self.metadata.annotations.get(RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION))

    @property
    def in_deployment(self) -> bool:
        """It says that it belongs to a MachineDeployment."""
        return MACHINE_DEPLOYMENT_NAME_LABEL in self.metadata.labels

    @property
    def is_current(self) -> bool:
        """It is what its MachineDeployment rolls out, or stands alone."""
        return is_current_revision(self.object, self.deployment)


def is_current_revision(machine_set: MachineSet, deployment: MachineDeployment | None) -> bool:
    """Whether the MachineSet has the revision of its MachineDeployment, or none to have."""
    if deployment is None:
        return True
    ours, theirs = (o.metadata.annotations.get(REVISION_ANNOTATION, "") for o in (machine_set, deployment))
    return ours == theirs
