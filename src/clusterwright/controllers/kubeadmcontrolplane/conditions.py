"""The condition tables of a control plane, in the seed's row order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterwright.api.meta import Condition
from clusterwright.conditions import is_true, names_with_limit
from clusterwright.controllers import owned_machines
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.guards import (
    Snapshot,
    about,
    deleting,
    deletion_failed,
    descendants_unlisted,
    enough,
    etcd_managed,
    initialized,
    no_machines,
    not_too_many,
    replicas_set,
    template_missing,
    workers_left,
)
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.names import POLL
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone, Descendants
from clusterwright.tables import OTHERWISE, Because, Collect, Row, Table, false, guard, message, true, unknown

# ------------------------------------------------------------------------------------------ Available


@guard("etcdMembers != nil")
def members_known(c: ControlPlaneDone) -> bool:
    return c.inspection.members is not None


@guard("time.Since(Initialized.LastTransitionTime) < 2m")
def recently_initialized(c: Snapshot) -> bool:
    found = c.condition(names.INITIALIZED)
    if found is None or found.status != "True" or found.last_transition_time is None:
        return True
    return c.now - found.last_transition_time < names.MEMBERS_SETTLE


@guard("etcdMembersAndMachinesAreMatching")
def members_match(c: ControlPlaneDone) -> bool:
    return c.inspection.members_match


@guard("CertificatesAvailable == True")
def certificates_available(c: Snapshot) -> bool:
    return is_true(c.conditions, names.CERTIFICATES_AVAILABLE)


@guard("etcdMembersHealthy >= etcdQuorum")
def etcd_quorum(c: ControlPlaneDone) -> bool:
    return c.etcd.tally.healthy >= c.etcd.quorum


@guard("k8sControlPlaneHealthy >= 1")
def any_machine_healthy(c: Snapshot) -> bool:
    return c.components.healthy >= 1


@guard("an etcd member is unhealthy for more than 10s")
def etcd_failing(c: ControlPlaneDone) -> bool:
    return c.etcd.tally.surfaced > 0


@guard("a Machine is unhealthy for more than 10s")
def machines_failing(c: Snapshot) -> bool:
    return c.components.surfaced > 0


def _etcd_text(c: ControlPlaneDone, healthy: int, *, none: bool) -> str:
    learners = f" {c.etcd.learners} learner etcd member," if c.etcd.learners else ""
    if none and healthy == 0:
        head = "There are no healthy etcd member"
    elif healthy == 1:
        head = f"1 of {c.etcd.total} etcd members is healthy"
    else:
        head = f"{healthy} of {c.etcd.total} etcd members are healthy"
    return f"{head},{learners} at least {c.etcd.quorum} healthy member required for etcd quorum"


@message("<N> of <M> etcd members are healthy, at least <Q> healthy member required for etcd quorum")
def etcd_below_quorum(c: ControlPlaneDone) -> str:
    return _etcd_text(c, c.etcd.tally.healthy, none=True)


@message("<N> of <M> etcd members are healthy, at least <Q> healthy member required for etcd quorum")
def etcd_degraded(c: ControlPlaneDone) -> str:
    return _etcd_text(c, c.etcd.tally.healthy + c.etcd.tally.pending, none=False)


@message("<X> of <Y> Machines have healthy control plane components, at least 1 required")
def machines_degraded(c: Snapshot) -> str:
    healthy = c.components.healthy + c.components.pending
    verb = "has" if healthy == 1 else "have"
    return f"{healthy} of {len(c.owned)} Machines {verb} healthy control plane components, at least 1 required"


# fmt: off
AVAILABLE: Table[ControlPlaneDone] = Table(
    names.AVAILABLE,
    Row("not-initialized", ~initialized,                                         false("NotAvailable", "Control plane not yet initialized"), requeue=POLL),
    Row("etcd-settling",   etcd_managed & ~members_known & recently_initialized, false("NotAvailable", "Waiting for etcd to report the list of members"), requeue=POLL),
    Row("etcd-unreadable", etcd_managed & ~members_known,                        unknown("AvailableInspectionFailed", "Failed to get etcd members"), requeue=POLL),
    Row("etcd-mismatch",   etcd_managed & ~members_match,                        false("NotAvailable", "The list of etcd members does not match the list of Machines and Nodes")),
    Collect("not-available", false("NotAvailable"),
        Because("deleting",        deleting,                    "Control plane metadata.deletionTimestamp is set"),
        Because("no-certificates", ~certificates_available,     "Control plane certificates are not available"),
        Because("no-quorum",       etcd_managed & ~etcd_quorum, etcd_below_quorum),
        Because("no-machine",      ~any_machine_healthy,        "There are no Machines with healthy control plane components, at least 1 required"),
    ),
    Collect("degraded", true("Available"),
        Because("etcd-degraded",     etcd_managed & etcd_failing, etcd_degraded),
        Because("machines-degraded", machines_failing,            machines_degraded),
    ),
    Row("available",       OTHERWISE,                                            true("Available")),
    about="whether the control plane can serve requests",
)
# fmt: on


# ---------------------------------------------------------------------------------------- Initialized

# fmt: off
INITIALIZED: Table[Snapshot] = Table(
    names.INITIALIZED,
    Row("initialized",     initialized, true("Initialized")),
    Row("not-initialized", OTHERWISE,   false("NotInitialized")),
    about="latched: kubeadm init has succeeded once",
)
# fmt: on


# ----------------------------------------------------- EtcdClusterHealthy, ControlPlaneComponentsHealthy


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFacts:
    """The Machines' health conditions of `types`, to be aggregated on the control plane.

    `errors` concern no Machine of ours; `nodes_error` says why nothing could be inspected.
    """

    types: tuple[str, ...]
    machines: tuple[ControlPlaneMachine, ...]
    errors: tuple[str, ...] = ()
    nodes_error: str | None = None

    def any(self, status: str, *, with_provider_id: bool | None = None) -> bool:
        """Return whether a Machine reports this status for one of the types."""
        return any(
            c.status == status
            for m in self.machines
            if with_provider_id is None or bool(m.provider_id) == with_provider_id
            for c in m.conditions
            if c.type in self.types
        )


@guard("Nodes could not be listed")
def nodes_unlisted(f: HealthFacts) -> bool:
    return f.nodes_error is not None


@guard("errors about no Machine, or a condition False on a Machine")
def any_failing(f: HealthFacts) -> bool:
    return bool(f.errors) or f.any("False")


@guard("a condition Unknown on a Machine with providerID")
def any_unknown(f: HealthFacts) -> bool:
    return f.any("Unknown", with_provider_id=True)


@guard("a condition True, or Unknown on a Machine without providerID")
def any_reported(f: HealthFacts) -> bool:
    return f.any("True") or f.any("Unknown", with_provider_id=False)


@message("<one group of lines for all Machines that report the same>")
def health_text(f: HealthFacts) -> str:
    return health_message(f.machines, f.types, f.errors)


@message("Failed to get Nodes hosting control plane components: <error>")
def component_nodes_error(f: HealthFacts) -> str:
    return f"Failed to get Nodes hosting control plane components: {f.nodes_error}"


def health_message(machines: Sequence[ControlPlaneMachine], types: Sequence[str], errors: Sequence[str]) -> str:
    """Return the problems, grouped by the Machines' messages; then those that concern no Machine."""
    groups: dict[str, list[str]] = {}
    for machine in sorted(machines, key=lambda m: m.name):
        found = [c for t in types if (c := machine.condition(t)) is not None]
        lines = [
            f"  * {c.type}: {c.message or f'condition is {c.status}'}"
            for c in found
            if c.status == "False" or (c.status == "Unknown" and machine.provider_id)
        ]
        if not lines:
            continue
        if len(found) > 1 and len({c.message for c in found}) == 1:
            lines = [f"  * Control plane components: {found[0].message}"]
        groups.setdefault("\n".join(lines), []).append(machine.name)
    ordered = sorted(groups.items(), key=lambda g: (-len(g[1]), ",".join(g[1])))
    blocks = [f"* Machine{'' if len(who) == 1 else 's'} {names_with_limit(who, 3)}:\n{text}" for text, who in ordered]
    return "\n".join([*blocks, *(f"* {e}" for e in errors)])


