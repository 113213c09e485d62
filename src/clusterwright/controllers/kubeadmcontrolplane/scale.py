"""Which Machine goes, where the next one comes, and what must hold before either. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, oldest
from clusterwright.controllers.kubeadmcontrolplane.quorum import control_plane_survives, project_etcd
from clusterwright.workload.access import EtcdMember


@dataclass(frozen=True, slots=True, kw_only=True)
class Blockers:
    """What keeps the control plane from scaling; the ScalingUp and ScalingDown conditions quote it."""

    topology_version_mismatch: bool = False
    has_deleting_machine: bool = False
    certificates_missing: bool = False
    components_unhealthy: bool = False
    etcd_unhealthy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The verdict of the preflight checks: pass (no `wait`), or look again after `wait`. `errors` are for the Event."""

    blockers: Blockers = Blockers()
    errors: tuple[str, ...] = ()
    wait: timedelta | None = None

    @property
    def passed(self) -> bool:
        """Whether scaling may go on."""
        return self.wait is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFacts:
    """What the preflight checks look at. `members` is None where etcd could not be asked."""

    machines: Sequence[ControlPlaneMachine]
    managed_etcd: bool
    members: Sequence[EtcdMember] | None
    certificates_available: bool
    waits_for_topology_version: bool
    remediation_in_progress: bool


def preflight(facts: PreflightFacts, *, scale_up: bool = False, excluding: str = "") -> Preflight:
    """Whether a Machine may be added (`scale_up`) or taken away; the health of the Machine `excluding` does not matter."""
    if not facts.machines:
        return Preflight()
    if facts.waits_for_topology_version:
        return Preflight(blockers=Blockers(topology_version_mismatch=True), wait=names.PREFLIGHT_WAIT)
    if scale_up and not facts.certificates_available:
        return Preflight(blockers=Blockers(certificates_missing=True), wait=names.PREFLIGHT_WAIT)
    if any(m.deleting for m in facts.machines):
        return Preflight(blockers=Blockers(has_deleting_machine=True), wait=names.DELETE_WAIT)
    verdict = _machines_healthy(facts, excluding)
    if verdict.errors and scale_up and facts.remediation_in_progress:
        verdict = _room_for_replacement(facts)
    return verdict


def _machines_healthy(facts: PreflightFacts, excluding: str) -> Preflight:
    errors: list[str] = []
    components = etcd = False
    for machine in facts.machines:
        if machine.name == excluding:
            continue
        if not machine.has_node:
            components, etcd = True, etcd or facts.managed_etcd
            errors.append(f"Machine {machine.name} does not have a corresponding Node yet (Machine.status.nodeRef not set)")
            continue
        types = (*names.pod_conditions(managed_etcd=facts.managed_etcd), *((names.ETCD_MEMBER,) if facts.managed_etcd else ()))
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
    return _verdict(errors, components=components, etcd=etcd)


def _room_for_replacement(facts: PreflightFacts) -> Preflight:
    """A replacement may join a control plane that is not wholly healthy if joining cannot make it worse."""
    errors: list[str] = []
    components = etcd = False
    if not control_plane_survives(facts.machines, managed_etcd=facts.managed_etcd, add=True):
        components = True
        errors.append("cannot add a control plane Machine when there are no healthy control plane components")
    if facts.managed_etcd:
        if not facts.members:
            errors.append("cannot check etcd cluster health before adding a control plane Machine")
        elif not project_etcd(facts.members, facts.machines, add=True).safe:
            etcd = True
            errors.append("adding a control plane Machine can lead to etcd quorum loss")
    return _verdict(errors, components=components, etcd=etcd)


def _verdict(errors: Sequence[str], *, components: bool, etcd: bool) -> Preflight:
    return Preflight(
        blockers=Blockers(components_unhealthy=components, etcd_unhealthy=etcd),
        errors=tuple(errors),
        wait=names.PREFLIGHT_WAIT if errors else None,
    )


def select_to_remove(
    machines: Sequence[ControlPlaneMachine],
    outdated: Sequence[ControlPlaneMachine],
    domains: Sequence[str],
    *,
    managed_etcd: bool,
) -> ControlPlaneMachine | None:
    """The Machine to delete or update next: marked by the user, sick, outdated, any; of these the oldest of the fullest domain."""

    def marked(machine: ControlPlaneMachine) -> bool:
        return names.DELETE_MACHINE in machine.annotations

    def sick(machine: ControlPlaneMachine) -> bool:
        return any(machine.is_false(t) for t in names.health_conditions(managed_etcd=managed_etcd))

    preferences = (
        [m for m in outdated if marked(m)],
        [m for m in machines if marked(m)],
        [m for m in outdated if sick(m)],
        list(outdated),
        list(machines),
    )
    eligible = next((group for group in preferences if group), [])
    domain = _fullest_domain(machines, eligible, domains)
    return oldest(m for m in eligible if m.failure_domain == domain)


def _fullest_domain(machines: Sequence[ControlPlaneMachine], eligible: Sequence[ControlPlaneMachine], domains: Sequence[str]) -> str:
    stray = oldest(m for m in eligible if m.failure_domain not in domains)
    if stray is not None or not domains:
        return stray.failure_domain if stray is not None else ""
    of_eligible, of_all = Counter(m.failure_domain for m in eligible), Counter(m.failure_domain for m in machines)
    return min(domains, key=lambda d: (-of_eligible[d], -of_all[d], d))


def domain_for_new(machines: Sequence[ControlPlaneMachine], domains: Sequence[str]) -> str:
    """The failure domain with the fewest Machines that will stay; empty where the Cluster has none for control planes."""
    if not domains:
        return ""
    staying = Counter(m.failure_domain for m in machines if m.up_to_date.holds and not m.deleting)
    of_all = Counter(m.failure_domain for m in machines)
    return min(domains, key=lambda d: (staying[d], of_all[d], d))
