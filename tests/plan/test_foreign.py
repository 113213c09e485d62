"""Plans for clusters on the infrastructure of others, whose machines have Nodes with names of their own."""

from __future__ import annotations

import asyncio
from functools import cache

import msgspec
import pytest

from clusterwright.api.meta import Json
from clusterwright.plan import Captured, Delete, Edit, plan
from clusterwright.simulation import samples
from clusterwright.testing import run_virtual, virtual_plane
from support.plans import CLUSTER, CONTROL_PLANE, DEPLOYMENT, captured, key
from support.provider import GROUP, definition

_KINDS = {f"Dev{name}": f"Example{name}" for name in ("ClusterTemplate", "MachineTemplate", "Cluster", "Machine")}


def _as_foreign(obj: Json) -> Json:
    """Return an object as it would be with another provider."""
    text = msgspec.json.encode({**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}).decode()
    for ours, theirs in _KINDS.items():
        text = text.replace(f'"{ours}', f'"{theirs}')
    text = text.replace("infrastructure.cluster.x-k8s.io/v1beta2", f"{GROUP}/v1").replace("infrastructure.cluster.x-k8s.io", GROUP)
    text = text.replace("in-memory://", "example://")
    made: Json = msgspec.json.decode(text)
    if made["kind"] == "Machine" and (made["status"].get("nodeRef") or {}).get("name"):
        made["status"]["nodeRef"]["name"] = f"ip-{made['metadata']['name']}"
    return made


def _as_foreign_content(obj: Json) -> Json:
    made: Json = msgspec.json.decode(msgspec.json.encode(obj))
    if made["kind"] == "Node":
        made["spec"]["providerID"] = made["spec"]["providerID"].replace("in-memory://", "example://")
        made["metadata"]["name"] = f"ip-{made['metadata']['name']}"
    if made["kind"] == "Pod" and (made["spec"].get("nodeName")):
        node = made["spec"]["nodeName"]
        made["spec"]["nodeName"] = f"ip-{node}"
        made["metadata"]["name"] = made["metadata"]["name"].replace(node, f"ip-{node}")
        made["metadata"]["annotations"] = {k: v for k, v in made["metadata"].get("annotations", {}).items() if "etcd." not in k}
    return made


@cache
def _foreign() -> Captured:
    async def main() -> Captured:
        async with virtual_plane() as p:
            await p.apply(samples.cluster("c", has_control_plane_object=True))
            await p.apply(samples.control_plane("c", replicas=1, seconds=10, version="v1.34.0"))
            await p.apply(samples.workers("c", "w", replicas=2, seconds=10, version="v1.34.0"))
            await p.until_available("c", control_plane=1, workers=2, within=3600)
            await asyncio.sleep(30)
            return await captured(p)

    ours = run_virtual(main())
    objects = [_as_foreign(o) for o in ours.objects if o["kind"] != "CustomResourceDefinition"]
    objects += [definition(kind) for kind in _KINDS.values()]
    workloads = {name: tuple(map(_as_foreign_content, content)) for name, content in ours.workloads.items()}
    return Captured(tuple(objects), ours.now, workloads, ours.features)


def test_nothing_is_planned_without_a_change():
    made = plan(_foreign(), [], runs=1)
    assert [t.to_json() for t in (*made.created, *made.deleted, *made.changed)] == []
    assert not made.stuck
    assert made.notes == []


def test_machines_of_others_are_replaced_in_the_time_that_earlier_ones_took():
    made = plan(
        _foreign(),
        [
            Edit(CONTROL_PLANE, key("c"), (("spec.version", "v1.34.1"),)),
            Edit(DEPLOYMENT, key("w"), (("spec.template.spec.version", "v1.34.1"),)),
        ],
        runs=1,
    )
    assert not made.stuck
    assert [t.owner.partition("/")[0] for t in made.replaced] == ["KubeadmControlPlane", "MachineDeployment", "MachineDeployment"]
    assert made.duration.median is not None
    assert 30 < made.duration.median < 600
    kinds = {part.partition("/")[0] for t in made.created for part in t.parts}
    assert kinds == {"ExampleMachine", "KubeadmConfig", "Secret"}


@pytest.mark.soak
def test_a_deletion_ends_when_the_objects_of_others_are_gone():
    made = plan(_foreign(), [Delete(CLUSTER, key("c"))], runs=1)
    assert not made.stuck
    assert "ExampleCluster/default/c" in {t.name for t in made.deleted}
