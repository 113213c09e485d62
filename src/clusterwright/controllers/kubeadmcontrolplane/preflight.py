"""Decide whether a Machine may be added or removed now. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cached_property
from typing import assert_never

from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import control_plane_survives, project_etcd
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine, subjects
from clusterwright.controllers.kubeadmcontrolplane.snapshot import NO_BLOCKERS, Blockers, ControlPlaneDone
from clusterwright.tables import KEEP, OTHERWISE, Decision, Guard, Row, Subject, Table, false, guard, message
from clusterwright.workload.access import EtcdMember


class Blocker(Enum):
    """A reason to wait before the number of Machines changes."""

    TOPOLOGY = "wait for the version that the topology wants"
    CERTIFICATES = "wait for the certificates"
    DELETION = "wait for a Machine to go"
    HEALTH = "wait for the other Machines to become healthy, and tell it by an Event"
    ROOM = "wait until a replacement cannot make it worse, and tell it by an Event"


@dataclass(frozen=True, slots=True)
class Problems:
    """The problems found, and whether they concern components or etcd."""

    errors: tuple[str, ...] = ()
    components: bool = False
    etcd: bool = False


@dataclass(frozen=True, kw_only=True)
class PreflightFacts:
    """The facts of the preflight checks. `members` is None if etcd did not answer.

    `adding`: a Machine is to be added. Else one is to be removed; the health of the Machine called `excluding` does not matter.
    """

    machines: Sequence[ControlPlaneMachine]
    managed_etcd: bool
    members: Sequence[EtcdMember] | None
    certificates_available: bool
    waits_for_topology_version: bool
    remediation_in_progress: bool
    adding: bool = False
    excluding: str = ""

    @staticmethod
    def of(c: ControlPlaneDone, *, adding: bool = False, excluding: str = "") -> PreflightFacts:
        """Return the facts of a control plane."""
        certificates = c.condition(names.CERTIFICATES_AVAILABLE)
        return PreflightFacts(
            machines=c.owned,
            managed_etcd=c.managed_etcd,
            members=c.inspection.members,
            certificates_available=certificates is not None and certificates.status == "True",
            waits_for_topology_version=bool(c.awaited_version),
            remediation_in_progress=c.remediation_in_progress is not None,
            adding=adding,
            excluding=excluding,
        )

    @cached_property
    def problems(self) -> Problems:
        """Return the problems of the Machines that count."""
        errors: list[str] = []
        components = etcd = False
        types = (*names.pod_conditions(managed_etcd=self.managed_etcd), *((names.ETCD_MEMBER,) if self.managed_etcd else ()))
        for machine in self.machines:
            if machine.name == self.excluding:
                continue
            if not machine.has_node:
                components, etcd = True, etcd or self.managed_etcd
                errors.append(f"Machine {machine.name} does not have a corresponding Node yet (Machine.status.nodeRef not set)")
                continue
            for type in types:
                condition = machine.condition(type)
                if condition is not None and condition.status == "True":
                    continue
                etcd, components = etcd or type == names.ETCD_MEMBER, components or type != names.ETCD_MEMBER
                if condition is None:
                    errors.append(f"Machine {machine.name} does not have {type} condition")
                else:
                    word = "false" if condition.status == "False" else "unknown"
                    errors.append(f"Machine {machine.name} reports {type} condition is {word} ({condition.message})")
        return Problems(tuple(errors), components, etcd)

    @cached_property
    def dangers(self) -> Problems:
        """Return the problems that a joining replacement could make worse."""
        errors: list[str] = []
        components = etcd = False
        if not control_plane_survives(self.machines, managed_etcd=self.managed_etcd, add=True):
            components = True
            errors.append("cannot add a control plane Machine when there are no healthy control plane components")
        if self.managed_etcd:
            if not self.members:
                errors.append("cannot check etcd cluster health before adding a control plane Machine")
            elif not project_etcd(self.members, self.machines, add=True).safe:
                etcd = True
                errors.append("adding a control plane Machine can lead to etcd quorum loss")
        return Problems(tuple(errors), components, etcd)


def _who(f: PreflightFacts) -> tuple[Subject, ...]:
    """Return the Machines that are unhealthy or being deleted."""
    types = names.health_conditions(managed_etcd=f.managed_etcd)
    found = (m for m in f.machines if m.name != f.excluding and (m.deleting or not m.has_node or m.lacks_any(types)))
    return subjects(found)


no_machines: Guard[PreflightFacts] = Guard("there are no Machines", lambda f: not f.machines)


@guard("the topology wants another version than spec.version, and it is not a step of an upgrade")
def waits_for_topology(f: PreflightFacts) -> bool:
    return f.waits_for_topology_version


@guard("a Machine is to be added")
def adding(f: PreflightFacts) -> bool:
    return f.adding


@guard("CertificatesAvailable is True")
def certificates(f: PreflightFacts) -> bool:
    return f.certificates_available


@guard("a Machine is being deleted", about=_who)
def any_deleting(f: PreflightFacts) -> bool:
    return any(m.deleting for m in f.machines)


@guard("a Machine that counts has no Node, or a health condition that is not True", about=_who)
def any_ailing(f: PreflightFacts) -> bool:
    return bool(f.problems.errors)


@guard("a remediation is in progress")
def replacing(f: PreflightFacts) -> bool:
    return f.remediation_in_progress


@guard("a replacement could cost the control plane or the etcd quorum")
def dangerous(f: PreflightFacts) -> bool:
    return bool(f.dangers.errors)


@message("<what is not well>")
def problems(f: PreflightFacts) -> str:
    return "; ".join(f.problems.errors)


@message("<what a replacement could make worse>")
def dangers(f: PreflightFacts) -> str:
    return "; ".join(f.dangers.errors)


_UNHEALTHY = "ControlPlaneUnhealthy"

# fmt: off
PREFLIGHT: Table[PreflightFacts] = Table(
    "Preflight",
    Row("first-machine",  no_machines,                                KEEP),
    Row("topology",       waits_for_topology,                         KEEP, act=Blocker.TOPOLOGY,     requeue=names.PREFLIGHT_WAIT),
    Row("certificates",   adding & ~certificates,                     KEEP, act=Blocker.CERTIFICATES, requeue=names.PREFLIGHT_WAIT),
    Row("deletion",       any_deleting,                               KEEP, act=Blocker.DELETION,     requeue=names.DELETE_WAIT),
    Row("passed",         ~any_ailing,                                KEEP),
    Row("danger",         adding & replacing & dangerous,             false(_UNHEALTHY, dangers),  act=Blocker.ROOM,   requeue=names.PREFLIGHT_WAIT),
    Row("room",           adding & replacing,                         KEEP),
    Row("ailing",         OTHERWISE,                                  false(_UNHEALTHY, problems), act=Blocker.HEALTH, requeue=names.PREFLIGHT_WAIT),
    about="Whether a Machine may be added or removed. A replacement may join a control plane that is not wholly healthy if that cannot make it worse.",
    assuming=[~no_machines | ~(any_deleting | any_ailing)],
)
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of the checks: blockers for the conditions; `complaint` for an Event; `wait` until the next check."""

    blockers: Blockers = NO_BLOCKERS
    complaint: str = ""
    wait: timedelta | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing blocks the change."""
        return self.wait is None


def verdict(facts: PreflightFacts, decision: Decision) -> Verdict:
    """Return the decision of PREFLIGHT on these facts."""
    complaint = decision.outcome.message if decision.outcome is not None else ""
    return Verdict(blockers=_blockers(facts, decision.chosen(Blocker)), complaint=complaint, wait=decision.requeue)


def _blockers(facts: PreflightFacts, blocker: Blocker | None) -> Blockers:
    match blocker:
        case None:
            return NO_BLOCKERS
        case Blocker.TOPOLOGY:
            return Blockers(topology_version_mismatch=True)
        case Blocker.CERTIFICATES:
            return Blockers(certificates_missing=True)
        case Blocker.DELETION:
            return Blockers(has_deleting_machine=True)
        case Blocker.HEALTH:
            return Blockers(components_unhealthy=facts.problems.components, etcd_unhealthy=facts.problems.etcd)
        case Blocker.ROOM:
            return Blockers(components_unhealthy=facts.dangers.components, etcd_unhealthy=facts.dangers.etcd)
        case never:
            assert_never(never)
