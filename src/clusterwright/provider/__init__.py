"""For authors of infrastructure providers in Python: the contract of an InfraMachine is kept here, making machines is theirs.

    class RackMachine(InfraMachine):
        api_version: str = "infrastructure.example.com/v1alpha1"
        kind: str = "RackMachine"

    class Racks(InfraMachines[RackMachine]):
        kind = RackMachine
        finalizer = "rackmachine.infrastructure.example.com"

        async def provision(self, obj: RackMachine, machine: Machine) -> Server | None: ...
        async def remove(self, obj: RackMachine) -> bool: ...

    run(Racks)

What it does around the two: waits for the owner, for the Cluster's infrastructure and for the bootstrap data, adds the finalizer before
anything is made and takes it away when all is gone, stands still while it is paused, and tells `Ready`, `Paused` and what the contract
asks for. See docs/write-a-provider.md.
"""

from __future__ import annotations

from clusterwright.api.infrastructure import InfraMachine
from clusterwright.provider.machines import InfraMachines, ProvisionFailed, Server, order
from clusterwright.provider.running import add, run

__all__ = ["InfraMachine", "InfraMachines", "ProvisionFailed", "Server", "add", "order", "run"]
