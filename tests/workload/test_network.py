"""The same over the network: a simulated cluster behind real HTTPS, WebSocket port-forwards and TLS to its etcd."""

from __future__ import annotations

import asyncio
from random import Random

from clusterwright import app
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.listener import TlsListener
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.kubeconfig import from_secret
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.workload.clusters import ClusterCache
from support.patience import PATIENCE

KEY = ObjectKey("default", "c1")


async def test_nodes_etcd_and_certificates_are_reached_over_https() -> None:
    clock = SystemClock()
    server = ApiServer(now=clock.now, random=Random(1))
    server.ensure_namespaces()
    client = RestClient(InProcessTransport(server), clock=clock)
    await app.install_crds(client)
    cloud = Cloud(now=clock.now, random=Random(2), keys=sample_keys(), listener=TlsListener())
    manager = app.build_manager(InProcessTransport(server), clock=clock, random=Random(3), keys=sample_keys(), cloud=cloud)
    running = asyncio.create_task(manager.run())

    async def connect(_cluster: ObjectKey, kubeconfig: bytes) -> Transport:
        return HttpTransport(from_secret(kubeconfig), clock, {})

    cache = ClusterCache(client=client, clock=clock, random=Random(4), keys=sample_keys(), connect=connect)
    try:
        for obj in samples.cluster("c1", has_control_plane_object=True) + samples.control_plane("c1", replicas=1):
            await client.create(obj)
        async with asyncio.timeout(PATIENCE):
            while not [m for m in await client.list(Machine) if m.status.phase == "Running"]:  # noqa: ASYNC110 - it boots in its own time
                await asyncio.sleep(0.05)
        [machine] = await client.list(Machine)
        node = machine.metadata.name

        await cache.reconcile(KEY)
        remote = await cache.client(KEY)
        etcd = await cache.etcd(KEY, [node])
        members = await etcd.members()
        alarms = await etcd.alarms()
        await etcd.close()
        expiry = await cache.serving_certificate_expiry(KEY, node)

        assert [n.metadata.name for n in await remote.list(Node)] == [node]
        assert [(m.name, m.is_leader, m.is_learner) for m in members] == [(node, True, False)]
        assert list(alarms) == []
        assert expiry > clock.now()
    finally:
        await cache.close()
        manager.stop()
        await running
        await cloud.close()
        server.close()
