"""The v1beta2 conditions of a Machine, as tables in the order of the specification. Pure.

Summaries come last and read the conditions decided before them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Condition
from clusterwright.conditions import (
    Fallback,
    InvalidConditions,
    Priority,
    Reasons,
    Strategy,
    conditions_of,
    get,
    group_control_plane_components,
    has,
    mirror,
    reporter,
    summary,
)
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kit.lookup import Found, Lookup
from clusterwright.controllers.machine.drain import BUDGET_VIOLATED, EVICTION_FAILED, NOT_COMPLETED, NOT_REMOVED
from clusterwright.controllers.machine.guards import (
    bootstrap_differs,
    both_reported,
    cluster_provisioned,
    config_conditions_valid,
    config_found,
    config_missing,
    config_unreadable,
    control_plane_initialized,
    data_secret_created,
    deleting,
    deletion_worked_on,
    deployed,
    failure_domain_differs,
    gates_name_ready,
    grace_passed,
    has_bootstrap_template,
    infra_conditions_valid,
    infra_found,
    infra_missing,
    infra_unreadable,
    infrastructure_differs,
    kubelet_differs,
    no_config_ref,
    node_found,
    node_missing,
    node_ref,
    node_unreadable,
    not_probed_yet,
    out_of_reach,
    provider_id,
    provisioned,
    ready,
    ready_long_enough,
    ready_reported,
    remaining_min_ready,
    rollout_due,
    templates,
    update_spoke,
    updating,
    updating_reported,
    version_differs,
)
from clusterwright.controllers.machine.node import node_health
from clusterwright.controllers.machine.snapshot import MachineDone, MachineSnapshot, NodeFound
from clusterwright.tables import (
    KEEP,
    OTHERWISE,
    Because,
    Collect,
    Later,
    Outcome,
    Row,
    Table,
    Transition,
    computed,
    false,
    message,
    true,
    unknown,
)

INTERNAL_ERROR: Transition[MachineSnapshot] = unknown("InternalError", CHECK_LOGS)

# ------------------------------------------------------------------------------- BootstrapConfigReady, InfrastructureReady


def _complaint(lookup: Lookup) -> str:
    try:
        conditions_of(lookup.object if isinstance(lookup, Found) else {})
    except InvalidConditions as error:
        return str(error)
    return ""


def _mirrored(lookup: Lookup, fallback: Fallback) -> Outcome:
    ready = mirror(conditions_of(lookup.object) if isinstance(lookup, Found) else (), "Ready", fallback=fallback)
    # a True without a reason is an old condition: say something less confusing
    reason = "Ready" if ready.status == "True" and ready.reason == "NoReasonReported" else ready.reason
    return Outcome(ready.status, reason, ready.message, last_transition_time=ready.last_transition_time)


def _mirror_config(s: MachineSnapshot) -> Outcome:
    if s.data_secret_created:
        return _mirrored(s.bootstrap, Fallback("True", "Ready"))
    return _mirrored(s.bootstrap, Fallback("False", "NotReady", f"{s.bootstrap_kind} status.initialization.dataSecretCreated is false"))


@message("<what is wrong>")
def config_complaint(s: MachineSnapshot) -> str:
    return _complaint(s.bootstrap)


@message("<Kind> has been deleted")
def config_deleted(s: MachineSnapshot) -> str:
    return f"{s.bootstrap_kind} has been deleted"


@message("<Kind> does not exist")
def config_does_not_exist(s: MachineSnapshot) -> str:
    return f"{s.bootstrap_kind} does not exist"


# fmt: off
BOOTSTRAP_CONFIG_READY: Table[MachineSnapshot] = Table(
    "BootstrapConfigReady",
    Row("data-secret-provided", no_config_ref,                                  true("DataSecretProvided")),
    Row("invalid",              config_found & ~config_conditions_valid,        unknown("InvalidConditionReported", config_complaint)),
    Row("mirrored",             config_found,                                   computed(_mirror_config, status="mirrored", reason="", message="Ready of the object; not reported: by bootstrapDataSecretCreated")),
    Row("unreadable",           config_unreadable,                              INTERNAL_ERROR),
    Row("deleted",              config_missing & deleting & data_secret_created, false("ObjectDeleted", config_deleted)),
    Row("missing",              config_missing,                                 false("ObjectDoesNotExist", config_does_not_exist)),
    exactly_one=[(no_config_ref, config_found, config_unreadable, config_missing)],
)
# fmt: on


def _mirror_infra(s: MachineSnapshot) -> Outcome:
    if s.provisioned:
        return _mirrored(s.infrastructure, Fallback("True", "Ready"))
    return _mirrored(s.infrastructure, Fallback("False", "NotReady", f"{s.infrastructure_kind} status.initialization.provisioned is false"))


@message("<what is wrong>")
def infra_complaint(s: MachineSnapshot) -> str:
    return _complaint(s.infrastructure)


@message("<Kind> has been deleted")
def infra_deleted(s: MachineSnapshot) -> str:
    return f"{s.infrastructure_kind} has been deleted"


@message("<Kind> has been deleted while the Machine still exists")
def infra_lost(s: MachineSnapshot) -> str:
    return f"{s.infrastructure_kind} has been deleted while the Machine still exists"


@message("<Kind> does not exist")
def infra_does_not_exist(s: MachineSnapshot) -> str:
    return f"{s.infrastructure_kind} does not exist"


# fmt: off
INFRASTRUCTURE_READY: Table[MachineSnapshot] = Table(
    "InfrastructureReady",
    Row("invalid",    infra_found & ~infra_conditions_valid, unknown("InvalidConditionReported", infra_complaint)),
    Row("mirrored",   infra_found,                           computed(_mirror_infra, status="mirrored", reason="", message="Ready of the object; not reported: by infrastructureProvisioned")),
    Row("unreadable", infra_unreadable,                      INTERNAL_ERROR),
    Row("deleted",    deleting & provisioned,                false("ObjectDeleted", infra_deleted)),
    Row("never-was",  deleting,                              false("ObjectDoesNotExist", infra_does_not_exist)),
    Row("lost",       provisioned,                           false("ObjectDeleted", infra_lost)),
    Row("missing",    OTHERWISE,                             false("ObjectDoesNotExist", infra_does_not_exist)),
    exactly_one=[(infra_found, infra_unreadable, infra_missing)],
)
# fmt: on


# ---------------------------------------------------------------------------------------------- NodeReady, NodeHealthy


@message("Last successful probe at <time>")
def last_probe(s: MachineSnapshot) -> str:
    success = s.health.last_probe_success
    return f"Last successful probe at {success:%Y-%m-%dT%H:%M:%SZ}" if success else ""


def _node_name(s: MachineSnapshot) -> str:
    return s.machine.status.node_ref.name if s.machine.status.node_ref else ""


@message("Node <name> has been deleted")
def node_deleted(s: MachineSnapshot) -> str:
    return f"Node {_node_name(s)} has been deleted"


@message("Node <name> has been deleted while the Machine still exists")
def node_lost(s: MachineSnapshot) -> str:
    return f"Node {_node_name(s)} has been deleted while the Machine still exists"


@message("Waiting for a Node with spec.providerID <id> to exist")
def awaiting_node(s: MachineSnapshot) -> str:
    return f"Waiting for a Node with spec.providerID {s.machine.spec.provider_id} to exist"


@message("Waiting for <Kind> to report spec.providerID")
def awaiting_provider_id(s: MachineSnapshot) -> str:
    return f"Waiting for {s.infrastructure_kind} to report spec.providerID"


def _node_ready(node: Node) -> Outcome:
    ready = next((c for c in reversed(node.status.conditions) if c.type == "Ready"), None)
    if ready is None:
        return Outcome("Unknown", "NodeReadyUnknown", "* Node.Ready: Condition not yet reported")
    reason = {"True": "NodeReady", "False": "NodeNotReady"}.get(ready.status, "NodeReadyUnknown")
    text = f"* Node.Ready: {ready.message}" if ready.status != "True" and ready.message else ""
    return Outcome(ready.status, reason, text, last_transition_time=ready.last_transition_time)


def _node_healthy(node: Node) -> Outcome:
    health = node_health(node)
    reason = {"True": "NodeHealthy", "False": "NodeNotHealthy"}.get(health.status, "NodeHealthyUnknown")
    return Outcome(health.status, reason, health.message)


def _of_node(judge: Callable[[Node], Outcome]) -> Callable[[MachineDone], Outcome]:
    def outcome(s: MachineDone) -> Outcome:
        if isinstance(s.node, NodeFound):
            return judge(s.node.node)
        return Outcome("Unknown", "InternalError", CHECK_LOGS)

    return outcome


# fmt: off
def _node_table(name: str, judge: Callable[[Node], Outcome], about: str) -> Table[MachineDone]:
    """Return both conditions of the Node: they are the same except for the Node's own conditions."""
    return Table(
        name,
        Row("cluster-unprovisioned",     ~cluster_provisioned,             unknown("InspectionFailed", "Waiting for Cluster status.initialization.infrastructureProvisioned to be true")),
        Row("control-plane-uninitialized", ~control_plane_initialized,     unknown("InspectionFailed", "Waiting for Cluster control plane to be initialized")),
        Row("never-connected",           not_probed_yet & ~both_reported,  unknown("ConnectionDown", "Remote connection not established yet")),
        Row("never-connected-kept",      not_probed_yet,                   KEEP),
        Row("connection-down",           grace_passed,                     unknown("ConnectionDown", last_probe)),
        Row("out-of-reach",              out_of_reach & ~both_reported,    unknown("ConnectionDown", last_probe)),
        Row("out-of-reach-kept",         out_of_reach,                     KEEP),
        Row("unreadable",                node_unreadable,                  INTERNAL_ERROR),
        Row("reported",                  node_found,                       computed(_of_node(judge), status="from the Node", reason=about)),
        Row("gone-as-wanted",            deleting & node_ref,              false("NodeDeleted", node_deleted)),
        Row("never-was",                 deleting,                         unknown("NodeDoesNotExist", "Node does not exist")),
        Row("lost",                      node_ref,                         false("NodeDeleted", node_lost)),
        Row("awaiting-node",             provider_id,                      unknown("InspectionFailed", awaiting_node)),
        Row("awaiting-provider-id",      OTHERWISE,                        unknown("InspectionFailed", awaiting_provider_id)),
        exactly_one=[(out_of_reach, node_unreadable, node_found, node_missing)],
    )
