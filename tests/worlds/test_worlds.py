"""Whole recorded installations: `explain` names the true cause, and taking them over changes nothing that no ruling changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import clusterwright
from clusterwright.cli.main import main
from clusterwright.offline.bundle import assemble
from clusterwright.offline.complaints import references
from clusterwright.offline.explain import explain
from worlds.recorded import HERE, NAMES, NOW, Json, World, deleting, every, find, first_cause, is_named, load, remove, says, warns

# --------------------------------------------------------------------------------------- recorded worlds


def test_a_lost_connection_names_both_ends_of_it() -> None:
    world = load("healthy-ha")
    unreachable(world)
    endpoint = find(world, "Cluster")["spec"]["controlPlaneEndpoint"]

    cause = explain(assemble(world["objects"]), world["subject"]).causes[0]

    assert cause["object"] == world["subject"]
    assert "cannot be reached" in cause["what"]
    assert f"{endpoint['host']}:{endpoint['port']}" in cause["who"]


@pytest.mark.parametrize("name", NAMES)
def test_the_true_cause_is_named_first(name: str) -> None:
    world = load(name)

    cause = first_cause(world)

    assert is_named(cause, world["truth"]["object"]), (cause, world["truth"])


@pytest.mark.parametrize("name", NAMES)
def test_the_command_answers_in_the_documented_form(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    world = load(name)

    status = main(["explain", world["subject"], "--from", str(HERE / f"{name}.json.gz"), "-o", "json"])

    answer = json.loads(capsys.readouterr().out)
    assert status == 0
    assert answer["subject"] == world["subject"]
    assert isinstance(answer["status"], dict)
    assert bool(answer["causes"]) == bool(answer["chain"]) == (world["truth"]["object"] is not None)
    for cause in answer["causes"]:
        assert set(cause) == {"object", "cause", "what", "since", "who", "next"}
        assert cause["what"]
        assert cause["who"]
        assert cause["next"]
    if answer["causes"]:
        assert answer["chain"][-1].startswith(answer["causes"][0]["object"])


CONDITIONS = (
    *("Available", "ControlPlaneAvailable", "ControlPlaneInitialized", "ControlPlaneMachinesReady", "ControlPlaneMachinesUpToDate"),
    *("InfrastructureReady", "Remediating", "RollingOut", "ScalingDown", "ScalingUp"),
    *("WorkerMachinesReady", "WorkerMachinesUpToDate", "WorkersAvailable"),
)


def conditions(ruling: str, *types: str) -> dict[str, str]:
    return dict.fromkeys((f"status.conditions.{type}" for type in types), ruling)


# What our controller writes into a settled installation of the other one, and the ruling that makes the difference.
_VERSIONS = "v1.14, A1: versions of Machines are counted"
RULINGS: dict[str, dict[str, str]] = {
    **{
        name: {"status.phase": "Phase `Provisioned`"}
        for name in (
            "api-server-never",
            "certificate-authority-garbled",
            "control-plane-paused",
            "control-plane-template-missing",
            "cp-vm-never",
            "external-etcd-secret-missing",
        )
    },
    **{
        name: conditions("Topology set, refs missing, not deleting", *CONDITIONS)
        for name in ("topology-template-missing", "topology-variable-invalid")
    },
    "control-plane-none": {
        **conditions("Stand-alone control plane", "Available", "ControlPlaneAvailable"),
        "status.phase": "Phase `Provisioned`",
    },
    "deleting-class-missing": {
        **conditions(
            "Deleting, topology set, ClusterClass gone", *sorted({*CONDITIONS, "Deleting", "Paused"} - {"ControlPlaneInitialized"})
        ),
        **dict.fromkeys(
            (
                *("status.observedGeneration", "status.phase"),
                *(f"status.deprecated.v1beta1.conditions.{type}" for type in ("InfrastructureReady", "Ready")),
            ),
            "Deleting, topology set, ClusterClass gone",
        ),
    },
    "infrastructure-none": conditions("No `infrastructureRef`", "Available", "InfrastructureReady"),
    "infrastructure-missing": {"status.conditions.InfrastructureReady": "Reason when a referenced object is missing"},
    "standalone": {
        "status.conditions.ControlPlaneAvailable": "Stand-alone control plane",
        "status.conditions.Available": "Stand-alone control plane",
        "status.conditions.WorkerMachinesReady": "Which Machines wake a Cluster",
        "status.workers.readyReplicas": "Which Machines wake a Cluster",
        "status.workers.availableReplicas": "Which Machines wake a Cluster",
        "status.controlPlane.versions": _VERSIONS,
        "status.workers.versions": _VERSIONS,
    },
}


# v1.13.5 did not find the control plane's own deprecated condition, and wrote a fallback instead.
_MIRRORED = "v1.14 (util/conditions): deprecated conditions of providers are mirrored first"
for _name, _types in {
    **dict.fromkeys(
        (
            *("api-server-never", "certificate-authority-garbled", "control-plane-template-missing", "control-plane-upgrade-stuck"),
            *("cp-vm-never", "etcd-crashing", "etcd-never", "external-etcd-secret-missing"),
            *("infrastructure-missing", "infrastructure-none", "infrastructure-paused"),
        ),
        ("ControlPlaneReady", "Ready"),
    ),
    "deleting-stuck-worker": ("ControlPlaneReady",),
}.items():
    RULINGS.setdefault(_name, {}).update({f"status.deprecated.v1beta1.conditions.{type}": _MIRRORED for type in _types})


DELETED = {"deleting-class-missing": ["MachineDeployment"]}  # the ruling lets this deletion go on


@pytest.mark.parametrize("name", NAMES)
def test_taking_over_a_settled_cluster_makes_only_documented_changes(name: str) -> None:
    world = load(name)
    before = next(o for o in world["objects"] if o["kind"] == "Cluster")

    answer = clusterwright.decide(world["objects"], world["subject"])

    assert answer["error"] is None
    assert [(a["verb"], a["kind"]) for a in answer["actions"]] == [("delete", kind) for kind in DELETED.get(name, [])]
    assert differing(before, answer["object"]) == set(RULINGS.get(name, {}))


def differing(before: Any, after: Any, path: str = "") -> set[str]:
    if path == "metadata.resourceVersion":
        return set()
    if path.endswith("conditions"):
        was, now = ({c["type"]: c for c in side or []} for side in (before, after))
        return {f"{path}.{t}" for t in was.keys() | now.keys() if was.get(t) != now.get(t)}
    if isinstance(before, dict) and isinstance(after, dict):
        found: set[str] = set()
        for key in before.keys() | after.keys():
            found |= differing(before.get(key), after.get(key), f"{path}.{key}" if path else key)
        return found
    return set() if before == after else {path}


# --------------------------------------------------------------- other kinds of trouble, made from recorded worlds


def infrastructure_gone(w: World) -> str:
    gone = find(w, "DevCluster")
    remove(w, gone)
    return f"DevCluster/{gone['metadata']['name']}"


def control_plane_gone(w: World) -> str:
    gone = find(w, "KubeadmControlPlane")
    remove(w, gone)
    return f"KubeadmControlPlane/{gone['metadata']['name']}"


def control_plane_template_gone(w: World) -> str:
    gone = find(w, "DevMachineTemplate", "*-cp")
    remove(w, gone)
    plane = find(w, "KubeadmControlPlane")
    says(
        plane, "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 5 replicas is blocked because:\n* DevMachineTemplate does not exist"
    )
    return f"DevMachineTemplate/{gone['metadata']['name']}"


def bootstrap_template_gone(w: World) -> str:
    gone = find(w, "KubeadmConfigTemplate")
    remove(w, gone)
    says(
        find(w, "MachineDeployment"),
        "ScalingUp",
        "True",
        "ScalingUp",
        "Scaling up from 3 to 4 replicas is blocked because KubeadmConfigTemplate does not exist",
    )
    return f"KubeadmConfigTemplate/{gone['metadata']['name']}"


def worker_node_never(w: World) -> str:
    infra = find(w, "DevMachine", "*-md-*")
    says(infra, "NodeProvisioned", "False", "WaitingForStartupTimeout")
    says(infra, "Ready", "False", "NotReady", "* NodeProvisioned: WaitingForStartupTimeout")
    machine = find(w, "Machine", infra["metadata"]["name"])
    says(machine, "InfrastructureReady", "False", "NotReady", "* NodeProvisioned: WaitingForStartupTimeout")
    text = f"Waiting for a Node with spec.providerID in-memory://{machine['metadata']['name']} to exist"
    says(machine, "NodeHealthy", "Unknown", "InspectionFailed", text)
    says(machine, "NodeReady", "Unknown", "InspectionFailed", text)
    says(machine, "Ready", "False", "NotReady", "* InfrastructureReady:\n  * NodeProvisioned: WaitingForStartupTimeout")
    says(
        find(w, "MachineDeployment"),
        "Available",
        "False",
        "NotAvailable",
        "2 available replicas, at least 3 required (spec.strategy.rollout.maxUnavailable is 0, spec.replicas is 3)",
    )
    return f"DevMachine/{infra['metadata']['name']}"


def machine_paused(w: World) -> str:
    name = worker_node_never(w).partition("/")[2]
    infra = find(w, "DevMachine", name)
    infra["metadata"].setdefault("annotations", {})["cluster.x-k8s.io/paused"] = ""
    infra["status"] = {}
    says(infra, "Paused", "True", "Paused", "DevMachine has the cluster.x-k8s.io/paused annotation")
    machine = find(w, "Machine", name)
    says(machine, "InfrastructureReady", "False", "NotReady", "DevMachine status.initialization.provisioned is false")
    return f"DevMachine/{name}"


def infrastructure_silent(w: World) -> str:
    name = worker_node_never(w).partition("/")[2]
    infra = find(w, "DevMachine", name)
    del infra["status"]
    machine = find(w, "Machine", name)
    says(machine, "InfrastructureReady", "False", "NotReady", "DevMachine status.initialization.provisioned is false")
    return f"DevMachine/{name}"


def draining(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    deleting(machine)
    text = "Drain not completed yet:\n* Pod default/p: cannot evict pod as it would violate the pod's disruption budget. The disruption budget p needs 1 healthy pods and has 1 currently"
    says(machine, "Deleting", "True", "DrainingNode", text)
    says(machine, "Ready", "False", "NotReady", "* Deleting: Machine deletion in progress, stage: DrainingNode")
    says(find(w, "MachineSet"), "ScalingDown", "True", "ScalingDown", "Scaling down from 3 to 2 replicas")
    return f"Machine/{machine['metadata']['name']}"


def hook(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    deleting(machine)
    machine["metadata"].setdefault("annotations", {})["pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"] = "me"
    says(machine, "Deleting", "True", "WaitingForPreDrainHook", "Waiting for pre-drain hooks to succeed (hooks: backup)")
    return f"Machine/{machine['metadata']['name']}"


def cluster_deletion_waits_for_infrastructure(w: World) -> str:
    cluster, infra = find(w, "Cluster"), find(w, "DevCluster")
    for kind in ("Machine", "MachineSet", "MachineDeployment", "KubeadmControlPlane", "KubeadmConfig", "DevMachine"):
        remove(w, *every(w, kind))
    deleting(cluster)
    deleting(infra, "example.com/keep")
    return f"DevCluster/{infra['metadata']['name']}"


def control_plane_deletion_stuck(w: World) -> str:
    cluster, plane = find(w, "Cluster"), find(w, "KubeadmControlPlane")
    for kind in ("MachineSet", "MachineDeployment", "Machine", "DevMachine", "KubeadmConfig"):
        remove(w, *every(w, kind))
    deleting(cluster)
    deleting(plane, "example.com/hold")
    return f"KubeadmControlPlane/{plane['metadata']['name']}"


def orphan(w: World) -> str:
    cluster, left = find(w, "Cluster"), find(w, "MachineSet")
    for kind in ("MachineDeployment", "Machine", "DevMachine", "KubeadmConfig"):
        remove(w, *every(w, kind))
    deleting(cluster)
    return f"MachineSet/{left['metadata']['name']}"


def unreachable(w: World) -> str:
    cluster = find(w, "Cluster")
    says(
        cluster,
        "RemoteConnectionProbe",
        "False",
        "ProbeFailed",
        "Remote connection probe failed, probe last succeeded at 2026-11-15T17:20:00Z",
    )
    for machine in every(w, "Machine"):
        for type in ("NodeHealthy", "NodeReady"):
            says(machine, type, "Unknown", "ConnectionDown", "Last successful probe at 2026-11-15T17:20:00Z")
        says(machine, "Ready", "Unknown", "ReadyUnknown", "* NodeHealthy: Last successful probe at 2026-11-15T17:20:00Z")
        says(machine, "Available", "False", "NotReady")
    plane = find(w, "KubeadmControlPlane")
    for type in ("EtcdClusterHealthy", "ControlPlaneComponentsHealthy"):
        says(plane, type, "Unknown", "ConnectionDown", "Last successful probe at 2026-11-15T17:20:00Z")
    return f"Cluster/{cluster['metadata']['name']}"


def kubeconfig_gone(w: World) -> str:
    unreachable(w)
    secret = find(w, "Secret", "*-kubeconfig")
    remove(w, secret)
    return f"Secret/{secret['metadata']['name']}"


def kubeconfig_replaced(w: World) -> str:
    unreachable(w)
    secret = find(w, "Secret", "*-kubeconfig")
    secret["metadata"]["resourceVersion"] = "999999"
    return f"Secret/{secret['metadata']['name']}"


def ca_without_certificate(w: World) -> str:
    secret, plane = find(w, "Secret", "*-ca"), find(w, "KubeadmControlPlane")
    secret["data"] = {"tls.key": ""}
    says(plane, "CertificatesAvailable", "Unknown", "InternalError", "Please check controller logs for errors")
    says(plane, "Available", "False", "NotAvailable", "* Control plane certificates are not available")
    return f"Secret/{secret['metadata']['name']}"


def ca_gone(w: World) -> str:
    secret, plane = find(w, "Secret", "*-ca"), find(w, "KubeadmControlPlane")
    remove(w, secret)
    says(
        plane,
        "CertificatesAvailable",
        "False",
        "NotAvailable",
        "Cluster certificate for ca is not available, please check cluster certificates",
    )
    return f"Secret/{secret['metadata']['name']}"


def patch_of_class_failing(w: World) -> str:
    class_ = find(w, "ClusterClass")
    says(
        find(w, "Cluster"),
        "TopologyReconciled",
        "False",
        "ReconcileFailed",
        'error computing the desired state of the Cluster topology: failed to apply patches: failed to generate patches for patch "size"',
    )
    return f"ClusterClass/{class_['metadata']['name']}"


def bootstrap_failing(w: World) -> str:
    config = find(w, "KubeadmConfig", "*-md-*")
    says(config, "DataSecretAvailable", "False", "NotAvailable", "Failed to generate bootstrap data: invalid file encoding")
    says(config, "Ready", "False", "NotReady", "* DataSecretAvailable: Failed to generate bootstrap data: invalid file encoding")
    name = config["metadata"]["name"]
    infra, machine = find(w, "DevMachine", name), find(w, "Machine", name)
    infra["status"] = {}
    says(infra, "VMProvisioned", "False", "WaitingForBootstrapData")
    says(infra, "NodeProvisioned", "False", "WaitingForVMProvisioned")
    says(infra, "Ready", "False", "NotReady", "* VMProvisioned: WaitingForBootstrapData\n* NodeProvisioned: WaitingForVMProvisioned")
    says(
        machine,
        "BootstrapConfigReady",
        "False",
        "NotReady",
        "* DataSecretAvailable: Failed to generate bootstrap data: invalid file encoding",
    )
    says(machine, "InfrastructureReady", "False", "NotReady", "* VMProvisioned: WaitingForBootstrapData")
    says(machine, "NodeHealthy", "Unknown", "InspectionFailed", "Waiting for DevMachine to report spec.providerID")
    return f"KubeadmConfig/{name}"


def quota(w: World) -> str:
    sets = find(w, "MachineSet")
    namespace = sets["metadata"]["namespace"]
    w["objects"].append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": namespace}, "spec": {}})
    says(sets, "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 4 replicas")
    says(find(w, "MachineDeployment"), "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 4 replicas")
    warns(
        w,
        sets,
        "FailedCreate",
        'Failed to create Machine: machines.cluster.x-k8s.io "x" is forbidden: exceeded quota: few, requested: count/machines=1, used: 3, limited: 3',
    )
    return "ResourceQuota/few"


def denied(w: World) -> str:
    deployment, sets = find(w, "MachineDeployment"), find(w, "MachineSet")
    says(sets, "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 4 replicas")
    says(deployment, "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 4 replicas")
    warns(w, sets, "FailedCreate", 'Failed to create Machine: admission webhook "policy.example.com" denied the request: no more')
    return f"MachineDeployment/{deployment['metadata']['name']}"


def unhealthy_node(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    says(machine, "NodeHealthy", "False", "NodeNotHealthy", "* Node.Ready: kubelet stopped posting node status")
    says(
        machine,
        "HealthCheckSucceeded",
        "False",
        "UnhealthyNode",
        "Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s",
    )
    says(machine, "OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation")
    check = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {**{k: machine["metadata"][k] for k in ("namespace", "labels")}, "name": "mhc"},
        "spec": {},
    }
    text = "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 3, unhealthy: 1, maxUnhealthy: 0)"
    says(check, "RemediationAllowed", "False", "TooManyUnhealthy", text)
    w["objects"].append(check)
    return f"Machine/{machine['metadata']['name']}"


def version_skew(w: World) -> str:
    deployment, sets = find(w, "MachineDeployment"), find(w, "MachineSet")
    text = 'Scaling up from 2 to 3 replicas is blocked because:\n* MachineSet version (1.37.0) and ControlPlane version (1.35.0) do not conform to kubernetes version skew policy ("KubernetesVersionSkew" preflight check failed)'
    says(sets, "ScalingUp", "True", "ScalingUp", text)
    says(deployment, "ScalingUp", "True", "ScalingUp", text)
    return f"MachineDeployment/{deployment['metadata']['name']}"


def infrastructure_never(w: World) -> str:
    """From a world whose control plane never came up: take everything back to before the infrastructure."""
    cluster, infra, plane = find(w, "Cluster"), find(w, "DevCluster"), find(w, "KubeadmControlPlane")
    for kind in ("Machine", "DevMachine", "KubeadmConfig"):
        remove(w, *every(w, kind))
    cluster["status"]["initialization"] = {}
    infra["status"] = {}
    says(infra, "Ready", "False", "NotReady", "load balancer quota used up")
    for type in ("EtcdClusterHealthy", "ControlPlaneComponentsHealthy"):
        says(plane, type, "Unknown", "InspectionFailed", "Waiting for Cluster status.initialization.infrastructureProvisioned to be true")
    return f"DevCluster/{infra['metadata']['name']}"


def class_gone(w: World) -> str:
    gone = find(w, "ClusterClass")
    remove(w, gone)
    says(
        find(w, "Cluster"),
        "TopologyReconciled",
        "False",
        "ReconcileFailed",
        f'error reading the ClusterClass: ClusterClass.cluster.x-k8s.io "{gone["metadata"]["name"]}" not found',
    )
    return f"ClusterClass/{gone['metadata']['name']}"


def control_plane_paused(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    for kind in ("Machine", "DevMachine", "KubeadmConfig"):
        remove(w, *every(w, kind))
    plane["metadata"].setdefault("annotations", {})["cluster.x-k8s.io/paused"] = "true"
    plane["status"] = {}
    says(plane, "Paused", "True", "Paused", "KubeadmControlPlane has the cluster.x-k8s.io/paused annotation")
    return f"KubeadmControlPlane/{plane['metadata']['name']}"


def standalone_first_machine_stuck(w: World) -> str:
    cluster = find(w, "Cluster")
    name = "standalone-cp-0"
    infra, machine = find(w, "DevMachine", name), find(w, "Machine", name)
    cluster["status"]["conditions"] = [c for c in cluster["status"]["conditions"] if c["type"] != "ControlPlaneInitialized"]
    machine["status"].pop("nodeRef", None)
    infra["status"] = {}
    says(infra, "VMProvisioned", "False", "WaitingForStartupTimeout")
    says(machine, "InfrastructureReady", "False", "NotReady", "* VMProvisioned: WaitingForStartupTimeout")
    says(machine, "NodeHealthy", "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")
    for worker in every(w, "KubeadmConfig", "*-w-*"):
        says(worker, "DataSecretAvailable", "False", "NotAvailable", "Waiting for Cluster control plane to be initialized")
    for worker in every(w, "DevMachine", "*-w-*"):
        says(worker, "VMProvisioned", "False", "WaitingForControlPlaneInitialized")
    for worker in every(w, "Machine", "*-w-*"):
        says(worker, "InfrastructureReady", "False", "NotReady", "* VMProvisioned: WaitingForControlPlaneInitialized")
    return f"DevMachine/{name}"


def no_template(w: World) -> str:
    deployment, sets = find(w, "MachineDeployment"), find(w, "MachineSet")
    for obj in (deployment, sets):
        obj["spec"]["template"]["spec"]["infrastructureRef"] |= {"kind": "DevCluster", "name": find(w, "DevCluster")["metadata"]["name"]}
    infrastructure_silent(w)
    return f"MachineDeployment/{deployment['metadata']['name']}"


def rollout_standing_still(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    says(plane, "RollingOut", "True", "RollingOut", "Rolling out 3 not up-to-date replicas")
    plane["status"]["conditions"][-1]["lastTransitionTime"] = "2026-11-15T17:20:00Z"
    for machine in every(w, "Machine", f"{plane['metadata']['name']}-?????"):
        says(machine, "UpToDate", "False", "NotUpToDate", "* Version v1.34.0, v1.35.0 required")
    return f"KubeadmControlPlane/{plane['metadata']['name']}"


def resource_of_the_wrong_type(w: World) -> str:
    resource_set, binding = find(w, "ClusterResourceSet"), find(w, "ClusterResourceSetBinding")
    remove(w, binding)
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"x.yaml": ""}}
    w["objects"].append({**secret, "metadata": {"name": "network", "namespace": resource_set["metadata"]["namespace"]}})
    resource_set["spec"]["resources"] = [{"kind": "Secret", "name": "network"}]
    says(resource_set, "ResourcesApplied", "False", "WrongSecretType", "Secret type of resource network is not supported")
    return "Secret/network"


def pool_without_infrastructure(w: World) -> str:
    cluster = find(w, "Cluster")["metadata"]
    text = "could not find infra reference of kind DevMachinePool with name pool"
    condition = {"type": "Ready", "status": "False", "severity": "Error", "reason": "IncorrectExternalRef", "message": text}
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": "pool"}
    w["objects"] = [o for o in w["objects"] if o["kind"] != "Event"]
    w["objects"].append(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachinePool",
            "metadata": {"name": "pool", "namespace": cluster["namespace"]},
            "spec": {"clusterName": cluster["name"], "replicas": 1, "template": {"spec": {"infrastructureRef": reference}}},
            "status": {"deprecated": {"v1beta1": {"conditions": [{**condition, "lastTransitionTime": NOW}]}}},
        }
    )
    return "DevMachinePool/pool"


TROUBLES: list[tuple[str, Callable[[World], str]]] = [
    ("healthy-ha", infrastructure_gone),
    ("healthy-ha", control_plane_gone),
    ("healthy-ha", control_plane_template_gone),
    ("healthy-ha", bootstrap_template_gone),
    ("healthy-ha", worker_node_never),
    ("healthy-ha", machine_paused),
    ("healthy-ha", infrastructure_silent),
    ("healthy-ha", draining),
    ("healthy-ha", hook),
    ("healthy-ha", cluster_deletion_waits_for_infrastructure),
    ("healthy-ha", control_plane_deletion_stuck),
    ("healthy-ha", orphan),
    ("healthy-ha", unreachable),
    ("healthy-ha", kubeconfig_gone),
    ("healthy-ha", kubeconfig_replaced),
    ("healthy-ha", ca_without_certificate),
    ("healthy-ha", ca_gone),
    ("healthy-ha", bootstrap_failing),
    ("healthy-ha", quota),
    ("healthy-ha", denied),
    ("healthy-ha", unhealthy_node),
    ("healthy-ha", version_skew),
    ("healthy-ha", no_template),
    ("healthy-ha", rollout_standing_still),
    ("healthy-ha", pool_without_infrastructure),
    ("resource-set-content-missing", resource_of_the_wrong_type),
    ("cp-vm-never", infrastructure_never),
    ("cp-vm-never", control_plane_paused),
    ("topology", class_gone),
    ("topology", patch_of_class_failing),
    ("standalone", standalone_first_machine_stuck),
]


@pytest.mark.parametrize(("base", "trouble"), TROUBLES, ids=[t.__name__ for _, t in TROUBLES])
def test_other_kinds_of_trouble_are_traced_to_their_cause(base: str, trouble: Callable[[World], str]) -> None:
    world = copy.deepcopy(load(base))
    truth = trouble(world)

    cause = first_cause(world)

    assert is_named(cause, truth), (cause, truth)


# ------------------------------------------------------------------ one object of a healthy world, made bad in turn


def missing(world: World, obj: Json) -> bool:
    named = {(r.kind, r.name) for o in world["objects"] for r in references(o.get("spec"))}
    if (obj["kind"], obj["metadata"]["name"]) not in named:
        return False
    remove(world, obj)
    return True


def held(world: World, obj: Json) -> bool:
    deleting(obj, "example.com/keep")
    return True


def halted(world: World, obj: Json) -> bool:
    obj["metadata"].setdefault("annotations", {})["cluster.x-k8s.io/paused"] = ""
    return not obj["kind"].endswith("Template")


@pytest.mark.parametrize("make_bad", [missing, held, halted], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["topology", "standalone"])
def test_whatever_object_is_made_bad_is_named(name: str, make_bad: Callable[[World, Json], bool]) -> None:
    pristine = load(name)
    wrong, tried = [], 0
    for n, obj in enumerate(pristine["objects"]):
        if obj["kind"] in {"Event", "Observation", "Secret", "ConfigMap"}:
            continue
        world = copy.deepcopy(pristine)
        if not make_bad(world, world["objects"][n]):
            continue
        tried += 1
        truth = f"{obj['kind']}/{obj['metadata']['name']}"
        if not is_named(first_cause(world), truth):
            wrong.append(truth)

    assert tried >= 7
    assert wrong == []


# ------------------------------------------------------------------------------------ bundles that lack something


@pytest.mark.parametrize("left_out", ["Event", "Secret", "Observation"])
def test_what_a_bundle_leaves_out_is_not_taken_for_missing(left_out: str) -> None:
    """Most who ask for help send no Secrets. A cause that is one can then not be named; nothing else may be."""
    wrong = []
    for name in NAMES:
        world = load(name)
        truth = world["truth"]["object"]
        if truth is not None and truth.startswith(("Secret/", "ResourceQuota/")):
            continue
        world["objects"] = [o for o in world["objects"] if o["kind"] != left_out]
        cause = first_cause(world)
        if not is_named(cause, truth):
            wrong.append((name, cause))

    assert wrong == []
