"""Compute phase and replica counters. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachinePool, MachineSet, ReplicaCounters
from clusterwright.conditions import is_true
from clusterwright.controllers.cluster.guards import Snapshot
from clusterwright.controllers.cluster.providers import Found, Lookup, control_plane_counters
from clusterwright.controllers.cluster.snapshot import is_child_of
from clusterwright.controllers.intstr import total
from clusterwright.controllers.kit.lookup import names_anything
from clusterwright.controllers.version_counts import MOST_OF_CLUSTER, aggregated, of_machines

PHASES = frozenset({"Pending", "Provisioning", "Provisioned", "Deleting", "Failed"})


def phase(c: Snapshot, *, was_initialized: bool) -> str:
    """Return the phase: the last of these that holds.

    Pending at first; Provisioning once a reference is set or infrastructure is provisioned; Provisioned with infrastructure
    provisioned and the control plane initialized; Failed on a terminal failure; Deleting. While references of a topology are
    missing, no phase acts, so that what became initialized only in this pass does not count yet.
    """
    spec = c.cluster.spec
    now = c.cluster.status.phase or "Pending"
    if names_anything(spec.infrastructure_ref) or names_anything(spec.control_plane_ref) or c.provisioned:
        now = "Provisioning"
    if c.provisioned and is_true(c.conditions, "ControlPlaneInitialized") and (was_initialized or not c.waiting_for_topology):
        now = "Provisioned"
    if any(_has_failed(found) for found in (c.infrastructure, c.control_plane)):
        now = "Failed"
    return "Deleting" if c.deleting else now


def _has_failed(found: Lookup) -> bool:
    """Return whether the object reports a terminal failure, which exists only in the old contract."""
    return isinstance(found, Found) and found.contract == "v1beta1" and bool(found.failure_reason or found.failure_message)


def known_phase(cluster: Cluster) -> str:
    """Return the phase as read; Unknown for an unknown value."""
    return cluster.status.phase if cluster.status.phase in PHASES else "Unknown"


def control_plane_replicas(c: Snapshot) -> ReplicaCounters:
    """Return `status.controlPlane`: the counters of the control plane, or the sums of its stand-alone Machines.

    A counter that the control plane does not report keeps its value; without the object, all are unknown.
    """
    before = c.cluster.status.control_plane or ReplicaCounters()
    if names_anything(c.cluster.spec.control_plane_ref) or c.has_topology:
        if not isinstance(c.control_plane, Found):
            return ReplicaCounters(upgrade_plan=before.upgrade_plan)
        return control_plane_counters(c.control_plane, before)
    if c.descendants is None:
        return before
    machines = c.descendants.control_plane_machines
    return ReplicaCounters(
        desired_replicas=len(machines) or None,
        replicas=len(machines) or None,
        ready_replicas=_having(machines, "Ready") or None,
        available_replicas=_having(machines, "Available") or None,
        up_to_date_replicas=_having(machines, "UpToDate") or None,
        upgrade_plan=before.upgrade_plan,
        versions=of_machines(machines, MOST_OF_CLUSTER),
    )


def worker_replicas(c: Snapshot) -> ReplicaCounters:
    """Return `status.workers`: sums over MachineDeployments, MachinePools and other direct children of the Cluster.

    A counter that no object reports is unknown, not zero. The upgrade plan belongs to the topology and is kept.
    """
    before = c.cluster.status.workers or ReplicaCounters()
    if c.descendants is None:
        return before
    all_of = c.descendants
    counters = [_reported(d) for d in all_of.machine_deployments] + [_reported(p) for p in all_of.machine_pools]
    counters += [_reported(s) for s in all_of.machine_sets if _is_child(c, s)]
    counters += [_counted(m) for m in all_of.own_worker_machines if _is_child(c, m)]
    return ReplicaCounters(
        desired_replicas=total(k.desired_replicas for k in counters),
        replicas=total(k.replicas for k in counters),
        ready_replicas=total(k.ready_replicas for k in counters),
        available_replicas=total(k.available_replicas for k in counters),
        up_to_date_replicas=total(k.up_to_date_replicas for k in counters),
        upgrade_plan=before.upgrade_plan,
        versions=aggregated((v for k in counters for v in k.versions), MOST_OF_CLUSTER),
    )


def _is_child(c: Snapshot, obj: MachineSet | Machine) -> bool:
    try:
        return is_child_of(obj.metadata, c.cluster)
    except ValueError:
        return False


def _reported(obj: MachineDeployment | MachinePool | MachineSet) -> ReplicaCounters:
    return ReplicaCounters(
        desired_replicas=obj.spec.replicas,
        replicas=obj.status.replicas,
        ready_replicas=obj.status.ready_replicas,
        available_replicas=obj.status.available_replicas,
        up_to_date_replicas=obj.status.up_to_date_replicas,
        versions=obj.status.versions,
    )


def _counted(machine: Machine) -> ReplicaCounters:
    def one(type: str) -> int | None:
        return 1 if is_true(machine.status.conditions, type) else None

    return ReplicaCounters(
        desired_replicas=1,
        replicas=1,
        ready_replicas=one("Ready"),
        available_replicas=one("Available"),
        up_to_date_replicas=one("UpToDate"),
        versions=of_machines([machine]),
    )


def _having(machines: Sequence[Machine], type: str) -> int:
    return sum(is_true(m.status.conditions, type) for m in machines)
