"""The guards of a control plane's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import KCP_PRE_TERMINATE_HOOK, PRE_TERMINATE_HOOK_PREFIX
from clusterwright.controllers.kit.lookup import Unreadable, core_subject, subject
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.etcd.matching import LEARNER_GRACE
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import control_plane_survives, project_etcd
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine, subjects
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone, ControlPlaneSnapshot, Descendants
from clusterwright.kubeadm.versions import parse_version
from clusterwright.tables import Subject, guard
from clusterwright.workload.access import EtcdMember

Snapshot = ControlPlaneSnapshot
_OTHER_HOOKS_FROM = (1, 31, 0)


def _cluster(c: Snapshot) -> tuple[Subject, ...]:
    return (core_subject("Cluster", c.cluster.key),)


def _template(c: Snapshot) -> tuple[Subject, ...]:
    return subject(c.object.spec.machine_template.spec.infrastructure_ref, c.key.namespace)


def about(which: Callable[[Snapshot], Iterable[ControlPlaneMachine]]) -> Callable[[Snapshot], tuple[Subject, ...]]:
    """Return the Machines as the subjects of a guard."""
    return lambda c: subjects(which(c))


# ------------------------------------------------------------------------------------------- preparation


@guard("infrastructure template does not exist", about=_template)
def template_missing(c: Snapshot) -> bool:
    return c.template_missing


@guard("infrastructure template could not be read or owned", about=_template)
def template_unreadable(c: Snapshot) -> bool:
    return isinstance(c.template, Unreadable)


@guard("Cluster status.initialization.infrastructureProvisioned", about=_cluster)
def infrastructure_provisioned(c: Snapshot) -> bool:
    return c.cluster.infrastructure_provisioned


@guard("Cluster spec.controlPlaneEndpoint is set", about=_cluster)
def has_endpoint(c: Snapshot) -> bool:
    return c.cluster.has_endpoint


# ----------------------------------------------------------------------------------------------- general


@guard("!deletionTimestamp.IsZero()")
def deleting(c: Snapshot) -> bool:
    return c.deleting


@guard("status.initialization.controlPlaneInitialized")
def initialized(c: Snapshot) -> bool:
    return c.initialized


@guard("etcdIsManaged")
def etcd_managed(c: Snapshot) -> bool:
    return c.managed_etcd


@guard("spec.replicas set")
def replicas_set(c: Snapshot) -> bool:
    return c.replicas is not None


@guard("there are no Machines")
def no_machines(c: Snapshot) -> bool:
    return not c.owned


@guard("current >= desired")
def enough(c: Snapshot) -> bool:
    return len(c.owned) >= c.desired


@guard("current <= desired")
def not_too_many(c: Snapshot) -> bool:
    return len(c.owned) <= c.desired


# ---------------------------------------------------------------------------- etcd members, Machines that go


def stray_member(c: ControlPlaneDone) -> EtcdMember | None:
    """Return the first etcd member without a Machine, if the Nodes of all Machines are known and etcd is not healthy.

    Skip a member without a name that kubeadm may have added for a new Node whose etcd Pod has not started yet.
    """
    members = c.inspection.members
    healthy = c.condition(names.ETCD_CLUSTER_HEALTHY)
    if not c.managed_etcd or not c.owned or not members or (healthy is not None and healthy.status == "True"):
        return None
    if any(not m.has_node for m in c.owned):
        return None
    if any(not m.name for m in members) and any(_just_registered(c, m) for m in c.owned):
        return None
    expected = {m.node for m in c.owned}
    return min((m for m in members if not m.name or m.name not in expected), key=lambda m: (m.name, m.id), default=None)


def _just_registered(c: ControlPlaneDone, machine: ControlPlaneMachine) -> bool:
    registered = c.registered(machine)
    return not machine.deleting and registered is not None and c.now - registered < LEARNER_GRACE


@guard("an etcd member belongs to no Machine, and none is coming up")
def any_stray(c: ControlPlaneDone) -> bool:
    return stray_member(c) is not None


@guard("its removal could cost the etcd quorum")
def stray_is_needed(c: ControlPlaneDone) -> bool:
    stray = stray_member(c)
    # one without a name never counted
    return stray is not None and bool(stray.name) and not project_etcd(c.inspection.members or (), c.owned, remove=stray.name).safe


def leaving(c: Snapshot) -> list[ControlPlaneMachine]:
    """Return the Machines that are being deleted."""
    return [m for m in c.owned if m.deleting]


def first_to_leave(c: Snapshot) -> ControlPlaneMachine | None:
    """Return the Machine whose deletion was requested first."""
    return min(leaving(c), key=lambda m: (m.deletion_timestamp, m.name), default=None)


@guard("a Machine is being deleted", about=about(leaving))
def any_leaving(c: Snapshot) -> bool:
    return bool(leaving(c))


@guard("one of them has our pre-terminate hook no more", about=about(leaving))
def any_released(c: Snapshot) -> bool:
    return any(KCP_PRE_TERMINATE_HOOK not in m.annotations for m in leaving(c))


def _waits_for_others(c: Snapshot) -> bool | None:
    """Return whether other hooks must finish first, as in newer versions; None if the version cannot be parsed."""
    try:
        return parse_version(c.object.spec.version).release >= _OTHER_HOOKS_FROM
    except ValueError:
        return None


@guard("spec.version is a version")
def version_readable(c: Snapshot) -> bool:
    return _waits_for_others(c) is not None


@guard("the first of them waits for nothing but our hook, and the others can do without its components")
def may_leave(c: Snapshot) -> bool:
    machine = first_to_leave(c)
    if machine is None:
        return False
    others = [a for a in machine.annotations if a.startswith(PRE_TERMINATE_HOOK_PREFIX) and a != KCP_PRE_TERMINATE_HOOK]
    if others and _waits_for_others(c):
        return False
    condition = machine.condition("Deleting")
    if condition is None or condition.status != "True" or condition.reason != "WaitingForPreTerminateHook":
        return False
    return len(c.owned) <= 1 or control_plane_survives(c.owned, managed_etcd=c.managed_etcd, remove=machine.name)


@guard("an update in place was begun and not completed")
def any_begun(c: Snapshot) -> bool:
    return any(m.is_marked_for_update and not m.is_update_pending for m in c.owned)


# ------------------------------------------------------------------------------------------ rollout and scale


@guard("a Machine is updated in place", about=about(lambda c: [m for m in c.owned if m.is_updating]))
def any_updating(c: Snapshot) -> bool:
    return any(m.is_updating for m in c.owned)


@guard("a Machine is not what the spec asks for", about=about(lambda c: c.outdated))
def any_to_roll_out(c: Snapshot) -> bool:
    return bool(c.outdated)


@guard("spec.rollout.strategy is RollingUpdate or not set")
def rolling_update(c: Snapshot) -> bool:
    rollout = c.object.spec.rollout
    strategy = rollout.strategy if rollout is not None else None
    return strategy is None or strategy.type in {"", "RollingUpdate"}


@guard("current < desired + maxSurge")
def below_surge(c: Snapshot) -> bool:
    return len(c.owned) < c.desired + max_surge(c)


def max_surge(c: Snapshot) -> int:
    """Return `maxSurge` as a number; an invalid string counts as 0, an absent value as 1.

    Admission sets the strategy; the same defaults apply if admission did not run.
    """
    rollout = c.object.spec.rollout
    strategy = rollout.strategy if rollout is not None else None
    update = strategy.rolling_update if strategy is not None else None
    value = update.max_surge if update is not None else None
    if value is None:
        return 1
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


# ----------------------------------------------------------------------------------------------- deletion


@guard("other Machines and MachinePools of the Cluster could not be listed")
def descendants_unlisted(c: Snapshot) -> bool:
    return isinstance(c.descendants, Unreadable)


def _descendants(c: Snapshot) -> tuple[Subject, ...]:
    if not isinstance(c.descendants, Descendants):
        return ()
    kinds = (("MachinePool", c.descendants.pools), ("Machine", c.descendants.workers))
    return tuple(core_subject(kind, ObjectKey(c.key.namespace, name)) for kind, found in kinds for name in found)


@guard("the Cluster has other Machines or MachinePools", about=_descendants)
def workers_left(c: Snapshot) -> bool:
    found = c.descendants
    return c.deleting and isinstance(found, Descendants) and (bool(found.pools) or found.machines != len(c.owned))


@guard("a Machine could not be deleted")
def deletion_failed(c: ControlPlaneDone) -> bool:
    return c.deletion_failed
