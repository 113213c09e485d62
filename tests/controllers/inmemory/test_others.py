"""Machines of another provider are simulated on request: with its endpoint, its providerIDs, and nothing that runs."""

from __future__ import annotations

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import BOOT_MACHINES_ANNOTATION
from clusterwright.runtime.client import Reader
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from support.provider import GROUP, definition

MINE, MY_CLUSTER = (GroupVersionKind(GROUP, "v1", kind) for kind in ("ExampleMachine", "ExampleCluster"))
ENDPOINT = {"host": "lb-17.example.com", "port": 6443}


async def reconcile(p: Plane) -> None:
    """One pass of a provider whose cloud is fake: everything is there at once, under names of the cloud."""
    for cluster in await p.client.list(MY_CLUSTER, namespace="default"):
        await p.client.patch(MY_CLUSTER, cluster.key, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
        await p.client.patch(MY_CLUSTER, cluster.key, {"status": {"initialization": {"provisioned": True}}}, subresource="status")
    for mine in await p.client.list(MINE, namespace="default"):
        if mine.metadata.owner_references and not mine.at("spec", "providerID"):
            await p.client.patch(MINE, mine.key, {"spec": {"providerID": f"example:///zone-b/i-{mine.metadata.name}"}})
            await p.client.patch(MINE, mine.key, {"status": {"initialization": {"provisioned": True}}}, subresource="status")


def objects() -> list[Json]:
    made = [o for o in samples.cluster("c", has_control_plane_object=True) if o["kind"] != "DevCluster"]
    made[0]["metadata"]["annotations"] = {BOOT_MACHINES_ANNOTATION: "true"}
    made[0]["spec"]["infrastructureRef"] = {"apiGroup": GROUP, "kind": "ExampleCluster", "name": "c"}
    made.append({"apiVersion": f"{GROUP}/v1", "kind": "ExampleCluster", "metadata": {"name": "c", "namespace": "default"}, "spec": {}})
    template = {"apiGroup": GROUP, "kind": "ExampleMachineTemplate", "name": "small"}
    made.append(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ExampleMachineTemplate",
            "spec": {"template": {"spec": {}}},
            "metadata": {"name": "small", "namespace": "default"},
        }
    )
    for obj in [*samples.control_plane("c", replicas=1), *samples.workers("c", "md", replicas=2)]:
        if obj["kind"] == "KubeadmControlPlane":
            obj["spec"]["machineTemplate"]["spec"]["infrastructureRef"] = template
        elif obj["kind"] == "MachineDeployment":
            obj["spec"]["template"]["spec"]["infrastructureRef"] = template
        if obj["kind"] != "DevMachineTemplate":
            made.append(obj)
    return made


async def bring_up(p: Plane) -> None:
    for kind in ("ExampleMachine", "ExampleMachineTemplate", "ExampleCluster"):
        await p.client.create(definition(kind))
    await p.apply(objects())

    async def is_up() -> bool:
        await reconcile(p)
        workers = (await p.cluster("c")).status.workers
        return workers is not None and workers.available_replicas == 2

    await p.until(is_up, "the workers are Available", within=600)


async def machines(reader: Reader) -> list[Machine]:
    return list(await reader.list(Machine, namespace="default"))


def test_machines_of_another_provider_become_nodes_with_its_ids_and_behind_its_endpoint(in_plane):
    async def body(p: Plane) -> None:
        await bring_up(p)
        simulated = p.cloud.at("lb-17.example.com", 6443, ObjectKey("default", "c"))
        nodes = {node.metadata.name: node.spec.provider_id for node in await simulated.client.list(Node)}
        assert len(nodes) == 3
        for machine in await machines(p.client):
            assert machine.status.node_ref is not None
            assert nodes[machine.status.node_ref.name] == machine.spec.provider_id
            assert machine.spec.provider_id.startswith("example:///zone-b/i-")
        assert p.cloud.at("lb-17.example.com", 6443) is None, "no other Cluster is led here by an endpoint that is not ours"
        assert p.cloud.at("lb-17.example.com", 6443, ObjectKey("default", "other")) is None

    in_plane(body)


def test_simulated_machines_end_with_their_machines(in_plane):
    async def body(p: Plane) -> None:
        await bring_up(p)
        await p.client.patch(
            GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineDeployment"), ObjectKey("default", "md"), {"spec": {"replicas": 1}}
        )

        async def is_one() -> bool:
            return len(await p.client.list(DevMachine, namespace="default")) == 2 == len(await p.workload("c").client.list(Node))

        await p.until(is_one, "one worker is gone", within=600)
        await p.client.delete(Cluster, ObjectKey("default", "c"))

        async def is_gone() -> bool:
            left = [o for kind in (Cluster, DevCluster, DevMachine, Machine) for o in await p.client.list(kind, namespace="default")]
            return not left and p.cloud.find(ObjectKey("default", "c")) is None

        await p.until(is_gone, "the cluster is gone", within=600)

    in_plane(body)


def test_a_simulated_machine_that_was_deleted_is_created_again(in_plane):
    async def body(p: Plane) -> None:
        await bring_up(p)
        name = next(m.metadata.name for m in await machines(p.client) if "md" in m.metadata.name)
        key = ObjectKey("default", name)
        before = (await p.client.get(DevMachine, key)).metadata.uid
        await p.client.delete(DevMachine, key)

        async def is_back() -> bool:
            found = await p.client.find(DevMachine, key)
            return found is not None and found.metadata.uid != before

        await p.until(is_back, "the machine is simulated again")

    in_plane(body)


def test_without_the_annotation_nothing_is_simulated(in_plane):
    async def body(p: Plane) -> None:
        for kind in ("ExampleMachine", "ExampleMachineTemplate", "ExampleCluster"):
            await p.client.create(definition(kind))
        made = objects()
        del made[0]["metadata"]["annotations"]
        await p.apply(made)

        async def has_endpoint() -> bool:
            await reconcile(p)
            return (await p.cluster("c")).spec.control_plane_endpoint is not None and len(await machines(p.client)) > 0

        await p.until(has_endpoint, "the provider has done its part")
        assert await p.client.list(DevCluster, namespace="default") == []
        assert await p.client.list(DevMachine, namespace="default") == []

    in_plane(body)
