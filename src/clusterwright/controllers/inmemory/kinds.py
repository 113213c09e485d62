"""The kinds that the in-memory provider simulates. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.docker import DockerCluster, DockerMachine, DockerMachinePool
from clusterwright.api.infrastructure import DevCluster, DevMachine, DevMachinePool, InfraCluster, InfraMachine, InfraMachinePool

GROUP = "infrastructure.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Family:
    """Kinds that belong together: the pool kind creates machines of its family."""

    cluster: type[InfraCluster]
    machine: type[InfraMachine]
    pool: type[InfraMachinePool]


DEV = Family(DevCluster, DevMachine, DevMachinePool)
DOCKER = Family(DockerCluster, DockerMachine, DockerMachinePool)


@dataclass(frozen=True, slots=True)
class Simulated:
    """The kinds that are simulated; with `docker` also those whose real machines are containers.

    With `containers` those are real: another provider makes clusters and machines of them, and only their pools are ours.
    """

    docker: bool = False
    containers: bool = False

    @property
    def families(self) -> tuple[Family, ...]:
        """The families that are reconciled."""
        return (DEV, DOCKER) if self.docker or self.containers else (DEV,)

    def cluster_kind(self, kind: str) -> type[InfraCluster] | None:
        """Return the cluster kind of this name; None if it is not simulated."""
        return next((f.cluster for f in self.families if f.cluster.__name__ == kind), None)

    def has_cluster(self, obj: InfraCluster) -> bool:
        """Return whether a cluster is simulated."""
        return self.docker or obj.is_in_memory

    def has_machine(self, obj: InfraMachine) -> bool:
        """Return whether a machine is simulated."""
        return self.docker or obj.in_memory is not None

    def has_pool(self, obj: InfraMachinePool) -> bool:
        """Return whether we manage the machines of a pool: simulated ones, and containers."""
        return self.docker or self.containers or obj.is_in_memory
