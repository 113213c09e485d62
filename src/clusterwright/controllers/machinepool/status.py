"""Phase and counters of a MachinePool. Pure."""

from __future__ import annotations

from clusterwright.api.copying import replace
from clusterwright.api.core import MachinePool
from clusterwright.controllers.kit.contract import failure, read_error
from clusterwright.controllers.kit.lookup import Found
from clusterwright.controllers.machinepool import guards as g
from clusterwright.controllers.machinepool.nodes import kubelets
from clusterwright.controllers.machinepool.snapshot import COUNTED, PoolDone, PoolSnapshot, infrastructure_machine_kind
from clusterwright.controllers.version_counts import aggregated, of_kubelets
from clusterwright.tables import KEEP, OTHERWISE, Phase, Row, Table

_SIZED = g.provisioned & g.replicas_set

# fmt: off
PHASE: Table[PoolSnapshot] = Table(
    "Phase",
    Row("deleting",        g.deleting,                                     Phase("Deleting")),
    Row("scaling",         _SIZED & (g.too_few | g.too_many) & g.managed_elsewhere, Phase("Scaling")),
    Row("scaling-up",      _SIZED & g.too_few,                             Phase("ScalingUp")),
    Row("scaling-down",    _SIZED & g.too_many,                            Phase("ScalingDown")),
    Row("running",         _SIZED,                                         Phase("Running")),
    Row("provisioned",     ~g.no_refs,                                     Phase("Provisioned")),
    Row("provisioning",    g.secret_created & ~g.provisioned,              Phase("Provisioning")),
    Row("as-it-is",        g.phase_set,                                    KEEP),
    Row("pending",         OTHERWISE,                                      Phase("Pending")),
    at_most_one=[(g.too_few, g.too_many)],
)
# fmt: on


def with_counters(s: PoolDone) -> MachinePool:
    """Return the pool with its counters: of its Machines, or, without machine objects, as the infrastructure reports.

    Unchanged if the infrastructure was not read. Raises MalformedField.
    """
    if s.deleting or not isinstance(s.infrastructure, Found) or read_error(s.infrastructure, failure):
        return s.object
    status = s.object.status
    if not infrastructure_machine_kind(s.infrastructure):
        ready, available, up_to_date = status.replicas, status.replicas, s.object.spec.replicas
        versions = of_kubelets(kubelets(status.node_refs, s.nodes))
    else:
        statuses = [m.statuses for m in s.machines or ()]
        ready, available, up_to_date = (sum(told.get(type) == "True" for told in statuses) for type in COUNTED)
        versions = aggregated(m.version for m in s.machines or ())
    after = replace(status, ready_replicas=ready, available_replicas=available, up_to_date_replicas=up_to_date, versions=versions)
    return s.object if after == status else replace(s.object, status=after)


def with_phase(pool: MachinePool, phase: str) -> MachinePool:
    """Return the pool in this phase."""
    return pool if pool.status.phase == phase else replace(pool, status=replace(pool.status, phase=phase))
