"""Whose move it is in worlds that are like the recorded ones, but for one thing: the cause, how bad it is, and who must act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.verdict import State
from worlds.recorded import Json, World, deleting, every, find, is_named, load, remove, says

LEADER = "cluster.x-k8s.io/control-plane"
PAUSED = "cluster.x-k8s.io/paused"


def name_of(obj: Json) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


def machine(w: World, *, leads: bool = False) -> Json:
    return next(m for m in every(w, "Machine") if (LEADER in m["metadata"].get("labels", {})) == leads)


def infrastructure(w: World, of: Json) -> Json:
    return find(w, of["spec"]["infrastructureRef"]["kind"], of["spec"]["infrastructureRef"]["name"])


def config(w: World, of: Json) -> Json:
    return find(w, "KubeadmConfig", of["spec"]["bootstrap"]["configRef"]["name"])


def unready(w: World, of: Json, text: str) -> None:
    """A Machine that is not ready, and those who repeat it."""
    says(of, "Ready", "False", "NotReady", text)
    leads = LEADER in of["metadata"].get("labels", {})
    for kind in ("KubeadmControlPlane",) if leads else ("MachineSet", "MachineDeployment"):
        says(find(w, kind), "MachinesReady", "False", "NotReady", f"* Machine {of['metadata']['name']}:\n  {text}")
    type_ = "ControlPlaneMachinesReady" if leads else "WorkerMachinesReady"
    says(find(w, "Cluster"), type_, "False", "NotReady", f"* Machine {of['metadata']['name']}:\n  {text}")


def infrastructure_deleted(w: World) -> str:
    one = machine(w)
    gone = infrastructure(w, one)
    remove(w, gone)
    said = "DevMachine has been deleted while the Machine still exists"
    says(one, "InfrastructureReady", "False", "Deleted", said)
    unready(w, one, f"* InfrastructureReady: {said}")
    return name_of(gone)


def node_deleted(w: World) -> str:
    one = machine(w)
    said = "Node has been deleted while the Machine still exists"
    for type_ in ("NodeHealthy", "NodeReady"):
        says(one, type_, "False", "NodeDeleted", said)
    unready(w, one, f"* NodeHealthy: {said}")
    return name_of(one)


def drain_never_ends(w: World) -> str:
    one = machine(w)
    deleting(one, "machine.cluster.x-k8s.io")
    said = "Drain not completed yet (started at 2026-11-15T17:00:00Z):\n* Pod default/db-0: cannot evict pod as it would violate its budget"
    says(one, "Deleting", "True", "DrainingNode", said)
    return name_of(one)


def bootstrap_of_leader_held(w: World) -> str:
    one = machine(w, leads=True)
    held = config(w, one)
    deleting(one, "machine.cluster.x-k8s.io")
    deleting(held, "backup.example.com/keep")
    says(one, "Deleting", "True", "WaitingForBootstrapDeletion", "Waiting for bootstrap config to be deleted")
    return name_of(held)


def machine_set_held(w: World) -> str:
    cluster, deployment, held = (find(w, kind) for kind in ("Cluster", "MachineDeployment", "MachineSet"))
    for one in [m for m in every(w, "Machine") if LEADER not in m["metadata"]["labels"]]:
        remove(w, infrastructure(w, one), config(w, one), one)
    deleting(cluster, "cluster.cluster.x-k8s.io")
    deleting(deployment, "foregroundDeletion")
    deleting(held, "example.org/audit")
    says(cluster, "Deleting", "True", "WaitingForWorkersDeletion", f"* MachineDeployments: {deployment['metadata']['name']}")
    return name_of(held)


def leader_paused_in_rollout(w: World) -> str:
    one = machine(w, leads=True)
    one["metadata"].setdefault("annotations", {})[PAUSED] = ""
    deleting(one, "machine.cluster.x-k8s.io")
    says(find(w, "KubeadmControlPlane"), "RollingOut", "True", "RollingOut", "Rolling out 1 not up-to-date replicas")
    return name_of(one)


def blocked(w: World, why: str) -> Json:
    """Workers of which two more are wanted, and are not made."""
    deployment = find(w, "MachineDeployment")
    for obj in (deployment, find(w, "MachineSet")):
        obj["spec"]["replicas"] += 2
        says(obj, "ScalingUp", "True", "ScalingUp", f"Scaling up is blocked because:\n* {why}")
    return deployment


def version_too_new(w: World) -> str:
    versions = "MachineSet version (1.37.0) and ControlPlane version (1.34.1)"
    policy = "the kubernetes version skew policy as MachineSet version is higher than ControlPlane version"
    return name_of(blocked(w, f'{versions} do not conform to {policy} ("KubernetesVersionSkew" preflight check failed)'))


def control_plane_not_stable(w: World) -> str:
    plane, one = find(w, "KubeadmControlPlane"), machine(w, leads=True)
    behind = infrastructure(w, one)
    name = f"{plane['metadata']['namespace']}/{plane['metadata']['name']}"
    blocked(w, f'KubeadmControlPlane {name} is upgrading ("ControlPlaneIsStable" preflight check failed)')
    says(plane, "RollingOut", "True", "RollingOut", "Rolling out 2 not up-to-date replicas")
    says(behind, "VMProvisioned", "False", "ProvisioningFailed", "no capacity in zone a")
    says(one, "InfrastructureReady", "False", "NotReady", "* VMProvisioned: no capacity in zone a")
    unready(w, one, "* InfrastructureReady: no capacity in zone a")
    return name_of(behind)


def topology_says(w: World, reason: str, message: str) -> str:
    cluster = find(w, "Cluster")
    says(cluster, "TopologyReconciled", "False", reason, message)
    return name_of(cluster)


def upgrade_deferred(w: World) -> str:
    name = find(w, "MachineDeployment")["metadata"]["name"]
    line = f"MachineDeployment {name} upgrade to version v1.35.0 deferred using defer-upgrade or hold-upgrade-sequence annotations"
    return topology_says(w, "MachineDeploymentsUpgradeDeferred", f"Cluster is upgrading to v1.35.0\n  * {line}")


def upgrade_held_by_annotation(w: World) -> str:
    line = "Following hooks are blocking upgrade: BeforeClusterUpgrade: annotation before-upgrade.hook.cluster.cluster.x-k8s.io/gate is set"
    return topology_says(w, "ClusterUpgrading", f"Cluster is upgrading to v1.35.0\n  * {line}")


def upgrade_held_by_two_hooks(w: World) -> str:
    line = "Following hooks are blocking upgrade: AfterControlPlaneUpgrade: addons are migrated; BeforeWorkersUpgrade"
    return topology_says(w, "ClusterUpgrading", f"Cluster is upgrading to v1.35.0\n  * {line}")


def hook_fails(w: World) -> str:
    said = 'failed to call extension handler "before-upgrade.ops": got failure response, please check controller logs for errors'
    return topology_says(w, "ReconcileFailed", f"error computing the desired state of the Cluster topology: {said}")


def gate_off(w: World) -> str:
    said = 'failed to apply patches: can not use external patch "p" if RuntimeSDK feature flag is disabled'
    topology_says(w, "ReconcileFailed", f"error computing the desired state of the Cluster topology: {said}")
    return name_of(find(w, "ClusterClass"))


@dataclass(frozen=True)
class Move:
    base: str
    trouble: Callable[[World], str]
    state: State
    who: str
    command: str = ""


MOVES = [
    Move("healthy-ha", infrastructure_deleted, State.BROKEN, "whoever deleted DevMachine", "delete machines/"),
    Move("topology", infrastructure_deleted, State.BROKEN, "whoever deleted DevMachine", "delete machines/"),
    Move("healthy-ha", node_deleted, State.BROKEN, "whoever runs the machine"),
    Move("healthy-ha", drain_never_ends, State.WAITING, "PodDisruptionBudget", "get pdb"),
    Move("healthy-ha", bootstrap_of_leader_held, State.WAITING, "backup.example.com/keep"),
    Move("healthy-ha", machine_set_held, State.WAITING, "example.org/audit"),
    Move("healthy-ha", leader_paused_in_rollout, State.WAITING, "whoever paused Machine", f"{PAUSED}-"),
    Move("healthy-ha", version_too_new, State.BROKEN, "the owner of MachineDeployment", "edit machinedeployments/"),
    Move("topology", version_too_new, State.BROKEN, "the owner of Cluster t1", "edit clusters/t1"),
    Move("healthy-ha", control_plane_not_stable, State.BROKEN, "infrastructure provider"),
    Move("topology", upgrade_deferred, State.WAITING, "hold-upgrade-sequence", "edit clusters.cluster.x-k8s.io/t1"),
    Move("topology", upgrade_held_by_annotation, State.WAITING, "before-upgrade.hook", "x-k8s.io/gate-"),
    Move("topology", upgrade_held_by_two_hooks, State.WAITING, "runtime extensions that handle"),
    Move("topology", hook_fails, State.BROKEN, "runtime extension ops", "extensionconfigs ops"),
    Move("topology", gate_off, State.BROKEN, "whoever runs the management cluster"),
]


@pytest.mark.parametrize("move", MOVES, ids=lambda m: f"{m.base} {m.trouble.__name__}")
def test_whose_move_it_is(move: Move) -> None:
    world = load(move.base)
    truth = move.trouble(world)

    verdict = explain(assemble(world["objects"]), world["subject"]).verdict

    assert is_named(verdict.object, truth), verdict.headline
    assert verdict.state is move.state, verdict.headline
    assert move.who in verdict.who, verdict.who
    assert move.command in verdict.command, verdict.command


def test_the_health_check_that_is_named_looks_after_the_machine() -> None:
    world = load("topology")
    node_deleted(world)

    verdict = explain(assemble(world["objects"]), world["subject"]).verdict

    assert "MachineHealthCheck t1-md-0" in verdict.next, verdict.next