# fmt: on


NODE_READY = _node_table("NodeReady", _node_ready, "NodeReady, NodeNotReady or NodeReadyUnknown")
NODE_HEALTHY = _node_table("NodeHealthy", _node_healthy, "NodeHealthy, NodeNotHealthy or NodeHealthyUnknown")


# ------------------------------------------------------------------------------------------------------------ Deleting


def _deletion_stage(s: MachineDone) -> Outcome:
    return Outcome("True", s.deletion.reason, s.deletion.message) if s.deletion else Outcome("True", "Deleting", "Deletion started")


# fmt: off
DELETING: Table[MachineDone] = Table(
    "Deleting",
    Row("not-deleting", ~deleting,          false("NotDeleting")),
    Row("stage",        deletion_worked_on, computed(_deletion_stage, status="True", reason="the stage", message="as the tables NodeHandling, NodeShutdown and HostDeletion have it")),
    Row("resting",      OTHERWISE,          KEEP),
    about="While a deletion waits between two checks of the drain, the condition keeps its content.",
)
# fmt: on


# ------------------------------------------------------------------------------------------------------------ Updating


def _update_stage(s: MachineDone) -> Outcome:
    return Outcome("True", s.updating.reason, s.updating.message) if s.updating else Outcome("True", "InPlaceUpdating")


