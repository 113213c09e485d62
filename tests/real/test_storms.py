"""etcd that stands still, an API server that is restarted: the controllers wait, go on, and make nothing twice."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter

from clusterwright.api.core import Machine, MachineDeployment
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import ObjectKey
from real.kube import Kube, create_clusters, until_available


async def test_nothing_is_made_twice_when_etcd_stands_still_and_the_api_server_is_restarted(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    manager = await kube.manager()
    names = [f"c{n}" for n in range(3)]
    await create_clusters(kube, names, control_plane=1, workers=2)
    await asyncio.sleep(3)

    kube.send("etcd", signal.SIGSTOP)  # in the middle of it
    await asyncio.sleep(15)
    kube.send("etcd", signal.SIGCONT)
    await asyncio.sleep(3)
    await kube.end("kube-apiserver")
    await asyncio.sleep(5)
    await kube.start_server()
    await until_available(kube, names, 3)

    await kube.end("kube-apiserver")
    await kube.start_server()
    await asyncio.sleep(1)
    for name in names:
        while True:
            try:
                await kube.client.patch(MachineDeployment, ObjectKey("default", f"{name}-md"), {"spec": {"replicas": 3}})
                break
            except Exception:  # it is not back yet
                await asyncio.sleep(1)
    await until_available(kube, names, 4)
    machines = await kube.client.list(Machine)
    made = Counter(event.name for event in kube.audited() if event.resource == "machines" and event.code == 201)

    assert len(machines) == 12
    assert len(await kube.client.list(DevMachine)) == 12
    assert set(made) <= {m.metadata.name for m in machines}  # none was made in vain
    assert manager.process.returncode is None
