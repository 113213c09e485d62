"""More trouble, and what only looks like it: other kinds, two faults at once, words of the past. Made from recorded worlds, truth first."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from worlds.recorded import NOW, Json, World, deleting, every, find, first_cause, is_named, load, remove, says, warns

INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
WELL = ""


def name_of(obj: Json) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


def leaders(w: World) -> list[Json]:
    return every(w, "Machine", f"{find(w, 'KubeadmControlPlane')['metadata']['name']}-?????")


def beside(w: World, api: str, kind: str, name: str, **parts: Json) -> Json:
    """An object of the Cluster's own."""
    cluster = find(w, "Cluster")["metadata"]
    labels = {"cluster.x-k8s.io/cluster-name": cluster["name"]}
    made: Json = {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"namespace": cluster["namespace"], "name": name, "labels": labels, "generation": 1},
        **parts,
    }
    w["objects"].append(made)
    return made


def owned(obj: Json, owner: Json) -> None:
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta.get("uid", "u"),
        "controller": True,
    }
    obj["metadata"]["ownerReferences"] = [reference]


# ------------------------------------------------------------------------------------------ what only looks like trouble


def sum_of_machines_is_late(w: World) -> str:
    plane, machine = find(w, "KubeadmControlPlane"), leaders(w)[0]["metadata"]["name"]
    says(plane, "MachinesReady", "False", "NotReady", f"* Machine {machine}: InfrastructureReady: DevMachine is deleted")
    return WELL


def sums_of_components_are_late(w: World) -> str:
    plane, machines = find(w, "KubeadmControlPlane"), leaders(w)
    names = ", ".join(m["metadata"]["name"] for m in machines)
    says(
        plane,
        "ControlPlaneComponentsHealthy",
        "False",
        "NotHealthy",
        f"* Machines {names}:\n  * Control plane components: Pod does not exist",
    )
    first = machines[0]["metadata"]["name"]
    says(plane, "EtcdClusterHealthy", "False", "NotHealthy", f"* Machine {first}:\n  * EtcdMemberHealthy: Etcd reports alarms: NOSPACE")
    return WELL


