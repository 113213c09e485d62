"""The snapshot of a MachineDeployment, and the outcome of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineDeployment, MachineSet, MachineStatus
from clusterwright.api.meta import ObjectMeta
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.snapshots import ScaledSnapshot
from clusterwright.controllers.machinedeployment.rollout import Limits, limits

_REPORTED = frozenset({"Ready", "UpToDate", "HealthCheckSucceeded", "OwnerRemediated", "Deleting", "Updating"})


class MachineFacts(Machine):
    """The facts of a Machine that a MachineDeployment counts: a Machine with nothing else in it."""

    @staticmethod
    def of(machine: Machine) -> MachineFacts:
        """Return the facts of a Machine."""
        metadata, status = machine.metadata, machine.status
        return MachineFacts(
            metadata=ObjectMeta(
                name=metadata.name,
                namespace=metadata.namespace,
                labels=metadata.labels,
                annotations=metadata.annotations,
                owner_references=metadata.owner_references,
                creation_timestamp=metadata.creation_timestamp,
                deletion_timestamp=metadata.deletion_timestamp,
            ),
            status=MachineStatus(
                conditions=tuple(replace(c, observed_generation=0) for c in status.conditions if c.type in _REPORTED),
                deletion=status.deletion,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDeploymentSnapshot(ScaledSnapshot[MachineDeployment]):
    """A MachineDeployment, its MachineSets and Machines."""

    machines: tuple[MachineFacts, ...] = ()
    """All Machines that its selector matches."""
    machine_sets: tuple[MachineSet, ...] | None = None
    """The MachineSets; None: they could not be listed."""
    missing: tuple[str, ...] = ()
    """The kinds of the templates that do not exist, bootstrap first."""
    failures: tuple[PassFailed, ...] = ()
    """The errors of failed reads."""
    features: Mapping[str, bool] = field(default_factory=dict)

    @property
    def current(self) -> int:
        """The number of Machines of its MachineSets."""
        return sum(s.status.replicas or 0 for s in self.machine_sets or ())

    @property
    def strategy(self) -> str:
        """The rollout strategy."""
        rollout = self.object.spec.rollout
        return rollout.strategy.type if rollout and rollout.strategy else ""

    @property
    def limits(self) -> Limits | None:
        """The allowed surge and unavailability; None: the values cannot be parsed."""
        try:
            return limits(self.object)
        except ValueError:
            return None

    @property
    def least_available(self) -> int:
        """The least number of available Machines."""
        found = self.limits
        return (self.replicas or 0) - (found.unavailable if found else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDeploymentDone(MachineDeploymentSnapshot):
    """The MachineDeployment at the end of the pass, and the progress of its rollout. `machine_sets` are as this pass wrote them."""

    new: str = ""
    """The name of the MachineSet that is rolled out; empty: there is none."""
    settled: bool = False
    """Whether the rollout step succeeded: the deprecated counters are only updated then."""
    unseen: int = 0
    """How many MachineSets the API server has that the cache lacks; no other is created before they are seen."""

    @property
    def new_machine_set(self) -> MachineSet | None:
        """The MachineSet that is rolled out."""
        return next((s for s in self.machine_sets or () if s.metadata.name == self.new), None) if self.new else None