# fmt: off
UPDATING: Table[MachineDone] = Table(
    "Updating",
    Row("stage",        updating & update_spoke, computed(_update_stage, status="True", reason="InPlaceUpdating or InPlaceUpdateFailed", message="what the update says")),
    Row("in-progress",  updating,                true("InPlaceUpdating", "In-place update in progress")),
    Row("not-updating", OTHERWISE,               false("NotUpdating")),
)
# fmt: on


# ------------------------------------------------------------------------------------------------------------ UpToDate


def _bare_kind(template_kind: str) -> str:
    return template_kind.removesuffix("Template")


@message("Version <X>, <Y> required")
def version_required(s: MachineSnapshot) -> str:
    mine, wanted = templates(s)
    return f"Version {mine.spec.version}, {wanted.spec.version} required"


@message("<BootstrapKind> is not up-to-date")
def bootstrap_not_up_to_date(s: MachineSnapshot) -> str:
    ref = templates(s)[0].spec.bootstrap.config_ref
    return f"{_bare_kind(ref.kind if ref else '')} is not up-to-date"


@message("spec.bootstrap.dataSecretName <X>, <Y> required")
def data_secret_required(s: MachineSnapshot) -> str:
    mine, wanted = (t.spec.bootstrap.data_secret_name for t in templates(s))
    return f"spec.bootstrap.dataSecretName {'nil' if mine is None else mine}, {'nil' if wanted is None else wanted} required"


