"""Upstream's own binaries run clusters; ours take over and give back, with neither a rollout nor anything lost."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from clusterwright.api.core import Cluster, MachineDeployment
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from real import upstream
from real.kube import Kube, Manager, now, until, until_available
from real.upstream import Upstream, create, create_of_class, ours

THEIRS = ("core", "bootstrap", "controlplane")
"""What is taken over; the provider of the infrastructure goes on."""
OURS = "*,-dev*,-docker*"
KINDS = {
    "cluster.x-k8s.io": ("Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachineHealthCheck"),
    "bootstrap.cluster.x-k8s.io": ("KubeadmConfig", "KubeadmConfigTemplate"),
    "controlplane.cluster.x-k8s.io": ("KubeadmControlPlane", "KubeadmControlPlaneTemplate"),
    "infrastructure.cluster.x-k8s.io": ("DevCluster", "DevClusterTemplate", "DevMachine", "DevMachineTemplate"),
}
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
CLUSTERS = {"big": (3, 2), "small": (1, 1), "classy": (1, 1)}
CLASSY = "classy"
"""The one of a ClusterClass."""


async def state(kube: Kube) -> dict[str, dict[str, Any]]:
    """All objects, and what must not change by a take-over."""
    found = {}
    for group, kinds in KINDS.items():
        for kind in kinds:
            for obj in await kube.client.list(GroupVersionKind(group, "v1beta2", kind)):
                metadata = obj.at("metadata")
                found[f"{kind}/{metadata['name']}"] = {
                    **{key: metadata.get(key) for key in ("uid", "generation", "labels", "annotations", "finalizers")},
                    "status": dict.fromkeys(fields(obj.at("status"))),
                }
    for definition in await kube.client.list(DEFINITION):
        found[f"definition/{definition.key.name}"] = {
            "generation": definition.at("metadata", "generation"), "stored": definition.at("status", "storedVersions"),
        }  # fmt: skip
    return found


def fields(value: Any, path: str = "status") -> Iterator[str]:
    """Yield the paths of all fields; of a condition, its type."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, f"{path}[{inner.get('type', '')}]" if isinstance(inner, dict) else f"{path}[]")
    else:
        yield path


def lost(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What is there no more, is new, or is another one."""
    found: dict[str, Any] = {name: "appeared" if name in after else "vanished" for name in before.keys() ^ after.keys()}
    for name in before.keys() & after.keys():
        for field, was in before[name].items():
            now = after[name][field]
            if isinstance(was, dict):
                found |= {f"{name} {field} {key}": (was[key], (now or {}).get(key)) for key in was if (now or {}).get(key, ...) != was[key]}
            elif was != now:
                found[f"{name} {field}"] = (was, now)
    return found


async def until_quiet(kube: Kube, manager: Manager) -> None:
    async def is_at_work() -> bool:
        return " Started " in manager.log.read_text()

    await until(is_at_work, "ours have begun")

    async def holds() -> bool:
        seen = len(kube.writes([manager]))
        await asyncio.sleep(20)
        return len(kube.writes([manager])) == seen

    await until(holds, "ours write nothing more", within=300)


async def forecast(kube: Kube) -> dict[str, Any]:
    """What `adopt --dry-run` says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "clusterwright", "adopt", "--dry-run", "-o", "json", "--kubeconfig", str(kube.kubeconfig),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, complaint = await process.communicate()
    assert process.returncode in {0, 3}, complaint.decode()
    found: dict[str, Any] = json.loads(out)
    return found


async def scale(kube: Kube, replicas: int) -> None:
    """Scale the workers of a plain Cluster and of one of a class."""
    await kube.client.patch(MachineDeployment, ObjectKey("default", "small-md"), {"spec": {"replicas": replicas}})
    workers = {"machineDeployments": [{"class": "default-worker", "name": "md-0", "replicas": replicas}]}
    await kube.client.patch(Cluster, ObjectKey("default", CLASSY), {"spec": {"topology": {"workers": workers}}})
    for cluster in ("small", CLASSY):
        await until_available(kube, [cluster], CLUSTERS[cluster][0] + replicas)


async def take_over(kube: Kube, capsys: pytest.CaptureFixture[str]) -> Manager:
    """Start ours where upstream's have stopped: as foretold, nothing that matters is written, and nothing is lost."""
    before = await state(kube)
    said = await forecast(kube)
    began = now()
    manager = await ours(kube, OURS)
    await until_quiet(kube, manager)
    taken = kube.writes([manager], began)
    told = Counter((w["object"].split("/")[0], field) for c in said["clusters"] for w in c["writes"] for field in w["fields"])
    with capsys.disabled():
        sys.stdout.write(f"\nforecast: {told.most_common()}; unfinished: {[u for c in said['clusters'] for u in c['unfinished']]}\n")
        sys.stdout.write(f"take-over: {len(taken)} writes: {Counter((e.verb, e.resource, e.code) for e in taken).most_common()}\n")
    assert [w for c in said["clusters"] for w in c["writes"] if w["matters"]] == []
    assert lost(before, await state(kube)) == {}
    assert [e for e in kube.audited() if e.credential == manager.credential and e.code == 403] == []
    return manager


async def test_ours_take_over_from_upstreams_and_give_back(kube: Kube, others: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    await others.start(*upstream.COMPONENTS)
    for name, (control_plane, workers) in CLUSTERS.items():
        make = create_of_class if name == CLASSY else create
        await make(kube, name, control_plane=control_plane, workers=workers)
    for name, count in CLUSTERS.items():
        await until_available(kube, [name], sum(count))
    assert (await forecast(kube))["inTheWay"]

    await others.stop(*THEIRS)
    manager = await take_over(kube, capsys)
    await scale(kube, 2)  # ours work, on their infrastructure
    await until_quiet(kube, manager)
    assert await manager.stop() == 0

    before = await state(kube)
    await others.start(*THEIRS)
    await asyncio.sleep(60)
    assert lost(before, await state(kube)) == {}
    await scale(kube, 1)
    await asyncio.sleep(30)  # they have no more to write
    assert others.ended == []

    await others.stop(*THEIRS)
    await take_over(kube, capsys)
