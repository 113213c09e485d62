"""Installed with the generated role and nothing else: ten clusters live on a real kube-apiserver, frugally."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.conditions import is_true
from clusterwright.runtime.errors import NotFound
from real.kube import Kube, create_clusters, now, until, until_available

COUNT = int(os.environ.get("REAL_CLUSTERS", "10"))
CLUSTER_ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")


async def test_a_whole_life_with_the_generated_role_only(kube: Kube, capsys: pytest.CaptureFixture[str]) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    manager = await kube.manager("--leader-elect")
    names = [f"c{n}" for n in range(COUNT)]
    began = now()
    await create_clusters(kube, names, control_plane=3, workers=2)
    await until_available(kube, names, 5)
    created = (now() - began).total_seconds()
    await asyncio.sleep(20)

    idle = now()
    await asyncio.sleep(60)
    quiet = kube.writes([manager], idle)
    asked = [e for e in kube.audited(idle) if e.credential == manager.credential and e.resource != "leases" and e.verb != "watch"]
    written = [e for e in kube.writes([manager], began) if e.at < idle]
    conflicts = [e for e in written if e.code == 409]
    told = [e for e in kube.audited(began) if e.credential == manager.credential and e.resource == "events" and e.at < idle]
    refused = [e for e in kube.audited() if e.credential == manager.credential and e.code == 403]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{COUNT} x (3+2) available in {created:.0f} s; {len(written) / COUNT:.0f} writes and {len(told) / COUNT:.0f} of Events each; {len(conflicts)} conflicts"
            f" of {len(written)}; idle for a minute: {len(quiet)} writes, {len(asked)} requests beside watches and the Lease\n"
            f"{_cost(manager.process.pid)}\n"
            f"{Counter((e.verb, e.resource) for e in written).most_common(12)}\n"
        )

    assert refused == []
    assert len(written) <= 180 * COUNT
    assert len(conflicts) <= 0.005 * len(written)
    assert quiet == []
    assert len(asked) < 10

    for name in names:
        await kube.client.patch(MachineDeployment, ObjectKey("default", f"{name}-md"), {"spec": {"replicas": 3}})
    await until_available(kube, names, 6)
    for name in names:
        await kube.client.delete(Cluster, ObjectKey("default", name))
    await until(lambda: _none_left(kube), "everything is gone")
    assert await manager.stop() == 0
    assert [e for e in kube.audited() if e.credential == manager.credential and e.code == 403] == []


def _cost(process: int) -> str:
    """What a process has used so far."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":\t" in line)
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return f"memory {status.get('VmRSS', '?').strip()}, processor {seconds:.1f} s, the simulated machines included"


async def _none_left(kube: Kube) -> bool:
    return not [*await kube.client.list(Cluster), *await kube.client.list(Machine), *await kube.client.list(DevMachine)]


async def test_a_missing_permission_is_reported_once_and_the_rest_continues(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    role = await kube.client.get(CLUSTER_ROLE, ObjectKey("", "clusterwright-manager"))
    rules = []
    for rule in role.at("rules"):
        if "machinesets" in rule["resources"] and "create" in rule["verbs"]:
            others = [resource for resource in rule["resources"] if resource != "machinesets"]
            rules += [{**rule, "resources": others}] if others else []
            rule = {**rule, "resources": ["machinesets"], "verbs": [verb for verb in rule["verbs"] if verb != "create"]}
        rules.append(rule)
    await kube.client.patch(CLUSTER_ROLE, role.key, {"rules": rules})
    manager = await kube.manager()
    await create_clusters(kube, ["c"], control_plane=1, workers=1)

    async def told() -> bool:
        return "create machinesets.cluster.x-k8s.io" in manager.log.read_text()

    await until(told, "the missing right is named")

    async def has_control_plane() -> bool:
        return [is_true(m.status.conditions, "Ready") for m in await kube.client.list(Machine)] == [True]

    await until(has_control_plane, "the control plane comes up all the same")
    lines = [line for line in manager.log.read_text().splitlines() if "A permission is missing" in line]
    assert len(lines) == 1
    assert "stands_still" in lines[0]
    await kube.client.patch(CLUSTER_ROLE, role.key, {"rules": role.at("rules")})
    await until_available(kube, ["c"], 2)


async def test_a_kind_that_is_not_served_is_named_at_the_start(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    crd = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    await kube.client.delete(crd, ObjectKey("", "machinepools.cluster.x-k8s.io"))

    async def gone() -> bool:
        try:
            await kube.client.get(crd, ObjectKey("", "machinepools.cluster.x-k8s.io"))
        except NotFound:
            return True
        return False

    await until(gone, "the definition is gone")
    await asyncio.sleep(5)  # discovery forgets it a little later
    manager = await kube.manager()

    assert await asyncio.wait_for(manager.process.wait(), 120) == 1
    assert "does not serve MachinePool (cluster.x-k8s.io/v1beta2)" in manager.log.read_text()
