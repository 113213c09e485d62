"""What a DevMachine says of itself at the end of a pass. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from clusterwright import conditions
from clusterwright.api.core import MachineAddress
from clusterwright.api.infrastructure import DevDeprecatedStatus, DevDeprecatedV1Beta1Status, DevInitializationStatus, DevMachine
from clusterwright.api.meta import Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.inmemory.conditions import CONTROL_PLANE_TABLES, V1BETA1, WORKER_TABLES, Progress
from clusterwright.controllers.inmemory.scene import Scene


def conclude(scene: Scene, obj: DevMachine, progress: Progress, address: str) -> tuple[DevMachine, dict[str, str]]:
    """The object with its status, and the rows that fired."""
    generation, now = obj.metadata.generation, scene.now
    present = obj.status.conditions
    old = obj.status.deprecated.v1beta1 if obj.status.deprecated and obj.status.deprecated.v1beta1 else DevDeprecatedV1Beta1Status()
    legacy = old.conditions
    rows: dict[str, str] = {}
    tables = CONTROL_PLANE_TABLES if scene.is_control_plane else WORKER_TABLES
    for table in tables:
        decision = table.decide(progress)
        rows[table.name] = decision.row
        outcome = decision.outcome
        assert outcome is not None
        condition = Condition(type=table.name, status=outcome.status, reason=outcome.reason, message=outcome.message)
        present = conditions.set_condition(present, condition, generation=generation, now=now)
        if outcome.status == "True":
            legacy = v1beta1.set_condition(legacy, v1beta1.true(table.name), now=now)
        elif decision.row in V1BETA1:
            reason, severity = V1BETA1[decision.row]
            legacy = v1beta1.set_condition(legacy, v1beta1.false(table.name, reason, severity, outcome.message), now=now)
    types = [table.name for table in tables]
    source = conditions.Reporter(kind="DevMachine", name=scene.name, conditions=present)
    reasons = conditions.Reasons(issue="NotReady", unknown="ReadyUnknown", info="Ready")
    ready = conditions.summary(source, types, target="Ready", strategy=conditions.Strategy(reasons=reasons))
    present = conditions.set_condition(present, ready, generation=generation, now=now)
    is_provisioned = bool(obj.spec.provider_id)
    counts = not is_provisioned and obj.metadata.deletion_timestamp is None
    old_ready = v1beta1.summary("DevMachine", scene.name, legacy, types=types, step_counter=counts)
    if old_ready is not None:
        legacy = v1beta1.set_condition(legacy, old_ready, now=now)
    status = replace(obj.status, conditions=present, deprecated=DevDeprecatedStatus(v1beta1=replace(old, conditions=legacy)))
    if is_provisioned:
        status = replace(
            status,
            initialization=DevInitializationStatus(provisioned=True),
            addresses=_addresses(scene.name, address),
            failure_domain=scene.machine.spec.failure_domain,
        )
    return replace(obj, status=status), rows


def _addresses(name: str, address: str) -> tuple[MachineAddress, ...]:
    return (
        MachineAddress(type="InternalDNS", address=name),
        MachineAddress(type="InternalIP", address=address),
    )


def known_address(obj: DevMachine) -> str:
    """The address that the machine has had before, if any."""
    return next((a.address for a in obj.status.addresses if a.type == "InternalIP"), "")
