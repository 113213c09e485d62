"""What the condition of a Machine says of its drain follows what is left on the Node."""

from __future__ import annotations

from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Pod
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.conditions import get
from clusterwright.testing import NAMESPACE, Plane, run_virtual, samples, virtual_plane


def pod(name: str, node: str) -> Json:
    metadata = {"name": name, "namespace": "default", "finalizers": ["example.com/stays"]}
    spec = {"nodeName": node, "containers": [{"name": "app", "image": "app"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def said(plane: Plane) -> str:
    machine = await plane.client.find(Machine, ObjectKey(NAMESPACE, "w-0"))
    found = get(machine.status.conditions, "Deleting") if machine is not None else None
    return found.message if found is not None else ""


def test_a_pod_that_has_left_is_no_longer_named() -> None:
    """Real clusters showed the first message of a drain until its end: later passes were put off, and then rested."""

    async def scenario() -> None:
        async with virtual_plane() as plane:
            await plane.apply(samples.cluster("c"))
            await plane.apply(samples.machine("c", "cp-0", is_control_plane=True))
            await plane.apply(samples.machine("c", "w-0", is_control_plane=False))
            await plane.until_available("c", workers=1)
            workload = plane.workload("c").client
            for name in ("a", "b"):
                await workload.create(pod(name, "w-0"))
            await plane.client.delete(Machine, ObjectKey(NAMESPACE, "w-0"))

            async def names_both() -> bool:
                return "default/a, default/b" in await said(plane)

            async def names_one() -> bool:
                text = await said(plane)
                return "default/b" in text and "default/a" not in text

            await plane.until(names_both, "both Pods are named", within=120)
            await workload.patch(Pod, ObjectKey("default", "a"), {"metadata": {"finalizers": None}})
            await plane.until(names_one, "only the Pod that is left is named", within=30)
            await workload.patch(Pod, ObjectKey("default", "b"), {"metadata": {"finalizers": None}})
            await plane.until_gone(Machine, "w-0", within=60)

    run_virtual(scenario())
