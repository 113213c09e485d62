"""The guards of a MachineSet's tables."""

from __future__ import annotations

from clusterwright.controllers.kit.lookup import core_subject, subject
from clusterwright.controllers.machineset.snapshot import MachineSetDone, MachineSetSnapshot
from clusterwright.controllers.owned_machines import awaits_acknowledgement
from clusterwright.controllers.owned_machines import unlisted as unlisted_by_owner
from clusterwright.tables import Guard, Subject, guard

Snapshot = MachineSetSnapshot
Done = MachineSetDone

unlisted: Guard[Snapshot] = Guard(unlisted_by_owner.text, lambda c: c.machines is None)


@guard("!DeletionTimestamp.IsZero()")
def deleting(c: Snapshot) -> bool:
    return c.deleting


@guard("spec.replicas not set")
def replicas_unset(c: Snapshot) -> bool:
    return c.replicas is None


def _templates(c: Snapshot) -> tuple[Subject, ...]:
    """Return the templates that do not exist."""
    spec = c.object.spec.template.spec
    references = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return tuple(s for r in references if r is not None and r.kind in c.missing for s in subject(r, c.metadata.namespace))


def _obstacles(c: Done) -> tuple[Subject, ...]:
    """Return what keeps Machines from being created: the control plane, templates."""
    blocked = not c.preflight.passed
    return (*(subject(c.cluster.control_plane_ref, c.metadata.namespace) if blocked else ()), *_templates(c))


@guard("fewer Machines than wanted", about=_obstacles)
def too_few(c: Snapshot) -> bool:
    return c.machines is not None and c.replicas is not None and c.count < c.desired


@guard("more Machines than wanted, without those that await acknowledgement")
def too_many(c: Snapshot) -> bool:
    if c.machines is None or c.replicas is None:
        return False
    return sum(not awaits_acknowledgement(m) for m in c.machines) > c.desired


@guard("a template does not exist", about=_templates)
def missing_templates(c: Snapshot) -> bool:
    return bool(c.missing)


def _machines(c: Snapshot) -> tuple[Subject, ...]:
    return tuple(core_subject("Machine", m.key) for m in c.machines or ())


@guard("there are Machines", about=_machines)
def machines_left(c: Snapshot) -> bool:
    return c.count > 0


@guard("a Machine is not being deleted yet")
def any_undeleted(c: Snapshot) -> bool:
    return any(m.metadata.deletion_timestamp is None for m in c.machines or ())


@guard('annotation disable-machine-create is "true"')
def creation_disabled(c: Snapshot) -> bool:
    return c.creation_disabled


@guard("preflight checks could not be made")
def preflight_unknown(c: Done) -> bool:
    return bool(c.preflight.error)


@guard("preflight checks fail")
def preflight_fails(c: Done) -> bool:
    return not c.preflight.error and bool(c.preflight.messages)


@guard("the API server shows as many Machines as are wanted, although they are not seen yet")
def enough_exist(c: Done) -> bool:
    return len(c.existing) >= c.desired


@guard("the MachineDeployment has as many Machines as it may, replicas and surge")
def no_room(c: Done) -> bool:
    return c.room is not None and c.room <= 0


@guard("more Machines than wanted, without those that await acknowledgement while Machines are moved here")
def surplus(c: Snapshot) -> bool:
    return c.replicas is not None and c.surplus > 0


@guard("annotation move-machines-to-machineset names a MachineSet")
def moves(c: Snapshot) -> bool:
    return bool(c.moves_to)


@guard("Machines could not be created in this pass")
def refused(c: Done) -> bool:
    return c.refusal is not None