def sum_of_a_machine_that_is_gone(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    says(plane, "EtcdClusterHealthy", "False", "NotHealthy", "* Machine gone-abcde:\n  * EtcdMemberHealthy: Machine is deleting")
    return WELL


def sum_of_workers_is_late(w: World) -> str:
    cluster, deployment = find(w, "Cluster"), find(w, "MachineDeployment")["metadata"]["name"]
    text = f"* MachineDeployment {deployment}: 0 available replicas, at least 1 required (spec.strategy.rollout.maxUnavailable is 0)"
    says(cluster, "WorkersAvailable", "False", "NotAvailable", text)
    says(cluster, "Available", "False", "NotAvailable", f"* WorkersAvailable:\n  {text}")
    return WELL


def failed_once_long_ago(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    warns(w, plane, "ReconcileError", "failed to get certificate expiry for Machine x: dial tcp: connection refused")
    event = w["objects"][-1]
    event["firstTimestamp"] = event["lastTimestamp"] = "2026-11-15T10:00:00Z"
    says(plane, "RollingOut", "True", "RollingOut", "Rolling out 1 not up-to-date replicas")
    return WELL


# ------------------------------------------------------------------------------------------------------- control planes


def alarm_of_one_member(w: World) -> str:
    plane, machine = find(w, "KubeadmControlPlane"), leaders(w)[1]
    says(machine, "EtcdMemberHealthy", "False", "NotHealthy", "Etcd reports alarms: NOSPACE")
    says(machine, "Ready", "False", "NotReady", "* EtcdMemberHealthy: Etcd reports alarms: NOSPACE")
    name = machine["metadata"]["name"]
    says(plane, "EtcdClusterHealthy", "False", "NotHealthy", f"* Machine {name}:\n  * EtcdMemberHealthy: Etcd reports alarms: NOSPACE")
    return name_of(machine)


def machines_of_old_say_nothing(w: World) -> str:
    """Machines that report nothing of etcd contradict nobody who does."""
    plane = find(w, "KubeadmControlPlane")
    machine = leaders(w)[0]
    machine["status"]["conditions"] = [c for c in machine["status"]["conditions"] if not c["type"].startswith("Etcd")]
    name = machine["metadata"]["name"]
    says(plane, "EtcdClusterHealthy", "False", "NotHealthy", f"* Machine {name}:\n  * EtcdMemberHealthy: Etcd reports alarms: CORRUPT")
    return name_of(plane)


def member_without_machine(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    says(plane, "EtcdClusterHealthy", "False", "NotHealthy", "* Etcd member old-node does not have a corresponding Machine")
    says(plane, "Available", "False", "NotAvailable", "The list of etcd members does not match the list of Machines and Nodes")
    return name_of(plane)


def remediation_waits_for_a_deletion(w: World) -> str:
    sick, going = leaders(w)[:2]
    deleting(going, "machine.cluster.x-k8s.io")
    going["metadata"].setdefault("annotations", {})["pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"] = "ops"
    says(going, "Deleting", "True", "WaitingForPreDrainHook", "Waiting for pre-drain hooks to succeed (hooks: backup)")
    says(sick, "OwnerRemediated", "False", "RemediationDeferred", "KubeadmControlPlane can't remediate while there are deleting Machines")
    return name_of(going)


def evictions_refused(w: World) -> str:
    machine = leaders(w)[0]
    deleting(machine, "machine.cluster.x-k8s.io")
    text = "Drain not completed yet (started at 2026-11-15T17:00:00Z):\n* Pod kube-system/dns: failed to evict Pod, blocked by PodDisruptionBudget"
    says(machine, "Deleting", "True", "DrainingNode", text)
    return name_of(machine)


def kubelet_of_a_leader_silent(w: World) -> str:
    plane, machine = find(w, "KubeadmControlPlane"), leaders(w)[2]
    text = "* Node.Ready: Kubelet stopped posting node status."
    says(machine, "NodeHealthy", "Unknown", "NodeHealthUnknown", text)
    says(machine, "Ready", "Unknown", "ReadyUnknown", f"* NodeHealthy:\n  {text}")
    says(plane, "MachinesReady", "Unknown", "ReadyUnknown", f"* Machine {machine['metadata']['name']}:\n  * NodeHealthy: {text}")
    return name_of(machine)


# -------------------------------------------------------------------------------------------------------------- workers


def address_pool_exhausted(w: World) -> str:
    infra = find(w, "DevMachine", "*-md-*")
    machine = find(w, "Machine", infra["metadata"]["name"])
    for obj in (infra, machine):
        obj["status"] = {}
    claim = beside(
        w, "ipam.cluster.x-k8s.io/v1beta2", "IPAddressClaim", f"{infra['metadata']['name']}-0-0", spec={"poolRef": {}}, status={}
    )
    owned(claim, infra)
    says(claim, "Ready", "False", "PoolExhausted", "no free addresses in InClusterIPPool workers")
    says(infra, "Ready", "False", "WaitingForIPAddress", "waiting for IPAddressClaim to be bound")
    says(machine, "InfrastructureReady", "False", "NotReady", "waiting for IPAddressClaim to be bound")
    return name_of(claim)


def disk_pressure(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    says(machine, "NodeHealthy", "False", "NodeNotHealthy", "* Node.DiskPressure: kubelet has disk pressure")
    says(machine, "Ready", "False", "NotReady", "* NodeHealthy: * Node.DiskPressure: kubelet has disk pressure")
    return name_of(machine)


def pool_config_fails(w: World) -> str:
    cluster = find(w, "Cluster")["metadata"]["name"]
    config_ref = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "pool"}
    infra_ref = {"apiGroup": INFRASTRUCTURE, "kind": "DevMachinePool", "name": "pool"}
    template = {"spec": {"bootstrap": {"configRef": config_ref}, "infrastructureRef": infra_ref}}
    pool = beside(
        w,
        "cluster.x-k8s.io/v1beta2",
        "MachinePool",
        "pool",
        spec={"clusterName": cluster, "replicas": 2, "template": template},
        status={"observedGeneration": 1, "replicas": 0, "phase": "Provisioning"},
    )
    config = beside(w, "bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "pool", spec={}, status={"observedGeneration": 1})
    infra = beside(w, f"{INFRASTRUCTURE}/v1beta2", "DevMachinePool", "pool", spec={}, status={"observedGeneration": 1})
    text = "Failed to generate bootstrap data: discovery token has expired"
    says(config, "DataSecretAvailable", "False", "NotAvailable", text)
    says(config, "Ready", "False", "NotReady", f"* DataSecretAvailable: {text}")
    says(infra, "Ready", "False", "WaitingForBootstrapData", "Waiting for bootstrap data")
    says(pool, "BootstrapConfigReady", "False", "NotReady", f"* DataSecretAvailable: {text}")
    return "KubeadmConfig/pool"


def two_faults_the_older_below(w: World) -> str:
    """The template of a MachineDeployment is gone, and one of its Machines is sick: neither comes from the other."""
    machine, deployment = find(w, "Machine", "*-md-*"), find(w, "MachineDeployment")
    says(machine, "NodeHealthy", "False", "NodeNotHealthy", "* Node.MemoryPressure: kubelet has insufficient memory available")
    reference = deployment["spec"]["template"]["spec"]["infrastructureRef"]
    remove(w, find(w, reference["kind"], reference["name"]))
    return f"{name_of(machine)}|{reference['kind']}/{reference['name']}"


def paused_and_broken(w: World) -> str:
    """Nothing will be done to a sick Machine while the Cluster is paused."""
    cluster, machine = find(w, "Cluster"), find(w, "Machine", "*-md-*")
    cluster["spec"]["paused"] = True
    for obj in [cluster, *every(w, "Machine")]:
        says(obj, "Paused", "True", "Paused", "Cluster spec.paused is set to true")
    says(machine, "NodeHealthy", "False", "NodeNotHealthy", "* Node.Ready: container runtime network not ready")
    return name_of(cluster)


def update_in_place_fails(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    says(machine, "Updating", "True", "InPlaceUpdateFailed", "In-place update failed: hook UpdateMachine: disk of the node is full")
    says(machine, "UpToDate", "False", "Updating", "* In-place update in progress")
    return name_of(machine)


# ---------------------------------------------------------------------------------------------- beside and above clusters


def webhook_is_down(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    hook = "validation.devmachine.example.com"
    w["objects"].append(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "provider-validating"},
            "webhooks": [{"name": hook}],
        }
    )
    says(plane, "ScalingUp", "True", "ScalingUp", "Scaling up from 2 to 3 replicas")
    plane["spec"]["replicas"] = 4
    text = f'failed to create DevMachine: Internal error occurred: failed calling webhook "{hook}": failed to call webhook: no endpoints available'
    warns(w, plane, "ReconcileError", text)
    w["objects"][-1]["firstTimestamp"] = NOW
    return "ValidatingWebhookConfiguration/provider-validating"


def resources_refused(w: World) -> str:
    cluster = find(w, "Cluster")["metadata"]
    spec = {"clusterSelector": {"matchLabels": {}}, "resources": [{"kind": "ConfigMap", "name": "cni"}], "strategy": "ApplyOnce"}
    config = beside(w, "v1", "ConfigMap", "cni", data={"cni.yaml": "kind: {"})
    del config["metadata"]["labels"]
    resource_set = beside(w, "addons.cluster.x-k8s.io/v1beta2", "ClusterResourceSet", "cni", spec=spec, status={"observedGeneration": 1})
    del resource_set["metadata"]["labels"]
    binding = {"clusterResourceSetName": "cni", "resources": [{"kind": "ConfigMap", "name": "cni", "applied": False}]}
    beside(
        w,
        "addons.cluster.x-k8s.io/v1beta2",
        "ClusterResourceSetBinding",
        cluster["name"],
        spec={"clusterName": cluster["name"], "bindings": [binding]},
    )
    says(
        resource_set,
        "ResourcesApplied",
        "False",
        "NotApplied",
        "Failed to apply ClusterResourceSet resources: yaml: did not find expected node content",
    )
    return "ConfigMap/cni|ClusterResourceSet/cni"


def extension_not_discovered(w: World) -> str:
    config: Json = {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": "ext", "generation": 1},
        "spec": {"clientConfig": {"url": "https://ext.example.com/"}},
        "status": {},
    }
    says(config, "Discovered", "False", "NotDiscovered", "x509: certificate signed by unknown authority")
    w["objects"].append(config)
    text = (
        "error computing the desired state of the Cluster topology: failed to apply patches: failed to generate patches for patch "
        '"lb": failed to call extension handler "lb.ext": handler "lb.ext" has not been registered'
    )
    says(find(w, "Cluster"), "TopologyReconciled", "False", "ReconcileFailed", text)
    return "ExtensionConfig/ext"


def class_template_deleted(w: World) -> str:
    source = find(w, "ClusterClass")
    reference = source["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]
    template = find(w, reference["kind"], reference["name"])
    remove(w, template)
    text = f'error reading the ClusterClass: failed to get {reference["kind"]} {source["metadata"]["namespace"]}/{reference["name"]}: {reference["kind"].lower()}s.infrastructure.cluster.x-k8s.io "{reference["name"]}" not found'
    says(find(w, "Cluster"), "TopologyReconciled", "False", "ReconcileFailed", text)
    return name_of(template)


def foreign_finalizer_of_infrastructure(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    infra = find(w, "DevMachine", machine["spec"]["infrastructureRef"]["name"])
    deleting(machine, "machine.cluster.x-k8s.io")
    says(machine, "Deleting", "True", "WaitingForInfrastructureDeletion", "Waiting for infrastructure deletion")
    deleting(infra, "backup.example.com/protect")
    return name_of(infra)


TROUBLES: list[tuple[str, Callable[[World], str]]] = [
    *(("healthy-ha", t) for t in (sum_of_machines_is_late, sums_of_components_are_late, sum_of_a_machine_that_is_gone)),
    *(
        ("healthy-ha", t)
        for t in (sum_of_workers_is_late, failed_once_long_ago, alarm_of_one_member, member_without_machine, machines_of_old_say_nothing)
    ),
    *(("healthy-ha", t) for t in (remediation_waits_for_a_deletion, evictions_refused, kubelet_of_a_leader_silent)),
    *(("healthy-ha", t) for t in (address_pool_exhausted, disk_pressure, pool_config_fails, two_faults_the_older_below, paused_and_broken)),
    *(("healthy-ha", t) for t in (update_in_place_fails, webhook_is_down, resources_refused, foreign_finalizer_of_infrastructure)),
    *(("topology", t) for t in (extension_not_discovered, class_template_deleted)),
]


@pytest.mark.parametrize(("base", "trouble"), TROUBLES, ids=[t.__name__ for _, t in TROUBLES])
def test_only_actual_problems_are_named(base: str, trouble: Callable[[World], str]) -> None:
    world = copy.deepcopy(load(base))
    truth = trouble(world)

    cause = first_cause(world)

    assert any(is_named(cause, one or None) for one in truth.split("|")), (cause, truth)
