"""Situations that look unusual and are none: nothing may be called broken."""

from __future__ import annotations

import asyncio

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from offline.live import CLUSTER, DEPLOYMENT, MACHINE, NAMESPACE, key, machines
from offline.situations.making import INFRASTRUCTURE, NODE, condition, named, patched, provider_says, scale, with_provider
from offline.situations.truth import DONE, FINE, PROGRESSING, Make, Situation
from offline.situations.workers import no_network


async def on_delete(p: Plane) -> None:
    """Outdated Machines stay on purpose."""
    strategy = {"rollout": {"strategy": {"type": "OnDelete", "rollingUpdate": None}}}
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": strategy})
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"version": "v1.34.0"}}}})


async def just_deleted(p: Plane) -> None:
    """A machine of another provider is deleted, and its provider is at work."""
    await provider_says(
        {"initialization": {"provisioned": True}, "conditions": [condition("Ready", "True", "Ready")]}, {"providerID": "acme://7"}
    )(p)
    (name,) = [m for m in await machines(p, control_plane=False) if m.startswith("acme")]
    found = await p.client.get(GroupVersionKind(INFRASTRUCTURE, "v1beta2", "AcmeMachine"), key(name))
    finalizers = [*found.metadata.finalizers, "acme.io/machine"]
    await p.client.patch(GroupVersionKind(INFRASTRUCTURE, "v1beta2", "AcmeMachine"), key(name), {"metadata": {"finalizers": finalizers}})
    await p.client.delete(MACHINE, key(name))


async def cordoned(p: Plane) -> None:
    await p.workload("c").client.patch(NODE, ObjectKey("", await named(p, "worker")), {"spec": {"unschedulable": True}})


async def neighbour(p: Plane) -> None:
    """Another cluster of the namespace has no infrastructure."""
    other = [*samples.cluster("d", has_control_plane_object=True), *samples.control_plane("d", replicas=1)]
    await p.apply([o for o in other if o["kind"] != "DevCluster"])


async def no_workers(p: Plane) -> None:
    await p.client.delete(DEPLOYMENT, key("md"))


async def replaced(p: Plane) -> None:
    await p.client.delete(MACHINE, key(await named(p, "worker")))


async def upgraded(p: Plane) -> None:
    control_plane = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")
    await p.client.patch(control_plane, key("c"), {"spec": {"version": "v1.35.0"}})


async def slow_growth(p: Plane) -> None:
    """New workers take a minute to boot."""
    template = GroupVersionKind(INFRASTRUCTURE, "v1beta2", "DevMachineTemplate")
    slow = {"backend": {"inMemory": {"vm": {"provisioning": {"startupDuration": "60s"}}}}}
    await p.client.patch(template, key("md"), {"spec": {"template": {"spec": slow}}})
    await scale(p, 3)


async def foreign_node(p: Plane) -> None:
    """A Node that no Machine stands for."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stranger"}, "spec": {"providerID": "other://1"}}
    await p.workload("c").client.create({**node, "status": {"conditions": [{"type": "Ready", "status": "False"}]}})


async def negative_conditions(p: Plane) -> None:
    """A provider reports what is not the case, as it should be."""
    (name,) = await with_provider(p)
    client = p.workload("c").client
    healthy = [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": "acme://3"}}
    await client.create({**node, "status": {"conditions": [{"type": t, "status": s} for t, s in healthy]}})
    told = [
        condition("Ready", "True", "Ready"),
        condition("InstanceCreating", "False", "created"),
        condition("Degraded", "False", "AsExpected"),
        condition("MaintenanceScheduled", "False", "None"),
        condition("HibernationFailed", "False", "None"),
    ]
    gvk = GroupVersionKind(INFRASTRUCTURE, "v1beta2", "AcmeMachine")
    await p.client.patch(gvk, key(name), {"spec": {"providerID": "acme://3"}})
    status = {"initialization": {"provisioned": True}, "conditions": told}
    await p.client.patch(gvk, key(name), {"status": status}, subresource="status")


async def check_of_nothing(p: Plane) -> None:
    await p.apply([samples.machine_health_check("c", "mhc", labels={"pool": "nowhere"})])


async def label_of_no_set(p: Plane) -> None:
    """A ClusterResourceSet for other clusters."""
    spec: Json = {
        "clusterSelector": {"matchLabels": {"cni": "other"}},
        "resources": [{"kind": "Secret", "name": "never"}],
        "strategy": "ApplyOnce",
    }
    metadata = {"name": "others", "namespace": NAMESPACE}
    await p.client.create(
        {"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": metadata, "spec": spec}
    )


async def old_template_gone(p: Plane) -> None:
    """A template was replaced and deleted after the rollout."""
    template = GroupVersionKind(INFRASTRUCTURE, "v1beta2", "DevMachineTemplate")
    old = await p.client.get(template, key("md"))
    await p.client.create(
        {
            "apiVersion": f"{INFRASTRUCTURE}/v1beta2",
            "kind": "DevMachineTemplate",
            "metadata": {"name": "md-2", "namespace": NAMESPACE},
            "spec": dict(old.json)["spec"],
        }
    )
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"infrastructureRef": {"name": "md-2"}}}}})
    await asyncio.sleep(120)
    await p.client.delete(template, key("md"))


async def extra_annotations(p: Plane) -> None:
    await p.client.patch(CLUSTER, key("c"), {"metadata": {"annotations": {"example.com/owner": "team-a", "example.com/paused": "yes"}}})


async def autoscaled(p: Plane) -> None:
    """An autoscaler alone writes the replicas."""
    for replicas in (2, 3):
        await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": replicas}}, field_manager="cluster-autoscaler")
        await asyncio.sleep(60)


def fine(name: str, make: Make, **more: object) -> Situation:
    return Situation(name=name, make=make, **{"states": FINE, **more})  # type: ignore[arg-type]


SITUATIONS = [
    fine("OnDelete with outdated Machines", on_delete, states=DONE),
    fine("foreign machine just deleted", just_deleted, states=PROGRESSING, after=15),
    fine("cordoned Node", cordoned),
    fine("neighbour in trouble", neighbour),
    fine("no workers at all", no_workers),
    fine("worker replaced", replaced),
    fine("control plane upgraded", upgraded),
    fine("scaled to none", patched((DEPLOYMENT, "md", {"spec": {"replicas": 0}}))),
    fine("slow growth under way", slow_growth, states=PROGRESSING, after=30),
    fine("network plugin that starts", no_network, states=PROGRESSING, after=45),
    fine("Node of nobody", foreign_node),
    fine("negative conditions of a provider", negative_conditions),
    fine("health check of nothing", check_of_nothing),
    fine("resource set for others", label_of_no_set),
    fine("old template deleted after its rollout", old_template_gone),
    fine("annotations of others", extra_annotations),
    fine("autoscaler alone", autoscaled),
    fine("worker just replaced", replaced, states=DONE, after=3),
]
