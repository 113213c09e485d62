"""An owned Machine with its neighbours, reduced to what decisions about it ask for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from clusterwright.api.meta import Condition, ObjectKey, Unstructured, V1Beta1Condition
from clusterwright.controllers.kubeadmcontrolplane import names


@dataclass(frozen=True, slots=True, kw_only=True)
class UpToDate:
    """Whether a Machine is what the spec asks for. No `messages`: it is. `in_place`: an update in place may mend it."""

    messages: tuple[str, ...] = ()
    in_place: bool = False

    @property
    def holds(self) -> bool:
        """Whether nothing has to change."""
        return not self.messages


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneMachine:
    """A Machine that the control plane owns. `infrastructure` and `config` are None if they do not exist."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    created: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    provider_id: str = ""
    version: str = ""
    failure_domain: str = ""
    certificates_expiry: datetime | None = None
    drain_started: datetime | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    v1beta1_conditions: tuple[V1Beta1Condition, ...] = ()
    infrastructure: Unstructured | None = None
    config: Unstructured | None = None
    up_to_date: UpToDate = UpToDate()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def deleting(self) -> bool:
        """Whether its deletion was asked for."""
        return self.deletion_timestamp is not None

    @property
    def has_node(self) -> bool:
        """Whether its Node is known; a Machine without is provisioning."""
        return bool(self.node)

    @property
    def infrastructure_kind(self) -> str:
        """The kind of its InfraMachine."""
        return str((self.spec.get("infrastructureRef") or {}).get("kind", ""))

    @property
    def age_key(self) -> tuple[datetime, str]:
        """Orders Machines from the oldest to the newest."""
        return (self.created or _BEGINNING, self.name)

    def condition(self, type: str) -> Condition | None:
        """Its condition of this type."""
        return next((c for c in self.conditions if c.type == type), None)

    def is_true(self, type: str) -> bool:
        """Whether the condition is there and True."""
        found = self.condition(type)
        return found is not None and found.status == "True"

    def is_false(self, type: str) -> bool:
        """Whether the condition is there and False."""
        found = self.condition(type)
        return found is not None and found.status == "False"

    @property
    def unhealthy(self) -> bool:
        """Whether a health check found it wanting."""
        return self.is_false(names.HEALTH_CHECK_SUCCEEDED)

    @property
    def needs_remediation(self) -> bool:
        """Whether it is unhealthy and its owner was asked to remediate it."""
        return self.unhealthy and self.is_false(names.OWNER_REMEDIATED)

    @property
    def update_in_progress(self) -> bool:
        """Whether an update in place was begun."""
        return names.UPDATE_IN_PROGRESS in self.annotations

    @property
    def update_pending(self) -> bool:
        """Whether the Machine controller still has to run the update hook."""
        return "UpdateMachine" in self.annotations.get(names.PENDING_HOOKS, "").split(",")

    def lacks_any(self, types: Iterable[str]) -> bool:
        """Whether one of the conditions is missing or not True."""
        return any(not self.is_true(t) for t in types)

    def failing_since(self, types: Iterable[str]) -> datetime | None:
        """The earliest transition among the conditions that are there and not True."""
        times = [
            c.last_transition_time for t in types if (c := self.condition(t)) is not None and c.status != "True" and c.last_transition_time
        ]
        return min(times) if times else None

    def with_(self, **changes: Any) -> ControlPlaneMachine:
        """A changed copy."""
        return replace(self, **changes)


_BEGINNING = datetime.fromisoformat("0001-01-01T00:00:00+00:00")


def oldest(machines: Iterable[ControlPlaneMachine]) -> ControlPlaneMachine | None:
    """The one created first; name breaks ties."""
    return min(machines, key=lambda m: m.age_key, default=None)


def newest(machines: Iterable[ControlPlaneMachine]) -> ControlPlaneMachine | None:
    """The one created last; name breaks ties."""
    return max(machines, key=lambda m: m.age_key, default=None)


STALE_AFTER = timedelta(minutes=15)
DRAIN_STALE_AFTER = timedelta(minutes=5)
_DRAIN_CAUSES = (
    ("PodDisruptionBudgets", "cannot evict pod as it would violate the pod's disruption budget."),
    ("Pods not terminating", "deletionTimestamp set, but still not removed from the Node"),
    ("Pod eviction errors", "failed to evict Pod"),
    ("Pods not completed yet", "waiting for completion"),
)


def stale_text(machines: Sequence[ControlPlaneMachine], now: datetime) -> str:
    """Which Machines have been in deletion for too long, and what likely holds them; empty if none."""
    stale = [m for m in machines if m.deletion_timestamp is not None and now - m.deletion_timestamp > STALE_AFTER]
    if not stale:
        return ""
    causes: list[str] = []
    for machine in stale:
        deleting = machine.condition(names.DELETING)
        if deleting is None or deleting.status != "True" or deleting.reason != "DrainingNode":
            continue
        if machine.drain_started is None or now - machine.drain_started <= DRAIN_STALE_AFTER:
            continue
        causes += [cause for cause, text in _DRAIN_CAUSES if text in deleting.message and cause not in causes]
    one = len(stale) == 1
    text = f"Machine{'' if one else 's'} {names.limited([m.name for m in stale])} {'is' if one else 'are'} in deletion since more than 15m"
    if causes:
        ordered = [cause for cause, _ in _DRAIN_CAUSES if cause in causes]
        text += f", delay likely due to {', '.join(ordered)}"
    return text
