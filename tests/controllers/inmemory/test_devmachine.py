"""A DevMachine's life, in virtual time on the whole plane (spec: in-memory provider, edge cases)."""

import asyncio

import pytest

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import ConfigMap, DaemonSet, Lease, Node, Pod, Secret
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.conditions import get
from clusterwright.inmemory import etcd, faults
from clusterwright.runtime.errors import TooManyRequests
from clusterwright.simulation import samples

CLUSTER_ROLE_BINDING = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")


def staged(name, *, is_control_plane, **seconds):
    """A machine whose stages take their time."""
    objects = samples.machine("c", name, is_control_plane=is_control_plane)
    objects[1]["spec"]["backend"]["inMemory"] = {
        part: {"provisioning": {"startupDuration": f"{length}s"}} for part, length in seconds.items()
    }
    return objects


def reasons(dev_machine):
    return {c.type: (c.status, c.reason) for c in dev_machine.status.conditions}


def legacy(dev_machine):
    return {c.type: (c.status, c.reason, c.severity) for c in dev_machine.status.deprecated.v1beta1.conditions}


def test_stages_follow_one_another_and_each_takes_its_time(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.until(lambda: _provisioned(p), "the infrastructure is provisioned")
        started = p.clock.monotonic()
        await p.apply(staged("m", is_control_plane=True, vm=10, node=5, etcd=2, apiServer=4))
        moments = {}
        for _ in range(400):
            found = await p.client.find(DevMachine, ObjectKey("default", "m"))
            for type_, (status, _reason) in (reasons(found) if found else {}).items():
                if status == "True":
                    moments.setdefault(type_, p.clock.monotonic() - started)
            await asyncio.sleep(0.1)
        return moments

    moments = in_plane(body)

    assert 10 <= moments["VMProvisioned"] < 11.5
    assert 4.8 < moments["NodeProvisioned"] - moments["VMProvisioned"] < 5.2
    assert 1.8 < moments["EtcdProvisioned"] - moments["NodeProvisioned"] < 2.2
    assert 3.8 < moments["APIServerProvisioned"] - moments["NodeProvisioned"] < 4.2
    assert moments["Ready"] == max(moments.values())


async def _provisioned(p):
    cluster = await p.client.find(Cluster, ObjectKey("default", "c"))
    return bool(cluster and cluster.status.initialization and cluster.status.initialization.infrastructure_provisioned)


def test_the_awaited_step_is_reported_in_both_forms(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.apply(staged("cp", is_control_plane=True, vm=30))
        await p.apply(samples.machine("c", "w", is_control_plane=False))
        await asyncio.sleep(10)
        leader, worker = await p.dev_machine("cp"), await p.dev_machine("w")
        assert not await p.workload("c").client.list(Node)
        return reasons(leader), legacy(leader), reasons(worker), legacy(worker), leader.spec.provider_id

    leader, leader_legacy, worker, worker_legacy, provider_id = in_plane(body)

    assert provider_id == ""
    assert leader["VMProvisioned"] == ("False", "WaitingForStartupTimeout")
    assert {leader[t] for t in ("NodeProvisioned", "EtcdProvisioned", "APIServerProvisioned")} == {("False", "WaitingForVMProvisioned")}
    assert leader["Ready"] == ("False", "NotReady")
    assert leader_legacy["VMProvisioned"] == ("False", "WaitingForStartupTimeout", "Info")
    assert "NodeProvisioned" not in leader_legacy
    assert worker["VMProvisioned"] == ("False", "WaitingForControlPlaneInitialized")
    assert worker_legacy["VMProvisioned"] == ("False", "WaitingControlPlaneInitialized", "Info")
    assert worker_legacy["Ready"][:2] == ("False", "WaitingControlPlaneInitialized")
    assert "EtcdProvisioned" not in worker


def test_a_control_plane_machine_creates_the_objects_of_kubeadm(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        objects = samples.machine("c", "cp", is_control_plane=True)
        objects[2]["spec"]["failureDomain"] = "zone-a"
        await p.apply(objects)
        await p.apply(samples.machine("c", "w", is_control_plane=False))
        await p.until_available("c", workers=1)
        client = p.workload("c").client
        nodes = {n.metadata.name: n for n in await client.list(Node)}
        pods = {x.metadata.name: x for x in await client.list(Pod, namespace="kube-system")}
        assert set(pods) == {
            "etcd-cp", "kube-apiserver-cp", "kube-scheduler-cp", "kube-controller-manager-cp", "kube-proxy-cp", "kube-proxy-w",
        }  # fmt: skip
        assert all(pod.status.phase == "Running" for pod in pods.values())
        assert all(get_ready(pod) == "True" for pod in pods.values())
        assert pods["etcd-cp"].metadata.labels == {"component": "etcd", "tier": "control-plane"}
        assert [t.key for t in nodes["cp"].spec.taints] == ["node-role.kubernetes.io/control-plane"]
        assert nodes["w"].spec.taints == ()
        assert nodes["cp"].metadata.labels["node-role.kubernetes.io/control-plane"] == ""
        assert nodes["cp"].metadata.labels["topology.kubernetes.io/zone"] == "zone-a"
        assert nodes["cp"].spec.provider_id == "in-memory://cp"
        assert nodes["cp"].status.node_info.kubelet_version == samples.VERSION
        config = await client.get(ConfigMap, ObjectKey("kube-system", "kubeadm-config"))
        assert "clusterName: c" in config.data["ClusterConfiguration"]
        assert await client.get(DaemonSet, ObjectKey("kube-system", "kube-proxy"))
        assert await client.get(GroupVersionKind("apps", "v1", "Deployment"), ObjectKey("kube-system", "coredns"))
        assert await client.get(ConfigMap, ObjectKey("kube-public", "cluster-info"))
        bindings = {b.metadata.name for b in await client.list(CLUSTER_ROLE_BINDING)}
        assert {"kubeadm:get-nodes", "kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap"} <= bindings
        assert {lease.metadata.name for lease in await client.list(Lease, namespace="kube-node-lease")} == {"cp", "w"}
        dev_machine = await p.dev_machine("cp")
        addresses = {a.type: a.address for a in dev_machine.status.addresses}
        assert addresses["InternalDNS"] == "cp"
        assert addresses["InternalIP"] in {a.address for a in nodes["cp"].status.addresses}
        assert dev_machine.status.failure_domain == "zone-a"
        other = await p.dev_machine("w")
        assert addresses["InternalIP"] not in {a.address for a in other.status.addresses}

    in_plane(body)


def get_ready(pod):
    return next(c.status for c in pod.status.conditions if c.type == "Ready")


def test_further_passes_change_nothing_and_do_not_repair_manual_damage(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.apply(samples.machine("c", "cp", is_control_plane=True))
        await p.until_available("c")
        client = p.workload("c").client
        broken = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken"}]}}
        await client.patch(Node, ObjectKey("", "cp"), broken, type="strategic", subresource="status")
        before = (await p.dev_machine("cp")).metadata.resource_version
        await p.annotate(Machine, "cp", {"poke": "1"})
        await p.client.patch(Machine, ObjectKey("default", "cp"), {"metadata": {"labels": {"poke": "1"}}})
        await asyncio.sleep(30)
        node = await client.get(Node, ObjectKey("", "cp"))
        assert get(node.status.conditions, "Ready").status == "False"
        assert (await p.dev_machine("cp")).metadata.resource_version == before
        # but what was taken away comes back
        await client.delete(Node, ObjectKey("", "cp"))
        await client.delete(Pod, ObjectKey("kube-system", "kube-scheduler-cp"), grace_period_seconds=0)
        await asyncio.sleep(5)
        assert await client.get(Node, ObjectKey("", "cp"))
        assert await client.get(Pod, ObjectKey("kube-system", "kube-scheduler-cp"))

    in_plane(body)


def test_a_failed_boot_is_reported_and_not_retried(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.apply(samples.machine("c", "cp", is_control_plane=True))
        await p.until_available("c")
        # the token is gone before the machine gets to use it
        objects = staged("w", is_control_plane=False, vm=5)
        await p.apply(objects)
        await asyncio.sleep(3)
        workload = p.workload("c")
        for secret in await workload.client.list(Secret, namespace="kube-system"):
            if secret.metadata.name.startswith("bootstrap-token-"):
                await workload.client.delete(Secret, secret.key)
        await p.until(lambda: _has_reason(p, "w", "BootstrapFailed"), "the boot has failed")
        failed = await p.condition(DevMachine, "w", "NodeProvisioned")
        assert "is unknown there" in failed.message
        ready = await p.condition(DevMachine, "w", "Ready")
        assert (ready.status, ready.reason) == ("False", "NotReady")
        await p.until(lambda: _machine_says(p, "w", "is unknown there"), "the Machine says so")
        assert (await p.dev_machine("w")).status.initialization.provisioned  # the VM itself is there
        await asyncio.sleep(300)
        assert (await p.condition(DevMachine, "w", "NodeProvisioned")).message == failed.message
        assert "w" not in {n.metadata.name for n in await workload.client.list(Node)}

    in_plane(body)


async def _machine_says(p, name, text):
    found = await p.condition(Machine, name, "InfrastructureReady")
    return found is not None and found.status == "False" and text in found.message


async def _has_reason(p, name, reason):
    found = await p.condition(DevMachine, name, "NodeProvisioned")
    return found is not None and found.reason == reason


def test_bad_settings_are_reported_where_they_matter(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        objects = samples.machine("c", "cp", is_control_plane=True)
        objects[1]["spec"]["backend"]["inMemory"] = {"vm": {"provisioning": {"startupDuration": "1s", "startupJitter": "much"}}}
        await p.apply(objects)
        await asyncio.sleep(20)
        found = await p.condition(DevMachine, "cp", "VMProvisioned")
        assert (found.reason, found.message) == ("InternalError", "Please check controller logs for errors")
        good = {"spec": {"backend": {"inMemory": {"vm": {"provisioning": {"startupJitter": "0.5"}}}}}}
        await p.client.patch(DevMachine, ObjectKey("default", "cp"), good)
        await p.until_available("c")
        # a fault that does not exist is such a setting, too
        await p.annotate(DevMachine, "cp", {faults.FAULT: "explodes"})
        await asyncio.sleep(5)
        ready = await p.condition(DevMachine, "cp", "Ready")
        assert (ready.status, ready.reason) == ("False", "NotReady")

    in_plane(body)


def test_a_port_in_use_by_another_process_is_reported_and_retried(in_plane):
    class Busy:
        is_busy = True

        async def start(self, cluster, context):
            if self.is_busy:
                raise OSError(98, "Address already in use")

        async def stop(self, cluster):
            pass

        def hold(self, host, port):
            return True

        def release(self, host, port):
            pass

    listener = Busy()

    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.apply(samples.machine("c", "cp", is_control_plane=True))
        await asyncio.sleep(20)
        found = await p.condition(DevMachine, "cp", "APIServerProvisioned")
        assert (found.status, found.reason) == ("False", "InternalError")
        events = [entry.raw for entry in p.server.store.table("events").objects.values()]
        assert any(b"cannot listen at 127.0.0.1:20000: Address already in use" in raw for raw in events)
        listener.is_busy = False
        await p.until_available("c", within=300)

    in_plane(body, listener=listener)


def test_the_second_member_shares_the_etcd_cluster(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        for name in ("cp-0", "cp-1"):
            await p.apply(samples.machine("c", name, is_control_plane=True))
        await p.until_available("c", control_plane=2)
        members = p.workload("c").members()
        assert len({m.cluster_id for m in members}) == 1
        assert len({m.id for m in members}) == 2
        assert sum(bool(m.leader_from) for m in members) == 1
        assert etcd.leader(members).leader_from

    in_plane(body)


def test_equal_names_in_two_clusters_and_namespaces_do_not_conflict(in_plane):
    async def body(p):
        await p.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        for namespace in ("default", "other"):
            await p.apply(samples.cluster("c", namespace))
            await p.apply(samples.machine("c", "cp", namespace, is_control_plane=True))
        await p.until_available("c")
        one, two = (p.cloud.find(ObjectKey(namespace, "c")) for namespace in ("default", "other"))
        await p.until(lambda: _serving(two), "the other answers")
        assert one.port != two.port
        assert one.serving.authority.certificate != two.serving.authority.certificate
        assert [n.metadata.name for n in await two.client.list(Node)] == ["cp"]

    in_plane(body)


async def _serving(cluster):
    return cluster.is_serving


# ------------------------------------------------------------------------------------------------- without owner, paused


def test_without_an_owner_it_waits_and_when_deleted_it_goes(in_plane):
    async def body(p):
        lonely = samples.machine("c", "lonely", is_control_plane=False)[1]
        cluster = samples.cluster("lonely")[1]
        await p.apply([lonely, cluster])
        await asyncio.sleep(10)
        found = await p.dev_machine("lonely")
        assert found.metadata.finalizers == ()  # there is nothing yet to clean up
        assert found.status.conditions == ()
        assert (await p.dev_cluster("lonely")).spec.control_plane_endpoint is None
        for kind in (DevMachine, DevCluster):
            await p.client.delete(kind, ObjectKey("default", "lonely"))
            await p.until_gone(kind, "lonely", within=10)

    in_plane(body)


def test_while_paused_nothing_happens_and_afterwards_everything(in_plane):
    async def body(p):
        objects = samples.cluster("c")
        objects[0]["spec"]["paused"] = True
        await p.apply(objects)
        await p.apply(samples.machine("c", "cp", is_control_plane=True))
        await asyncio.sleep(60)
        assert (await p.dev_cluster("c")).spec.control_plane_endpoint is None
        await p.client.patch(Cluster, ObjectKey("default", "c"), {"spec": {"paused": None}})
        await p.until_available("c")
        await p.annotate(DevMachine, "cp", {"cluster.x-k8s.io/paused": "", faults.FAULT: "node-dies"})
        paused = await p.until_condition(DevMachine, "cp", "Paused", "True")
        assert "annotation" in paused.message
        await asyncio.sleep(30)
        assert p.workload("c").is_serving
        await p.annotate(DevMachine, "cp", {"cluster.x-k8s.io/paused": None})
        await p.until(lambda: _not_serving(p), "the machine dies")

    in_plane(body)


async def _not_serving(p):
    return not p.workload("c").is_serving


def test_a_dev_cluster_of_another_manager_is_left_alone(in_plane):
    async def body(p):
        objects = samples.cluster("c")
        objects[1]["metadata"]["annotations"] = {"cluster.x-k8s.io/managed-by": "someone"}
        await p.apply(objects)
        await asyncio.sleep(20)
        found = await p.dev_cluster("c")
        assert found.metadata.finalizers == ()
        assert found.status.initialization is None

    in_plane(body)


def test_failure_domains_come_from_the_annotation(in_plane):
    async def body(p):
        objects = samples.cluster("c")
        objects[1]["metadata"]["annotations"] = {faults.FAILURE_DOMAINS: "a, b"}
        await p.apply(objects)
        await p.until(lambda: _provisioned(p), "it is provisioned")
        cluster = await p.cluster("c")
        assert [(d.name, d.control_plane) for d in cluster.status.failure_domains] == [("a", True), ("b", True)]

    in_plane(body)


# ------------------------------------------------------------------------------------------------------------ deletion


def test_deleting_the_last_control_plane_machine_cuts_the_connection_and_it_is_noticed(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.apply(samples.machine("c", "cp", is_control_plane=True))
        await p.until_available("c")
        await p.client.delete(Machine, ObjectKey("default", "cp"))
        await p.until_gone(Machine, "cp")
        assert not p.workload("c").is_serving
        probe = await p.until_condition(Cluster, "c", "RemoteConnectionProbe", "False", within=300)
        assert probe.reason == "ProbeFailed"
        await p.apply(samples.machine("c", "cp-2", is_control_plane=True))
        await asyncio.sleep(30)
        # the cluster was initialized once; a machine that would do it again says why it cannot
        assert (await p.condition(DevMachine, "cp-2", "NodeProvisioned")) is not None

    in_plane(body)


def test_eviction_honours_budgets_and_machines_take_their_pods_with_them(in_plane):
    async def body(p):
        await p.apply(samples.cluster("c"))
        await p.apply(samples.machine("c", "cp", is_control_plane=True))
        await p.apply(samples.machine("c", "w", is_control_plane=False))
        await p.until_available("c", workers=1)
        workload = p.workload("c")
        await workload.client.create(_pod("app", "w"))
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await workload.client.patch(Pod, ObjectKey("default", "app"), running, subresource="status")
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "app", "namespace": "default"}}
        budget["spec"] = {"minAvailable": 1, "selector": {"matchLabels": {"app": "app"}}}
        await workload.client.create(budget)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "app", "namespace": "default"}}
        with pytest.raises(TooManyRequests, match="disruption budget"):
            await workload.client.create_subresource(Pod, ObjectKey("default", "app"), "eviction", eviction)
        await p.client.delete(Machine, ObjectKey("default", "w"))
        draining = await p.until_condition(Machine, "w", "Deleting", "True")
        await asyncio.sleep(60)
        draining = await p.condition(Machine, "w", "Deleting")
        assert draining.reason == "DrainingNode"
        assert "default/app" in draining.message
        assert await workload.client.find(Pod, ObjectKey("default", "app"))
        await workload.client.delete(GroupVersionKind("policy", "v1", "PodDisruptionBudget"), ObjectKey("default", "app"))
        await p.until(lambda: _is_gone(workload, "app"), "the Pod is evicted", within=120)
        await p.until_gone(Machine, "w", within=120)
        assert await workload.client.list(Pod, fields="spec.nodeName=w") == []
        assert {n.metadata.name for n in await workload.client.list(Node)} == {"cp"}
        assert {lease.metadata.name for lease in await workload.client.list(Lease, namespace="kube-node-lease")} == {"cp"}

    in_plane(body)


async def _is_gone(workload, name):
    return await workload.client.find(Pod, ObjectKey("default", name)) is None


def _pod(name, node):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    }
