"""Order the Machines for deletion when there are too many. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from clusterwright.api.core import Machine
from clusterwright.api.wellknown import DELETE_MACHINE_ANNOTATION
from clusterwright.conditions import is_false
from clusterwright.controllers.owned_machines import is_deleting, is_updating

RANDOM, NEWEST, OLDEST = "Random", "Newest", "Oldest"
_DELETING: Final = 100.0
_ASKED_FOR: Final = 80.0
_UPDATING: Final = 75.0
_UNHEALTHY: Final = 50.0
_ANY: Final = 20.0
_BY_AGE: Final = 50.0
_AGING: Final = timedelta(days=10)


class UnknownOrder(ValueError):
    """`spec.deletion.order` has an unknown value."""


def priority(machine: Machine, order: str, now: datetime) -> float:
    """Return the deletion priority of a Machine, from 0 to 100. Raises UnknownOrder.

    Already deleting, marked by name, updating in place, unhealthy; only then the configured order counts.
    """
    if order not in {"", RANDOM, NEWEST, OLDEST}:
        raise UnknownOrder(f"unsupported deletion order: {order!r}, must be one of Random, Newest, Oldest")
    if is_deleting(machine):
        return _DELETING
    if DELETE_MACHINE_ANNOTATION in machine.metadata.annotations:
        return _ASKED_FOR
    if is_updating(machine):
        return _UPDATING
    if _is_unhealthy(machine):
        return _UNHEALTHY
    match order:
        case "Oldest":
            return _seniority(machine, now)
        case "Newest":
            return _BY_AGE - _seniority(machine, now)
        case _:
            return _ANY


def in_order(machines: Iterable[Machine], order: str, now: datetime) -> list[Machine]:
    """Return the Machines in deletion order; equal ones by name. Raises UnknownOrder."""
    return sorted(machines, key=lambda m: (-priority(m, order, now), m.metadata.name))


def _is_unhealthy(machine: Machine) -> bool:
    """Return whether it has no Node, or an unhealthy Node, or failed its health check; unknown facts do not count."""
    conditions = machine.status.conditions
    has_node = machine.status.node_ref is not None and bool(machine.status.node_ref.name)
    return not has_node or is_false(conditions, "NodeHealthy") or is_false(conditions, "HealthCheckSucceeded")


def _seniority(machine: Machine, now: datetime) -> float:
    """Return a number from 0 for a new Machine towards 50; the age is limited to a few multiples of ten days."""
    created = machine.metadata.creation_timestamp
    if created is None or created >= now:
        return 0.0
    return _BY_AGE * (1.0 - math.exp(-((now - created) / _AGING)))
