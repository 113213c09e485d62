"""The states that a topology pass compares: the class, the current objects, the desired objects. Objects are plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.api.contract import ContractVersion
from clusterwright.api.meta import Json
from clusterwright.topology.answers import Answer


@dataclass(frozen=True, slots=True)
class WorkerTemplates:
    """The two templates of a worker class."""

    bootstrap: Json
    infrastructure: Json


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A ClusterClass with all its templates, and the contract of its control plane."""

    cluster_class: Json
    infrastructure_cluster: Json
    control_plane: Json
    control_plane_machine: Json | None
    machine_deployments: Mapping[str, WorkerTemplates]
    machine_pools: Mapping[str, WorkerTemplates]
    contract: ContractVersion | None
    """The contract; None: the CRD of the control plane names none; `contract_problem` says so."""
    contract_problem: str = ""

    @property
    def has_machine_infrastructure(self) -> bool:
        """Whether the control plane has Machines."""
        return self.control_plane_machine is not None

    def worker_class(self, kind: str, name: str) -> Json | None:
        """Return a worker class of the ClusterClass; `kind` is machineDeployments or machinePools."""
        workers = (self.cluster_class.get("spec") or {}).get("workers") or {}
        return next((c for c in workers.get(kind) or () if c.get("class") == name), None)


@dataclass(frozen=True, slots=True)
class CurrentWorker:
    """A MachineDeployment or MachinePool as it is. Its references are not read while it is being deleted."""

    object: Json
    bootstrap: Json | None = None
    infrastructure: Json | None = None
    health_check: Json | None = None

    @property
    def name(self) -> str:
        """The name of the object."""
        name: str = self.object["metadata"]["name"]
        return name

    @property
    def is_deleting(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.object["metadata"].get("deletionTimestamp"))


@dataclass(frozen=True, slots=True)
class Current:
    """All existing objects of a topology. Workers by their topology names, including those no longer in the topology."""

    cluster: Json
    infrastructure_cluster: Json | None = None
    control_plane: Json | None = None
    control_plane_machine: Json | None = None
    control_plane_health_check: Json | None = None
    machine_deployments: Mapping[str, CurrentWorker] = field(default_factory=dict)
    machine_pools: Mapping[str, CurrentWorker] = field(default_factory=dict)
    upgrading_deployments: frozenset[str] = frozenset()
    upgrading_pools: frozenset[str] = frozenset()
    upgrading_problem: str = ""
    """Why the upgrading workers are unknown; empty: they are known."""


@dataclass(slots=True)
class ControlPlaneProgress:
    """The state of the control plane in an upgrade."""

    plan: list[str] = field(default_factory=list)
    is_provisioning: bool = False
    is_upgrading: bool = False
    is_starting: bool = False
    is_pending: bool = False
    is_waiting_for_workers: bool = False

    @property
    def is_changing(self) -> bool:
        """Whether its Machines are changing, or will be from this pass on."""
        return self.is_provisioning or self.is_upgrading or self.is_starting

    @property
    def is_stable(self) -> bool:
        """Whether it is neither changing nor about to change."""
        return not (self.is_changing or self.is_pending)

    @property
    def is_stable_or_waiting(self) -> bool:
        """Whether workers may change: it is stable, or waits only for them."""
        return self.is_stable or (self.is_waiting_for_workers and not self.is_changing)


@dataclass(slots=True)
class WorkersProgress:
    """The state of MachineDeployments or MachinePools in an upgrade: names of objects, in `pending_create` topology names."""

    plan: list[str] = field(default_factory=list)
    upgrading: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    deferred: set[str] = field(default_factory=set)
    pending_create: set[str] = field(default_factory=set)
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Pinned versions by topology names. An upgrade of the topology neither changes these workers nor waits for them."""

    @property
    def is_settled(self) -> bool:
        """Whether none of them has anything left to do."""
        return not (self.upgrading or self.pending or self.deferred or self.pending_create)


@dataclass(slots=True)
class Progress:
    """The state of an upgrade before and during a pass."""

    control_plane: ControlPlaneProgress = field(default_factory=ControlPlaneProgress)
    machine_deployments: WorkersProgress = field(default_factory=WorkersProgress)
    machine_pools: WorkersProgress = field(default_factory=WorkersProgress)
    lowest_worker: str = ""
    """The lowest version of the workers that follow the topology; empty: there are none."""
    is_planned: bool = False
    """Whether the plans could be computed; without an upgrade they are empty."""
    pending_hooks: frozenset[str] = frozenset()
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def worker_plan(self) -> list[str]:
        """The steps of the workers, of both kinds."""
        return self.machine_deployments.plan or self.machine_pools.plan


@dataclass(slots=True)
class DesiredWorker:
    """A desired MachineDeployment or MachinePool, with its templates or objects."""

    object: Json
    bootstrap: Json
    infrastructure: Json
    health_check: Json | None = None


@dataclass(slots=True)
class Desired:
    """The desired state of a topology. Workers by their topology names, in topology order."""

    cluster: Json
    infrastructure_cluster: Json
    control_plane: Json
    control_plane_machine: Json | None = None
    control_plane_health_check: Json | None = None
    machine_deployments: dict[str, DesiredWorker] = field(default_factory=dict)
    machine_pools: dict[str, DesiredWorker] = field(default_factory=dict)
