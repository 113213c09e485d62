"""`TopologyReconciled`: whether the spec of every object follows the topology, and if not, what prevents it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.controllers.topology.failures import ClassNotReady
from clusterwright.controllers.topology.snapshot import TopologyDone, TopologySnapshot
from clusterwright.tables import KEEP, OTHERWISE, Later, Outcome, Row, Table, computed, false, guard, message, true
from clusterwright.topology import hooks
from clusterwright.topology.model import ControlPlaneProgress, Progress, WorkersProgress

TYPE: Final = "TopologyReconciled"
_AFTER_REPAIR: Final = timedelta(seconds=1)


@guard("spec.paused, or the paused annotation")
def paused(t: TopologySnapshot) -> bool:
    return bool(t.read.spec.paused) or PAUSED_ANNOTATION in t.read.metadata.annotations


@message("<Cluster spec.paused is set to true>, <Cluster has the cluster.x-k8s.io/paused annotation>")
def paused_because(t: TopologySnapshot) -> str:
    texts = []
    if t.read.spec.paused:
        texts.append("Cluster spec.paused is set to true")
    if PAUSED_ANNOTATION in t.read.metadata.annotations:
        texts.append(f"Cluster has the {PAUSED_ANNOTATION} annotation")
    return ", ".join(texts)


@guard("the ClusterClass is not reconciled")
def class_not_ready(t: TopologyDone) -> bool:
    return isinstance(t.failure, ClassNotReady)


@guard("the pass failed")
def failed(t: TopologyDone) -> bool:
    return t.failure is not None


@message("<error>")
def failure(t: TopologyDone) -> str:
    return str(t.failure)


@guard("managedFields had to be repaired, and the pass ended there")
def repaired(t: TopologyDone) -> bool:
    return t.was_repaired


@guard("metadata.deletionTimestamp is set")
def deleting(t: TopologySnapshot) -> bool:
    return t.read.metadata.deletion_timestamp is not None


@message("Cluster is deleting[. Following hooks are blocking delete: <hooks>]")
def deleting_text(t: TopologyDone) -> str:
    return "Cluster is deleting" + (f". Following hooks are blocking delete: {t.blocking}" if t.blocking else "")


@guard("neither infrastructureRef nor controlPlaneRef was set when the pass began")
def new(t: TopologySnapshot) -> bool:
    return t.is_new


@guard("a hook blocks")
def blocked(t: TopologyDone) -> bool:
    return bool(t.blocking)


@message("Following hooks are blocking Cluster topology creation: <hooks>")
def creation_blocked(t: TopologyDone) -> str:
    return f"Following hooks are blocking Cluster topology creation: {t.blocking}"


@guard("the control plane or a worker is upgrading, pending or deferred, or AfterClusterUpgrade is pending")
def upgrading(t: TopologyDone) -> bool:
    p = t.progress
    if p is None:
        return False
    plane = p.control_plane
    moving = plane.is_pending or plane.is_starting or plane.is_upgrading
    settled = p.machine_deployments.is_settled and p.machine_pools.is_settled
    return moving or not settled or hooks.AFTER_CLUSTER_UPGRADE in p.pending_hooks


def _names(noun: str, names: Collection[str]) -> str:
    ordered = sorted(names)
    shown = ", ".join(ordered[:3])
    if len(ordered) == 1:
        return f"{noun} {shown}"
    return f"{noun}s {shown}" + (f", ... ({len(ordered) - 3} more)" if len(ordered) > 3 else "")


def _rest(plan: Sequence[str], version: str) -> str:
    left = [v for v in plan if v != version]
    return f" ({', '.join(left)} pending)" if left else ""


def _moving(plane: ControlPlaneProgress) -> bool:
    return plane.is_starting or plane.is_upgrading


def _pending(workers: WorkersProgress) -> set[str]:
    return (workers.pending - workers.upgrading - workers.deferred) if workers.plan else set()


def _worker_lines(noun: str, workers: WorkersProgress, version: str, words: str) -> list[str]:
    lines = []
    if workers.upgrading:
        lines.append(f"{_names(noun, workers.upgrading)} upgrading to version {version}{_rest(workers.plan, version)}")
    if pending := _pending(workers):
        lines.append(f"{_names(noun, pending)} pending upgrade to version {', '.join(workers.plan)}")
    if deferred := workers.deferred - workers.upgrading:
        lines.append(f"{_names(noun, deferred)} upgrade to version {version} deferred using {words}")
    if workers.pending_create:
        lines.append(f"{_names(noun, workers.pending_create)} creation deferred while control plane upgrade is in progress")
    lines += [f"{noun} of topology name {name} is pinned to version {pin}" for name, pin in sorted(workers.pinned.items())]
    return lines


def _upgrade_outcome(t: TopologyDone) -> Outcome:
    p = t.progress
    assert p is not None
    topology = t.read.spec.topology
    version = t.control_plane_version
    lines = [f"Following hooks are blocking upgrade: {t.blocking}"] if t.blocking else []
    if _moving(p.control_plane):
        lines.append(f"{t.control_plane_kind} upgrading to version {version}{_rest(p.control_plane.plan, version)}")
    elif p.control_plane.plan:
        lines.append(f"{t.control_plane_kind} pending upgrade to version {', '.join(p.control_plane.plan)}")
    words = "defer-upgrade or hold-upgrade-sequence annotations"
    lines += _worker_lines("MachineDeployment", p.machine_deployments, version, words)
    lines += _worker_lines("MachinePool", p.machine_pools, version, f"topology.cluster.x-k8s.io/{words}")
    text = f"Cluster is upgrading to {topology.version if topology else ''}" + "".join(f"\n  * {line}" for line in lines)
    return Outcome("False", _upgrade_reason(t, p), text, "Info")


def _upgrade_reason(t: TopologyDone, p: Progress) -> str:
    """Return the reason. Users asked for a deferral, so it is the reason only if nothing else is in progress."""
    if not t.blocking and not _moving(p.control_plane):
        for workers, reason in (
            (p.machine_deployments, "MachineDeploymentsUpgradeDeferred"),
            (p.machine_pools, "MachinePoolsUpgradeDeferred"),
        ):
            if workers.deferred - workers.upgrading and not workers.upgrading and not _pending(workers):
                return reason
    return "ClusterUpgrading"


_UPGRADE = computed(
    _upgrade_outcome,
    status="False",
    reason="ClusterUpgrading, MachineDeploymentsUpgradeDeferred or MachinePoolsUpgradeDeferred",
    message="Cluster is upgrading to <version>, and one line for each hook, control plane and group of workers that is not there yet",
)

_FAILED = false("ReconcileFailed", failure)
_FAILED_V1BETA1 = false("TopologyReconcileFailed", failure, severity="Error")
_AFTER_HOOKS: Later[TopologyDone] = Later("the soonest retry of a hook that blocks", lambda t: t.retry)

TOPOLOGY_RECONCILED: Table[TopologyDone] = Table(
    TYPE,
    Row("paused", paused, false("Paused", paused_because), v1beta1=false("Paused", paused_because, severity="Info")),
    Row("class-not-ready", class_not_ready, _FAILED, v1beta1=_FAILED_V1BETA1),
    Row("failed", failed, _FAILED, v1beta1=_FAILED_V1BETA1, error=failure),
    Row("repaired", repaired, KEEP, requeue=_AFTER_REPAIR),
    Row(
        "deleting",
        deleting,
        false("Deleting", deleting_text),
        v1beta1=false("Deleting", deleting_text, severity="Info"),
        requeue=_AFTER_HOOKS,
    ),
    Row(
        "creation-blocked",
        new & blocked,
        false("ClusterCreating", creation_blocked),
        v1beta1=false("ClusterCreating", creation_blocked, severity="Info"),
        requeue=_AFTER_HOOKS,
    ),
    Row("created", new, true("ReconcileSucceeded"), v1beta1=true("")),
    Row("upgrading", upgrading, _UPGRADE, v1beta1=_UPGRADE, requeue=_AFTER_HOOKS),
    Row("reconciled", OTHERWISE, true("ReconcileSucceeded"), v1beta1=true(""), requeue=_AFTER_HOOKS),
    assuming=[~class_not_ready | failed],
)

TABLES = (TOPOLOGY_RECONCILED,)
