"""The conditions of a MachineHealthCheck, and those that it writes on its Machines, as tables in the order of the specification. Pure."""

from __future__ import annotations

from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.machinehealthcheck import guards as g
from clusterwright.controllers.machinehealthcheck.snapshot import HealthCheckDone, TargetSnapshot
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, Transition, false, true

OWNED = ("Paused", "RemediationAllowed")
OWNED_V1BETA1 = ("RemediationAllowed", "ExternalRemediationTemplateAvailable", "ExternalRemediationRequestAvailable")

MACHINE_OWNED = ("HealthCheckSucceeded",)
"""The condition of a Machine that only we write.

OwnerRemediated and ExternallyRemediated also belong to the remediating controller, which wins conflicts.
"""

_WARNING = "Warning"
_TRUE: Transition[TargetSnapshot] = true("")
_CHECK_TRUE: Transition[HealthCheckDone] = true("")

_NODE_RULES = (g.node_deleted, g.startup_timed_out, g.node_condition_broken)
_BROKEN = g.machine_condition_broken | g.node_deleted | g.startup_timed_out | g.node_condition_broken

# fmt: off
HEALTH_CHECK_SUCCEEDED: Table[TargetSnapshot] = Table(
    "HealthCheckSucceeded",
    Row("marked",               g.marked,                   false("HasRemediateAnnotation", g.MARKED),          v1beta1=false("HasRemediateMachineAnnotation", "Marked for remediation via remediate-machine annotation", _WARNING)),
    Row("unhealthy-machine",    g.machine_condition_broken, false("UnhealthyMachine", g.failures),              v1beta1=false("UnhealthyMachine", g.failures_v1beta1, _WARNING)),
    Row("node-deleted",         g.node_deleted,             false("NodeDeleted", g.failures),                   v1beta1=false("NodeNotFound", "", _WARNING)),
    Row("node-startup-timeout", g.startup_timed_out,        false("NodeStartupTimeout", g.failures),            v1beta1=false("NodeStartupTimeout", g.failures_v1beta1, _WARNING)),
    Row("unhealthy-node",       g.node_condition_broken,    false("UnhealthyNode", g.failures),                 v1beta1=false("UnhealthyNode", g.failures_v1beta1, _WARNING)),
    Row("undecided",            g.timer_runs,               KEEP),
    Row("no-node",              ~g.has_node,                KEEP),
    Row("deleting",             g.deleting,                 KEEP),
    Row("healthy",              OTHERWISE,                  true("HealthCheckSucceeded"),                       v1beta1=_TRUE),
    at_most_one=[_NODE_RULES],
    assuming=[
        ~g.marked | ~(_BROKEN | g.timer_runs),                      # who is marked is not measured against the rules
        ~g.has_node | ~(g.node_deleted | g.startup_timed_out),      # a Node that was read is not gone, nor late
        g.has_node | ~g.node_condition_broken,
    ],
    about="Set on a Machine. All violated rules are reported; the reason is that of the first row that holds. A Machine that cannot be "
    "judged yet because its Cluster is not up, although its Node could be read, counts as healthy.",
)

OWNER_REMEDIATED: Table[TargetSnapshot] = Table(
    "OwnerRemediated",
    Row("not-unhealthy",        ~g.unhealthy,               KEEP),
    Row("not-allowed",          ~g.remediation_allowed,     KEEP),
    Row("external",             g.external,                 KEEP),
    Row("deleting",             g.deleting,                 KEEP),
    Row("at-work",              g.owner_at_work,            KEEP),
    Row("hand-over",            OTHERWISE,                  false("WaitingForRemediation", "Waiting for remediation")),
    about="Set on a Machine: requests remediation by its owner. Values that the owner writes during remediation are left alone.",
)

OWNER_REMEDIATED_V1BETA1: Table[TargetSnapshot] = Table(
    "OwnerRemediated (v1beta1)",
    Row("not-unhealthy",        ~g.unhealthy,               KEEP),
    Row("not-allowed",          ~g.remediation_allowed,     KEEP),
    Row("external",             g.external,                 KEEP),
    Row("deleting",             g.deleting,                 KEEP),
    Row("at-work",              g.owner_at_work_v1beta1,    KEEP),
    Row("hand-over",            OTHERWISE,                  false("WaitingForRemediation", "", _WARNING)),
    v1beta1="OwnerRemediated",
    about="Of a Machine.",
)

EXTERNALLY_REMEDIATED: Table[TargetSnapshot] = Table(
    "ExternallyRemediated",
    Row("template-missing",     g.template_missing,         false("RemediationTemplateNotFound", g.template_not_found)),
    Row("request-refused",      g.request_refused,          false("RemediationRequestCreationFailed", CHECK_LOGS)),
    Row("requested",            g.request_created,          false("WaitingForRemediation")),
    Row("as-it-is",             OTHERWISE,                  KEEP),
    at_most_one=[(g.template_missing, g.request_refused, g.request_created)],
    about="Set on a Machine if there is a remediation template: the remediating controller updates the condition from there.",
)

REMEDIATION_ALLOWED: Table[HealthCheckDone] = Table(
    "RemediationAllowed",
    Row("limit-unreadable",     ~g.limit_valid,             KEEP,                                               error=g.limit_complaint),
    Row("allowed",              g.within_limit,             true("RemediationAllowed"),                         v1beta1=_CHECK_TRUE),
    Row("outside-range",        g.by_range,                 false("TooManyUnhealthy", g.outside_range),         v1beta1=false("TooManyUnhealthy", g.outside_range, _WARNING)),
    Row("too-many",             OTHERWISE,                  false("TooManyUnhealthy", g.above_limit),           v1beta1=false("TooManyUnhealthy", g.above_limit, _WARNING)),
    assuming=[~g.within_limit | g.limit_valid],
)

TEMPLATE_AVAILABLE: Table[HealthCheckDone] = Table(
    "ExternalRemediationTemplateAvailable (v1beta1)",
    Row("missing",              g.any_template_missing,     false("ExternalRemediationTemplateNotFound", g.external_error, "Error")),
    Row("as-it-is",             OTHERWISE,                  KEEP),
    v1beta1="ExternalRemediationTemplateAvailable",
)

REQUEST_AVAILABLE: Table[HealthCheckDone] = Table(
    "ExternalRemediationRequestAvailable (v1beta1)",
    Row("refused",              g.any_request_refused,      false("ExternalRemediationRequestCreationFailed", g.external_error, "Error")),
    Row("as-it-is",             OTHERWISE,                  KEEP),
    v1beta1="ExternalRemediationRequestAvailable",
)
# fmt: on

MACHINE_TABLES = (HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED, OWNER_REMEDIATED_V1BETA1, EXTERNALLY_REMEDIATED)
TABLES = (REMEDIATION_ALLOWED, TEMPLATE_AVAILABLE, REQUEST_AVAILABLE)
