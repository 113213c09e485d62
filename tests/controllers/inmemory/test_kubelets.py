"""What simulated Nodes do: Pods end, Nodes register again, the version is the cluster's; logs and commands are refused."""

import asyncio

import pytest

from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wellknown import CERTIFICATES_EXPIRY_ANNOTATION
from clusterwright.api.wire import Request
from clusterwright.apiserver.serving.inprocess import ForwardRefused, InProcessTransport
from clusterwright.inmemory import faults
from clusterwright.runtime.errors import ApiError
from clusterwright.simulation import samples

KUBE_SYSTEM = "kube-system"
PROXY = ObjectKey(KUBE_SYSTEM, "kube-proxy-w")
KUBEADM_CONFIG = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")


def pod(name, node, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "app:1"}]},
    }


async def small(p):
    await p.apply(samples.cluster("c"))
    await p.apply(samples.machine("c", "cp", is_control_plane=True))
    await p.apply(samples.machine("c", "w", is_control_plane=False))
    await p.until_available("c", workers=1)


def test_a_deleted_pod_ends_and_an_evicted_one_too(after):
    async def body(p):
        client = p.workload("c").client
        for name in ("deleted", "evicted", "held"):
            await client.create(pod(name, "w", finalizers=["example.com/keep"] if name == "held" else []))
        await client.delete(Pod, ObjectKey("default", "deleted"))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted", "namespace": "default"}}
        await client.create_subresource(Pod, ObjectKey("default", "evicted"), "eviction", eviction)
        await client.delete(Pod, ObjectKey("default", "held"))
        assert [o.metadata.name for o in await client.list(Pod, namespace="default")] == ["held"]
        await client.patch(Pod, ObjectKey("default", "held"), {"metadata": {"finalizers": None}})
        assert await client.list(Pod, namespace="default") == []

    after(body, small)


def test_without_a_running_kubelet_pods_stay_until_it_is_back(after):
    async def body(p):
        client = p.workload("c").client
        await client.create(pod("app", "w"))
        await p.annotate(DevMachine, "w", {faults.FAULT: "kubelet-stops"})
        await p.until_condition(Machine, "w", "NodeHealthy", "Unknown")
        await client.delete(Pod, ObjectKey("default", "app"))
        await asyncio.sleep(60)
        assert (await client.get(Pod, ObjectKey("default", "app"))).metadata.deletion_timestamp is not None
        await client.delete(Node, ObjectKey("", "w"))
        await asyncio.sleep(60)
        assert await client.find(Node, ObjectKey("", "w")) is None, "nobody registers it"
        await p.annotate(DevMachine, "w", {faults.FAULT: None})
        await p.until_condition(Machine, "w", "NodeHealthy", "True", within=120)
        assert await client.list(Pod, namespace="default") == []

    after(body, small)


def test_pods_of_the_node_itself_come_back_and_etcd_keeps_its_member(after):
    async def body(p):
        workload = p.workload("c")
        client, members = workload.client, workload.members()
        for key in (ObjectKey(KUBE_SYSTEM, "etcd-cp"), ObjectKey(KUBE_SYSTEM, "kube-scheduler-cp"), PROXY):
            before = (await client.get(Pod, key)).metadata.uid
            await client.delete(Pod, key)
            after = await client.get(Pod, key)
            assert after.metadata.uid != before
            assert after.metadata.deletion_timestamp is None
            assert after.status.phase == "Running"
        assert workload.members() == members
        assert workload.is_serving

    after(body, small)


def test_a_deleted_node_registers_again(after):
    async def body(p):
        client = p.workload("c").client
        before = (await client.get(Node, ObjectKey("", "w"))).metadata.uid
        await client.delete(Node, ObjectKey("", "w"))
        await p.until(lambda: _is_registered(client, "w"), "the Node is back", within=60)
        assert (await client.get(Node, ObjectKey("", "w"))).metadata.uid != before
        await p.client.delete(Machine, ObjectKey("default", "w"))
        await p.until_gone(Machine, "w", within=120)
        await asyncio.sleep(30)
        assert [n.metadata.name for n in await client.list(Node)] == ["cp"]

    after(body, small)


