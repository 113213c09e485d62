"""For authors of infrastructure providers in Python: this package implements the contract, they create machines and cluster infrastructure.

    class RackMachine(InfraMachine):
        api_version: str = "infrastructure.example.com/v1alpha1"
        kind: str = "RackMachine"

    class Racks(InfraMachines[RackMachine]):
        kind = RackMachine
        finalizer = "rackmachine.infrastructure.example.com"

        async def provision(self, obj: RackMachine, machine: Machine) -> Server | Gone | Pending | None: ...
        async def remove(self, obj: RackMachine, machine: Machine | None) -> bool: ...

    run(Racks)

Around the two it waits for the owner, for the Cluster's infrastructure and for the bootstrap data, adds the finalizer before anything is
made and removes it when all is gone, does nothing while paused, and sets `Ready`, `Paused` and the fields of the contract.
`InfraClusters` is the same for the infrastructure of a cluster. See docs/write-a-provider.md.
"""

from __future__ import annotations

from clusterwright.api.infrastructure import InfraCluster, InfraMachine, InfraMachineSpec
from clusterwright.provider.bootstrap import BootstrapData
from clusterwright.provider.clusters import InfraClusters, Site
from clusterwright.provider.failures import ProvisionFailed
from clusterwright.provider.machines import Gone, InfraMachines, Pending, Server, order
from clusterwright.provider.running import add, run

__all__ = [
    "BootstrapData",
    "Gone",
    "InfraCluster",
    "InfraClusters",
    "InfraMachine",
    "InfraMachineSpec",
    "InfraMachines",
    "Pending",
    "ProvisionFailed",
    "Server",
    "Site",
    "add",
    "order",
    "run",
]
