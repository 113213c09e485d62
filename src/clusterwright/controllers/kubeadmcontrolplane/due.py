"""When time alone will change a decision, although nothing happens: the next such moment. Pure.

Upstream looks at everything every ten minutes. We look when something changes, so that what depends on the clock must say when.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.desired import Owner
from clusterwright.controllers.kubeadmcontrolplane.health import MEMBER_GRACE
from clusterwright.controllers.kubeadmcontrolplane.machines import STALE_AFTER, ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.remediation import GarbledHistory, RemediationData, settings
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot

_INSTANT = timedelta(seconds=1)
"""Bounds are exclusive and times have whole seconds: a second later it is certain."""


def next_moment(snapshot: ControlPlaneSnapshot, owner: Owner) -> datetime | None:
    """The next moment at which a pass over the same world would decide otherwise; None if time does not matter."""
    moments = (m + _INSTANT for m in _moments(snapshot, owner))
    return min((m for m in moments if m > snapshot.now), default=None)


def _moments(snapshot: ControlPlaneSnapshot, owner: Owner) -> Iterator[datetime]:
    rollout = owner.spec.get("rollout") or {}
    days = (rollout.get("before") or {}).get("certificatesExpiryDays") or 0
    if rollout.get("after"):
        yield datetime.fromisoformat(rollout["after"])
    _, retry_period, min_healthy_period = settings(owner.spec.get("remediation") or {})
    health = names.health_conditions(managed_etcd=snapshot.managed_etcd)
    members = {m.name for m in snapshot.inspection.members or ()}
    for machine in snapshot.machines:
        if days and machine.certificates_expiry is not None:
            yield machine.certificates_expiry - timedelta(days=days)
        if machine.provider_id and (since := machine.failing_since(health)) is not None:
            yield since + names.SURFACE_AFTER
        if machine.deletion_timestamp is not None:
            yield machine.deletion_timestamp + STALE_AFTER
        if machine.has_node and members and machine.node not in members:
            node = snapshot.inspection.nodes.get(machine.node)
            if node is not None and node.metadata.creation_timestamp is not None:
                yield node.metadata.creation_timestamp + MEMBER_GRACE
        if machine.needs_remediation:
            yield from _remediation(machine, retry_period, min_healthy_period)


def _remediation(machine: ControlPlaneMachine, retry_period: timedelta, min_healthy_period: timedelta) -> Iterator[datetime]:
    annotation = machine.annotations.get(names.REMEDIATION_FOR)
    if annotation is None:
        return
    try:
        last = RemediationData.parse(annotation).time
    except GarbledHistory:
        return
    if last is not None:
        yield last + retry_period
        yield last + min_healthy_period
