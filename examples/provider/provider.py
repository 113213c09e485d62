"""An infrastructure provider: a RackMachine gives its Machine a server, which here is ordered from the in-memory cloud.

kubectl apply -f crds.yaml; python provider.py & kubectl apply -f cluster.yaml
"""

from __future__ import annotations

import asyncio
import os
from random import SystemRandom

from clusterwright.api.core import Cluster
from clusterwright.api.infrastructure import DevMachine, InfraMachine
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.watching import of_cluster
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig, default_paths
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.reconcile import Result, Watch

CLUSTER, PAUSED, FINALIZER = "cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/paused", "rackmachine.infrastructure.example.com"


class RackMachine(InfraMachine):  # spec.providerID, status.initialization.provisioned, status.addresses: what the contract asks for
    api_version: str = "infrastructure.example.com/v1alpha1"
    kind: str = "RackMachine"


class Racks:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass: woken by every change of the RackMachine, of its server and of its Cluster. One that fails comes again."""
        rack, server = await self.client.find(RackMachine, key), await self.client.find(DevMachine, key)
        machine = next((r for r in rack.metadata.owner_references if r.kind == "Machine"), None) if rack else None
        if rack is None or machine is None:  # the Machine's controller will make it ours
            return Result.await_change()
        labels, finalizers = {CLUSTER: rack.metadata.labels[CLUSTER]}, rack.metadata.finalizers
        cluster = await self.client.find(Cluster, ObjectKey(key.namespace, labels[CLUSTER]))
        if (cluster and cluster.spec.paused) or PAUSED in rack.metadata.annotations:
            return Result.await_change()
        if rack.metadata.deletion_timestamp is not None and server is not None:
            await self.client.delete(DevMachine, key)
        elif rack.metadata.deletion_timestamp is not None:
            await self.client.patch(RackMachine, key, {"metadata": {"finalizers": [f for f in finalizers if f != FINALIZER]}})
        elif FINALIZER not in finalizers:
            await self.client.patch(RackMachine, key, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        elif server is None:
            me = {"apiVersion": rack.api_version, "kind": rack.kind, "name": key.name, "uid": rack.metadata.uid, "controller": True}
            above = {"apiVersion": machine.api_version, "kind": "Machine", "name": machine.name, "uid": machine.uid}
            metadata = {"name": key.name, "namespace": key.namespace, "labels": labels, "ownerReferences": [me, above]}
            order = {"apiVersion": DevMachine().api_version, "kind": "DevMachine", "metadata": metadata}
            await self.client.create({**order, "spec": {"backend": {"inMemory": {}}}})
        elif server.status.initialization and not rack.status.initialization:
            addresses = [{"type": a.type, "address": a.address} for a in server.status.addresses]
            status = {"initialization": {"provisioned": True}, "addresses": addresses}
            await self.client.patch(RackMachine, key, {"spec": {"providerID": server.spec.provider_id}})
            await self.client.patch(RackMachine, key, {"status": status}, subresource="status")
        return Result.await_change()


async def of_server(server: DevMachine, reader: Reader) -> list[ObjectKey]:
    return [server.key]  # it has the name of the RackMachine that ordered it


async def main() -> None:
    clock = SystemClock()
    transport = HttpTransport(Kubeconfig.load(default_paths(os.environ)).resolve(), clock, os.environ)
    manager = Manager(transport, clock=clock, random=SystemRandom())
    watches = (Watch(DevMachine, of_server), Watch(Cluster, of_cluster(RackMachine)))
    manager.add_controller("rackmachine", RackMachine, lambda _: Racks(manager.client), watches=watches)
    await manager.run()


if __name__ == "__main__":
    asyncio.run(main())
