"""The guards of the MachineHealthCheck tables, and their messages. Pure."""

from __future__ import annotations

from clusterwright.api.wellknown import REMEDIATE_MACHINE_ANNOTATION
from clusterwright.conditions import get, v1beta1
from clusterwright.controllers.machinehealthcheck.evaluation import Rule
from clusterwright.controllers.machinehealthcheck.snapshot import HealthCheckDone, Request, TargetSnapshot
from clusterwright.tables import guard, message

# ------------------------------------------------------------------------------------------------------------ one Machine


@guard("annotation cluster.x-k8s.io/remediate-machine is there")
def marked(t: TargetSnapshot) -> bool:
    return t.evaluation.is_marked


@guard("a condition of the Machine is as described for longer than its timeout")
def machine_condition_broken(t: TargetSnapshot) -> bool:
    return t.evaluation.broke(Rule.MACHINE_CONDITION)


@guard("the Machine had a Node, and it is gone")
def node_deleted(t: TargetSnapshot) -> bool:
    return t.evaluation.broke(Rule.NODE_DELETED)


@guard("there is no Node, and the startup timeout has passed")
def startup_timed_out(t: TargetSnapshot) -> bool:
    return t.evaluation.broke(Rule.NODE_STARTUP)


@guard("a condition of the Node is as described for longer than its timeout")
def node_condition_broken(t: TargetSnapshot) -> bool:
    return t.evaluation.broke(Rule.NODE_CONDITION)


@guard("a timeout is running")
def timer_runs(t: TargetSnapshot) -> bool:
    return t.evaluation.recheck is not None


@guard("the Node was read")
def has_node(t: TargetSnapshot) -> bool:
    return t.evaluation.has_node


@guard("metadata.deletionTimestamp is set")
def deleting(t: TargetSnapshot) -> bool:
    return t.evaluation.is_deleting


@guard("the Machine is unhealthy")
def unhealthy(t: TargetSnapshot) -> bool:
    return t.evaluation.is_unhealthy


@guard("the number of Machines that are not healthy allows remediation")
def remediation_allowed(t: TargetSnapshot) -> bool:
    return t.allowed


@guard("spec.remediation.templateRef is set")
def external(t: TargetSnapshot) -> bool:
    return t.check.spec.remediation is not None and t.check.spec.remediation.template_ref is not None


@guard("OwnerRemediated is False or Unknown: its owner is at work")
def owner_at_work(t: TargetSnapshot) -> bool:
    present = get(t.machine.status.conditions, "OwnerRemediated")
    return present is not None and present.status != "True"


@guard("OwnerRemediated (v1beta1) is False or Unknown: its owner is at work")
def owner_at_work_v1beta1(t: TargetSnapshot) -> bool:
    present = v1beta1.get(v1beta1.reporter_conditions(t.machine), "OwnerRemediated")
    return present is not None and present.status != "True"


@guard("the remediation template could not be read")
def template_missing(t: TargetSnapshot) -> bool:
    return t.request is Request.TEMPLATE_MISSING


@guard("the remediation request could not be created")
def request_refused(t: TargetSnapshot) -> bool:
    return t.request is Request.REFUSED


@guard("a remediation request was created in this pass")
def request_created(t: TargetSnapshot) -> bool:
    return t.request is Request.CREATED


@message("Health check failed:, and one line for every rule that is broken")
def failures(t: TargetSnapshot) -> str:
    return "Health check failed:\n" + "\n".join(f"  * {f.text}" for f in t.evaluation.findings)


@message("every rule that is broken, joined by `; `")
def failures_v1beta1(t: TargetSnapshot) -> str:
    return "; ".join(f.text for f in t.evaluation.findings)


@message("Error retrieving remediation template <Kind> <namespace/name>")
def template_not_found(t: TargetSnapshot) -> str:
    ref = t.check.spec.remediation.template_ref if t.check.spec.remediation else None
    return f"Error retrieving remediation template {ref.kind} {t.check.metadata.namespace}/{ref.name}" if ref else ""


MARKED = f"Health check failed: marked for remediation via {REMEDIATE_MACHINE_ANNOTATION} annotation"


# -------------------------------------------------------------------------------------------------------------- the check


@guard("the number of Machines that are not healthy is within the limit")
def within_limit(s: HealthCheckDone) -> bool:
    return s.is_remediation_allowed


@guard("spec.remediation.triggerIf.unhealthyInRange is set")
def by_range(s: HealthCheckDone) -> bool:
    return s.limit.is_range


@guard("spec.remediation.triggerIf can be read")
def limit_valid(s: HealthCheckDone) -> bool:
    return not s.limit_error


@guard("the remediation template could not be read")
def any_template_missing(s: HealthCheckDone) -> bool:
    return any(t.request is Request.TEMPLATE_MISSING for t in s.targets)


@guard("a remediation request could not be created")
def any_request_refused(s: HealthCheckDone) -> bool:
    return any(t.request is Request.REFUSED for t in s.targets)


@message("<what is wrong>")
def limit_complaint(s: HealthCheckDone) -> str:
    return s.limit_error


@message("<the error>")
def external_error(s: HealthCheckDone) -> str:
    return s.external_error


@message("Remediation is not allowed, ... does not fall within the range (total: T, unhealthy: U, unhealthyRange: [a-b])")
def outside_range(s: HealthCheckDone) -> str:
    numbers = f"total: {s.expected}, unhealthy: {s.unhealthy}, unhealthyRange: {s.limit.text}"
    return f"Remediation is not allowed, the number of not started or unhealthy machines does not fall within the range ({numbers})"


@message("Remediation is not allowed, ... exceeds maxUnhealthy (total: T, unhealthy: U, maxUnhealthy: M)")
def above_limit(s: HealthCheckDone) -> str:
    numbers = f"total: {s.expected}, unhealthy: {s.unhealthy}, maxUnhealthy: {s.limit.text}"
    return f"Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy ({numbers})"
