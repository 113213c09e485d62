"""Compute PodDisruptionBudget status on demand, as the disruption controller would."""

from __future__ import annotations

import math

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.selectors import object_selector
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.storage.store import Entry


def _scaled(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    fraction = float(value.rstrip("%")) / 100 * total
    return math.ceil(fraction) if up else math.floor(fraction)


def _is_healthy(pod: Json) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def refresh(server: Core, entry: Entry, budget: Json) -> None:
    """Update a budget's status, in the given object only."""
    spec = budget.get("spec") or {}
    selects = object_selector(spec.get("selector"))
    pods = [msgspec.json.decode(e.raw) for e in server.store.table("pods").range(entry.namespace) if selects(e.labels)]
    expected = len(pods)
    healthy = sum(map(_is_healthy, pods))
    if spec.get("maxUnavailable") is not None:
        desired = max(0, expected - _scaled(spec["maxUnavailable"], expected, up=True))
    else:
        desired = _scaled(spec.get("minAvailable", 1), expected, up=True)
    status = dict(budget.get("status") or {})
    status.update(
        expectedPods=expected,
        currentHealthy=healthy,
        desiredHealthy=desired,
        disruptionsAllowed=max(0, healthy - desired) if expected else 0,
        observedGeneration=budget["metadata"].get("generation") or 0,
    )
    budget["status"] = status
