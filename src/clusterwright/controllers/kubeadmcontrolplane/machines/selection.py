"""Select the Machine to remove, and the failure domain of the next one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from clusterwright.api.wellknown import DELETE_MACHINE_ANNOTATION
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine, oldest


def select_to_remove(
    machines: Sequence[ControlPlaneMachine],
    outdated: Sequence[ControlPlaneMachine],
    domains: Sequence[str],
    *,
    managed_etcd: bool,
) -> ControlPlaneMachine | None:
    """Return the Machine to delete or update next: user-marked, unhealthy, outdated, any; of these the oldest in the fullest domain."""

    def marked(machine: ControlPlaneMachine) -> bool:
        return DELETE_MACHINE_ANNOTATION in machine.annotations

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


def leadership_candidates(machines: Sequence[ControlPlaneMachine], leaving: ControlPlaneMachine) -> list[ControlPlaneMachine]:
    """Return the Machines whose members can take the leadership from a leaving one, the most reliable first."""

    def doubts(machine: ControlPlaneMachine) -> tuple[bool, ...]:
        return tuple(not machine.is_true(t) for t in (names.ETCD_MEMBER, names.HEALTH_CHECK_SUCCEEDED, names.UP_TO_DATE))

    found = [m for m in machines if m.has_node and not m.deleting and m.name != leaving.name]
    newest_first = sorted(found, key=lambda m: m.age_key, reverse=True)
    return sorted(newest_first, key=doubts)


def _fullest_domain(machines: Sequence[ControlPlaneMachine], eligible: Sequence[ControlPlaneMachine], domains: Sequence[str]) -> str:
    stray = oldest(m for m in eligible if m.failure_domain not in domains)
    if stray is not None or not domains:
        return stray.failure_domain if stray is not None else ""
    of_eligible, of_all = Counter(m.failure_domain for m in eligible), Counter(m.failure_domain for m in machines)
    return min(domains, key=lambda d: (-of_eligible[d], -of_all[d], d))


def domain_for_new(machines: Sequence[ControlPlaneMachine], domains: Sequence[str]) -> str:
    """Return the failure domain with the fewest staying Machines; empty if the Cluster has none for control planes."""
    if not domains:
        return ""
    staying = Counter(m.failure_domain for m in machines if not m.differences.any and not m.deleting)
    of_all = Counter(m.failure_domain for m in machines)
    return min(domains, key=lambda d: (staying[d], of_all[d], d))
