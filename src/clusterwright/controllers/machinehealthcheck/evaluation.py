"""Judge one Machine by the rules of its MachineHealthCheck. Pure.

A rule that is broken for longer than its timeout is a finding; one that is broken, but not yet for long enough, says when to look
again. Machines that cannot be fairly judged yet (their Cluster is not up) are not judged, unless a user marked them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from clusterwright.api.copying import replace
from clusterwright.api.core import (
    Cluster,
    Machine,
    MachineDeprecatedStatus,
    MachineHealthCheck,
    MachineStatus,
    MachineV1Beta1DeprecatedStatus,
)
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectMeta
from clusterwright.api.wellknown import (
    CONTROL_PLANE_LABEL,
    PAUSED_ANNOTATION,
    REMEDIATE_MACHINE_ANNOTATION,
    SKIP_REMEDIATION_ANNOTATION,
)
from clusterwright.conditions import get, v1beta1
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.kubeadm.durations import format_duration

NODE_STARTUP_TIMEOUT_SECONDS = 600
"""The default time within which a Node must appear; 0 disables the rule."""

_A_MOMENT = timedelta(seconds=1)
"""Added to every wait, so that the next check is certainly after the timeout."""


class MachineFacts(Machine):
    """The facts of a Machine that a check depends on; the check's own verdict is left out."""

    @staticmethod
    def of(machine: Machine) -> MachineFacts:
        """Return the facts of a Machine."""
        metadata, status = machine.metadata, machine.status
        remediated = tuple(replace(c, message="") for c in v1beta1.reporter_conditions(machine) if c.type == "OwnerRemediated")
        return MachineFacts(
            metadata=ObjectMeta(
                name=metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
                labels=metadata.labels,
                annotations=metadata.annotations,
                creation_timestamp=metadata.creation_timestamp,
                deletion_timestamp=metadata.deletion_timestamp,
            ),
            status=MachineStatus(
                node_ref=status.node_ref,
                conditions=tuple(
                    replace(c, message="", observed_generation=0) for c in status.conditions if c.type != "HealthCheckSucceeded"
                ),
                deprecated=MachineDeprecatedStatus(v1beta1=MachineV1Beta1DeprecatedStatus(conditions=remediated)),
            ),
        )


@dataclass(frozen=True, slots=True)
class Target:
    """A Machine and its Node. `is_node_gone`: its Node existed and was deleted."""

    machine: MachineFacts
    node: Node | None = None
    is_node_gone: bool = False


class Rule(Enum):
    """The kind of rule that a finding violates."""

    MACHINE_CONDITION = "UnhealthyMachine"
    NODE_DELETED = "NodeDeleted"
    NODE_STARTUP = "NodeStartupTimeout"
    NODE_CONDITION = "UnhealthyNode"


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was violated for too long."""

    rule: Rule
    text: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The verdict of the rules on a Machine. `recheck` is the time until it may change; None: no timer runs."""

    is_marked: bool = False
    is_judged: bool = True
    findings: tuple[Finding, ...] = ()
    recheck: timedelta | None = None
    has_node: bool = False
    is_deleting: bool = False

    @property
    def is_unhealthy(self) -> bool:
        """Whether the Machine needs remediation."""
        return self.is_marked or bool(self.findings)

    @property
    def is_pending(self) -> bool:
        """Whether the verdict depends on a running timer."""
        return not self.is_unhealthy and self.recheck is not None

    @property
    def is_healthy(self) -> bool:
        """Whether the Machine counts as healthy: no finding, it has a Node, and it is not being deleted."""
        return not self.is_unhealthy and not self.is_pending and self.has_node and not self.is_deleting

    def broke(self, rule: Rule) -> bool:
        """Return whether a finding is of this kind."""
        return any(f.rule is rule for f in self.findings)


def is_exempt(machine: Machine) -> bool:
    """Return whether the Machine is excluded from health checks."""
    return PAUSED_ANNOTATION in machine.metadata.annotations or SKIP_REMEDIATION_ANNOTATION in machine.metadata.annotations


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A condition of the Cluster: its status, empty if absent, and its transition time."""

    status: str = ""
    since: datetime | None = None

    @staticmethod
    def of(cluster: Cluster, type: str) -> Reached:
        """Return the condition of this type."""
        found = get(cluster.status.conditions, type)
        return Reached() if found is None else Reached(status=found.status, since=found.last_transition_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of its Cluster that a check depends on: the pause, and whether Machines can be judged."""

    initialized: Reached
    infrastructure: Reached

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        return ClusterFacts(
            namespace=cluster.metadata.namespace,
            reference=owner_reference(cluster, controller=False),
            paused=bool(cluster.spec.paused),
            initialized=Reached.of(cluster, "ControlPlaneInitialized"),
            infrastructure=Reached.of(cluster, "InfrastructureReady"),
        )


