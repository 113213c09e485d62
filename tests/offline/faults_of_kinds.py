"""Faults of the kinds beside Machines: health checks, pools, classes and topologies, resource sets, policies, gates."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from functools import partial

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.faults import FAULT
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane, plane
from offline.faulty import PAUSED, SLOW, Fault, Make, in_cluster
from offline.live import CLUSTER, CONTROL_PLANE, DEPLOYMENT, DEV_MACHINE, MACHINE, NAMESPACE, admitting, key, machines

_POLICY = "admissionregistration.k8s.io/v1"


@in_cluster
async def denied(p: Plane) -> None:
    """A policy that lets nobody make Machines any more, then a MachineDeployment that wants one."""
    rule = {"apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["machines"]}
    await p.client.create(
        {
            "apiVersion": _POLICY,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "no-more-machines"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "false", "message": "the budget is spent"}],
            },
        }
    )
    await p.client.create(
        {
            "apiVersion": _POLICY,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-more-machines"},
            "spec": {"policyName": "no-more-machines", "validationActions": ["Deny"]},
        }
    )
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})


@in_cluster
async def beyond_repair(p: Plane) -> None:
    """A health check that may repair nothing."""
    check = samples.machine_health_check("c", "mhc", labels={"pool": "md"})
    check["spec"]["remediation"] = {"triggerIf": {"unhealthyLessThanOrEqualTo": 0}}
    await p.apply([check])
    await asyncio.sleep(30)
    await p.annotate(DEV_MACHINE, (await machines(p, control_plane=False))[0], {FAULT: "kubelet-stops"})


def pool(change: Callable[[list[Json]], list[Json]]) -> Make:
    @in_cluster
    async def make(p: Plane) -> None:
        await p.apply(change(samples.machine_pool("c", "pool", replicas=1)))

    return make


def without(kind: str) -> Callable[[list[Json]], list[Json]]:
    return lambda objects: [o for o in objects if o["kind"] != kind]


def paused(kind: str) -> Callable[[list[Json]], list[Json]]:
    def change(objects: list[Json]) -> list[Json]:
        found = next(o for o in objects if o["kind"] == kind)
        found["metadata"] = {**found["metadata"], "annotations": {PAUSED: ""}}
        return objects

    return change


def slow(kind: str, part: str) -> Callable[[list[Json]], list[Json]]:
    """A kind, by the end of its name, whose VMs never come up."""

    def change(objects: list[Json]) -> list[Json]:
        objects = [copy.deepcopy(o) for o in objects]  # templates share what they say
        found = next(o for o in objects if o["kind"] == kind and o["metadata"]["name"].endswith(part))
        spec = found["spec"].get("template", found)["spec"]
        spec["backend"]["inMemory"] = {"vm": {"provisioning": {"startupDuration": "100000s"}}}
        return objects

    return change


def topology(change: Callable[[list[Json]], list[Json]]) -> Make:
    async def make(p: Plane) -> None:
        await p.apply(change([*samples.cluster_class(), samples.topology("c")]))

    return make


def bad_patch(objects: list[Json]) -> list[Json]:
    found = next(o for o in objects if o["kind"] == "ClusterClass")
    selector = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevClusterTemplate"}
    change = {"op": "replace", "path": "/spec/template/spec/nowhere/at/all", "value": "x"}
    definition = {"selector": {**selector, "matchResources": {"infrastructureCluster": True}}, "jsonPatches": [change]}
    found["spec"]["patches"] = [{"name": "broken", "definitions": [definition]}]
    return objects


@in_cluster
async def network_never(p: Plane) -> None:
    """A ClusterResourceSet that names a Secret which nobody has made."""
    await p.client.patch(CLUSTER, key("c"), {"metadata": {"labels": {"network": "yes"}}})
    await p.apply(
        [
            {
                "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
                "kind": "ClusterResourceSet",
                "metadata": {"name": "network", "namespace": NAMESPACE},
                "spec": {
                    "clusterSelector": {"matchLabels": {"network": "yes"}},
                    "resources": [{"kind": "Secret", "name": "calico"}],
                    "strategy": "ApplyOnce",
                },
            }
        ]
    )


@in_cluster
async def network_garbled(p: Plane) -> None:
    """A ClusterResourceSet whose ConfigMap nobody can read."""
    await p.client.patch(CLUSTER, key("c"), {"metadata": {"labels": {"network": "yes"}}})
    metadata = {"name": "cni", "namespace": NAMESPACE}
    spec = {
        "clusterSelector": {"matchLabels": {"network": "yes"}},
        "resources": [{"kind": "ConfigMap", "name": "cni"}],
        "strategy": "ApplyOnce",
    }
    await p.apply(
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cni.yaml": "kind: [unfinished"}},
            {"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": metadata, "spec": spec},
        ]
    )


@in_cluster
async def rolled_out_to_nowhere(p: Plane) -> None:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "nowhere"}
    await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"machineTemplate": {"spec": {"infrastructureRef": reference}}}})


@in_cluster
async def never_drained(p: Plane) -> None:
    """A Pod that its budget does not let go."""
    (worker,) = await machines(p, control_plane=False)
    client = p.workload("c").client
    labels = {"app": "db"}
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "db", "namespace": NAMESPACE, "labels": labels},
            "spec": {"nodeName": worker, "containers": [{"name": "c", "image": "db:1"}]},
        }
    )
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(_POD, ObjectKey(NAMESPACE, "db"), running, subresource="status")
    await client.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "db", "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        }
    )
    await p.client.delete(MACHINE, key(worker))


_POD = GroupVersionKind("", "v1", "Pod")


@in_cluster
async def too_new(p: Plane) -> None:
    """Workers of a version that their control plane does not know yet."""
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"version": "v1.36.0"}}}})


@in_cluster
async def behind_an_upgrade(p: Plane) -> None:
    """Workers that are wanted while their control plane is on its way to another version, and never gets there."""
    stuck = slow("DevMachineTemplate", "")(samples.control_plane("c", replicas=1))
    template = next(o for o in stuck if o["kind"] == "DevMachineTemplate")
    template["metadata"]["name"] = "c-slow"
    await p.client.create(template)
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "c-slow"}
    upgrade = {"version": "v1.35.0", "machineTemplate": {"spec": {"infrastructureRef": reference}}}
    await p.client.patch(CONTROL_PLANE, key("c"), {"spec": upgrade})
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})


async def first_pause(p: Plane) -> None:
    """A Cluster that was made paused."""
    objects = [
        *samples.cluster("c", has_control_plane_object=True),
        *samples.control_plane("c", replicas=1),
        *samples.workers("c", "md", replicas=1),
    ]
    next(o for o in objects if o["kind"] == "Cluster")["spec"]["paused"] = True
    await p.apply(objects)


FAULTS = [
    Fault("policy denies machines", denied, "MachineDeployment/md|MachineSet/md-*", "no-more-machines"),
    Fault("health check may not repair", beyond_repair, "Machine/md-*", "whoever runs the machine"),
    Fault("pool infrastructure missing", pool(without("DevMachinePool")), "DevMachinePool/pool", "author of"),
    Fault("pool bootstrap missing", pool(without("KubeadmConfig")), "KubeadmConfig/pool", "author of"),
    Fault("pool paused", pool(paused("MachinePool")), "MachinePool/pool", "whoever paused"),
    Fault("pool never boots", pool(slow("DevMachinePool", "")), "DevMachinePool/pool|DevMachine/pool-*", "infrastructure provider", SLOW),
    Fault(
        "pool without its gate",
        pool(lambda objects: objects),
        "MachinePool/pool",
        "whoever runs the management cluster",
        stage=partial(plane, features={**EMBEDDED_FEATURES, "MachinePool": False}),
    ),
    Fault("class paused", topology(paused("ClusterClass")), "ClusterClass/in-memory", "whoever paused", stage=admitting),
    Fault(
        "class template missing",
        topology(without("KubeadmConfigTemplate")),
        "KubeadmConfigTemplate/in-memory-worker",
        "author of",
        stage=admitting,
    ),
    Fault("patch of class fails", topology(bad_patch), "ClusterClass/in-memory|Cluster/c", "in-memory", stage=admitting),
    Fault(
        "topology worker never boots",
        topology(slow("DevMachineTemplate", "worker")),
        "DevMachine/c-md-0-*",
        "provider",
        SLOW,
        stage=admitting,
    ),
    Fault(
        "topology leader never boots", topology(slow("DevMachineTemplate", "plane")), "DevMachine/c-*", "provider", SLOW, stage=admitting
    ),
    Fault("resource set names no secret", network_never, "Secret/calico", "author of"),
    Fault("resource set cannot read its content", network_garbled, "ConfigMap/cni", "author of ConfigMap"),
    Fault("rollout to no template", rolled_out_to_nowhere, "DevMachineTemplate/nowhere", "author of"),
    Fault("drain blocked by a budget", never_drained, "Machine/md-*", "PodDisruptionBudget default/db"),
    Fault("workers newer than their control plane", too_new, "MachineDeployment/md", "owner of MachineDeployment"),
    Fault("workers behind a stuck upgrade", behind_an_upgrade, "KubeadmControlPlane/c|DevMachine/c-*", "nobody", SLOW),
    Fault("made paused", first_pause, "Cluster/c", "whoever paused"),
]
