"""Every fault: what breaks, how it is said, and that it mends when the fault is taken away."""

import asyncio

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.conditions import get
from clusterwright.inmemory import etcd, faults, objects
from clusterwright.simulation import samples


async def bring_up(p, control_planes, workers):
    await p.apply(samples.cluster("c"))
    for number in range(control_planes):
        await p.apply(samples.machine("c", f"cp-{number}", is_control_plane=True))
    for number in range(workers):
        await p.apply(samples.machine("c", f"w-{number}", is_control_plane=False))
    await p.until_available("c", control_plane=control_planes, workers=workers)


def break_(p, machine, *names):
    return p.annotate(DevMachine, machine, {faults.FAULT: ",".join(names) or None})


async def node(p, name):
    return await p.workload("c").client.get(Node, ObjectKey("", name))


async def pod_ready(p, name):
    pod = await p.workload("c").client.get(Pod, ObjectKey("kube-system", name))
    return get(pod.status.conditions, "Ready").status


def test_machine_never_boots(after):
    async def body(p):
        late = samples.machine("c", "late", is_control_plane=False)
        late[1]["metadata"] = {**late[1]["metadata"], "annotations": {faults.FAULT: "machine-never-boots"}}
        await p.apply(late)
        await asyncio.sleep(600)
        found = await p.condition(DevMachine, "late", "VMProvisioned")
        assert (found.status, found.reason, found.message) == ("False", "WaitingForStartupTimeout", "The machine does not boot")
        assert (await p.machine("late")).status.phase == "Provisioning"
        await break_(p, "late")
        await p.until_available("c", workers=2)

    after(body, bring_up, 1, 1)


def test_bootstrap_fails(after):
    async def body(p):
        late = samples.machine("c", "late", is_control_plane=False)
        late[1]["metadata"] = {**late[1]["metadata"], "annotations": {faults.FAULT: "bootstrap-fails"}}
        await p.apply(late)
        await asyncio.sleep(20)
        found = await p.condition(DevMachine, "late", "NodeProvisioned")
        assert (found.status, found.reason) == ("False", "BootstrapFailed")
        await break_(p, "late")
        await asyncio.sleep(60)
        assert (await p.condition(DevMachine, "late", "NodeProvisioned")).reason == "BootstrapFailed"  # kubeadm does not run again
        await p.client.delete(Machine, ObjectKey("default", "late"))
        await p.until_gone(Machine, "late")

    after(body, bring_up, 1, 1)


def test_kubelet_stops(after):
    async def body(p):
        await break_(p, "w-0", "kubelet-stops")
        await p.until_condition(Machine, "w-0", "NodeHealthy", "Unknown")
        ready = await p.until_condition(Machine, "w-0", "Ready", "Unknown")
        assert "Kubelet stopped posting node status" in ready.message
        silent = await node(p, "w-0")
        assert {t.effect for t in silent.spec.taints if t.key == objects.UNREACHABLE_TAINT} == {"NoSchedule", "NoExecute"}
        assert objects.KUBELET_STOPPED in silent.metadata.annotations
        assert p.workload("c").is_serving
        await break_(p, "w-0")
        await p.until_condition(Machine, "w-0", "NodeHealthy", "True")
        await p.until_available("c", workers=1)
        back = await node(p, "w-0")
        assert back.spec.taints == ()
        assert objects.KUBELET_STOPPED not in back.metadata.annotations

    after(body, bring_up, 1, 1)


def test_node_dies_on_one_of_three_control_planes(after):
    async def body(p):
        await break_(p, "cp-1", "node-dies")
        await p.until_condition(Machine, "cp-1", "NodeHealthy", "Unknown")
        assert p.workload("c").is_serving
        assert await pod_ready(p, "etcd-cp-1") == "False"
        assert await pod_ready(p, "kube-apiserver-cp-1") == "False"
        assert next(m for m in p.workload("c").members() if m.name == "cp-1").is_stopped
        await break_(p, "cp-1")
        await p.until_condition(Machine, "cp-1", "NodeHealthy", "True")
        await p.until_available("c", control_plane=3)
        assert await pod_ready(p, "etcd-cp-1") == "True"

    after(body, bring_up, 3, 0)


