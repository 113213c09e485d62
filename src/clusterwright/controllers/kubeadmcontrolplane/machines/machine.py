"""An owned Machine with its dependent objects, as input for decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import Condition, ObjectKey, Unstructured, V1Beta1Condition
from clusterwright.conditions import delete_condition, get, is_false, is_true, set_condition
from clusterwright.controllers import owned_machines
from clusterwright.controllers.kit.conditions import v1beta1_conditions
from clusterwright.controllers.kit.lookup import core_subject
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.runtime.client import Original
from clusterwright.tables import Subject

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The differences between a Machine and the spec; none by default."""

    certificates_expiring: bool = False
    rollout_due: bool = False
    wanted_version: str | None = None
    """The wanted version; None: the Machine has it."""
    config: bool = False
    infrastructure: bool = False

    @property
    def any(self) -> bool:
        """Whether something has to change."""
        return self != NO_DIFFERENCE


NO_DIFFERENCE = Differences()


@dataclass(frozen=True, kw_only=True)
class ControlPlaneMachine:
    """A Machine that the control plane owns. `infrastructure` and `config` are None if they do not exist.

    `object` is the Machine as this pass would leave it, `original` what the API server last showed of it.
    """

    object: Machine
    original: Original[Machine] | None = None
    infrastructure: Unstructured | None = None
    config: Unstructured | None = None
    differences: Differences = NO_DIFFERENCE
    """The differences from the spec, as this pass found them."""

    @staticmethod
    def of(original: Original[Machine]) -> ControlPlaneMachine:
        """Return a Machine as read, without its dependent objects."""
        return ControlPlaneMachine(object=original.object, original=original)

    def answered(self, original: Original[Machine]) -> ControlPlaneMachine:
        """Return the Machine from the API server's answer to a write; the findings of this pass are kept."""
        fresh, known = original.object, self.object
        conditions = fresh.status.conditions
        for type in (*names.MACHINE_OWNED_CONDITIONS, names.OWNER_REMEDIATED):
            found = get(known.status.conditions, type)
            conditions = delete_condition(conditions, type)
            if found is not None:
                conditions = set_condition(conditions, found, generation=None, now=found.last_transition_time or _BEGINNING)
        status = replace(fresh.status, conditions=conditions, deprecated=known.status.deprecated)
        return ControlPlaneMachine(
            object=replace(fresh, status=status),
            original=original,
            infrastructure=self.infrastructure,
            config=self.config,
            differences=self.differences,
        )

    @cached_property
    def stored(self) -> Unstructured:
        """The Machine as the API server stores it, with unknown fields."""
        assert self.original is not None
        return Unstructured(msgspec.json.decode(self.original.raw))

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return self.object.key

    @property
    def name(self) -> str:
        """Its name."""
        return self.object.metadata.name

    @property
    def uid(self) -> str:
        """Its UID."""
        return self.object.metadata.uid

    @property
    def created(self) -> datetime | None:
        """When it was created."""
        return self.object.metadata.creation_timestamp

    @property
    def deletion_timestamp(self) -> datetime | None:
        """When its deletion was requested."""
        return self.object.metadata.deletion_timestamp

    @property
    def deleting(self) -> bool:
        """Whether its deletion was requested."""
        return self.deletion_timestamp is not None

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.object.metadata.annotations

    @property
    def node(self) -> str:
        """The name of its Node; empty if unknown."""
        reference = self.object.status.node_ref
        return reference.name if reference is not None else ""

    @property
    def has_node(self) -> bool:
        """Whether its Node is known; without one, the Machine is provisioning."""
        return bool(self.node)

    @property
    def provider_id(self) -> str:
        """Its provider ID; empty if not reported."""
        return self.object.spec.provider_id

    @property
    def failure_domain(self) -> str:
        """Its failure domain."""
        return self.object.spec.failure_domain

    @property
    def infrastructure_kind(self) -> str:
        """The kind of its InfraMachine."""
        return self.object.spec.infrastructure_ref.kind

    @property
    def is_outdated(self) -> bool:
        """Whether it must be replaced or updated: it differs from the spec and is not being deleted."""
        return self.differences.any and not self.deleting

    @property
    def age_key(self) -> tuple[datetime, str]:
        """Orders Machines from the oldest to the newest."""
        return (self.created or _BEGINNING, self.name)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions, as set so far."""
        return self.object.status.conditions

    @property
    def v1beta1_conditions(self) -> tuple[V1Beta1Condition, ...]:
        """Its deprecated conditions, as set so far."""
        return v1beta1_conditions(self.object)

    def condition(self, type: str) -> Condition | None:
        """Return its condition of this type."""
        return get(self.conditions, type)

    def is_true(self, type: str) -> bool:
        """Return whether the condition exists and is True."""
        return is_true(self.conditions, type)

    def is_false(self, type: str) -> bool:
        """Return whether the condition exists and is False."""
        return is_false(self.conditions, type)

    @property
    def unhealthy(self) -> bool:
        """Whether a health check found it unhealthy."""
        return owned_machines.is_unhealthy(self.object)

    @property
    def needs_remediation(self) -> bool:
        """Whether it is unhealthy and its owner was asked to remediate it."""
        return owned_machines.is_to_be_remediated(self.object)

    @property
    def is_marked_for_update(self) -> bool:
        """Whether an update in place was begun."""
        return owned_machines.is_marked_for_update(self.object)

    @property
    def is_update_pending(self) -> bool:
        """Whether the Machine controller still has to run the update hook."""
        return owned_machines.UPDATE_MACHINE_HOOK in owned_machines.pending_hooks(self.object)

    @property
    def is_updating(self) -> bool:
        """Whether an update in place is under way, from its first mark to its last."""
        return owned_machines.is_updating(self.object)

    def lacks_any(self, types: Iterable[str]) -> bool:
        """Return whether one of the conditions is missing or not True."""
        return any(not self.is_true(t) for t in types)

    def failing_since(self, types: Iterable[str]) -> datetime | None:
        """Return the earliest transition among the conditions that exist and are not True."""
        found = (c for t in types if (c := self.condition(t)) is not None and c.status != "True")
        return min((c.last_transition_time for c in found if c.last_transition_time), default=None)


def oldest(machines: Iterable[ControlPlaneMachine]) -> ControlPlaneMachine | None:
    """Return the one created first; name breaks ties."""
    return min(machines, key=lambda m: m.age_key, default=None)


def newest(machines: Iterable[ControlPlaneMachine]) -> ControlPlaneMachine | None:
    """Return the one created last; name breaks ties."""
    return max(machines, key=lambda m: m.age_key, default=None)


def subjects(machines: Iterable[ControlPlaneMachine]) -> tuple[Subject, ...]:
    """Return Machines for the `about` of a guard."""
    return tuple(core_subject("Machine", m.key) for m in machines)
