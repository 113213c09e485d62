"""One object's list of conditions: query, set, delete, order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition

_FIRST: Final = (
    "Available", "Ready", "UpToDate", "RemoteConnectionProbe", "BootstrapConfigReady", "InfrastructureReady",
    "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable", "CertificatesAvailable", "Initialized",
    "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "NodeHealthy", "NodeReady", "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy", "EtcdMemberHealthy", "APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy",
    "HealthCheckSucceeded", "OwnerRemediated", "TopologyReconciled", "Updating", "RollingOut", "Remediating", "ScalingDown",
    "ScalingUp", "MachinesReady", "ControlPlaneMachinesReady", "WorkerMachinesReady", "MachinesUpToDate",
    "ControlPlaneMachinesUpToDate", "WorkerMachinesUpToDate",
)  # fmt: skip
_ORDER: Final = {t: n for n, t in enumerate(_FIRST)} | {"Paused": len(_FIRST) + 1, "Deleting": len(_FIRST) + 2}
_OTHERS: Final = len(_FIRST)


def get(conditions: Iterable[Condition], type: str) -> Condition | None:
    """Return the first condition of the type."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def has(conditions: Iterable[Condition], type: str) -> bool:
    """Return whether the type is reported at all."""
    return get(conditions, type) is not None


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Return whether the type is reported and True."""
    found = get(conditions, type)
    return found is not None and found.status == "True"


def is_false(conditions: Iterable[Condition], type: str) -> bool:
    """Return whether the type is reported and False."""
    found = get(conditions, type)
    return found is not None and found.status == "False"


def is_unknown(conditions: Iterable[Condition], type: str) -> bool:
    """Return whether the type is Unknown; a missing condition counts as unknown."""
    found = get(conditions, type)
    return found is None or found.status == "Unknown"


def reason_of(conditions: Iterable[Condition], type: str) -> str:
    """Return the reason, or empty."""
    found = get(conditions, type)
    return found.reason if found else ""


def message_of(conditions: Iterable[Condition], type: str) -> str:
    """Return the message, or empty."""
    found = get(conditions, type)
    return found.message if found else ""


def sort_conditions(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return conditions in reading order: availability first, Paused and Deleting last, unknown types by name before those."""
    return tuple(sorted(conditions, key=_position))


def _position(condition: Condition) -> tuple[int, str]:
    order = _ORDER.get(condition.type, _OTHERS)
    return order, condition.type if order == _OTHERS else ""


def set_condition(
    conditions: tuple[Condition, ...], condition: Condition, *, generation: int | None, now: datetime
) -> tuple[Condition, ...]:
    """Return the list with the condition in it.

    The transition time moves only with the status: to the one that `condition` carries (mirrored conditions), else to `now`; whole seconds.
    observedGeneration is `generation`; None keeps the one that `condition` carries. If nothing changes, the same tuple is returned.
    """
    since = condition.last_transition_time or now
    since = since.astimezone(UTC).replace(microsecond=0)
    observed = condition.observed_generation if generation is None else generation
    for n, old in enumerate(conditions):
        if old.type != condition.type:
            continue
        kept = old.last_transition_time if old.status == condition.status else since
        new = replace(condition, last_transition_time=kept, observed_generation=observed)
        if new == old:
            return conditions
        return sort_conditions((*conditions[:n], new, *conditions[n + 1 :]))
    return sort_conditions((*conditions, replace(condition, last_transition_time=since, observed_generation=observed)))


def delete_condition(conditions: tuple[Condition, ...], type: str) -> tuple[Condition, ...]:
    """Return the list without any condition of the type."""
    return tuple(c for c in conditions if c.type != type)
