"""The decisions of a pass about a MachineHealthCheck and its Machines. Pure: from a snapshot to changed objects."""

from __future__ import annotations

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineHealthCheck
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.external import with_owner
from clusterwright.controllers.kit.conditions import decided
from clusterwright.controllers.machinehealthcheck.conditions import MACHINE_TABLES
from clusterwright.controllers.machinehealthcheck.evaluation import ClusterFacts, evaluate
from clusterwright.controllers.machinehealthcheck.limits import InvalidLimit, Limit, limit_of
from clusterwright.controllers.machinehealthcheck.snapshot import HealthCheckDone, TargetSnapshot
from clusterwright.tables import Decision


def with_owner_and_label(check: MachineHealthCheck, cluster: ClusterFacts) -> MachineHealthCheck:
    """Return the check with the label and owner reference of its Cluster, so that both are deleted together."""
    metadata = check.metadata
    owners = with_owner(metadata.owner_references, cluster.reference)
    labels = {**metadata.labels, CLUSTER_NAME_LABEL: check.spec.cluster_name}
    return replace(check, metadata=replace(metadata, labels=labels, owner_references=owners))


def judged(done: HealthCheckDone) -> HealthCheckDone:
    """Evaluate every Machine, and decide whether the unhealthy ones among them may be remediated."""
    check, cluster, now = done.object, done.cluster, done.now
    found = [TargetSnapshot(now=now, check=check, target=t, evaluation=evaluate(check, cluster, t, now)) for t in done.found]
    limit, error = Limit(), ""
    try:
        limit = limit_of(check, len(found))
    except InvalidLimit as invalid:
        error = str(invalid)
    done = replace(done, targets=tuple(found), is_judged=True, limit=limit, limit_error=error)
    return replace(done, targets=tuple(replace(t, allowed=done.is_remediation_allowed) for t in found))


def with_counters(done: HealthCheckDone) -> MachineHealthCheck:
    """Return the check with its counters; an invalid limit keeps the previous value of remediationsAllowed."""
    check = done.object
    left = check.status.remediations_allowed if done.limit_error else done.limit.left(done.expected - done.healthy)
    status = replace(
        check.status,
        expected_machines=done.expected,
        current_healthy=done.healthy,
        remediations_allowed=left,
        targets=tuple(sorted(t.machine.metadata.name for t in done.targets)),
    )
    return check if status == check.status else replace(check, status=status)


def conclude(target: TargetSnapshot, machine: Machine) -> tuple[Machine, list[Decision]]:
    """Return the Machine, which may be newer than the judged one, with the check's conditions."""
    decisions = []
    for table in MACHINE_TABLES:
        decisions.append(table.decide(target))
        machine = decided(machine, table, decisions[-1], target.now)
    return machine, decisions