# fmt: off
COMPONENTS_HEALTHY: Table[HealthFacts] = Table(
    names.COMPONENTS_HEALTHY,
    Row("nodes-unlisted", nodes_unlisted, unknown("InspectionFailed", component_nodes_error)),
    Row("not-healthy",    any_failing,    false("NotHealthy", health_text)),
    Row("unknown",        any_unknown,    unknown("HealthUnknown", health_text)),
    Row("healthy",        any_reported,   true("Healthy")),
    Row("not-reported",   OTHERWISE,      unknown("HealthUnknown", "No Machines reporting control plane status")),
    about="the health of the Kubernetes components over all Machines",
)
ETCD_CLUSTER_HEALTHY: Table[HealthFacts] = Table(
    names.ETCD_CLUSTER_HEALTHY,
    Row("nodes-unlisted", nodes_unlisted, unknown("InspectionFailed", "Failed to get Nodes hosting the etcd cluster")),
    Row("not-healthy",    any_failing,    false("NotHealthy", health_text)),
    Row("unknown",        any_unknown,    unknown("HealthUnknown", health_text)),
    Row("healthy",        any_reported,   true("Healthy")),
    Row("not-reported",   OTHERWISE,      unknown("HealthUnknown", "No Machines reporting etcd member status")),
    about="the health of the etcd members over all Machines; not with external etcd",
)
# fmt: on


