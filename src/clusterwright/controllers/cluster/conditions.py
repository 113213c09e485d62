"""The Cluster's conditions as tables, in the seeds' row order. Pure.

The tables see the Cluster as the phases left it. `TABLES` is the order of decision: a table may read what one before it decided
(ControlPlaneAvailable of a stand-alone control plane reads ControlPlaneInitialized, Available reads five of them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clusterwright.api.meta import Condition
from clusterwright.conditions import (
    Fallback,
    NothingToMerge,
    Priority,
    Reasons,
    Reporter,
    Strategy,
    aggregate,
    has,
    is_true,
    mirror,
    names_with_limit,
    summary,
)
from clusterwright.conditions.foreign import NO_REASON
from clusterwright.controllers.cluster import aggregates
from clusterwright.controllers.cluster.aggregates import INTERNAL_ERROR, aggregate_table
from clusterwright.controllers.cluster.guards import (
    CONTROL_PLANE,
    INFRASTRUCTURE,
    Snapshot,
    already_initialized,
    asks,
    control_plane,
    control_plane_found,
    control_plane_garbled,
    control_plane_missing,
    control_plane_not_ready,
    control_plane_ready,
    control_plane_unreadable,
    deleting,
    descendants_listed,
    infrastructure,
    infrastructure_found,
    infrastructure_missing,
    infrastructure_unreadable,
    initialized,
    no_control_plane_ref,
    no_infrastructure_ref,
    provisioned,
    topology,
)
from clusterwright.controllers.cluster.providers import Found, Garbled, Lookup
from clusterwright.controllers.cluster.snapshot import ClusterDone, Descendants
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.tables import (
    KEEP,
    OTHERWISE,
    Guard,
    Message,
    Outcome,
    Row,
    Table,
    Transition,
    computed,
    false,
    guard,
    message,
    true,
    unknown,
)

DOES_NOT_EXIST: Final = "DoesNotExist"
OBJECT_DELETED: Final = "ObjectDeleted"
PROBE_FAILURES: Final = 5
WAITING_FOR_TOPOLOGY: Final = "Waiting for cluster topology to be reconciled"


# ------------------------------------------------------------------------------------- mirrored conditions


def _mirrored(lookup: Lookup, source: str, target: str, good_reason: str) -> Outcome:
    """Return the provider's own condition; a True one without a reason gets ours."""
    assert isinstance(lookup, Found)
    assert not isinstance(lookup.conditions, Garbled)
    found = mirror(lookup.conditions, source, target=target, fallback=Fallback("Unknown", "NotYetReported"))
    reason = good_reason if found.status == "True" and found.reason == NO_REASON else found.reason
    return Outcome(found.status, reason, found.message, last_transition_time=found.last_transition_time)


def _reports(type: str) -> Callable[[Found], bool]:
    return lambda o: not isinstance(o.conditions, Garbled) and has(o.conditions, type)


infrastructure_conditions_garbled = asks(
    "conditions of infrastructure cannot be read", infrastructure, lambda o: isinstance(o.conditions, Garbled)
)
infrastructure_reports_ready = asks("infrastructure reports Ready", infrastructure, _reports("Ready"))
control_plane_conditions_garbled = asks(
    "conditions of controlPlane cannot be read", control_plane, lambda o: isinstance(o.conditions, Garbled)
)
control_plane_reports_available = asks("controlPlane reports Available", control_plane, _reports("Available"))


def _conversion_error(lookup: Lookup) -> str:
    return lookup.conditions.error if isinstance(lookup, Found) and isinstance(lookup.conditions, Garbled) else ""


infrastructure_conversion_error: Message[Snapshot] = Message(
    "<what is wrong with the conditions>", lambda c: _conversion_error(c.infrastructure)
)
control_plane_conversion_error: Message[Snapshot] = Message(
    "<what is wrong with the conditions>", lambda c: _conversion_error(c.control_plane)
)


@message("<Kind> status.initialization.provisioned is false")
def infrastructure_not_provisioned(c: Snapshot) -> str:
    return f"{c.infrastructure_kind} status.initialization.provisioned is false"


