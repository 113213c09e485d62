"""Situations of workers: drains, health checks, Nodes, writers of replicas."""

from __future__ import annotations

import asyncio

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from offline.live import DEPLOYMENT, MACHINE, NAMESPACE, admitting, key, machines
from offline.situations.making import NODE, budget, drained, fault, named, patched, pod, scale
from offline.situations.truth import BROKEN, WAITING, Make, Situation

_RULE = "cluster.x-k8s.io/v1beta2"


async def budgeted(p: Plane) -> None:
    await pod(p, "web-0", labels={"app": "web"})
    await budget(p, "web")
    await drained(p)


async def elsewhere(p: Plane) -> None:
    await pod(p, "web-0", "shop", labels={"app": "web"})
    await budget(p, "web", "shop")
    await drained(p)


async def rolled_out(p: Plane) -> None:
    """A rollout that may add no Machine waits for the drain of the old one."""
    await pod(p, "web-0", labels={"app": "web"})
    await budget(p, "web")
    change = {"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}}
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {**change, "template": {"spec": {"version": "v1.34.0"}}}})


async def finalized(p: Plane) -> None:
    await pod(p, "db-0", finalizers=["storage.example.com/snapshot"])
    await drained(p)


async def attached(p: Plane) -> None:
    """A volume of the Node is never detached."""
    client, worker = p.workload("c").client, await named(p, "worker")
    claim = {"driver": "csi.example.com", "volumeHandle": "v1"}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pvc-1"}, "spec": {"csi": claim}}
    await client.create(volume)
    spec = {"attacher": "csi.example.com", "nodeName": worker, "source": {"persistentVolumeName": "pvc-1"}}
    await client.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": "va-1"},
            "spec": spec,
            "status": {"attached": True},
        }
    )
    volumes = {"volumesAttached": [{"name": "kubernetes.io/csi/csi.example.com^v1", "devicePath": ""}]}
    await client.patch(NODE, ObjectKey("", worker), {"status": volumes}, subresource="status")
    await drained(p)


async def job_runs(p: Plane) -> None:
    """A drain rule waits for a Pod that never completes."""
    rule = {
        "drain": {"behavior": "WaitCompleted"},
        "machines": [{"selector": {}}],
        "pods": [{"selector": {"matchLabels": {"app": "batch"}}}],
    }
    await p.client.create(
        {"apiVersion": _RULE, "kind": "MachineDrainRule", "metadata": {"name": "wait-for-batch", "namespace": NAMESPACE}, "spec": rule}
    )
    await pod(p, "batch-7", "jobs", labels={"app": "batch"})
    await drained(p)


def checked(trigger: Json, dead: int, workers: int, *, paused: bool = False) -> Make:
    """Some workers of several die, under a health check."""

    async def make(p: Plane) -> None:
        await scale(p, workers)
        check = samples.machine_health_check("c", "mhc", labels={"pool": "md"})
        check["spec"]["checks"]["unhealthyNodeConditions"] = [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 5}]
        check["spec"]["remediation"] = {"triggerIf": trigger}
        if paused:
            check["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
        await p.apply([check])
        await asyncio.sleep(60)
        for name in (await machines(p, control_plane=False))[:dead]:
            await fault(p, name, "kubelet-stops")

    return make


async def node_says(p: Plane, *conditions: tuple[str, str, str, str]) -> None:
    """The worker's Node reports something; its kubelet no longer does."""
    worker = await named(p, "worker")
    client = p.workload("c").client
    await fault(p, worker, "kubelet-stops")
    await asyncio.sleep(2)
    now = f"{p.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    told = [
        {"type": t, "status": s, "reason": r, "message": m, "lastTransitionTime": now, "lastHeartbeatTime": now}
        for t, s, r, m in conditions
    ]
    await client.patch(NODE, ObjectKey("", worker), {"status": {"conditions": told}}, subresource="status")


async def no_network(p: Plane) -> None:
    text = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
    await node_says(
        p,
        ("Ready", "False", "KubeletNotReady", text),
        *((t, "False", "KubeletHasNo", "") for t in ("MemoryPressure", "DiskPressure", "PIDPressure")),
    )


async def gated(p: Plane) -> None:
    """A readiness gate that nobody ever sets."""
    await p.client.patch(
        DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"readinessGates": [{"conditionType": "SecurityScanned"}]}}}}
    )


