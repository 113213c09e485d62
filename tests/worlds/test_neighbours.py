"""Trouble that users of other providers meet, told in their words: made from recorded worlds, traced to its cause."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from worlds.recorded import NOW, Json, World, deleting, every, find, first_cause, is_named, load, remove, says, warns

INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"


def name_of(obj: Json) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


def old(obj: Json, type: str, reason: str, message: str, severity: str = "Error") -> None:
    """A condition as v1beta1 has them, in the place where providers of that time put them."""
    condition = {"type": type, "status": "False", "severity": severity, "reason": reason, "message": message, "lastTransitionTime": NOW}
    obj.setdefault("status", {}).setdefault("conditions", []).append(condition)


def of_provider(w: World, kind: str, pattern: str = "*-md-*") -> tuple[Json, Json]:
    """A worker Machine whose infrastructure is of another provider, and that infrastructure, which says nothing yet."""
    infra = find(w, "DevMachine", pattern)
    machine = find(w, "Machine", infra["metadata"]["name"])
    infra["kind"], infra["apiVersion"] = kind, f"{INFRASTRUCTURE}/v1beta2"
    infra["spec"], infra["status"] = {}, {}
    machine["spec"]["infrastructureRef"]["kind"] = kind
    machine["status"].pop("nodeRef", None)
    machine["status"]["initialization"] = {"bootstrapDataSecretCreated": True}
    says(machine, "NodeHealthy", "Unknown", "InspectionFailed", f"Waiting for {kind} to report spec.providerID")
    says(machine, "NodeReady", "Unknown", "InspectionFailed", f"Waiting for {kind} to report spec.providerID")
    return machine, infra


def cloud_quota(w: World) -> str:
    machine, infra = of_provider(w, "AWSMachine")
    text = "failed to run instance: VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows"
    old(infra, "Ready", "InstanceProvisionFailed", text)
    old(infra, "InstanceReady", "InstanceProvisionFailed", text)
    says(machine, "InfrastructureReady", "False", "NotReady", text)
    says(machine, "Ready", "False", "NotReady", f"* InfrastructureReady: {text}")
    return name_of(infra)


def terminal_failure(w: World) -> str:
    machine, infra = of_provider(w, "AzureMachine")
    infra["status"] = {"failureReason": "CreateError", "failureMessage": "SKU Standard_D2s_v3 is not available in zone 1"}
    says(machine, "InfrastructureReady", "False", "NotReady", "AzureMachine status.initialization.provisioned is false")
    return name_of(infra)


def no_provider_id(w: World) -> str:
    machine, infra = of_provider(w, "VSphereMachine")
    infra["status"] = {"initialization": {"provisioned": False}}
    says(machine, "InfrastructureReady", "False", "NotReady", "VSphereMachine status.initialization.provisioned is false")
    return name_of(infra)


def credentials_of_provider(w: World) -> str:
    machine, infra = of_provider(w, "VSphereMachine")
    says(
        infra,
        "VirtualMachineProvisioned",
        "False",
        "NotProvisioned",
        "ServerFaultCode: Cannot complete login due to an incorrect user name or password.",
    )
    says(machine, "InfrastructureReady", "False", "NotReady", "* VirtualMachineProvisioned: ServerFaultCode: Cannot complete login")
    return name_of(infra)


def cluster_infrastructure_failing(w: World) -> str:
    cluster, infra = find(w, "Cluster"), find(w, "DevCluster")
    infra["kind"] = "OpenStackCluster"
    infra["status"] = {}
    cluster["spec"]["infrastructureRef"]["kind"] = "OpenStackCluster"
    cluster["status"]["initialization"] = {}
    for kind in ("Machine", "DevMachine", "KubeadmConfig"):
        remove(w, *every(w, kind))
    text = "failed to reconcile router: Quota exceeded for resources: ['router']"
    old(infra, "NetworkReady", "NetworkReconcileFailed", text)
    says(cluster, "InfrastructureReady", "False", "NotReady", text)
    says(cluster, "ControlPlaneInitialized", "False", "NotInitialized", "Control plane not yet initialized")
    says(find(w, "KubeadmControlPlane"), "Initialized", "False", "NotInitialized")
    return name_of(infra)


def volumes_not_detached(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    deleting(machine)
    says(
        machine,
        "Deleting",
        "True",
        "WaitingForVolumeDetach",
        "Waiting for Node volumes to be detached (started at 2026-11-15T17:00:00Z)\n* PersistentVolumeClaims: default/data",
    )
    return name_of(machine)


def bootstrap_config_held(w: World) -> str:
    machine = find(w, "Machine", "*-md-*")
    config = find(w, "KubeadmConfig", machine["spec"]["bootstrap"]["configRef"]["name"])
    deleting(machine)
    deleting(config, "example.com/audit")
    says(
        machine,
        "Deleting",
        "True",
        "WaitingForBootstrapDeletion",
        "KubeadmConfig deletion in progress, waiting for finalizers to be removed",
    )
    return name_of(config)


def control_plane_webhook_denies(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    plane["spec"]["replicas"] = 5
    says(plane, "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 5 replicas")
    warns(
        w,
        plane,
        "FailedScaleUp",
        'Failed to create Machine for control plane: admission webhook "limits.example.com" denied the request: too many',
    )
    return name_of(plane)


def remediation_template_missing(w: World) -> str:
    check = check_of(w)
    check["spec"]["remediation"] = {
        "templateRef": {"apiVersion": f"{INFRASTRUCTURE}/v1beta1", "kind": "Metal3RemediationTemplate", "name": "reboot"}
    }
    machine = find(w, "Machine", "*-md-*")
    says(
        machine,
        "HealthCheckSucceeded",
        "False",
        "UnhealthyNode",
        "Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s",
    )
    text = f'could not get Remediation Template of kind Metal3RemediationTemplate: metal3remediationtemplates.{INFRASTRUCTURE} "reboot" not found'
    says(machine, "ExternallyRemediated", "False", "RemediationTemplateDoesNotExist", text)
    return "Metal3RemediationTemplate/reboot"


def check_of(w: World) -> Json:
    machine = find(w, "Machine", "*-md-*")
    check = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "workers", **{k: machine["metadata"][k] for k in ("namespace", "labels")}},
        "spec": {"clusterName": machine["spec"]["clusterName"]},
        "status": {},
    }
    w["objects"].append(check)
    return check


def too_many_unhealthy(w: World) -> str:
    """The Machines are what is wrong; that nobody repairs them comes second."""
    check = check_of(w)
    for machine in every(w, "Machine", "*-md-*"):
        says(machine, "NodeHealthy", "Unknown", "NodeHealthUnknown", "* Node.Ready: Kubelet stopped posting node status.")
        says(machine, "NodeReady", "Unknown", "NodeReadyUnknown", "* Node.Ready: Kubelet stopped posting node status.")
        says(
            machine,
            "HealthCheckSucceeded",
            "False",
            "UnhealthyNode",
            "Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s",
        )
    says(
        check,
        "RemediationAllowed",
        "False",
        "TooManyUnhealthy",
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 3, unhealthy: 3, maxUnhealthy: 40%)",
    )
    return "Machine/*-md-*"


def node_startup_timeout(w: World) -> str:
    machine, infra = of_provider(w, "AWSMachine")
    check_of(w)
    old(infra, "InstanceReady", "InstanceStopped", "", severity="Warning")
    says(machine, "InfrastructureReady", "False", "NotReady", "InstanceStopped")
    says(machine, "HealthCheckSucceeded", "False", "NodeStartupTimeout", "Health check failed:\n  * Node failed to report startup in 10m0s")
    return name_of(infra)


def machine_set_paused(w: World) -> str:
    deployment, sets = find(w, "MachineDeployment"), find(w, "MachineSet")
    deployment["spec"]["replicas"] = sets["spec"]["replicas"] = 5
    sets["metadata"].setdefault("annotations", {})["cluster.x-k8s.io/paused"] = ""
    says(sets, "Paused", "True", "Paused", "MachineSet has the cluster.x-k8s.io/paused annotation")
    says(deployment, "ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 5 replicas")
    return name_of(sets)


def provider_absent(w: World) -> str:
    cluster = find(w, "Cluster")
    remove(w, find(w, "DevCluster"))
    cluster["spec"]["infrastructureRef"] = {"apiGroup": INFRASTRUCTURE, "kind": "NutanixCluster", "name": "c"}
    cluster["status"]["initialization"] = {}
    says(cluster, "InfrastructureReady", "Unknown", "InternalError", "Please check controller logs for errors")
    return "NutanixCluster/c"


def class_without_variables(w: World) -> str:
    cluster, source = find(w, "Cluster"), find(w, "ClusterClass")
    says(
        source,
        "VariablesReconciled",
        "False",
        "VariableDiscoveryFailed",
        'VariableDiscovery failed: failed to call DiscoverVariables for patch lb: failed to call extension handler "vars.lb": http call failed: dial tcp: connect: connection refused',
    )
    not_reconciled(cluster, source)
    return name_of(source)


def not_reconciled(cluster: Json, source: Json) -> None:
    key = f"{source['metadata']['namespace']}/{source['metadata']['name']}"
    text = (
        f"ClusterClass {key} not reconciled. If this condition persists please check ClusterClass status. A ClusterClass is reconciled if"
        ".status.observedGeneration == .metadata.generation is true. If this is not the case either ClusterClass reconciliation failed or "
        "the ClusterClass is paused"
    )
    says(cluster, "TopologyReconciled", "False", "ClusterClassNotReconciled", text)


def class_paused(w: World) -> str:
    cluster, source = find(w, "Cluster"), find(w, "ClusterClass")
    source["metadata"].setdefault("annotations", {})["cluster.x-k8s.io/paused"] = ""
    source["metadata"]["generation"] = 7
    not_reconciled(cluster, source)
    return name_of(source)


def unknown_worker_class(w: World) -> str:
    cluster = find(w, "Cluster")
    says(
        cluster,
        "TopologyReconciled",
        "False",
        "ReconcileFailed",
        'error computing the desired state of the Cluster topology: failed to compute MachineDeployments: failed to compute MachineDeployment for topology "md-9": MachineDeployment class "nope" not found in ClusterClass',
    )
    return name_of(cluster)


def hook_blocks_upgrade(w: World) -> str:
    cluster = find(w, "Cluster")
    text = 'Cluster is upgrading to v1.36.0\n  * BeforeClusterUpgrade is blocking: hook "backup.ext" is blocking: waiting for the backup'
    says(cluster, "TopologyReconciled", "False", "ClusterUpgrading", text)
    return name_of(cluster)


def external_patch_fails(w: World) -> str:
    cluster = find(w, "Cluster")
    text = 'error computing the desired state of the Cluster topology: failed to generate patches for patch "lb": failed to call extension handler "patch.lb": got failure response'
    says(cluster, "TopologyReconciled", "False", "ReconcileFailed", text)
    return "ClusterClass/*|Cluster/*"


def server_side_apply_refused(w: World) -> str:
    cluster = find(w, "Cluster")
    text = 'failed to create patch helper for DevCluster t1: server side apply dry-run failed for modified object: admission webhook "default.devcluster" denied the request: spec is immutable'
    says(cluster, "TopologyReconciled", "False", "ReconcileFailed", text)
    return name_of(cluster)


def certificates_refused(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    says(plane, "CertificatesAvailable", "Unknown", "InternalError", "Please check controller logs for errors")
    ca = find(w, "Secret", "*-ca")
    ca["data"] = {"tls.crt": ""}
    return name_of(ca)


def control_plane_component_crashes(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    machine = find(w, "Machine", f"{plane['metadata']['name']}-?????")
    says(machine, "ControllerManagerPodHealthy", "False", "Failed", "CrashLoopBackOff")
    says(machine, "Ready", "False", "NotReady", "* Control plane components:\n  * ControllerManagerPodHealthy: CrashLoopBackOff")
    says(
        plane,
        "ControlPlaneComponentsHealthy",
        "False",
        "NotHealthy",
        f"* Machine {machine['metadata']['name']}:\n  * ControllerManagerPodHealthy: CrashLoopBackOff",
    )
    return name_of(machine)


def two_members_gone(w: World) -> str:
    plane = find(w, "KubeadmControlPlane")
    for machine in every(w, "Machine", f"{plane['metadata']['name']}-?????")[:2]:
        says(machine, "EtcdMemberHealthy", "False", "NotHealthy", "Etcd reports alarms: CORRUPT")
        says(machine, "Ready", "False", "NotReady", "* EtcdMemberHealthy: Etcd reports alarms: CORRUPT")
    says(plane, "EtcdClusterHealthy", "False", "NotHealthy", "* 2 Machines: Etcd reports alarms: CORRUPT")
    says(
        plane, "Available", "False", "NotAvailable", "* 1 of 3 etcd members is healthy, at least 2 healthy member required for etcd quorum"
    )
    return name_of(plane)


def pool_without_nodes(w: World) -> str:
    cluster = find(w, "Cluster")["metadata"]
    mine = {"namespace": cluster["namespace"], "name": "pool", "labels": {"cluster.x-k8s.io/cluster-name": cluster["name"]}}
    reference = {"apiGroup": INFRASTRUCTURE, "kind": "AWSMachinePool", "name": "pool"}
    pool: Json = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachinePool",
        "metadata": {**mine, "generation": 1},
        "spec": {"clusterName": cluster["name"], "replicas": 2, "template": {"spec": {"infrastructureRef": reference}}},
        "status": {"observedGeneration": 1, "replicas": 0, "phase": "Provisioning"},
    }
    waiting = {"type": "InfrastructureReady", "status": "False", "severity": "Info", "reason": "WaitingForInfrastructure", "message": ""}
    pool["status"]["deprecated"] = {"v1beta1": {"conditions": [{**waiting, "lastTransitionTime": NOW}]}}
    infra = {"apiVersion": f"{INFRASTRUCTURE}/v1beta2", "kind": "AWSMachinePool", "metadata": mine, "spec": {}, "status": {"ready": False}}
    old(
        infra,
        "ASGReady",
        "ASGProvisionFailed",
        "failed to create ASG: AccessDenied: not authorized to perform autoscaling:CreateAutoScalingGroup",
    )
    w["objects"] += [pool, infra]
    return "AWSMachinePool/pool"


def deletion_waits_for_endpoint(w: World) -> str:
    """The workload cluster is gone, and a Machine of it cannot be drained: the Machine is the one that waits."""
    cluster, machine = find(w, "Cluster"), find(w, "Machine", "*-md-*")
    says(
        cluster,
        "RemoteConnectionProbe",
        "False",
        "ProbeFailed",
        "Remote connection probe failed, probe last succeeded at 2026-11-15T17:00:00Z",
    )
    deleting(machine)
    says(machine, "Deleting", "True", "DrainingNode", "Drain not completed yet: connection to the workload cluster is down")
    return name_of(cluster)


def provider_cannot_delete(w: World) -> str:
    machine, infra = of_provider(w, "AWSMachine")
    deleting(machine)
    deleting(infra, f"awsmachine.{INFRASTRUCTURE}")
    old(
        infra,
        "InstanceReady",
        "DeletionFailed",
        "failed to terminate instance: UnauthorizedOperation: You are not authorized to perform this operation",
    )
    says(machine, "Deleting", "True", "WaitingForInfrastructureDeletion", "AWSMachine deletion in progress")
    return name_of(infra)


def provider_cannot_delete_network(w: World) -> str:
    cluster, infra = find(w, "Cluster"), find(w, "DevCluster")
    for kind in ("Machine", "DevMachine", "KubeadmConfig", "MachineSet", "MachineDeployment", "KubeadmControlPlane"):
        remove(w, *every(w, kind))
    infra["kind"] = cluster["spec"]["infrastructureRef"]["kind"] = "AWSCluster"
    deleting(cluster)
    deleting(infra, f"awscluster.{INFRASTRUCTURE}")
    old(infra, "VpcReady", "DeletionFailed", "DependencyViolation: The vpc has dependencies and cannot be deleted")
    says(cluster, "Deleting", "True", "WaitingForInfrastructureDeletion", "AWSCluster deletion in progress")
    return name_of(infra)


def first_machine_boots_in_vain(w: World) -> str:
    """The machine runs and nothing else is known of it: kubeadm failed there, and only its console tells."""
    infra = find(w, "DevMachine")
    infra["kind"] = "AWSMachine"
    infra["status"] = {"initialization": {"provisioned": True}}
    says(infra, "Ready", "True", "Ready")
    machine = find(w, "Machine", infra["metadata"]["name"])
    machine["spec"]["infrastructureRef"]["kind"] = "AWSMachine"
    machine["spec"]["providerID"] = infra.setdefault("spec", {})["providerID"] = "aws:///a/i-1"
    machine["status"]["initialization"] = {"bootstrapDataSecretCreated": True, "infrastructureProvisioned": True}
    says(machine, "InfrastructureReady", "True", "Ready")
    for type in ("NodeHealthy", "NodeReady"):
        says(machine, type, "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")
    says(machine, "Ready", "Unknown", "ReadyUnknown", "* NodeHealthy: Waiting for Cluster control plane to be initialized")
    return f"{name_of(machine)}|{name_of(infra)}"


def no_network_plugin(w: World) -> str:
    text = "* Node.Ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
    for machine in every(w, "Machine"):
        for type in ("NodeHealthy", "NodeReady"):
            says(machine, type, "False", "NodeNotReady", text)
        says(machine, "Ready", "False", "NotReady", f"* NodeHealthy:\n  {text}")
    return "Machine/*"


def control_plane_leaves_its_hook(w: World) -> str:
    """A control plane that is paused does not let its Machines go."""
    plane = find(w, "KubeadmControlPlane")
    machine = find(w, "Machine", f"{plane['metadata']['name']}-?????")
    plane["metadata"].setdefault("annotations", {})["cluster.x-k8s.io/paused"] = ""
    says(plane, "Paused", "True", "Paused", "KubeadmControlPlane has the cluster.x-k8s.io/paused annotation")
    machine["metadata"].setdefault("annotations", {})["pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"] = ""
    deleting(machine)
    says(machine, "Deleting", "True", "WaitingForPreTerminateHook", "Waiting for pre-terminate hooks to succeed (hooks: kcp-cleanup)")
    return name_of(plane)


def secrets_over_quota(w: World) -> str:
    machine, _ = of_provider(w, "AWSMachine")
    config = find(w, "KubeadmConfig", machine["spec"]["bootstrap"]["configRef"]["name"])
    config["status"] = {}
    text = 'failed to create bootstrap data secret: secrets "x" is forbidden: exceeded quota: small, requested: count/secrets=1, used: count/secrets=9, limited: count/secrets=9'
    says(config, "DataSecretAvailable", "Unknown", "InternalError", "Please check controller logs for errors")
    warns(w, config, "ReconcileError", text)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": machine["metadata"]["namespace"]}}
    w["objects"].append(
        {**quota, "spec": {"hard": {"count/secrets": "9"}}, "status": {"hard": {"count/secrets": "9"}, "used": {"count/secrets": "9"}}}
    )
    says(machine, "BootstrapConfigReady", "Unknown", "InternalError", "Please check controller logs for errors")
    says(machine, "InfrastructureReady", "False", "NotReady", "* InstanceReady: WaitingForBootstrapData")
    return "ResourceQuota/small"


def managed_control_plane_fails(w: World) -> str:
    cluster, plane = find(w, "Cluster"), find(w, "KubeadmControlPlane")
    for kind in ("Machine", "DevMachine", "KubeadmConfig"):
        remove(w, *every(w, kind, f"{plane['metadata']['name']}-?????"))
    plane["kind"] = cluster["spec"]["controlPlaneRef"]["kind"] = "AWSManagedControlPlane"
    plane["spec"], plane["status"] = {"version": "v1.33"}, {}
    text = "failed to create EKS control plane: InvalidParameterException: Subnets specified must be in at least two different AZs"
    old(plane, "EKSControlPlaneReady", "EKSControlPlaneReconciliationFailed", text)
    cluster["status"]["initialization"] = {"infrastructureProvisioned": True}
    says(cluster, "ControlPlaneInitialized", "False", "NotInitialized", "Control plane not yet initialized")
    says(
        cluster, "ControlPlaneAvailable", "Unknown", "AvailableUnknown", "Condition Available not yet reported from AWSManagedControlPlane"
    )
    return name_of(plane)


TROUBLES: list[tuple[str, Callable[[World], str]]] = [
    *(("healthy-ha", trouble) for trouble in (cloud_quota, terminal_failure, no_provider_id, credentials_of_provider)),
    *(("healthy-ha", trouble) for trouble in (cluster_infrastructure_failing, volumes_not_detached, bootstrap_config_held)),
    *(("healthy-ha", trouble) for trouble in (control_plane_webhook_denies, remediation_template_missing, too_many_unhealthy)),
    *(("healthy-ha", trouble) for trouble in (node_startup_timeout, machine_set_paused, provider_absent, certificates_refused)),
    *(("healthy-ha", trouble) for trouble in (control_plane_component_crashes, two_members_gone, pool_without_nodes)),
    *(("healthy-ha", trouble) for trouble in (deletion_waits_for_endpoint, provider_cannot_delete, provider_cannot_delete_network)),
    *(("healthy-ha", trouble) for trouble in (no_network_plugin, control_plane_leaves_its_hook, secrets_over_quota)),
    *(("healthy-ha", managed_control_plane_fails), ("cp-vm-never", first_machine_boots_in_vain)),
    *(("topology", trouble) for trouble in (class_without_variables, class_paused, unknown_worker_class, hook_blocks_upgrade)),
    *(("topology", trouble) for trouble in (external_patch_fails, server_side_apply_refused)),
]


@pytest.mark.parametrize(("base", "trouble"), TROUBLES, ids=[t.__name__ for _, t in TROUBLES])
def test_trouble_of_the_neighbourhood_is_traced_to_its_cause(base: str, trouble: Callable[[World], str]) -> None:
    world = copy.deepcopy(load(base))
    truth = trouble(world)

    cause = first_cause(world)

    assert any(is_named(cause, one) for one in truth.split("|")), (cause, truth)
