"""A kubeconfig that a tenant put into a Secret runs no program, reads no file, and says why it is not used."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from random import Random

import pytest

from clusterwright import app
from clusterwright.api.core import Cluster
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli import connect
from clusterwright.conditions.lists import get
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.listener import TlsListener
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from support.patience import PATIENCE

KEY = ObjectKey("default", "c1")
CONFIG = """
current-context: x
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {user}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
"""


@pytest.mark.parametrize("simulated", [True, False])
async def test_a_secret_that_names_a_program_is_refused_by_condition_and_event(tmp_path: Path, simulated: bool) -> None:
    proof = tmp_path / "proof"
    user = f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, 'touch {proof}']}}}}"
    content = CONFIG.format(server="https://127.0.0.1:1", user=user).encode()
    clock = SystemClock()
    server = ApiServer(now=clock.now, random=Random(1))
    server.ensure_namespaces()
    client = RestClient(InProcessTransport(server), clock=clock)
    await app.install_crds(client)
    cloud = Cloud(now=clock.now, random=Random(2), keys=sample_keys(), listener=TlsListener())
    manager = app.build_manager(
        InProcessTransport(server),
        clock=clock,
        random=Random(3),
        keys=sample_keys(),
        cloud=cloud if simulated else None,
        reach=connect.reach,
    )
    running = asyncio.create_task(manager.run())
    try:
        labels = {"cluster.x-k8s.io/cluster-name": "c1"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c1-kubeconfig", "namespace": "default", "labels": labels}}
        await client.create({**secret, "data": {"value": base64.b64encode(content).decode()}})
        [cluster] = [o for o in samples.cluster("c1") if o["kind"] == "Cluster"]
        await client.create(cluster)
        await client.patch(Cluster, KEY, {"status": {"initialization": {"infrastructureProvisioned": True}}}, subresource="status")

        async with asyncio.timeout(PATIENCE):
            while True:
                probe = get((await client.get(Cluster, KEY)).status.conditions, "RemoteConnectionProbe")
                events = [e.json for e in await client.list(GroupVersionKind("", "v1", "Event")) if e.json["reason"] == "KubeconfigRefused"]
                if probe is not None and "Secret" in probe.message and events:
                    break
                await asyncio.sleep(0.05)

        assert (probe.status, probe.reason) == ("False", "ProbeFailed")
        assert "Secret c1-kubeconfig: users[u].user.exec: names a program" in probe.message
        assert [(e["type"], e["involvedObject"]["name"]) for e in events] == [("Warning", "c1")]
        assert "users[u].user.exec" in events[0]["message"]
        assert not proof.exists()
    finally:
        manager.stop()
        await running
        await cloud.close()
        server.close()
