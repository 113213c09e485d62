"""The rest of a Machine's status: phase, expiry of certificates, v1beta1; and functions to set the parts. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineInitializationStatus
from clusterwright.api.wellknown import CERTIFICATES_EXPIRY_ANNOTATION, CONTROL_PLANE_LABEL
from clusterwright.conditions import is_true, v1beta1
from clusterwright.controllers.kit.conditions import v1beta1_conditions, with_v1beta1, with_v1beta1_status
from clusterwright.controllers.kit.lookup import Found
from clusterwright.controllers.machine.snapshot import MachineSnapshot
from clusterwright.golang.times import parse_rfc3339
from clusterwright.tables import KEEP, OTHERWISE, Phase, Row, Table, guard

V1BETA1_READY_TYPES = ("InfrastructureReady", "BootstrapReady", "HealthCheckSucceeded", "OwnerRemediated", "DrainingSucceeded")


# -------------------------------------------------------------------------------------------------- changed copies


def with_spec(machine: Machine, **changes: Any) -> Machine:
    """Return the Machine with these spec fields."""
    return replace(machine, spec=replace(machine.spec, **changes))


def with_status(machine: Machine, **changes: Any) -> Machine:
    """Return the Machine with these status fields."""
    return replace(machine, status=replace(machine.status, **changes))


def initialized(machine: Machine, **flags: bool) -> Machine:
    """Return the Machine with these one-way flags set."""
    return with_status(machine, initialization=replace(machine.status.initialization or MachineInitializationStatus(), **flags))


def failed(machine: Machine, *, reason: str = "", message: str = "") -> Machine:
    """Return the Machine with these terminal failure fields of v1beta1; empty ones are left as they are."""
    changes = {name: text for name, text in (("failure_reason", reason), ("failure_message", message)) if text}
    return with_v1beta1_status(machine, **changes) if changes else machine


# ----------------------------------------------------------------------------------------------------------- phase


@guard("deletionTimestamp is set")
def _deleting(s: MachineSnapshot) -> bool:
    return s.deleting


@guard("Updating is True")
def _updating(s: MachineSnapshot) -> bool:
    return is_true(s.machine.status.conditions, "Updating")


@guard("status.nodeRef is set")
def _node_ref(s: MachineSnapshot) -> bool:
    return s.machine.status.node_ref is not None


@guard("infrastructure was provisioned")
def _provisioned(s: MachineSnapshot) -> bool:
    return s.provisioned


@guard("spec.providerID is set")
def _provider_id(s: MachineSnapshot) -> bool:
    return bool(s.machine.spec.provider_id)


@guard("bootstrap data was created")
def _bootstrapped(s: MachineSnapshot) -> bool:
    return s.data_secret_created


@guard("status.phase is empty")
def _no_phase(s: MachineSnapshot) -> bool:
    return not s.machine.status.phase


# fmt: off
PHASE: Table[MachineSnapshot] = Table(
    "Phase",
    Row("deleting",     _deleting,                      Phase("Deleting")),
    Row("updating",     _updating,                      Phase("Updating")),
    Row("running",      _node_ref & _provisioned,       Phase("Running")),
    Row("provisioned",  _provider_id,                   Phase("Provisioned")),
    Row("provisioning", _bootstrapped & ~_provisioned,  Phase("Provisioning")),
    Row("pending",      _no_phase,                      Phase("Pending")),
    Row("unchanged",    OTHERWISE,                      KEEP),
    about="The furthest stage that the Machine has reached; the phase never goes back to Pending.",
)
# fmt: on


def with_phase(machine: Machine, phase: str, now: datetime) -> Machine:
    """Return the Machine with the phase that `PHASE` decided; empty: unchanged. `lastUpdated` changes with it."""
    if phase in {"", machine.status.phase}:
        return machine
    return with_status(machine, phase=phase, last_updated=now.replace(microsecond=0))


# --------------------------------------------------------------------------------------------------- certificates


class BadExpiry(ValueError):
    """The annotation with the expiry of certificates is not an RFC 3339 time."""


def is_control_plane(machine: Machine) -> bool:
    """Return whether the Machine hosts the control plane."""
    return CONTROL_PLANE_LABEL in machine.metadata.labels


def with_certificates_expiry(s: MachineSnapshot) -> Machine:
    """Return the Machine with the expiry from its annotation, else from its bootstrap config, else none. Raises BadExpiry.

    Workers have no such certificates and stay unchanged.
    """
    machine = s.machine
    if not is_control_plane(machine):
        return machine
    text = machine.metadata.annotations.get(CERTIFICATES_EXPIRY_ANNOTATION)
    if text is None and isinstance(s.bootstrap, Found):
        text = s.bootstrap.object.metadata.annotations.get(CERTIFICATES_EXPIRY_ANNOTATION)
    expiry = None if text is None else _rfc3339(text)
    return machine if expiry == machine.status.certificates_expiry_date else with_status(machine, certificates_expiry_date=expiry)


def _rfc3339(text: str) -> datetime:
    parsed = parse_rfc3339(text)
    if parsed is None:
        raise BadExpiry(f"annotation {CERTIFICATES_EXPIRY_ANNOTATION}: {text!r} is not an RFC 3339 time")
    return parsed.replace(microsecond=0)


# --------------------------------------------------------------------------------------------------------- v1beta1


def with_v1beta1_ready(machine: Machine, now: datetime) -> Machine:
    """Return the Machine with the v1beta1 Ready condition: the summary of the others, counting steps only while it is being set up."""
    ready = v1beta1.summary(
        "Machine",
        machine.metadata.name,
        v1beta1_conditions(machine),
        types=V1BETA1_READY_TYPES,
        step_counter=machine.metadata.deletion_timestamp is None and not machine.spec.provider_id,
        step_counter_if_only=("BootstrapReady", "InfrastructureReady"),
    )
    return with_v1beta1(machine, ready, now)
