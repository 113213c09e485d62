"""Decide which unhealthy Machines are replaced now, and why the others wait. Pure.

A health check marks a Machine as unhealthy and asks its owner to act; the MachineSet deletes it. The MachineDeployment limits how many go
at once, and no Machine goes that could not be replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import Condition, V1Beta1Condition
from clusterwright.api.wellknown import REMEDIATE_MACHINE_ANNOTATION
from clusterwright.conditions import get, is_false, is_true, v1beta1
from clusterwright.controllers.intstr import scaled
from clusterwright.controllers.machineset.preflight import PASSED, Verdict
from clusterwright.controllers.machineset.snapshot import DeploymentFacts
from clusterwright.controllers.owned_machines import is_deleting, is_to_be_remediated
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard, message

OWNER_REMEDIATED: Final = "OwnerRemediated"
HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
MACHINE_DELETING: Final = "MachineDeleting"
_RETRY: Final = timedelta(seconds=15)
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


# ------------------------------------------------------------------------------------------------ recovered


def has_recovered(machine: Machine) -> bool:
    """Return whether it was marked for remediation, and is healthy again."""
    conditions = machine.status.conditions
    return not is_deleting(machine) and is_true(conditions, HEALTH_CHECK_SUCCEEDED) and is_false(conditions, OWNER_REMEDIATED)


def has_recovered_v1beta1(machine: Machine) -> bool:
    """Return the same, from the deprecated conditions."""
    conditions = v1beta1.reporter_conditions(machine)
    is_healthy = v1beta1.is_true(conditions, HEALTH_CHECK_SUCCEEDED) and v1beta1.is_false(conditions, OWNER_REMEDIATED)
    return not is_deleting(machine) and is_healthy


# --------------------------------------------------------------------------------------------------- budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Remediation:
    """The Machines to remediate, and the limits. `limit` is None without one; `error`: it cannot be parsed."""

    candidates: tuple[Machine, ...] = ()
    is_current: bool = True
    limit: int | None = None
    limit_text: str = ""
    error: str = ""
    in_flight: int = 0
    preflight: Verdict = PASSED
    """The objections of the preflight checks, which run before unhealthy Machines are deleted."""

    @property
    def budget(self) -> int | None:
        """How many may be deleted now; None: no limit."""
        return None if self.limit is None else max(self.limit - self.in_flight, 0)

    @property
    def chosen(self) -> tuple[Machine, ...]:
        """The Machines to delete: those that a user named first, then the newest."""
        return self.candidates if self.budget is None else tuple(sorted(self.candidates, key=_urgency)[: self.budget])

    @property
    def deferred(self) -> tuple[Machine, ...]:
        """The Machines that have to wait for others."""
        names = {m.metadata.name for m in self.chosen}
        return tuple(m for m in self.candidates if m.metadata.name not in names)

    def after(self, preflight: Verdict) -> Remediation:
        """Return the same, with the outcome of the checks."""
        return replace(self, preflight=preflight)


def assess(machines: Sequence[Machine], deployment: DeploymentFacts | None, *, is_current: bool) -> Remediation:
    """Return the Machines to remediate, and how many at once."""
    candidates = tuple(m for m in machines if is_to_be_remediated(m) and not is_deleting(m))
    in_flight = sum(is_deleting(m) and _reason(m) == MACHINE_DELETING for m in machines)
    asked = deployment.max_in_flight if deployment else None
    found = Remediation(candidates=candidates, is_current=is_current, in_flight=in_flight)
    if deployment is None or asked is None:
        return found
    try:
        limit = scaled(asked, 1 if deployment.replicas is None else deployment.replicas, round_up=True)
    except ValueError as error:
        return replace(found, error=f"failed to calculate maxInFlight to remediate machines: {error}")
    return replace(found, limit=limit, limit_text=str(asked))


def _reason(machine: Machine) -> str:
    condition = get(machine.status.conditions, OWNER_REMEDIATED)
    return condition.reason if condition is not None and condition.status == "False" else ""


def _urgency(machine: Machine) -> tuple[bool, float, str]:
    created = machine.metadata.creation_timestamp or _BEGINNING
    return (REMEDIATE_MACHINE_ANNOTATION not in machine.metadata.annotations, -created.timestamp(), machine.metadata.name)


# ---------------------------------------------------------------------------------------------------- table


class Remedy(Enum):
    """The action on the chosen Machines."""

    DECLINE = "say that they go with the rollout"
    DEFER = "say that others come first"
    POSTPONE = "say why none could join in their place"
    REPLACE = "say so, then delete them"


@guard("the number of remediations at once cannot be understood")
def limit_garbled(r: Remediation) -> bool:
    return bool(r.error)


@guard("no Machine is to be remediated")
def nothing_to_do(r: Remediation) -> bool:
    return not r.candidates


@guard("the MachineSet is not the current revision of its MachineDeployment")
def outdated(r: Remediation) -> bool:
    return not r.is_current


@guard("as many are being remediated as may be at once")
def exhausted(r: Remediation) -> bool:
    return r.budget == 0


@guard("preflight checks could not be made")
def preflight_unknown(r: Remediation) -> bool:
    return bool(r.preflight.error)


@guard("preflight checks fail")
def preflight_fails(r: Remediation) -> bool:
    return not r.preflight.error and bool(r.preflight.messages)


@message("<error>")
def limit_error(r: Remediation) -> str:
    """Return why the limit is invalid."""
    return r.error


@message("<error of the preflight checks>")
def preflight_error(r: Remediation) -> str:
    """Return why the preflight checks failed to run."""
    return r.preflight.error


# fmt: off
REMEDIATE: Table[Remediation] = Table(
    "Remediate",
    Row("nothing-to-do",     nothing_to_do,                                          KEEP),
    Row("outdated",          outdated,                                               KEEP, act=Remedy.DECLINE),
    Row("limit-garbled",     limit_garbled,                                          KEEP, error=limit_error),
    Row("exhausted",         exhausted,                                              KEEP, act=Remedy.DEFER),
    Row("preflight-unknown", preflight_unknown,                                      KEEP, act=Remedy.POSTPONE, error=preflight_error),
    Row("preflight-fails",   preflight_fails,                                        KEEP, act=Remedy.POSTPONE, requeue=_RETRY),
    Row("remediate",         OTHERWISE,                                              KEEP, act=Remedy.REPLACE),
    about="The actions on Machines that a health check marked for remediation. Those beyond the limit wait in every case.",
    assuming=[~(preflight_unknown & preflight_fails)],
)
# fmt: on


# -------------------------------------------------------------------------------------------------- verdicts


def declined() -> Condition:
    """Return the condition of a Machine that is being deleted anyway."""
    text = "Machine won't be remediated because it is pending removal due to rollout"
    return Condition(type=OWNER_REMEDIATED, status="False", reason="CannotBeRemediated", message=text)


def deferred(remediation: Remediation) -> Condition:
    """Return the condition of a Machine that waits for others."""
    limit = f"(spec.strategy.remediation.maxInFlight is {remediation.limit_text})"
    text = f"Waiting because there are already too many remediations in progress {limit}"
    return Condition(type=OWNER_REMEDIATED, status="False", reason="RemediationDeferred", message=text)


def postponed(preflight: Verdict) -> tuple[Condition, V1Beta1Condition]:
    """Return the condition of a Machine whose replacement could not join now."""
    reasons = [*preflight.messages, *([preflight.error] if preflight.error else [])]
    text = "\n".join(f"* {r}" for r in reasons)
    return (
        Condition(type=OWNER_REMEDIATED, status="False", reason="RemediationDeferred", message=text),
        v1beta1.false(OWNER_REMEDIATED, "WaitingForRemediation", "Warning", "; ".join(reasons)),
    )


def replaced() -> tuple[Condition, V1Beta1Condition]:
    """Return the condition of a Machine to delete. It is set first, so that the Machine counts as in flight from the start."""
    return (
        Condition(type=OWNER_REMEDIATED, status="False", reason=MACHINE_DELETING, message="Machine is deleting"),
        v1beta1.true(OWNER_REMEDIATED),
    )
