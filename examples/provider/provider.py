"""An infrastructure provider: a RackMachine gives its Machine a server, which here is ordered from the in-memory cloud.

kubectl apply -f crds.yaml; python provider.py & kubectl apply -f cluster.yaml
"""

from __future__ import annotations

from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.provider import InfraMachine, InfraMachines, Server, order, run


class RackMachine(InfraMachine):
    """It has what the contract asks for: spec.providerID, status.initialization.provisioned, status.addresses."""

    api_version: str = "infrastructure.example.com/v1alpha1"
    kind: str = "RackMachine"


class Racks(InfraMachines[RackMachine]):
    """How a RackMachine gets its server. Both steps are run whenever something has changed, and do what is still to be done."""

    kind = RackMachine
    finalizer = "rackmachine.infrastructure.example.com"
    makes = (DevMachine,)

    async def provision(self, obj: RackMachine, machine: Machine) -> Server | None:
        """Order the server, once; it has the name of the RackMachine."""
        server = await self.client.find(DevMachine, obj.key)
        if server is None:
            await self.client.create(order(obj, machine))
            return None
        if server.status.initialization is None:
            return None
        return Server(provider_id=server.spec.provider_id, addresses=server.status.addresses)

    async def remove(self, obj: RackMachine, machine: Machine | None) -> bool:
        """Send the server back, and wait until it is gone."""
        server = await self.client.find(DevMachine, obj.key)
        if server is not None and server.metadata.deletion_timestamp is None:
            await self.client.delete(DevMachine, obj.key)
        return server is None


if __name__ == "__main__":
    run(Racks)