def component_facts(c: ControlPlaneDone) -> HealthFacts:
    """Return the facts for ControlPlaneComponentsHealthy."""
    types = names.pod_conditions(managed_etcd=c.managed_etcd)
    return HealthFacts(types=types, machines=c.owned, errors=c.inspection.component_errors, nodes_error=c.inspection.nodes_error)


def etcd_facts(c: ControlPlaneDone) -> HealthFacts:
    """Return the facts for EtcdClusterHealthy."""
    return HealthFacts(types=(names.ETCD_MEMBER,), machines=c.owned, errors=c.inspection.etcd_errors, nodes_error=c.inspection.nodes_error)


# ------------------------------------------------------------------------------- RollingOut, Scaling*


def _outdated(c: Snapshot) -> list[Condition]:
    return [x for m in c.owned if (x := m.condition(names.UP_TO_DATE)) is not None and x.status == "False"]


@guard("a Machine has UpToDate=False", about=about(lambda c: [m for m in c.owned if m.is_false(names.UP_TO_DATE)]))
def any_outdated(c: Snapshot) -> bool:
    return bool(_outdated(c))


@message("Rolling out <n> not up-to-date replicas, then why")
def rolling_out(c: Snapshot) -> str:
    outdated = _outdated(c)
    lines = {line for x in outdated if x.message for line in x.message.split("\n")}
    ordered = sorted(lines, key=lambda line: (not line.startswith("* Version"), line))
    return "\n".join([f"Rolling out {len(outdated)} not up-to-date replicas", *ordered])


# fmt: off
ROLLING_OUT: Table[Snapshot] = Table(
    "RollingOut",
    Row("not-rolling-out", ~any_outdated, false("NotRollingOut")),
    Row("rolling-out",     OTHERWISE,     true("RollingOut", rolling_out)),
    about="Machines that differ from the spec",
)
# fmt: on


def _template_kind(c: Snapshot) -> str:
    return c.object.spec.machine_template.spec.infrastructure_ref.kind


def _blocked(c: ControlPlaneDone, last: str) -> str:
    b = c.blockers
    lines = [
        text
        for holds, text in (
            (
                b.topology_version_mismatch,
                f"waiting for a version upgrade to {(c.cluster.upgrade_step or c.topology_version)} to be propagated",
            ),
            (b.has_deleting_machine, "waiting for a control plane Machine to complete deletion"),
            (b.certificates_missing, "cluster certificates are missing or unknown"),
            (b.components_unhealthy, "waiting for control plane components to become healthy"),
            (b.etcd_unhealthy, "waiting for etcd cluster to become healthy"),
            (bool(last), last),
        )
        if holds
    ]
    return " is blocked because:\n" + "\n".join(f"* {line}" for line in lines) if lines else ""