@message("<Kind> has been deleted")
def infrastructure_deleted(c: Snapshot) -> str:
    return f"{c.infrastructure_kind} has been deleted"


@message("<Kind> has been deleted while the cluster still exists")
def infrastructure_deleted_early(c: Snapshot) -> str:
    return f"{c.infrastructure_kind} has been deleted while the cluster still exists"


@message("<Kind> does not exist")
def infrastructure_does_not_exist(c: Snapshot) -> str:
    return f"{c.infrastructure_kind} does not exist"


@message("<Kind> status.initialization.controlPlaneInitialized is false")
def control_plane_not_initialized(c: Snapshot) -> str:
    return f"{c.control_plane_kind} status.initialization.controlPlaneInitialized is false"


@message("<Kind> has been deleted")
def control_plane_deleted(c: Snapshot) -> str:
    return f"{c.control_plane_kind} has been deleted"


@message("<Kind> has been deleted while the cluster still exists")
def control_plane_deleted_early(c: Snapshot) -> str:
    return f"{c.control_plane_kind} has been deleted while the cluster still exists"


@message("<Kind> does not exist")
def control_plane_does_not_exist(c: Snapshot) -> str:
    return f"{c.control_plane_kind} does not exist"


@guard("any control plane Machine has Available=True")
def any_machine_available(c: Snapshot) -> bool:
    return any(is_true(m.status.conditions, "Available") for m in (c.descendants or Descendants()).control_plane_machines)


mirror_ready: Transition[Snapshot] = computed(
    lambda c: _mirrored(c.infrastructure, "Ready", "InfrastructureReady", "Ready"),
    status="<status>",
    reason="<reason, Ready if True has none>",
    message="<message>",
)
mirror_available: Transition[Snapshot] = computed(
    lambda c: _mirrored(c.control_plane, "Available", "ControlPlaneAvailable", "Available"),
    status="<status>",
    reason="<reason, Available if True has none>",
    message="<message>",
)

# fmt: off
INFRASTRUCTURE_READY: Table[Snapshot] = Table(
    "InfrastructureReady",
    Row("topology-pending",      no_infrastructure_ref & topology & ~deleting,     false(DOES_NOT_EXIST, WAITING_FOR_TOPOLOGY)),
    Row("topology-deleting",     no_infrastructure_ref & topology & deleting,      false(DOES_NOT_EXIST)),
    Row("no-infrastructure",     no_infrastructure_ref & ~topology,                true("Ready")),
    Row("conditions-garbled",    infrastructure_conditions_garbled,                unknown("InvalidConditionReported", infrastructure_conversion_error)),
    Row("mirrored",              infrastructure_reports_ready,                     mirror_ready),
    Row("provisioned",           infrastructure_found & provisioned,               true("Ready")),
    Row("not-provisioned",       infrastructure_found & ~provisioned,              false("NotReady", infrastructure_not_provisioned)),
    Row("unreadable",            infrastructure_unreadable,                        INTERNAL_ERROR),
    Row("deleted-with-cluster",  infrastructure_missing & deleting & provisioned,  false(OBJECT_DELETED, infrastructure_deleted)),
    Row("deleted-before-cluster", infrastructure_missing & ~deleting & provisioned, false(OBJECT_DELETED, infrastructure_deleted_early)),
    Row("missing",               infrastructure_missing & ~provisioned,            false(DOES_NOT_EXIST, infrastructure_does_not_exist)),
    about="Mirrors `Ready` of the object that `spec.infrastructureRef` names.",
    exactly_one=[INFRASTRUCTURE],
    assuming=[~infrastructure_conditions_garbled | infrastructure_found, ~infrastructure_reports_ready | infrastructure_found],
)

