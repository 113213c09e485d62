"""Incidents of single Machines: draining, hooks, machines that never become Nodes, and health checks."""

from __future__ import annotations

from typing import Final

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import Pod, Secret
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import PRE_TERMINATE_HOOK_PREFIX
from clusterwright.inmemory import faults
from clusterwright.simulation import samples
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import WORKERS
from clusterwright.simulation.plane import NAMESPACE

_HOOK: Final = f"{PRE_TERMINATE_HOOK_PREFIX}/foreign-control-plane"


def _pod(node: str, **metadata: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app", "namespace": "default", "labels": {"app": "shop"}, **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "app", "image": "app"}]},
    }


async def _drained_again(scene: Scene) -> None:
    victim = (await scene.machines(leaders=False))[0].metadata.name
    await scene.p.annotate(Machine, victim, {_HOOK: "remove the member"})
    await scene.client.delete(Machine, ObjectKey(NAMESPACE, victim))
    await scene.until_says(Machine, victim, "Deleting", "WaitingForPreTerminateHook")
    await scene.p.workload("c").client.create(_pod(victim, finalizers=["example.com/stays"]))
    scene.did(f"{victim} is drained and waits for the hook of its owner; then a Pod comes to its Node that cannot go any more.")
    await scene.wait(scene.random.uniform(20, 60))
    await scene.p.annotate(Machine, victim, {_HOOK: None})
    scene.did("The owner has removed the member and takes its hook away.")
    await scene.p.until_gone(Machine, victim, within=600)


async def _endless_drain(scene: Scene) -> None:
    victim = (await scene.machines(leaders=False))[0].metadata.name
    workload = scene.p.workload("c").client
    await workload.create(_pod(victim))
    ready = [{"type": "Ready", "status": "True"}]
    await workload.patch(Pod, ObjectKey("default", "app"), {"status": {"phase": "Running", "conditions": ready}}, subresource="status")
    spec: Json = {"minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}}
    budget: Json = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": spec,
    }
    await workload.create(budget)
    template: Json = {"template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 600}}}}
    await scene.patch(MachineDeployment, "w", {"spec": template})
    await scene.wait(10)
    await scene.p.annotate(DevMachine, victim, {faults.FAULT: faults.KUBELET_STOPS})
    await scene.wait(30)
    await scene.client.delete(Machine, ObjectKey(NAMESPACE, victim))
    scene.did(f"The kubelet of {victim} stops; the Machine is deleted, and a budget protects the Pod on its Node.")
    await scene.until_says(Machine, victim, "Deleting", "disruption budget")
    scene.did("The condition names the budget.")
    await scene.p.until_gone(Machine, victim, within=1200)


async def _silent_failure(scene: Scene) -> None:
    check = samples.machine_health_check("c", "w", labels={"pool": "w"})
    await scene.client.create(check)
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 3}})
    name = await scene.next_host(known)
    await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.BOOTSTRAP_FAILS})
    scene.did(f"kubeadm fails on {name}, although its cloud-init says that it succeeded.")
    await scene.until_machines(3, leaders=False, without=[name], within=1200)
    scene.must(scene.deleted("machines") == [name], f"{', '.join(scene.deleted('machines'))} went")


async def _held_back(scene: Scene) -> None:
    await scene.client.create(samples.machine_health_check("c", "w", labels={"pool": "w"}))
    names = [m.metadata.name for m in await scene.machines(leaders=False)]
    for name in names:
        await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.NODE_DIES})
    scene.did("All workers die at once.")
    for _ in range(15):
        await scene.wait(60)
        scene.must(not scene.deleted("machines"), f"{', '.join(scene.deleted('machines'))} was deleted although too many are down")
    for name in names:
        await scene.until_says(Machine, name, "HealthCheckSucceeded", "UnhealthyNode", within=10)
    await scene.until_says(MachineHealthCheck, "w", "RemediationAllowed", "TooManyUnhealthy", within=10)


async def _stolen_secret(scene: Scene) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": "0b5a1f4e-0000-4000-8000-000000000001", "controller": True}
    holder: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody", "namespace": NAMESPACE}}
    owner["uid"] = (await scene.client.create(holder)).metadata.uid
    await scene.client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "prize", "namespace": NAMESPACE, "ownerReferences": [owner]},
            "type": "cluster.x-k8s.io/secret",
            "data": {"value": "cHJpemU="},
        }
    )
    await scene.p.apply(samples.machine("c", "prize", is_control_plane=False, seconds=1))
    scene.did("A tenant makes a Machine and a KubeadmConfig with the name of somebody else's Secret.")
    await scene.wait(120)
    secret = await scene.client.find(Secret, ObjectKey(NAMESPACE, "prize"))
    scene.must(secret is not None and secret.data == {"value": b"prize"}, "the Secret was replaced")
    assert secret is not None
    scene.must([r.name for r in secret.metadata.owner_references] == ["somebody"], "the Secret has another owner")
    events = await scene.client.list(GroupVersionKind("", "v1", "Event"), namespace=NAMESPACE)
    scene.must(any("already controlled by ConfigMap somebody" in str(e.at("message")) for e in events), "no Event names the other owner")
    await scene.client.delete(Machine, ObjectKey(NAMESPACE, "prize"))
    await scene.p.until_gone(Machine, "prize", within=600)
    scene.must(await scene.client.find(Secret, ObjectKey(NAMESPACE, "prize")) is not None, "the Secret went with the Machine")


