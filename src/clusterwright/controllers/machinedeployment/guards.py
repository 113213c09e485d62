"""The questions that a MachineDeployment's tables ask."""

from __future__ import annotations

from clusterwright.conditions import is_false
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentSnapshot
from clusterwright.tables import guard

Snapshot = MachineDeploymentSnapshot


@guard("MachineSets could not be listed")
def unlisted(c: Snapshot) -> bool:
    return c.machine_sets is None


@guard("!DeletionTimestamp.IsZero()")
def deleting(c: Snapshot) -> bool:
    return c.deleting


@guard("spec.replicas not set")
def replicas_unset(c: Snapshot) -> bool:
    return c.replicas is None


@guard("spec.paused")
def paused(c: Snapshot) -> bool:
    return bool(c.object.spec.paused)


@guard("spec.rollout.strategy.type == RollingUpdate")
def rolling(c: Snapshot) -> bool:
    return c.strategy == "RollingUpdate"


@guard("spec.rollout.strategy.type == OnDelete")
def on_delete(c: Snapshot) -> bool:
    return c.strategy == "OnDelete"


@guard("maxSurge or maxUnavailable is neither a number nor a percentage")
def limits_garbled(c: Snapshot) -> bool:
    return c.limits is None


@guard("status.availableReplicas not set")
def available_unset(c: Snapshot) -> bool:
    return c.object.status.available_replicas is None


@guard("status.availableReplicas >= spec.replicas - maxUnavailable")
def enough_available(c: Snapshot) -> bool:
    return (c.object.status.available_replicas or 0) >= c.least_available


@guard("fewer Machines than wanted")
def too_few(c: Snapshot) -> bool:
    return c.machine_sets is not None and c.replicas is not None and c.current < c.desired


@guard("more Machines than wanted")
def too_many(c: Snapshot) -> bool:
    return c.machine_sets is not None and c.replicas is not None and c.current > c.desired


@guard("a template does not exist")
def missing_templates(c: Snapshot) -> bool:
    return bool(c.missing)


@guard("a Machine has UpToDate False")
def any_outdated(c: Snapshot) -> bool:
    return any(is_false(m.status.conditions, "UpToDate") for m in c.machines)


@guard("there are Machines")
def machines_left(c: Snapshot) -> bool:
    return bool(c.machines)


@guard("there are MachineSets")
def machine_sets_left(c: Snapshot) -> bool:
    return bool(c.machine_sets)


@guard("a MachineSet is not being deleted yet")
def any_undeleted(c: Snapshot) -> bool:
    return any(s.metadata.deletion_timestamp is None for s in c.machine_sets or ())