CONTROL_PLANE_AVAILABLE: Table[Snapshot] = Table(
    "ControlPlaneAvailable",
    Row("topology-pending",      no_control_plane_ref & topology & ~deleting,      false(DOES_NOT_EXIST, WAITING_FOR_TOPOLOGY)),
    Row("topology-deleting",     no_control_plane_ref & topology & deleting,       false(DOES_NOT_EXIST)),
    Row("machines-unlisted",     no_control_plane_ref & ~descendants_listed,       INTERNAL_ERROR),
    Row("no-node-yet",           no_control_plane_ref & ~already_initialized,      false("NotAvailable", "Waiting for the first control plane machine to have status.nodeRef set")),
    Row("no-machine-available",  no_control_plane_ref & ~any_machine_available,    false("NotAvailable", "There are no available control plane Machines, at least 1 required")),
    Row("machines-available",    no_control_plane_ref,                             true("Available")),
    Row("conditions-garbled",    control_plane_conditions_garbled,                 unknown("InvalidConditionReported", control_plane_conversion_error)),
    Row("mirrored",              control_plane_reports_available,                  mirror_available),
    Row("initialized",           control_plane_found & initialized,                true("Available")),
    Row("not-initialized",       control_plane_found & ~initialized,               false("NotAvailable", control_plane_not_initialized)),
    Row("unreadable",            control_plane_unreadable,                         INTERNAL_ERROR),
    Row("deleted-with-cluster",  control_plane_missing & deleting & initialized,   false(OBJECT_DELETED, control_plane_deleted)),
    Row("deleted-before-cluster", control_plane_missing & ~deleting & initialized, false(OBJECT_DELETED, control_plane_deleted_early)),
    Row("missing",               control_plane_missing & ~initialized,             false(DOES_NOT_EXIST, control_plane_does_not_exist)),
    about="Mirrors `Available` of the object that `spec.controlPlaneRef` names; without one, it depends on the control-plane Machines.",
    exactly_one=[CONTROL_PLANE],
    assuming=[~control_plane_conditions_garbled | control_plane_found, ~control_plane_reports_available | control_plane_found, descendants_listed | ~any_machine_available],
)
# fmt: on


# --------------------------------------------------------------------------------- ControlPlaneInitialized


@guard("any machine has nodeRef")
def any_node(c: Snapshot) -> bool:
    return any(m.status.node_ref and m.status.node_ref.name for m in (c.descendants or Descendants()).control_plane_machines)


# fmt: off
CONTROL_PLANE_INITIALIZED: Table[Snapshot] = Table(
    "ControlPlaneInitialized",
    Row("already-initialized",   already_initialized,                              KEEP, "no-op; initialization is a one-way transition"),
    Row("topology-pending",      no_control_plane_ref & topology & ~deleting,      unknown(DOES_NOT_EXIST, WAITING_FOR_TOPOLOGY)),
    Row("topology-deleting",     no_control_plane_ref & topology & deleting,       unknown(DOES_NOT_EXIST)),
    Row("cp-unreadable",         control_plane_unreadable,                         INTERNAL_ERROR),
    Row("cp-missing",            control_plane_missing,                            unknown(DOES_NOT_EXIST, control_plane_does_not_exist)),
    Row("cp-initialized",        control_plane_ready,                              true("Initialized")),
    Row("cp-uninitialized",      control_plane_not_ready,                          false("NotInitialized", "Control plane not yet initialized")),
    Row("cp-garbled",            control_plane_garbled,                            INTERNAL_ERROR),
    Row("machines-unlisted",     no_control_plane_ref & ~descendants_listed,       INTERNAL_ERROR),
    Row("first-node-up",         no_control_plane_ref & any_node,                  true("Initialized")),
    Row("no-node-yet",           no_control_plane_ref & ~any_node,                 false("NotInitialized", "Waiting for the first control plane machine to have status.nodeRef set")),
    about="One-way: once True, nothing changes it, not even its observedGeneration.",
    exactly_one=[CONTROL_PLANE],
    assuming=[~control_plane_found | control_plane_ready | control_plane_not_ready | control_plane_garbled,
              control_plane_found | ~(control_plane_ready | control_plane_not_ready | control_plane_garbled),
              ~(control_plane_ready & control_plane_not_ready), ~(control_plane_ready & control_plane_garbled), ~(control_plane_not_ready & control_plane_garbled),
              descendants_listed | ~any_node],
)
# fmt: on


# ------------------------------------------------------------------------------------ aggregated conditions

