"""Counters and phase of a MachineDeployment. Pure."""

from __future__ import annotations

from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.core import MachineDeployment, MachineSet
from clusterwright.api.selectors import InvalidSelector, selector_text
from clusterwright.controllers import version_counts
from clusterwright.controllers.intstr import capped, total
from clusterwright.controllers.kit.conditions import with_v1beta1_status
from clusterwright.controllers.machinedeployment.guards import deleting, replicas_unset, unlisted
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentDone, MachineDeploymentSnapshot
from clusterwright.tables import OTHERWISE, Guard, Phase, Row, Table

Snapshot = MachineDeploymentSnapshot
Done = MachineDeploymentDone


def counted(snapshot: Snapshot) -> MachineDeployment:
    """Return the MachineDeployment with its counters; unchanged if its MachineSets could not be listed."""
    deployment, sets = snapshot.object, snapshot.machine_sets
    try:
        selector = selector_text(deployment.spec.selector)
    except InvalidSelector:
        selector = deployment.status.selector
    if sets is None:
        return replace(deployment, status=replace(deployment.status, selector=selector))
    return replace(
        deployment,
        status=replace(
            deployment.status,
            selector=selector,
            replicas=total(s.status.replicas for s in sets),
            ready_replicas=total(s.status.ready_replicas for s in sets),
            available_replicas=total(s.status.available_replicas for s in sets),
            up_to_date_replicas=total(s.status.up_to_date_replicas for s in sets),
            versions=version_counts.aggregated(v for s in sets for v in s.status.versions),
        ),
    )


def v1beta1_counted(snapshot: Done) -> MachineDeployment:
    """Return the MachineDeployment with its deprecated counters."""
    sets, new = snapshot.machine_sets or (), snapshot.new_machine_set
    ready = sum(_old(s)[0] for s in sets)
    available = sum(_old(s)[1] for s in sets)
    return with_v1beta1_status(
        snapshot.object,
        updated_replicas=(new.status.replicas or 0) if new else 0,
        ready_replicas=capped(ready),
        available_replicas=capped(available),
        unavailable_replicas=capped(max(sum(s.spec.replicas or 0 for s in sets) - available, 0)),
    )


def _old(machine_set: MachineSet) -> tuple[int, int]:
    """Return the deprecated counters: ready and available."""
    deprecated = machine_set.status.deprecated
    old = deprecated.v1beta1 if deprecated else None
    return (old.ready_replicas, old.available_replicas) if old else (0, 0)


def is_complete(deployment: MachineDeployment) -> bool:
    """Return whether the rollout is complete: all Machines exist, are available and up to date, observed for the latest spec."""
    status, replicas = deployment.status, deployment.spec.replicas
    counts = {status.up_to_date_replicas or 0, status.replicas or 0, status.available_replicas or 0}
    return counts == {replicas} and status.observed_generation >= deployment.metadata.generation


def is_spent(machine_set: MachineSet) -> bool:
    """Return whether an old MachineSet has no Machines and will get none."""
    status, metadata = machine_set.status, machine_set.metadata
    is_empty = not machine_set.spec.replicas and not status.replicas
    return is_empty and metadata.generation <= status.observed_generation and metadata.deletion_timestamp is None


# ------------------------------------------------------------------------------------------------------- phase

_fewer: Guard[Snapshot] = Guard("fewer Machines than wanted", lambda c: (c.object.status.replicas or 0) < (c.replicas or 0))
_more: Guard[Snapshot] = Guard("more Machines than wanted", lambda c: (c.object.status.replicas or 0) > (c.replicas or 0))

# fmt: off
PHASE: Final[Table[Snapshot]] = Table(
    "phase",
    Row("unknown",           unlisted | replicas_unset,  Phase("Unknown")),
    Row("deleting",          deleting,                   Phase("ScalingDown")),
    Row("scaling-up",        _fewer,                     Phase("ScalingUp")),
    Row("scaling-down",      _more,                      Phase("ScalingDown")),
    Row("running",           OTHERWISE,                  Phase("Running")),
    about="For people; no code depends on it.",
    assuming=[~(_fewer & _more)],
)
# fmt: on