@message("<InfraKind> is not up-to-date")
def infrastructure_not_up_to_date(s: MachineSnapshot) -> str:
    return f"{_bare_kind(templates(s)[0].spec.infrastructure_ref.kind)} is not up-to-date"


@message("Failure domain <X>, <Y> required")
def failure_domain_required(s: MachineSnapshot) -> str:
    mine, wanted = templates(s)
    return f"Failure domain {mine.spec.failure_domain}, {wanted.spec.failure_domain} required"


@message("* <Updating's message>")
def updating_message(s: MachineSnapshot) -> str:
    found = get(s.machine.status.conditions, "Updating")
    return f"* {found.message}" if found is not None and found.message else "* In-place update in progress"


@message("* Node.status.nodeInfo.kubeletVersion <X>, <Y> required")
def kubelet_required(s: MachineSnapshot) -> str:
    info = s.machine.status.node_info
    return f"* Node.status.nodeInfo.kubeletVersion {info.kubelet_version if info is not None else ''}, {s.machine.spec.version} required"


# fmt: off
UP_TO_DATE: Table[MachineSnapshot] = Table(
    "UpToDate",
    Row("not-deployed",              ~deployed,         KEEP),
    Collect("outdated",              false("NotUpToDate"),
        Because("version",           version_differs,                            version_required),
        Because("bootstrap",         bootstrap_differs & has_bootstrap_template, bootstrap_not_up_to_date),
        Because("data-secret",       bootstrap_differs & ~has_bootstrap_template, data_secret_required),
        Because("infrastructure",    infrastructure_differs,                     infrastructure_not_up_to_date),
        Because("failure-domain",    failure_domain_differs,                     failure_domain_required),
        Because("rollout-after",     rollout_due,                                "MachineDeployment spec.rolloutAfter expired"),
    ),
    Row("updating",                  updating_reported, false("Updating", updating_message)),
    Row("kubelet-differs",           kubelet_differs,   false("Updating", kubelet_required)),
    Row("up-to-date",                OTHERWISE,         true("UpToDate")),
    about="Written for workers of a MachineDeployment only; the owners of other Machines write theirs.",
)
# fmt: on


# --------------------------------------------------------------------------------------------------------------- Ready