async def _is_registered(client, name):
    return await client.find(Node, ObjectKey("", name)) is not None


def test_a_drained_node_is_empty(after):
    async def body(p):
        client = p.workload("c").client
        for n in range(3):
            await client.create(pod(f"app-{n}", "w"))
        await p.client.delete(Machine, ObjectKey("default", "w"))
        await p.until_gone(Machine, "w", within=120)
        assert await client.list(Pod, namespace="default") == []

    after(body, small)


def test_the_version_is_that_of_the_oldest_api_server(after):
    async def body(p):
        workload = p.workload("c")
        assert workload.server.version == (await p.client.get(Machine, ObjectKey("default", "cp"))).spec.version
        authority = workload.serving.authority
        await workload.start_api_server("newer", authority, version="v1.99.0")
        assert workload.server.version != "v1.99.0"
        await workload.stop_api_server("cp")
        assert workload.server.version == "v1.99.0"

    after(body, small)


@pytest.mark.parametrize("what", ["log", "exec", "attach"])
def test_logs_and_commands_are_refused_with_a_reason(after, what):
    async def body(p):
        workload = p.workload("c")
        path = f"/api/v1/namespaces/{KUBE_SYSTEM}/pods/kube-proxy-w/{what}"
        with pytest.raises(ApiError, match=rf"pods/{what} is not to be had.*simulated") as refused:
            await workload.client.raw_get(path)
        assert refused.value.code == 405
        with pytest.raises(ApiError, match="not found"):
            await workload.client.raw_get(path.replace("kube-proxy-w", "nobody"))
        if what != "log":
            with pytest.raises(ForwardRefused, match="is not to be had"):
                await InProcessTransport(workload.server).forward(Request(method="GET", path=path), 80)

    after(body, small)


def test_api_servers_listen_where_their_machines_say_and_nowhere_else(in_plane):
    """Of three machines the first says so for itself, the others as they join; KubeadmControlPlane finds the certificates there."""

    async def body(p):
        control_plane = samples.control_plane("c", replicas=3)
        [kcp] = [o for o in control_plane if o["kind"] == "KubeadmControlPlane"]
        spec = kcp["spec"]["kubeadmConfigSpec"]
        spec["initConfiguration"]["localAPIEndpoint"] = {"bindPort": 8443}
        spec["joinConfiguration"]["controlPlane"] = {"localAPIEndpoint": {"bindPort": 9443}}
        await p.apply(samples.cluster("c", has_control_plane_object=True) + control_plane)

        async def configs():
            return [c for c in await p.client.list(KUBEADM_CONFIG) if CERTIFICATES_EXPIRY_ANNOTATION in c.metadata.annotations]

        async with asyncio.timeout(600):  # of virtual time
            while len(found := await configs()) < 3:  # noqa: ASYNC110 - as other tests here look at objects
                await asyncio.sleep(1)
        workload = p.workload("c")
        listening = {port: [] for port in (6443, 8443, 9443)}
        for config in found:
            machine = config.metadata.name
            for port, there in listening.items():
                try:
                    await (await workload.dial(KUBE_SYSTEM, f"kube-apiserver-{machine}", port)).close()
                    there.append(machine)
                except ConnectionRefusedError:
                    pass
        assert [len(there) for there in listening.values()] == [0, 1, 2]
        with pytest.raises(ConnectionRefusedError):
            await workload.dial(KUBE_SYSTEM, listening[8443][0], 8443)  # no Pod of that name
        with pytest.raises(ConnectionRefusedError):
            await workload.dial(KUBE_SYSTEM, listening[8443][0], 2379)

    in_plane(body)