WORKERS_AVAILABLE = aggregate_table(
    "WorkersAvailable", "Available", aggregates.workers_reporting("Available"), Reasons("NotAvailable", "AvailableUnknown", "Available"),
    who=("workers", "worker resource"), nobody=true("NoWorkers"), about="Aggregates `Available` of MachineDeployments, and of MachinePools that report it.",
)  # fmt: skip
CONTROL_PLANE_MACHINES_READY = aggregate_table(
    "ControlPlaneMachinesReady", "Ready", aggregates.control_plane_machines, Reasons("NotReady", "ReadyUnknown", "Ready"),
    who=("controlPlaneMachines", "control plane Machine"), nobody=true("NoReplicas"), about="Aggregates `Ready` of the control-plane Machines.",
)  # fmt: skip
WORKER_MACHINES_READY = aggregate_table(
    "WorkerMachinesReady", "Ready", aggregates.worker_machines, Reasons("NotReady", "ReadyUnknown", "Ready"),
    who=("workerMachines", "worker Machine"), nobody=true("NoReplicas"), about="Aggregates `Ready` of the worker Machines; a MachinePool reports its own.",
)  # fmt: skip
# Seed 003. Its six rows end `aggregate_table`; docs/tables/cluster.md has them in the words of this condition.
CONTROL_PLANE_MACHINES_UP_TO_DATE = aggregate_table(
    "ControlPlaneMachinesUpToDate", "UpToDate", aggregates.settled_control_plane_machines, Reasons("NotUpToDate", "UpToDateUnknown", "UpToDate"),
    who=("controlPlaneMachines", "control plane Machine"), nobody=true("NoReplicas"),
    about="Aggregates `UpToDate` of the control-plane Machines that report it or are older than 10 s.",
)  # fmt: skip
WORKER_MACHINES_UP_TO_DATE = aggregate_table(
    "WorkerMachinesUpToDate", "UpToDate", aggregates.settled_worker_machines, Reasons("NotUpToDate", "UpToDateUnknown", "UpToDate"),
    who=("workerMachines", "worker Machine"), nobody=true("NoReplicas"),
    about="Aggregates `UpToDate` of the worker Machines that report it or are older than 10 s.",
)  # fmt: skip
ROLLING_OUT = aggregate_table(
    "RollingOut", "RollingOut", aggregates.scalers_reporting("RollingOut", machine_sets=False), Reasons("RollingOut", "RollingOutUnknown", "NotRollingOut"),
    who=("candidates", "candidate"), nobody=false("NotRollingOut"), negative=True, control_plane=True,
    about="Aggregates `RollingOut` of the control plane if it reports it, MachineDeployments, and MachinePools that report it.",
)  # fmt: skip
SCALING_UP = aggregate_table(
    "ScalingUp", "ScalingUp", aggregates.scalers_reporting("ScalingUp", machine_sets=True), Reasons("ScalingUp", "ScalingUpUnknown", "NotScalingUp"),
    who=("candidates", "candidate"), nobody=false("NotScalingUp"), negative=True, control_plane=True,
    about="As RollingOut, with the MachineSets that belong to the Cluster directly.",
)  # fmt: skip
SCALING_DOWN = aggregate_table(
    "ScalingDown", "ScalingDown", aggregates.scalers_reporting("ScalingDown", machine_sets=True), Reasons("ScalingDown", "ScalingDownUnknown", "NotScalingDown"),
    who=("candidates", "candidate"), nobody=false("NotScalingDown"), negative=True, control_plane=True,
    about="As RollingOut, with the MachineSets that belong to the Cluster directly.",
)  # fmt: skip


# ------------------------------------------------------------------------------------- RemoteConnectionProbe


@guard("probe never succeeded")
def never_connected(c: Snapshot) -> bool:
    return c.health.last_probe_success is None


@guard("the kubeconfig in the Secret asks for more than a Secret may")
def kubeconfig_refused(c: Snapshot) -> bool:
    return bool(c.health.refusal)


@message("Secret <name>: <field>: <why it is refused>")
def refusal(c: Snapshot) -> str:
    return c.health.refusal


@guard("consecutive probe failures < 5")
def few_failures(c: Snapshot) -> bool:
    return c.health.consecutive_failures < PROBE_FAILURES


@guard("condition RemoteConnectionProbe present")
def probe_reported(c: Snapshot) -> bool:
    return has(c.conditions, "RemoteConnectionProbe")