async def fought_over(p: Plane) -> None:
    """An autoscaler and a topology that gives replicas write the same field."""
    await p.apply([*samples.cluster_class(), samples.topology("c", workers={"md-0": 2})])
    await p.until_available("c", workers=2, within=600)
    deployment = next(iter(await p.client.list(DEPLOYMENT, namespace=NAMESPACE)))
    bounds: Json = {f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{k}-size": v for k, v in (("min", "1"), ("max", "5"))}
    await p.annotate(DEPLOYMENT, deployment.key.name, bounds)
    for _ in range(15):
        await p.client.patch(DEPLOYMENT, deployment.key, {"spec": {"replicas": 4}}, field_manager="cluster-autoscaler")
        await asyncio.sleep(20)


async def hook_left(p: Plane) -> None:
    hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/cmdb"
    await p.annotate(MACHINE, await named(p, "worker"), {hook: "cmdb-sync"})
    await drained(p)


async def dead_and_held(p: Plane) -> None:
    """One worker is dead, and the drain of another is blocked."""
    await scale(p, 2)
    await asyncio.sleep(60)
    await budgeted(p)
    await fault(p, (await machines(p, control_plane=False))[1], "kubelet-stops")


SITUATIONS = [
    Situation(name="drain blocked by a budget", make=budgeted, object="Machine/md-*", what="default/web-0", who="PodDisruptionBudget default/web-pdb",
              next="default/web-0", never="controller logs", states=WAITING),
    Situation(name="drain blocked by a budget of another namespace", make=elsewhere, object="Machine/md-*", what="shop/web-0",
              who="PodDisruptionBudget shop/web-pdb", never="controller logs", states=WAITING),
    Situation(name="rollout blocked by a budget", make=rolled_out, object="Machine/md-*", what="default/web-0", who="PodDisruptionBudget default/web-pdb",
              never="controller logs", states=WAITING),
    Situation(name="drain blocked by a finalizer of a Pod", make=finalized, object="Machine/md-*", what="default/db-0",
              who="storage.example.com/snapshot", never="controller logs|disruption", states=WAITING),
    Situation(name="volume never detached", make=attached, object="Machine/md-*", what="pvc-1", who="csi.example.com|pvc-1", never="its log", states=WAITING),
    Situation(name="drain waits for a job", make=job_runs, object="Machine/md-*", what="jobs/batch-7", who="jobs/batch-7", next="complete|finish",
              never="controller logs|disruption", states=WAITING),
    Situation(name="health check that may replace nothing more", make=checked({"unhealthyLessThanOrEqualTo": "20%"}, 2, 3), object="Machine/md-*",
              next="delete", never="have it replaced", states=BROKEN),
    Situation(name="health check that is paused", make=checked({"unhealthyLessThanOrEqualTo": "100%"}, 1, 3, paused=True), object="Machine/md-*",
              next="mhc", never="have it replaced", states=BROKEN),
    Situation(name="no network plugin", make=no_network, object="Machine/md-*", what="cni", next="network|CNI", who="workload cluster", never="delete the Machine",
              states=BROKEN),
    Situation(name="readiness gate that nobody sets", make=gated, object="Machine/md-*", what="SecurityScanned", who="SecurityScanned", never="next: wait"),
    Situation(name="two writers of replicas", make=fought_over, object="MachineDeployment/c-md-0-*", field="spec.replicas", who="cluster-autoscaler",
              next="replicas", states=BROKEN, after=5, needs_cluster=False, stage=admitting),
    Situation(name="pre-terminate hook left", make=hook_left, object="Machine/md-*", who="cmdb", states=WAITING),
    Situation(name="one dead, one held", make=dead_and_held, object="Machine/md-*", never="controller logs"),
    Situation(name="deployment paused with a change", make=patched((DEPLOYMENT, "md", {"spec": {"paused": True, "template": {"spec": {"version": "v1.34.0"}}}})),
              object="MachineDeployment/md", field="spec.paused", who="whoever paused", states=WAITING),
    Situation(name="pause misread as off", make=patched((DEPLOYMENT, "md", {"metadata": {"annotations": {"cluster.x-k8s.io/paused": "false"}}, "spec": {"replicas": 2}})),
              object="MachineDeployment/md", field="metadata.annotations*", who="whoever paused", states=WAITING),
    Situation(name="min ready seconds", make=patched((DEPLOYMENT, "md", {"spec": {"template": {"spec": {"minReadySeconds": 3600}}}})),
              object="Machine/md-*", what="MinReadySeconds"),
]  # fmt: skip
