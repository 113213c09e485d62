"""Workloads of users in a simulated cluster: Pods appear, are placed, and are counted as real controllers do."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.inmemory import placement
from clusterwright.inmemory.kubelets import MIRROR
from clusterwright.inmemory.workloads import MOST_PODS
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START

TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
SELECTOR: Json = {"matchLabels": {"app": "web"}}


def run(body: Any, workers: int = 2) -> None:
    """Run `body(client, plane)` on a cluster of one control plane machine and some workers."""

    async def main() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(samples.cluster("c"))
            await p.apply(samples.machine("c", "cp", is_control_plane=True))
            for number in range(workers):
                await p.apply(samples.machine("c", f"w{number}", is_control_plane=False))
            await p.until_available("c", workers=workers)
            await body(p.workload("c").client, p)

    run_virtual(main())


def obj(kind: str, spec: Json, name: str = "web", group: str = "apps/v1") -> Json:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def get(client: Any, kind: str, name: str = "web", group: str = "apps/v1") -> Json:
    return dict((await client.get(GroupVersionKind.of(group, kind), ObjectKey("default", name))).json)


async def pods(client: Any) -> list[Json]:
    found = await client.list(GroupVersionKind("", "v1", "Pod"), namespace="default")
    return sorted((dict(one.json) for one in found), key=lambda one: one["metadata"]["name"])


def test_a_deployment_is_available_with_pods_on_workers() -> None:
    async def body(client: Any, p: Plane) -> None:
        await client.create(obj("Deployment", {"replicas": 4, "selector": SELECTOR, "template": TEMPLATE}))

        status = (await get(client, "Deployment"))["status"]
        assert {
            name: status[name] for name in ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "observedGeneration")
        } == {
            "replicas": 4,
            "readyReplicas": 4,
            "updatedReplicas": 4,
            "availableReplicas": 4,
            "observedGeneration": 1,
        }
        found = await pods(client)
        assert sorted(one["spec"]["nodeName"] for one in found) == ["w0", "w0", "w1", "w1"], (
            "the control plane is tainted, the rest is even"
        )
        assert {one["status"]["phase"] for one in found} == {"Running"}

        await client.patch(GroupVersionKind.of("apps/v1", "Deployment"), ObjectKey("default", "web"), {"spec": {"replicas": 1}})
        assert len(await pods(client)) == 1
        changed = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "web:2"}]}}}}
        await client.patch(GroupVersionKind.of("apps/v1", "Deployment"), ObjectKey("default", "web"), changed)
        assert [one["spec"]["containers"][0]["image"] for one in await pods(client)] == ["web:2"]
        assert (await get(client, "Deployment"))["status"]["observedGeneration"] == 3

    run(body)


def test_a_stateful_set_has_ordered_pods_with_claims_and_one_revision() -> None:
    async def body(client: Any, p: Plane) -> None:
        claim = {"metadata": {"name": "www"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        container = {"name": "c", "image": "web:1", "volumeMounts": [{"name": "www", "mountPath": "/www"}]}
        template = {**TEMPLATE, "spec": {"containers": [container]}}
        spec = {"replicas": 2, "serviceName": "web", "selector": SELECTOR, "template": template, "volumeClaimTemplates": [claim]}
        await client.create(obj("StatefulSet", spec))

        found = await pods(client)
        assert [one["metadata"]["name"] for one in found] == ["web-0", "web-1"]
        assert found[1]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "www-web-1"
        assert (await get(client, "PersistentVolumeClaim", "www-web-0", "v1"))["status"]["phase"] == "Bound"
        status = (await get(client, "StatefulSet"))["status"]
        assert (status["readyReplicas"], status["updatedReplicas"], status["currentReplicas"]) == (2, 2, 2)
        assert status["currentRevision"] == status["updateRevision"]

        await client.delete(Pod, ObjectKey("default", "web-0"))
        assert [one["metadata"]["name"] for one in await pods(client)] == ["web-0", "web-1"]

    run(body)


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_pods_of_a_deleted_daemon_set_go_once(policy: str) -> None:
    async def body(client: Any, p: Plane) -> None:
        simulated, proxy = p.workload("c"), ObjectKey("kube-system", "kube-proxy")
        await client.delete(GroupVersionKind("apps", "v1", "DaemonSet"), proxy, propagation=policy)
        await p.clock.sleep(10)
        after = simulated.server.store.revision
        await p.clock.sleep(60)

        left = [one.metadata.name for one in await client.list(Pod, namespace="kube-system")]
        assert not [name for name in left if name.startswith("kube-proxy")]
        assert simulated.server.store.revision - after < 10

    run(body)


@pytest.mark.parametrize("annotations", [{}, {MIRROR: "x"}], ids=["DaemonSet", "static"])
def test_a_pod_whose_owner_does_not_exist_does_not_come_back_again_and_again(annotations: dict[str, str]) -> None:
    async def body(client: Any, p: Plane) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "none", "uid": "none", "controller": True}
        metadata = {"name": "a", "namespace": "default", "annotations": annotations, "ownerReferences": [owner]}
        await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**TEMPLATE["spec"], "nodeName": "w0"}})
        await p.clock.sleep(10)
        after = p.workload("c").server.store.revision
        await p.clock.sleep(60)

        assert p.workload("c").server.store.revision - after < 10

    run(body)


def test_jobs_daemon_sets_and_load_balancers_end_as_they_would() -> None:
    async def body(client: Any, p: Plane) -> None:
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
        await client.create(obj("Job", {"completions": 3, "template": template}, "once", "batch/v1"))
        await client.create(obj("DaemonSet", {"selector": SELECTOR, "template": TEMPLATE}))
        ports = [{"port": 80}]
        await client.create(obj("Service", {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": ports}, "lb", "v1"))

        job = (await get(client, "Job", "once", "batch/v1"))["status"]
        assert (job["succeeded"], {c["type"] for c in job["conditions"]}) == (3, {"SuccessCriteriaMet", "Complete"})
        daemon = (await get(client, "DaemonSet"))["status"]
        assert (daemon["desiredNumberScheduled"], daemon["numberReady"], daemon["updatedNumberScheduled"]) == (2, 2, 2)
        assert (await get(client, "Service", "lb", "v1"))["status"]["loadBalancer"]["ingress"][0]["ip"].startswith("10.255.")

    run(body)


def test_a_pod_that_names_a_node_runs_and_one_without_room_waits_for_it() -> None:
    async def body(client: Any, p: Plane) -> None:
        await client.create(obj("Pod", {"nodeName": "w0", "containers": [{"name": "c", "image": "a"}]}, "bound", "v1"))
        large = {"containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "64"}}}]}
        await client.create(obj("Pod", large, "large", "v1"))

        bound, waiting = await pods(client)
        assert bound["status"]["phase"] == "Running"
        assert waiting["status"]["phase"] == "Pending"
        said = waiting["status"]["conditions"][0]
        assert (said["type"], said["status"], said["reason"]) == ("PodScheduled", "False", "Unschedulable")
        assert (
            said["message"]
            == "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint(s) {node-role.kubernetes.io/control-plane}."
        )

        room = {"status": {"allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110"}}}
        await client.patch(Node, ObjectKey("", "w0"), room, subresource="status")
        await client.patch(Node, ObjectKey("", "w0"), {"metadata": {"labels": {"a": "b"}}, "spec": {"unschedulable": None}})
        await client.patch(Node, ObjectKey("", "w1"), {"spec": {"unschedulable": True}})
        assert {one["status"]["phase"] for one in await pods(client)} == {"Running"}

    run(body)


def test_a_huge_number_of_replicas_is_bounded() -> None:
    async def body(client: Any, p: Plane) -> None:
        await client.create(obj("ReplicaSet", {"replicas": 2147483647, "selector": SELECTOR, "template": TEMPLATE}))

        async def is_done() -> bool:
            return len(await pods(client)) == MOST_PODS

        await p.until(is_done, "the most Pods are there")
        await p.clock.sleep(5)
        assert len(await pods(client)) == MOST_PODS
        assert (await get(client, "ReplicaSet"))["status"]["replicas"] == MOST_PODS

    run(body, workers=1)


NODE: Json = {
    "metadata": {"name": "n", "labels": {"zone": "a", "size": "5"}},
    "spec": {},
    "status": {"allocatable": {"cpu": "2", "pods": "1"}},
}


@pytest.mark.parametrize(
    ("pod", "host", "is_fitting"),
    [
        ({}, {}, True),
        ({"nodeSelector": {"zone": "a"}}, {}, True),
        ({"nodeSelector": {"zone": "b"}}, {}, False),
        ({}, {"unschedulable": True}, False),
        ({}, {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, False),
        ({}, {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}, True),
        ({"tolerations": [{"key": "k", "value": "v"}]}, {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"key": "k", "value": "w"}]}, {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, False),
        (
            {"tolerations": [{"key": "k", "effect": "NoExecute", "operator": "Exists"}]},
            {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            False,
        ),
        ({"tolerations": [{"operator": "Exists"}]}, {"taints": [{"key": "k", "effect": "NoExecute"}]}, True),
    ],
)
def test_selectors_taints_and_cordons_decide(pod: Json, host: Json, is_fitting: bool) -> None:
    assert placement.fits({"metadata": {}, "spec": pod}, {**NODE, "spec": host}) is is_fitting


@pytest.mark.parametrize(
    ("operator", "key", "values", "is_fitting"),
    [
        ("In", "zone", ["a", "b"], True),
        ("NotIn", "zone", ["a"], False),
        ("NotIn", "none", ["a"], True),
        ("Exists", "zone", [], True),
        ("DoesNotExist", "zone", [], False),
        ("Gt", "size", ["4"], True),
        ("Lt", "size", ["4"], False),
        ("Gt", "zone", ["4"], False),
        ("Odd", "zone", [], False),
    ],
)
def test_node_affinity_decides(operator: str, key: str, values: list[str], is_fitting: bool) -> None:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    assert placement.fits({"metadata": {}, "spec": {"affinity": affinity}}, NODE) is is_fitting
