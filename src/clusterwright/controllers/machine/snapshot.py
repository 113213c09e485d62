"""What one pass knows about a Machine: read once, frozen, and extended as the pass goes on.

Failures to read are values here, because the tables have rows for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Unstructured
from clusterwright.workload.access import Health

GRACE_PERIOD = timedelta(minutes=5)
"""How long the last known conditions of a Node stand when its cluster cannot be reached; the default of the flag."""


# --------------------------------------------------------------------------------------- objects that are referenced


@dataclass(frozen=True, slots=True)
class NotReferenced:
    """There is no reference."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The API server says that the object does not exist."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Whether it exists could not be found out, or it is not ours to read."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Found:
    """The object, and the version of the contract that its kind follows."""

    object: Unstructured
    contract: str = "v1beta2"


Lookup = NotReferenced | Missing | Unreadable | Found


# --------------------------------------------------------------------------------------------------------- the Node


@dataclass(frozen=True, slots=True)
class NodeUnsought:
    """Nothing to look for: no providerID is known."""


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
    """The Node, as it was before this pass wrote to it; and why it could not be brought in line, if so."""

    node: Node
    sync_error: Exception | None = None


NodeLookup = NodeUnsought | NodeMissing | NodeOutOfReach | NodeUnreadable | NodeFound


# ----------------------------------------------------------------------------------------------------- the snapshot


@dataclass(frozen=True, slots=True)
class Stage:
    """Reason and message of a condition that the pass itself brings about: how far deletion, or an in-place update, is."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSnapshot:
    """The Machine as this pass would leave it so far, and everything that decisions about it rest on.

    `deletion` is None until deletion has been worked on in this pass; `updating` is what an in-place update has to say.
    """

    now: datetime
    machine: Machine
    cluster: Cluster
    machine_set: MachineSet | None = None
    deployment: MachineDeployment | None = None
    bootstrap: Lookup = NotReferenced()
    infrastructure: Lookup = Missing()
    node: NodeLookup = NodeUnsought()
    health: Health = field(default_factory=Health)
    grace_period: timedelta = GRACE_PERIOD
    deletion: Stage | None = None
    updating: Stage | None = None
    features: Mapping[str, bool] = field(default_factory=dict)

    @property
    def deleting(self) -> bool:
        """Whether the Machine is being deleted."""
        return self.machine.metadata.deletion_timestamp is not None

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
