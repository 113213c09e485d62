"""Machines of another provider are simulated on request: with its endpoint, its providerIDs, and nothing that runs."""

from __future__ import annotations

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import BOOT_MACHINES_ANNOTATION, BOOT_UNIDENTIFIED
from clusterwright.runtime.client import Reader
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from support.provider import GROUP, definition

MINE, MY_CLUSTER = (GroupVersionKind(GROUP, "v1", kind) for kind in ("ExampleMachine", "ExampleCluster"))
ENDPOINT = {"host": "lb-17.example.com", "port": 6443}


async def reconcile(p: Plane, *, has_ids: bool = True) -> None:
    """One pass of a provider whose cloud is fake: everything is there at once, under names of the cloud."""
    for cluster in await p.client.list(MY_CLUSTER, namespace="default"):
        await p.client.patch(MY_CLUSTER, cluster.key, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
        await p.client.patch(MY_CLUSTER, cluster.key, {"status": {"initialization": {"provisioned": True}}}, subresource="status")
    for mine in await p.client.list(MINE, namespace="default"):
        if has_ids and mine.metadata.owner_references and not mine.at("spec", "providerID"):
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


HOSTS = GroupVersionKind("metal3.io", "v1alpha1", "BareMetalHost")
META_DATA = "name: from-the-template\n"


def hosts() -> Json:
    made = definition("BareMetalHost", labels={})
    made["metadata"]["name"] = f"baremetalhosts.{HOSTS.group}"
    made["spec"]["group"] = HOSTS.group
    made["spec"]["versions"][0]["name"] = HOSTS.version
    return made


def bare_metal() -> list[Json]:
    """A cluster whose provider learns from the Node's label that its machine is up."""
    made = objects()
    made[0]["metadata"]["annotations"] = {BOOT_MACHINES_ANNOTATION: BOOT_UNIDENTIFIED}
    label = {"name": "node-labels", "value": "metal3.io/uuid={{ ds.meta_data.uuid }},example.com/name={{ ds.meta_data.name }}"}
    for obj in made:
        if obj["kind"] == "KubeadmControlPlane":
            for part in ("initConfiguration", "joinConfiguration"):
                obj["spec"]["kubeadmConfigSpec"].setdefault(part, {})["nodeRegistration"] = {"kubeletExtraArgs": [label]}
        elif obj["kind"] == "KubeadmConfigTemplate":
            obj["spec"]["template"]["spec"]["joinConfiguration"] = {"nodeRegistration": {"kubeletExtraArgs": [label]}}
    return made


async def reconcile_bare_metal(p: Plane) -> None:
    """One pass of the provider: a host for each machine, then its providerID for the Node with the label of the host."""
    cluster, nodes = p.cloud.at("lb-17.example.com", 6443, ObjectKey("default", "c")), {}
    if cluster is not None:
        nodes = {node.metadata.labels.get("metal3.io/uuid", ""): node for node in await cluster.client.list(Node)}
    for mine in await p.client.list(MINE, namespace="default"):
        if not mine.metadata.owner_references or mine.at("spec", "providerID"):
            continue
        name = mine.metadata.name
        host = await p.client.find(HOSTS, ObjectKey("default", f"host-{name}"))
        if host is None:
            head = {"apiVersion": HOSTS.api_version, "kind": HOSTS.kind, "metadata": {"name": f"host-{name}", "namespace": "default"}}
            host = await p.client.create(head)
            text = {"metadata": {"name": f"{name}-meta", "namespace": "default"}, "stringData": {"metaData": META_DATA}}
            await p.client.create({"apiVersion": "v1", "kind": "Secret", **text})
            await p.client.patch(MINE, mine.key, {"metadata": {"annotations": {"metal3.io/BareMetalHost": f"default/host-{name}"}}})
            status = {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "metaData": {"name": f"{name}-meta"}}
            await p.client.patch(MINE, mine.key, {"status": status}, subresource="status")
        node = nodes.get(host.metadata.uid)
        if node is not None and cluster is not None:
            provider_id = f"metal3://default/host-{name}/{name}"
            await cluster.client.patch(Node, node.key, {"spec": {"providerID": provider_id}})
            await p.client.patch(MINE, mine.key, {"spec": {"providerID": provider_id}})
            await p.client.patch(MINE, mine.key, {"status": {"initialization": {"provisioned": True}}}, subresource="status")


def test_machines_boot_before_their_provider_knows_an_id_and_take_their_hosts_metadata(in_plane):
    async def body(p: Plane) -> None:
        for kind in ("ExampleMachine", "ExampleMachineTemplate", "ExampleCluster"):
            await p.client.create(definition(kind))
        await p.client.create(hosts())
        await p.apply(bare_metal())

        async def is_up() -> bool:
            await reconcile(p, has_ids=False)
            await reconcile_bare_metal(p)
            workers = (await p.cluster("c")).status.workers
            return workers is not None and workers.available_replicas == 2

        await p.until(is_up, "the workers are Available", within=600)
        simulated = p.cloud.at("lb-17.example.com", 6443, ObjectKey("default", "c"))
        nodes = await simulated.client.list(Node)
        assert sorted(node.spec.provider_id for node in nodes) == sorted(m.spec.provider_id for m in await machines(p.client))
        assert {node.metadata.labels["example.com/name"] for node in nodes} == {"from-the-template"}, (
            "the template counts more than the host"
        )

    in_plane(body)
