"""Find the next moment at which a decision changes only because time passes. Pure.

Upstream reconciles everything every ten minutes. We reconcile when something changes, so decisions that depend on time must name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from clusterwright.api.wellknown import REMEDIATION_FOR_ANNOTATION
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.etcd.matching import LEARNER_GRACE, MEMBER_GRACE
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import GarbledHistory, RemediationData, settings
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone
from clusterwright.controllers.owned_machines import STALE_AFTER

_INSTANT = timedelta(seconds=1)
"""A margin: bounds are exclusive and times have whole seconds, so a second later the bound has certainly passed."""


def next_deadline(snapshot: ControlPlaneDone) -> datetime | None:
    """Return the next moment at which a pass over the same state would decide otherwise; None if time does not matter."""
    moments = (m + _INSTANT for m in _deadlines(snapshot))
    return min((m for m in moments if m > snapshot.now), default=None)


def _deadlines(snapshot: ControlPlaneDone) -> Iterator[datetime]:
    if snapshot.renewal is not None:
        yield snapshot.renewal
    rollout = snapshot.spec.get("rollout") or {}
    days = (rollout.get("before") or {}).get("certificatesExpiryDays") or 0
    if rollout.get("after"):
        yield datetime.fromisoformat(rollout["after"])
    _, retry_period, min_healthy_period = settings(snapshot.spec.get("remediation") or {})
    health = names.health_conditions(managed_etcd=snapshot.managed_etcd)
    members = {m.name for m in snapshot.inspection.members or ()}
    for machine in snapshot.owned:
        expiry = machine.object.status.certificates_expiry_date
        if days and expiry is not None:
            yield expiry - timedelta(days=days)
        if machine.provider_id and (since := machine.failing_since(health)) is not None:
            yield since + names.SURFACE_AFTER
        if machine.deletion_timestamp is not None:
            yield machine.deletion_timestamp + STALE_AFTER
        if machine.has_node and members and ("" in members or machine.node not in members):
            registered = snapshot.registered(machine)
            if registered is not None:
                yield registered + LEARNER_GRACE
                yield registered + MEMBER_GRACE
        if machine.needs_remediation:
            yield from _remediation(machine, retry_period, min_healthy_period)


def _remediation(machine: ControlPlaneMachine, retry_period: timedelta, min_healthy_period: timedelta) -> Iterator[datetime]:
    annotation = machine.annotations.get(REMEDIATION_FOR_ANNOTATION)
    if annotation is None:
        return
    try:
        last = RemediationData.parse(annotation).time
    except GarbledHistory:
        return
    if last is not None:
        yield last + retry_period
        yield last + min_healthy_period