def test_node_dies_on_two_of_three_control_planes(after):
    async def body(p):
        for name in ("cp-0", "cp-1"):
            await break_(p, name, "node-dies")
        await p.until(lambda: _is_serving(p, expected=False), "etcd without quorum does not answer")
        probe = await p.until_condition(Cluster, "c", "RemoteConnectionProbe", "False", within=300)
        assert probe.reason == "ProbeFailed"
        await break_(p, "cp-0")
        await p.until_condition(Cluster, "c", "RemoteConnectionProbe", "True", within=60)
        assert p.workload("c").is_serving

    after(body, bring_up, 3, 0)


async def _is_serving(p, *, expected):
    return p.workload("c").is_serving is expected


def test_etcd_alarms_and_learners_are_seen_by_etcds_clients(after):
    async def body(p):
        await break_(p, "cp-1", "etcd-corrupt", "etcd-no-space")
        await break_(p, "cp-2", "etcd-learner")
        await asyncio.sleep(2)
        members = {m.name: m for m in p.workload("c").members()}
        assert members["cp-1"].alarms == ("CORRUPT", "NOSPACE")
        assert members["cp-2"].is_learner
        await break_(p, "cp-1")
        await break_(p, "cp-2")
        await asyncio.sleep(2)
        members = p.workload("c").members()
        assert [m.alarms for m in members] == [(), (), ()]
        assert not any(m.is_learner for m in members)

    after(body, bring_up, 3, 0)


def test_etcd_stops(after):
    async def body(p):
        leader = etcd.leader(p.workload("c").members()).name
        await break_(p, leader, "etcd-stops")
        await p.until(lambda: _leads(p, leader, expected=False), "another member leads")
        assert await pod_ready(p, f"etcd-{leader}") == "False"
        assert await pod_ready(p, f"kube-apiserver-{leader}") == "True"
        assert p.workload("c").is_serving

    after(body, bring_up, 3, 0)


async def _leads(p, name, *, expected):
    return (etcd.leader(p.workload("c").members()).name == name) is expected


def test_api_server_stops(after):
    async def body(p):
        await break_(p, "cp-0", "api-server-stops")
        await p.until(lambda: _is_serving(p, expected=False), "the only API server is down")
        await p.until_condition(Cluster, "c", "RemoteConnectionProbe", "False", within=300)
        await break_(p, "cp-0")
        await p.until_condition(Cluster, "c", "RemoteConnectionProbe", "True", within=5)  # the connection wakes everybody
        assert await pod_ready(p, "kube-apiserver-cp-0") == "True"

    after(body, bring_up, 1, 0)


def test_api_server_unreachable(after):
    async def body(p):
        await p.annotate(DevCluster, "c", {faults.FAULT: "api-server-unreachable"})
        await p.until_condition(Cluster, "c", "RemoteConnectionProbe", "False", within=300)
        await p.until_condition(Machine, "w-0", "NodeHealthy", "Unknown", within=600)
        await p.annotate(DevCluster, "c", {faults.FAULT: None})
        await p.until_available("c", workers=1, within=30)

    after(body, bring_up, 1, 1)


def test_a_slow_machine_still_comes_up(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        slow = samples.machine("c", "cp-0", is_control_plane=True, seconds=2)
        slow[1]["metadata"] = {**slow[1]["metadata"], "annotations": {faults.SLOW: "50"}}
        started = p.clock.monotonic()
        await p.apply(slow)
        await p.until_available("c", within=900)
        return p.clock.monotonic() - started

    # VM, Node, and etcd beside the API server: three stages of 100 s and a fifth of jitter
    assert 295 < in_plane(body) < 365


def test_a_broken_machine_can_be_deleted(after):
    async def body(p):
        await break_(p, "w-0", "node-dies")
        await p.until_condition(Machine, "w-0", "NodeHealthy", "Unknown")
        await p.client.delete(Machine, ObjectKey("default", "w-0"))
        await p.until_gone(Machine, "w-0", within=600)
        assert {n.metadata.name for n in await p.workload("c").client.list(Node)} == {"cp-0", "w-1"}
        await p.annotate(DevCluster, "c", {faults.FAULT: "api-server-unreachable"})
        await asyncio.sleep(120)
        await p.client.delete(Cluster, ObjectKey("default", "c"))  # nothing of it depends on the dead API server
        await p.until_gone(Cluster, "c", within=600)
        assert p.leftovers() == {}

    after(body, bring_up, 1, 2)