@message("Scaling up from <c> to <d> replicas, then what blocks it")
def scaling_up(c: ControlPlaneDone) -> str:
    missing = f"{_template_kind(c)} does not exist" if c.template_missing else ""
    return f"Scaling up from {len(c.owned)} to {c.desired} replicas{_blocked(c, missing)}"


@message("Scaling up would be blocked because <Kind> does not exist")
def would_be_blocked(c: Snapshot) -> str:
    return f"Scaling up would be blocked because {_template_kind(c)} does not exist"


@message("Scaling down from <c> to <d> replicas, then what blocks it")
def scaling_down(c: ControlPlaneDone) -> str:
    return f"Scaling down from {len(c.owned)} to {c.desired} replicas{_blocked(c, c.stale)}"


# fmt: off
SCALING_UP: Table[ControlPlaneDone] = Table(
    "ScalingUp",
    Row("replicas-unset",  ~replicas_set,                         unknown("WaitingForReplicasSet", "Waiting for spec.replicas set")),
    Row("would-block",     enough & template_missing,             false("NotScalingUp", would_be_blocked)),
    Row("not-scaling-up",  enough,                                false("NotScalingUp")),
    Row("scaling-up",      OTHERWISE,                             true("ScalingUp", scaling_up)),
    about="fewer Machines than wanted",
)
SCALING_DOWN: Table[ControlPlaneDone] = Table(
    "ScalingDown",
    Row("replicas-unset",   ~replicas_set, unknown("WaitingForReplicasSet", "Waiting for spec.replicas set")),
    Row("not-scaling-down", not_too_many,  false("NotScalingDown")),
    Row("scaling-down",     OTHERWISE,     true("ScalingDown", scaling_down)),
    about="more Machines than wanted",
)
# fmt: on


# ---------------------------------------------- MachinesReady, MachinesUpToDate, Remediating, Deleting


MACHINES_READY = owned_machines.machines_ready(may_be_unlisted=False)
MACHINES_UP_TO_DATE = owned_machines.machines_up_to_date(may_be_unlisted=False)
REMEDIATING = owned_machines.remediating("not to be remediated by KubeadmControlPlane", may_be_unlisted=False)


@message("KubeadmControlPlane deletion blocked because following objects still exist, then which")
def descendants_text(c: Snapshot) -> str:
    found = c.descendants if isinstance(c.descendants, Descendants) else Descendants()
    kinds = (("MachinePools", found.pools), ("Machines", found.workers))
    lines = [f"* {kind}: {names_with_limit(sorted(who), 5)}" for kind, who in kinds if who]
    return "\n".join(["KubeadmControlPlane deletion blocked because following objects still exist:", *lines])


@message("Deleting <n> Machines, then which are stale")
def machines_text(c: Snapshot) -> str:
    count = len(c.owned)
    return f"Deleting {count} Machine{'' if count == 1 else 's'}{f' and {c.stale}' if c.stale else ''}"


# fmt: off
DELETING: Table[ControlPlaneDone] = Table(
    "Deleting",
    Row("not-deleting", ~deleting,                                  false("NotDeleting")),
    Row("failed",       descendants_unlisted | deletion_failed,     true("InternalError", CHECK_LOGS)),
    Row("completed",    no_machines,                                true("DeletionCompleted", "Deletion completed")),
    Row("workers",      workers_left,                               true("WaitingForWorkersDeletion", descendants_text)),
    Row("machines",     OTHERWISE,                                  true("WaitingForMachineDeletion", machines_text)),
    about="the progress of the deletion",
    at_most_one=[(descendants_unlisted, workers_left, deletion_failed)],
    assuming=[~(no_machines & (descendants_unlisted | workers_left | deletion_failed))],
)
# fmt: on

CONCLUSIONS = (
    INITIALIZED,
    ROLLING_OUT,
    SCALING_UP,
    SCALING_DOWN,
    MACHINES_READY,
    MACHINES_UP_TO_DATE,
    REMEDIATING,
    DELETING,
    AVAILABLE,
)
"""The tables at the end of every pass, in this order: later tables read the results of earlier ones."""

TABLES = (*CONCLUSIONS, ETCD_CLUSTER_HEALTHY, COMPONENTS_HEALTHY)

OWNED = ("Paused", names.CERTIFICATES_AVAILABLE, *(t.name for t in TABLES))
