"""Other providers order machines and clusters of the in-memory cloud: their Machines get Nodes from their real bootstrap data.

The provider here is the smallest that keeps the contract: two kinds of its own, which it reconciles when a test says so.
"""

from __future__ import annotations

from typing import Any

from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from support.provider import GROUP, definition

MINE, MY_CLUSTER = (GroupVersionKind(GROUP, "v1", kind) for kind in ("ExampleMachine", "ExampleCluster"))
CORE, INFRA = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io/v1beta2"


def owner(obj: Any, *, controller: bool) -> Json:
    api_version = obj.json["apiVersion"] if isinstance(obj, Unstructured) else obj.api_version
    return {"apiVersion": api_version, "kind": obj.kind, "name": obj.metadata.name, "uid": obj.metadata.uid, "controller": controller}


async def reconcile(p: Plane) -> None:
    """One pass of the provider over everything that it has."""
    for cluster in await p.client.list(MY_CLUSTER, namespace="default"):
        owners = [r for r in cluster.metadata.owner_references if r.kind == "Cluster"]
        if not owners:
            continue
        ordered = await p.client.find(DevCluster, cluster.key)
        if ordered is None:
            belonging = await p.cluster(owners[0].name)
            references = [owner(cluster, controller=True), owner(belonging, controller=False)]
            metadata: Any = {"name": cluster.key.name, "namespace": "default", "ownerReferences": references}
            await p.client.create({"apiVersion": INFRA, "kind": "DevCluster", "metadata": metadata, "spec": {"backend": {"inMemory": {}}}})
        elif ordered.spec.control_plane_endpoint and ordered.spec.control_plane_endpoint.host:
            endpoint = {"host": ordered.spec.control_plane_endpoint.host, "port": ordered.spec.control_plane_endpoint.port}
            await p.client.patch(MY_CLUSTER, cluster.key, {"spec": {"controlPlaneEndpoint": endpoint}})
            await p.client.patch(MY_CLUSTER, cluster.key, {"status": {"initialization": {"provisioned": True}}}, subresource="status")
    for mine in await p.client.list(MINE, namespace="default"):
        machines = [r for r in mine.metadata.owner_references if r.kind == "Machine"]
        if not machines:
            continue
        vm = await p.client.find(DevMachine, mine.key)
        if vm is None:
            machine = await p.machine(machines[0].name)
            metadata = {"name": mine.key.name, "namespace": "default", "labels": {f"{CORE}/cluster-name": machine.spec.cluster_name}}
            metadata["ownerReferences"] = [owner(mine, controller=True), owner(machine, controller=False)]
            await p.client.create({"apiVersion": INFRA, "kind": "DevMachine", "metadata": metadata, "spec": {"backend": {"inMemory": {}}}})
        elif vm.spec.provider_id:
            await p.client.patch(MINE, mine.key, {"spec": {"providerID": vm.spec.provider_id}})
            await p.client.patch(MINE, mine.key, {"status": {"initialization": {"provisioned": True}}}, subresource="status")


def objects(*, own_cluster: bool) -> list[Json]:
    made = samples.cluster("c", has_control_plane_object=True)
    if own_cluster:
        made = [o for o in made if o["kind"] != "DevCluster"]
        made[0]["spec"]["infrastructureRef"] = {"apiGroup": GROUP, "kind": "ExampleCluster", "name": "c"}
        made.append({"apiVersion": f"{GROUP}/v1", "kind": "ExampleCluster", "metadata": {"name": "c", "namespace": "default"}, "spec": {}})
    made += samples.control_plane("c", replicas=1)
    made += [o for o in samples.workers("c", "md", replicas=2) if o["kind"] != "DevMachineTemplate"]
    deployment = next(o for o in made if o["kind"] == "MachineDeployment")
    reference = {"apiGroup": GROUP, "kind": "ExampleMachineTemplate", "name": "small"}
    deployment["spec"]["template"]["spec"]["infrastructureRef"] = reference
    template = {"spec": {"template": {"spec": {}}}, "metadata": {"name": "small", "namespace": "default"}}
    return [*made, {"apiVersion": f"{GROUP}/v1", "kind": "ExampleMachineTemplate", **template}]


async def bring_up(p: Plane, *, own_cluster: bool) -> None:
    for kind in ("ExampleMachine", "ExampleMachineTemplate", "ExampleCluster"):
        await p.client.create(definition(kind))
    await p.apply(objects(own_cluster=own_cluster))

    async def is_up() -> bool:
        await reconcile(p)
        cluster = await p.cluster("c")
        workers = cluster.status.workers
        return workers is not None and workers.ready_replicas == 2

    await p.until(is_up, "both workers are ready", within=300, step=1.0)


def test_machines_of_another_provider_become_nodes(in_plane: Any) -> None:
    async def body(p: Plane) -> None:
        await bring_up(p, own_cluster=False)

        machines = [m for m in await p.client.list(Machine) if m.spec.infrastructure_ref.kind == "ExampleMachine"]
        assert len(machines) == 2
        assert all(m.status.node_ref for m in machines)

    in_plane(body)


def test_clusters_of_another_provider_have_an_endpoint_that_answers(in_plane: Any) -> None:
    async def body(p: Plane) -> None:
        await bring_up(p, own_cluster=True)

        cluster = await p.cluster("c")
        assert cluster.spec.control_plane_endpoint is not None
        assert cluster.spec.control_plane_endpoint.port == p.workload("c").port

    in_plane(body)


def test_a_deleted_ordered_machine_leaves_nothing(in_plane: Any) -> None:
    async def body(p: Plane) -> None:
        await bring_up(p, own_cluster=False)
        machine = next(m for m in await p.client.list(Machine) if m.spec.infrastructure_ref.kind == "ExampleMachine")
        vm = ObjectKey("default", machine.spec.infrastructure_ref.name)
        assert p.workload("c").has("v1", "Node", "", vm.name)

        await p.client.delete(DevMachine, vm)
        await p.until_gone(DevMachine, vm.name)

        assert not p.workload("c").has("v1", "Node", "", vm.name)

    in_plane(body)
