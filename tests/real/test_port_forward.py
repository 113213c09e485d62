"""etcd through a real kube-apiserver: a port-forward by WebSocket and by SPDY, a kubelet of ours at its end, a real etcd member behind that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving import upgrades
from clusterwright.apiserver.serving.connections import Limits, Server
from clusterwright.apiserver.serving.tls import make_authority, server_context, sign
from clusterwright.runtime import portforward
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.streams.pipe import TcpStream
from clusterwright.workload.connection import forward
from clusterwright.workload.etcd import CLIENT_PORT, MemberClient
from real.kube import Kube, assets
from workload.conftest import EtcdCluster


@pytest_asyncio.fixture
async def etcd(kube: Kube, tmp_path: Path) -> AsyncIterator[EtcdCluster]:
    """One member, with TLS on both sides."""
    binaries, folder = assets(), tmp_path / "member"
    assert binaries is not None  # or there were no kube
    folder.mkdir()
    cluster = EtcdCluster(folder, binaries / "etcd")
    cluster.prepare("n1")
    cluster.start("n1", ["n1"])
    try:
        await cluster.until(lambda: cluster.leader(["n1"]), "the member leads itself")
        yield cluster
    finally:
        cluster.close()


@pytest_asyncio.fixture
async def pod(kube: Kube, etcd: EtcdCluster) -> AsyncIterator[str]:
    """A Pod on a Node whose kubelet forwards etcd's port, and no other."""

    async def dial(port: int) -> TcpStream:
        if port != CLIENT_PORT:
            raise ConnectionRefusedError("nobody there")
        return await etcd.dial("n1")

    async def kubelet(http: web.BaseRequest) -> web.StreamResponse:
        if not http.path.startswith("/portForward/kube-system/etcd-n1") or not upgrades.is_wanted(http):
            return web.Response(status=404)
        try:
            return await upgrades.negotiate(http)(http, dial)
        except Exception as refused:
            return web.Response(status=400, text=str(refused))

    now = SystemClock().now()
    authority = make_authority(now)
    context = server_context(sign(authority, now, "kubelet", hosts=["127.0.0.1"]), authority.certificate)
    server = Server(kubelet, Limits(), is_open=True, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.5)
    await runner.setup()
    listening = await server.listen("127.0.0.1", 0, context)
    port = listening.sockets[0].getsockname()[1]
    try:
        await kube.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        await kube.client.patch(Node, ObjectKey("", "n1"), {"status": status}, subresource="status")
        spec = {
            "nodeName": "n1",
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "etcd", "image": "etcd"}],
        }
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "kube-system", "name": "default"}}
        await kube.client.create(account)
        await kube.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "kube-system", "name": "etcd-n1"}, "spec": spec}
        )
        running = {"status": {"phase": "Running"}}
        await kube.client.patch(Pod, ObjectKey("kube-system", "etcd-n1"), running, subresource="status")
        yield "etcd-n1"
    finally:
        listening.close()
        server.end()
        await runner.cleanup()


@pytest.mark.parametrize("way", ["websocket", "spdy"])
async def test_etcd_is_asked_by_grpc_through_the_api_server(
    kube: Kube, etcd: EtcdCluster, pod: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "spdy":
        monkeypatch.setattr(portforward, "TUNNEL", "unheard.of")
    transport = HttpTransport(Kubeconfig.load([kube.kubeconfig]).resolve(), SystemClock())
    try:
        for _ in range(3):
            client = await MemberClient.connect(
                lambda node: forward(transport, "kube-system", f"etcd-{node}", CLIENT_PORT), "n1", etcd.context
            )
            members = [(m.name, m.is_leader) for m in await client.members()]
            assert (members, list(await client.alarms())) == ([("n1", True)], [])
            await client.close()
        assert transport._is_spdy_only == (way == "spdy")
        refused = await forward(transport, "kube-system", pod, 81)
        with pytest.raises(ConnectionRefusedError, match="nobody there"):
            async with asyncio.timeout(60):
                await refused.receive()
        await refused.close()
    finally:
        await transport.close()