def evaluate(check: MachineHealthCheck, cluster: ClusterFacts, target: Target, now: datetime) -> Evaluation:
    """Judge one Machine."""
    machine = target.machine
    has_node, is_deleting = target.node is not None, machine.metadata.deletion_timestamp is not None
    if REMEDIATE_MACHINE_ANNOTATION in machine.metadata.annotations:
        return Evaluation(is_marked=True, has_node=has_node, is_deleting=is_deleting)
    if not _can_judge(cluster, machine):
        return Evaluation(is_judged=False, has_node=has_node, is_deleting=is_deleting)
    outcomes = [*_machine_conditions(check, machine, now), *_node(check, cluster, target, now)]
    waits = [o for o in outcomes if isinstance(o, timedelta)]
    return Evaluation(
        findings=tuple(o for o in outcomes if isinstance(o, Finding)),
        recheck=min(waits, default=None),
        has_node=has_node,
        is_deleting=is_deleting,
    )


def _can_judge(cluster: ClusterFacts, machine: Machine) -> bool:
    """Return whether Machines can be judged yet; the first control-plane Machine must be judged before the control plane is up."""
    is_due = cluster.initialized.status == "True" or CONTROL_PLANE_LABEL in machine.metadata.labels
    return is_due and cluster.infrastructure.status == "True"


def _machine_conditions(check: MachineHealthCheck, machine: Machine, now: datetime) -> Iterator[Finding | timedelta]:
    for rule in check.spec.checks.unhealthy_machine_conditions if check.spec.checks else ():
        condition = get(machine.status.conditions, rule.type)
        if condition is not None and condition.status == rule.status:
            text = _reporting("Machine", rule.type, rule.status, condition.reason, rule.timeout_seconds or 0)
            yield _timed(condition.last_transition_time, rule.timeout_seconds or 0, now, Finding(Rule.MACHINE_CONDITION, text))


def _node(check: MachineHealthCheck, cluster: ClusterFacts, target: Target, now: datetime) -> Iterator[Finding | timedelta]:
    if target.is_node_gone:
        name = target.machine.status.node_ref.name if target.machine.status.node_ref else ""
        yield Finding(Rule.NODE_DELETED, f"Node {name} has been deleted")
    elif target.node is None:
        timeout = startup_timeout(check)
        if timeout:
            text = f"Node failed to report startup in {format_duration(timeout)}"
            yield _timed(startup_began(cluster, target.machine), timeout, now, Finding(Rule.NODE_STARTUP, text))
    else:
        conditions = {c.type: c for c in target.node.status.conditions}
        for rule in check.spec.checks.unhealthy_node_conditions if check.spec.checks else ():
            condition = conditions.get(rule.type)
            if condition is not None and condition.status == rule.status:
                text = _reporting("Node", rule.type, rule.status, condition.reason, rule.timeout_seconds or 0)
                yield _timed(condition.last_transition_time, rule.timeout_seconds or 0, now, Finding(Rule.NODE_CONDITION, text))


def _reporting(where: str, type: str, status: str, reason: str, seconds: int) -> str:
    return f"Condition {type} on {where} is reporting status {status} with reason {reason} for more than {format_duration(seconds)}"


def _timed(since: datetime | None, seconds: int, now: datetime, finding: Finding) -> Finding | timedelta:
    """Return the finding if the timeout has passed, else the remaining time; an unknown time counts as long ago."""
    timeout = timedelta(seconds=seconds)
    if since is None or since + timeout < now:
        return finding
    return timeout - (now - since) + _A_MOMENT


def startup_timeout(check: MachineHealthCheck) -> int:
    """Return within how many seconds a Node must appear; 0: no limit."""
    seconds = check.spec.checks.node_startup_timeout_seconds if check.spec.checks else None
    return NODE_STARTUP_TIMEOUT_SECONDS if seconds is None else seconds


def startup_began(cluster: ClusterFacts, machine: Machine) -> datetime | None:
    """Return since when a Node can be expected: the Machine exists, and its prerequisites were ready."""
    moments = [machine.metadata.creation_timestamp]
    moments += [reached.since for reached in (cluster.initialized, cluster.infrastructure) if reached.status == "True"]
    condition = get(machine.status.conditions, "InfrastructureReady")
    if condition is not None and condition.status == "True":
        moments.append(condition.last_transition_time)
    return max((m for m in moments if m is not None), default=None)


def next_check(evaluations: Sequence[Evaluation]) -> timedelta | None:
    """Return when to check again without an event: when the first timer of an undecided Machine ends."""
    return min((e.recheck for e in evaluations if e.is_pending and e.recheck is not None), default=None)