@guard("last successful probe is older than the grace period")
def probe_stale(c: Snapshot) -> bool:
    return c.health.last_probe_success is not None and c.now - c.health.last_probe_success > c.connection_grace


@message("Remote connection probe failed, probe last succeeded at <time>")
def last_success(c: Snapshot) -> str:
    since = c.health.last_probe_success
    shown = since.strftime("%Y-%m-%dT%H:%M:%SZ") if since else ""
    return f"Remote connection probe failed, probe last succeeded at {shown}"


# fmt: off
REMOTE_CONNECTION_PROBE: Table[Snapshot] = Table(
    "RemoteConnectionProbe",
    Row("kubeconfig-refused",    kubeconfig_refused,                               false("ProbeFailed", refusal)),
    Row("not-established",       never_connected & few_failures & ~probe_reported, false("ProbeFailed", "Remote connection not established yet")),
    Row("not-yet-tried-again",   never_connected & few_failures & probe_reported,  KEEP),
    Row("never-succeeded",       never_connected & ~few_failures,                  false("ProbeFailed", "Remote connection probe failed")),
    Row("lost",                  ~never_connected & probe_stale,                   false("ProbeFailed", last_success)),
    Row("connected",             ~never_connected & ~probe_stale,                  true("ProbeSucceeded")),
    about="Health of the connection to the workload cluster. The condition is kept across restarts of this process.",
    assuming=[~(never_connected & probe_stale)],
)
# fmt: on


# ------------------------------------------------------------------------------------------------ Remediating


@guard("any Machine is to be remediated")
def to_be_remediated(c: Snapshot) -> bool:
    return bool(c.descendants and c.descendants.machines_to_be_remediated)


@guard("number of unhealthy Machines == 1")
def one_unhealthy(c: Snapshot) -> bool:
    return c.descendants is not None and len(c.descendants.unhealthy_machines) == 1


@guard("number of unhealthy Machines > 1")
def many_unhealthy(c: Snapshot) -> bool:
    return c.descendants is not None and len(c.descendants.unhealthy_machines) > 1


@message("Machine <name> is not healthy (not to be remediated)")
def unhealthy_machine(c: Snapshot) -> str:
    names = [m.metadata.name for m in (c.descendants or Descendants()).unhealthy_machines]
    return f"Machine {', '.join(names)} is not healthy (not to be remediated)"


@message("Machines <first three names>, ... (<N> more) are not healthy (not to be remediated)")
def unhealthy_machines(c: Snapshot) -> str:
    names = sorted(m.metadata.name for m in (c.descendants or Descendants()).unhealthy_machines)
    return f"Machines {names_with_limit(names, 3)} are not healthy (not to be remediated)"


@message("<aggregated OwnerRemediated>")
def remediations(c: Snapshot) -> str:
    return aggregate(aggregates.of((c.descendants or Descendants()).machines_to_be_remediated), "OwnerRemediated").message


# fmt: off
REMEDIATING: Table[Snapshot] = Table(
    "Remediating",
    Row("unlisted",              ~descendants_listed,                              INTERNAL_ERROR),
    Row("remediating",           to_be_remediated,                                 true("Remediating", remediations)),
    Row("one-unhealthy",         one_unhealthy,                                    false("NotRemediating", unhealthy_machine)),
    Row("several-unhealthy",     many_unhealthy,                                   false("NotRemediating", unhealthy_machines)),
    Row("none-unhealthy",        OTHERWISE,                                        false("NotRemediating")),
    about="Machines that a health check found unhealthy and whose owner must replace them.",
    assuming=[~(one_unhealthy & many_unhealthy), ~to_be_remediated | one_unhealthy | many_unhealthy,
              descendants_listed | ~(one_unhealthy | many_unhealthy | to_be_remediated)],
)
# fmt: on


# ---------------------------------------------------------------------------------------------------- Deleting


@guard("Delete errors")
def delete_failed(c: ClusterDone) -> bool:
    return c.delete_failed


def _deleting(c: ClusterDone) -> Outcome:
    decided = c.deletion.outcome if c.deletion else None
    return decided or Outcome("True", "InternalError", "")