async def _old_workers_join(scene: Scene) -> None:
    objects = samples.workers("c", "old", replicas=1, seconds=1, version="v1.33.5")
    template = objects[0]
    template["metadata"] = {
        **template["metadata"],
        "annotations": {"machineset.cluster.x-k8s.io/skip-preflight-checks": "KubeadmVersionSkew,KubernetesVersionSkew"},
    }
    content = "kubeadm {{ .controlPlane.version }}\n"
    template["spec"]["template"]["spec"]["files"] = [{"path": "/run/kubeadm-version", "content": content, "contentFormat": "Template"}]
    await scene.p.apply(objects)
    scene.did("Workers of v1.33.5 are to join a control plane of v1.34.0; a file of theirs asks for its kubeadm.")

    async def joined() -> bool:
        found = [m for m in await scene.machines(leaders=False) if m.metadata.labels.get("pool") == "old"]
        return len(found) == 1 and found[0].status.node_ref is not None

    await scene.until(joined, "the old worker has joined")
    name = next(m for m in await scene.machines(leaders=False) if m.metadata.labels.get("pool") == "old").metadata.name
    data = (await scene.client.get(Secret, ObjectKey(NAMESPACE, name))).data["value"].decode()
    scene.must("kubeadm v1.34.0" in data, "the bootstrap data do not name the version of the control plane")


async def _all_at_once(scene: Scene) -> None:
    await scene.p.annotate(DevCluster, "c", {faults.FAULT: faults.UNREACHABLE})
    await scene.wait(scene.random.uniform(30, 90))
    await scene.client.delete(Cluster, ObjectKey(NAMESPACE, "c"))
    for machine in await scene.client.list(Machine):
        await scene.client.delete(Machine, machine.key)
    scene.did("The Cluster and all of its Machines are deleted at once, after its endpoint has ceased to answer.")
    await scene.p.until_gone(Cluster, "c", within=900)
    left = await scene.client.list(DevMachine)
    scene.must(not left, f"{', '.join(m.metadata.name for m in left)} is left behind")


MACHINES: Final = (
    Incident(
        number=11591,
        also=("#11590", "rancher/cluster-api-provider-rke2#431"),
        title="A Machine is drained again after its control plane member is gone",
        there="The owner of a control plane had removed the member and with it the API server of the machine; the Machine was drained "
        "once more, which could not end.",
        here="Once the wait for pre-terminate hooks has begun, the Node is neither drained nor waited for again.",
        adversary="a Pod that can never go comes to the Node while the hook is waited for",
        stage=WORKERS,
        play=_drained_again,
    ),
    Incident(
        number=13508,
        title="The drain of an unreachable Node with a disruption budget",
        there="The Node was unreachable and a budget protected its Pods; the drain went on without end, and nobody saw why.",
        here="The Machine names the budget, and `nodeDrainTimeoutSeconds` ends the drain.",
        adversary="the kubelet stops, and a PodDisruptionBudget allows no eviction",
        stage=WORKERS,
        play=_endless_drain,
    ),
    Incident(
        number=13768,
        title="cloud-init says success although kubeadm failed",
        there="A machine whose kubeadm had failed reported a successful bootstrap, and stayed a Machine without a Node.",
        here="The startup timeout of a MachineHealthCheck finds it, and the Machine is replaced.",
        adversary="kubeadm fails on one machine, which does not report it",
        stage=WORKERS,
        play=_silent_failure,
    ),
    Incident(
        number=5451,
        title="Too many Machines are unhealthy, and nobody says so",
        there="A MachineHealthCheck held remediation back because too many Machines were down; neither it nor the Machines showed that.",
        here="Each Machine and the MachineHealthCheck say it in their conditions, and no Machine is deleted.",
        adversary="all workers die at once",
        stage=WORKERS,
        play=_held_back,
    ),
    Incident(
        number=13937,
        title="Bootstrap data steal a Secret that somebody else controls",
        there="The bootstrap controller took over any Secret with the name of a KubeadmConfig, put its data there, and made itself the "
        "owner.",
        here="The Secret stays as it is, the KubeadmConfig says why it has no data, and its deletion spares the Secret.",
        adversary="a tenant who chooses the name of a KubeadmConfig",
        stage=WORKERS,
        play=_stolen_secret,
    ),
    Incident(
        number=13315,
        also=("#13433", "#13938"),
        title="Old workers cannot join, scale or be repaired during an upgrade",
        there="A machine joins only a control plane of its own kubeadm's minor version, so that workers behind it got no new machines.",
        here="A template of files knows the version of the control plane, and the BootstrapConfigTemplate can switch the checks off.",
        adversary="workers one minor version behind their control plane",
        stage=WORKERS,
        play=_old_workers_join,
    ),
    Incident(
        number=1351,
        title="A Cluster cannot be deleted because its control plane goes first",
        there="The control plane Machines were deleted before the workers; the Nodes of these could no longer be asked for, and every pass "
        "ended in an error.",
        here="While a Cluster is being deleted, no Node is drained or deleted, and nothing is left behind.",
        adversary="the endpoint does not answer, and a user deletes the Cluster and all Machines at once",
        stage=WORKERS,
        play=_all_at_once,
    ),
)
