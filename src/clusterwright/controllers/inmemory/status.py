"""The status of a machine at the end of a pass. Pure."""

from __future__ import annotations

from clusterwright import conditions
from clusterwright.api.copying import replace
from clusterwright.api.core import MachineAddress
from clusterwright.api.infrastructure import DevInitializationStatus, InfraMachine
from clusterwright.conditions import v1beta1
from clusterwright.controllers.inmemory.conditions import CONTROL_PLANE_TABLES, WORKER_TABLES, Progress
from clusterwright.controllers.inmemory.revival import known_address
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.controllers.kit.conditions import decided, v1beta1_conditions, with_condition, with_v1beta1


def conclude(scene: Scene, obj: InfraMachine, progress: Progress, address: str) -> tuple[InfraMachine, dict[str, str]]:
    """Return the object with its status, and the rows that fired."""
    now, rows = scene.now, {}
    tables = CONTROL_PLANE_TABLES if scene.is_control_plane else WORKER_TABLES
    for table in tables:
        decision = table.decide(progress)
        rows[table.name] = decision.row
        obj = decided(obj, table, decision, now)
    types = [table.name for table in tables]
    reasons = conditions.Reasons(issue="NotReady", unknown="ReadyUnknown", info="Ready")
    ready = conditions.summary(conditions.reporter(obj), types, target="Ready", strategy=conditions.Strategy(reasons=reasons))
    obj = with_condition(obj, ready, now)
    is_provisioned = bool(obj.spec.provider_id)
    counts = not is_provisioned and obj.metadata.deletion_timestamp is None
    obj = with_v1beta1(obj, v1beta1.summary(obj.kind, scene.name, v1beta1_conditions(obj), types=types, step_counter=counts), now)
    status = obj.status
    if is_provisioned:
        status = replace(
            status,
            initialization=DevInitializationStatus(provisioned=True),
            addresses=_addresses(scene.name, address or known_address(obj)),  # of one that was moved, before it has started again
            failure_domain=scene.machine.spec.failure_domain,
        )
    return replace(obj, status=status), rows


def _addresses(name: str, address: str) -> tuple[MachineAddress, ...]:
    return (
        MachineAddress(type="InternalDNS", address=name),
        MachineAddress(type="InternalIP", address=address),
    )