# fmt: off
DELETING: Table[ClusterDone] = Table(
    "Deleting",
    Row("not-deleting",          ~deleting,                                        false("NotDeleting")),
    Row("delete-failed",         deleting & delete_failed,                         true("InternalError", CHECK_LOGS)),
    Row("deleting",              deleting,                                         computed(_deleting, status="True", reason="<deletingReason>", message="<deletingMessage>")),
    about="Reason and message are those of the row of `reconcileDelete` that fired, unless a requested deletion failed.",
)
# fmt: on


# --------------------------------------------------------------------------------------------------- Available

_INPUTS: Final = (
    "Deleting",
    "RemoteConnectionProbe",
    "InfrastructureReady",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "TopologyReconciled",
)
_GONE: Final = frozenset({OBJECT_DELETED, DOES_NOT_EXIST})
_TOPOLOGY_ISSUES: Final = frozenset({"ReconcileFailed", "ClusterClassNotReconciled"})


def _available(c: Snapshot) -> Condition:
    gates = c.cluster.spec.availability_gates
    if not gates and c.cluster_class is not None:
        gates = c.cluster_class.availability_gates
    types = [*_INPUTS, *(g.condition_type for g in gates)]
    negative = {"Deleting", *(g.condition_type for g in gates if g.polarity == "Negative")}

    def priority(condition: Condition) -> Priority | None:
        if c.deleting and condition.type in {"InfrastructureReady", "ControlPlaneAvailable"} and condition.reason in _GONE:
            return Priority.INFO
        if condition.type == "TopologyReconciled" and condition.status == "False" and condition.reason not in _TOPOLOGY_ISSUES:
            return Priority.INFO
        return None

    strategy = Strategy(reasons=Reasons("NotAvailable", "AvailableUnknown", "Available"), negative=frozenset(negative), priority=priority)
    ignore = () if c.has_topology else ("TopologyReconciled",)
    return summary(
        Reporter("Cluster", c.metadata.name, c.conditions), types, target="Available", ignore_if_missing=ignore, strategy=strategy
    )


def _available_status(c: Snapshot) -> str:
    try:
        return _available(c).status
    except NothingToMerge:
        return ""


summary_failed: Guard[Snapshot] = Guard("internal error during summary", lambda c: _available_status(c) == "")
any_issue: Guard[Snapshot] = Guard("any input is an issue", lambda c: _available_status(c) == "False")
any_unknown: Guard[Snapshot] = Guard("any input is unknown", lambda c: _available_status(c) == "Unknown")
available_message: Message[Snapshot] = Message("<summary of the inputs>", lambda c: _available(c).message)

# fmt: off
AVAILABLE: Table[Snapshot] = Table(
    "Available",
    Row("summary-failed",        summary_failed,                                   INTERNAL_ERROR),
    Row("issues",                any_issue,                                        false("NotAvailable", available_message)),
    Row("unknowns",              any_unknown,                                      unknown("AvailableUnknown", available_message)),
    Row("available",             OTHERWISE,                                        true("Available", available_message)),
    about="Summary of Deleting, RemoteConnectionProbe, InfrastructureReady, ControlPlaneAvailable, WorkersAvailable, TopologyReconciled and the availability gates. "
          "While deleting, objects that are gone do not count; a topology that is merely behind does not either.",
    assuming=[~(summary_failed & any_issue), ~(summary_failed & any_unknown), ~(any_issue & any_unknown)],
)
# fmt: on


TABLES: Final[tuple[Table[ClusterDone], ...]] = (
    REMOTE_CONNECTION_PROBE,
    INFRASTRUCTURE_READY,
    CONTROL_PLANE_INITIALIZED,
    CONTROL_PLANE_AVAILABLE,
    WORKERS_AVAILABLE,
    CONTROL_PLANE_MACHINES_READY,
    WORKER_MACHINES_READY,
    CONTROL_PLANE_MACHINES_UP_TO_DATE,
    WORKER_MACHINES_UP_TO_DATE,
    ROLLING_OUT,
    SCALING_UP,
    SCALING_DOWN,
    REMEDIATING,
    DELETING,
    AVAILABLE,
)
OWNED: Final = ("Paused", *(t.name for t in TABLES))
