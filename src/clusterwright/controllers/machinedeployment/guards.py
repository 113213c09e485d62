"""The guards of a MachineDeployment's tables."""

from __future__ import annotations

from collections.abc import Callable

from clusterwright.api.core import MachineSet
from clusterwright.conditions import is_false
from clusterwright.controllers.kit.lookup import core_subject, subject
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentSnapshot
from clusterwright.tables import Subject, guard

Snapshot = MachineDeploymentSnapshot


def _templates(c: Snapshot) -> tuple[Subject, ...]:
    """Return the templates that do not exist."""
    spec = c.object.spec.template.spec
    references = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return tuple(s for r in references if r is not None and r.kind in c.missing for s in subject(r, c.metadata.namespace))


def _machine_sets(which: Callable[[MachineSet], bool]) -> Callable[[Snapshot], tuple[Subject, ...]]:
    """Return the MachineSets that match a predicate."""
    return lambda c: tuple(core_subject("MachineSet", s.key) for s in c.machine_sets or () if which(s))


def _is_short(machine_set: MachineSet) -> bool:
    return (machine_set.status.available_replicas or 0) < (machine_set.spec.replicas or 0)


def _growing(c: Snapshot) -> tuple[Subject, ...]:
    """Return what keeps Machines from being created: templates, or the MachineSets that should create them."""
    return _templates(c) or _machine_sets(_is_short)(c)


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


@guard("status.availableReplicas >= spec.replicas - maxUnavailable", about=_machine_sets(_is_short))
def enough_available(c: Snapshot) -> bool:
    return (c.object.status.available_replicas or 0) >= c.least_available


@guard("fewer Machines than wanted", about=_growing)
def too_few(c: Snapshot) -> bool:
    return c.machine_sets is not None and c.replicas is not None and c.current < c.desired


@guard("more Machines than wanted")
def too_many(c: Snapshot) -> bool:
    return c.machine_sets is not None and c.replicas is not None and c.current > c.desired


@guard("a template does not exist", about=_templates)
def missing_templates(c: Snapshot) -> bool:
    return bool(c.missing)


def _outdated(c: Snapshot) -> tuple[Subject, ...]:
    outdated = (m for m in c.machines if is_false(m.status.conditions, "UpToDate"))
    return tuple(core_subject("Machine", m.key) for m in outdated)


@guard("a Machine has UpToDate False", about=_outdated)
def any_outdated(c: Snapshot) -> bool:
    return any(is_false(m.status.conditions, "UpToDate") for m in c.machines)


@guard("there are Machines")
def machines_left(c: Snapshot) -> bool:
    return bool(c.machines)


@guard("there are MachineSets", about=_machine_sets(lambda _: True))
def machine_sets_left(c: Snapshot) -> bool:
    return bool(c.machine_sets)


@guard("a MachineSet is not being deleted yet")
def any_undeleted(c: Snapshot) -> bool:
    return any(s.metadata.deletion_timestamp is None for s in c.machine_sets or ())
