"""Some controllers are upstream's own binaries, the others ours: together they bring up, scale and delete a cluster."""

from __future__ import annotations

import pytest

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.meta import ObjectKey
from real import upstream
from real.kube import Kube, until, until_available
from real.upstream import Upstream, create

BOOTSTRAP, CONTROL_PLANE, INFRASTRUCTURE = "kubeadmconfig", "kubeadmcontrolplane", "dev*"
REST = f"-{BOOTSTRAP},-{CONTROL_PLANE},-{INFRASTRUCTURE},-docker*"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param(("bootstrap", "controlplane", "capd"), f"*,{REST}", id="our core"),
        pytest.param(("core",), f"{BOOTSTRAP},{CONTROL_PLANE},{INFRASTRUCTURE}", id="upstream's core"),
        pytest.param(("core", "bootstrap", "controlplane"), INFRASTRUCTURE, id="our infrastructure"),
        pytest.param(("capd",), f"*,-{INFRASTRUCTURE},-docker*", id="upstream's infrastructure"),
    ],
)
async def test_ours_and_upstreams_work_together(kube: Kube, others: Upstream, theirs: tuple[str, ...], ours: str) -> None:
    await others.start(*theirs, also_served=tuple(upstream.COMPONENTS))
    manager = await upstream.ours(kube, ours)
    await create(kube, "c", control_plane=1, workers=1)
    await until_available(kube, ["c"], 2)
    key = ObjectKey("default", "c")

    await kube.client.patch(MachineDeployment, ObjectKey("default", "c-md"), {"spec": {"replicas": 2}})
    await kube.client.patch(KubeadmControlPlane, key, {"spec": {"replicas": 3}})  # members of etcd come
    await until_available(kube, ["c"], 5)
    await kube.client.patch(KubeadmControlPlane, key, {"spec": {"replicas": 1}})  # and go
    await until_available(kube, ["c"], 3)
    await kube.client.delete(Cluster, key)

    async def none_left() -> bool:
        return not [*await kube.client.list(Cluster), *await kube.client.list(Machine)]

    await until(none_left, "everything is gone")
    assert others.ended == []
    assert manager.process.returncode is None
    assert [e for e in kube.audited() if e.credential == manager.credential and e.code == 403] == []