_READY_TYPES = ("Deleting", "Updating", "BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "HealthCheckSucceeded")
_NEGATIVE = frozenset({"Deleting", "Updating"})
_GONE = {
    "BootstrapConfigReady": {"ObjectDeleted", "ObjectDoesNotExist"},
    "InfrastructureReady": {"ObjectDeleted", "ObjectDoesNotExist"},
    "NodeHealthy": {"NodeDeleted", "NodeDoesNotExist"},
}
"""Conditions whose missing objects are normal while a Machine is deleted."""

LONG_DELETION = timedelta(minutes=15)
LONG_DRAIN = timedelta(minutes=5)
_DELAYS = (
    (BUDGET_VIOLATED, "PodDisruptionBudgets"),
    (NOT_REMOVED, "Pods not terminating"),
    (EVICTION_FAILED, "Pod eviction errors"),
    (NOT_COMPLETED, "Pods not completed yet"),
)


def deleting_in_short(s: MachineSnapshot) -> str:
    """Return the progress of the deletion in few distinct texts, so that Machines at the same stage have the same text."""
    found = get(s.machine.status.conditions, "Deleting")
    since = s.machine.metadata.deletion_timestamp
    if found is None or since is None:
        return "Machine deletion in progress"
    if s.now - since <= LONG_DELETION:
        return f"Machine deletion in progress, stage: {found.reason}"
    text = f"Machine deletion in progress since more than 15m, stage: {found.reason}"
    started = s.machine.status.deletion.node_drain_start_time if s.machine.status.deletion else None
    if found.reason == "DrainingNode" and started is not None and s.now - started > LONG_DRAIN:
        causes = [cause for sign, cause in _DELAYS if sign in found.message]
        text += f", delay likely due to {', '.join(causes)}" if causes else ""
    return text


def _summarized(s: MachineSnapshot) -> Outcome:
    gates = s.machine.spec.readiness_gates
    overrides = []
    if s.deleting and has(s.machine.status.conditions, "Deleting"):
        overrides.append(Condition(type="Deleting", status="True", reason="Deleting", message=deleting_in_short(s)))

    def priority(condition: Condition) -> Priority | None:
        return Priority.INFO if s.deleting and condition.reason in _GONE.get(condition.type, ()) else None

    ready = summary(
        reporter(s.machine),
        (*_READY_TYPES, *(gate.condition_type for gate in gates)),
        target="Ready",
        ignore_if_missing=("HealthCheckSucceeded",),
        overrides=overrides,
        strategy=Strategy(
            reasons=Reasons("NotReady", "ReadyUnknown", "Ready"),
            negative=_NEGATIVE | {gate.condition_type for gate in gates if gate.polarity == "Negative"},
            priority=priority,
            transform=group_control_plane_components,
        ),
    )
    return Outcome(ready.status, ready.reason, ready.message)


# fmt: off
READY: Table[MachineSnapshot] = Table(
    "Ready",
    Row("circular", gates_name_ready, INTERNAL_ERROR),
    Row("summary",  OTHERWISE,        computed(_summarized, status="summary", reason="Ready, NotReady or ReadyUnknown", message="of Deleting, Updating, BootstrapConfigReady, InfrastructureReady, NodeHealthy, HealthCheckSucceeded and the readiness gates")),
)
# fmt: on


# ----------------------------------------------------------------------------------------------------------- Available


# fmt: off
AVAILABLE: Table[MachineSnapshot] = Table(
    "Available",
    Row("ready-unreported", ~ready_reported,   INTERNAL_ERROR),
    Row("not-ready",        ~ready,            false("NotReady")),
    Row("available",        ready_long_enough, true("Available")),
    Row("maturing",         OTHERWISE,         false("WaitingForMinReadySeconds"), requeue=Later("the rest of spec.minReadySeconds", remaining_min_ready)),
    assuming=[ready_reported | ~ready, ready | ~ready_long_enough],
)
# fmt: on

STATES = (BOOTSTRAP_CONFIG_READY, INFRASTRUCTURE_READY)
OF_THE_NODE = (NODE_READY, NODE_HEALTHY)
"""Tables that decide before either condition is written: each checks whether the other is reported."""
STAGES = (DELETING, UPDATING, UP_TO_DATE, READY)
TABLES = (*STATES, *OF_THE_NODE, *STAGES, AVAILABLE)
OWNED = ("Paused", *(t.name for t in TABLES if t is not UP_TO_DATE))
"""Conditions that only we write. UpToDate is written here too, but also by the owners of Machines."""
OWNED_V1BETA1 = ("Ready", "BootstrapReady", "InfrastructureReady", "DrainingSucceeded")
