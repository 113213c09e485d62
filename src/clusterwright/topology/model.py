"""The states that a topology pass compares: what the class says, what there is, what there should be. Objects are plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.api.contract import ContractVersion
from clusterwright.api.meta import Json


@dataclass(frozen=True, slots=True)
class WorkerTemplates:
    """The two templates of a worker class."""

    bootstrap: Json
    infrastructure: Json


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A ClusterClass with all templates that it names, and the contract that its control plane follows."""

    cluster_class: Json
    infrastructure_cluster: Json
    control_plane: Json
    control_plane_machine: Json | None
    machine_deployments: Mapping[str, WorkerTemplates]
    machine_pools: Mapping[str, WorkerTemplates]
    contract: ContractVersion | None
    """None: the CRD of the control plane names none; `contract_problem` says so."""
    contract_problem: str = ""

    @property
    def has_machine_infrastructure(self) -> bool:
        """Whether the control plane has Machines."""
        return self.control_plane_machine is not None

    def worker_class(self, kind: str, name: str) -> Json | None:
        """A worker class of the ClusterClass; `kind` is machineDeployments or machinePools."""
        workers = (self.cluster_class.get("spec") or {}).get("workers") or {}
        return next((c for c in workers.get(kind) or () if c.get("class") == name), None)


@dataclass(slots=True)
class DesiredWorker:
    """A MachineDeployment or MachinePool as it should be, with what it refers to."""

    object: Json
    bootstrap: Json
    infrastructure: Json
    health_check: Json | None = None


@dataclass(slots=True)
class Desired:
    """Everything that a topology should be. Workers by their topology names, in topology order."""

    cluster: Json
    infrastructure_cluster: Json
    control_plane: Json
    control_plane_machine: Json | None = None
    control_plane_health_check: Json | None = None
    machine_deployments: dict[str, DesiredWorker] = field(default_factory=dict)
    machine_pools: dict[str, DesiredWorker] = field(default_factory=dict)
