"""Whether a Machine may be remediated, which one, and why not. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.quorum import control_plane_survives, project_etcd
from clusterwright.workload.access import EtcdMember

DEFAULT_MIN_HEALTHY_PERIOD = timedelta(hours=1)


class GarbledHistory(Exception):
    """A remediation annotation that is not ours to guess about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationData:
    """What the remediation annotations say: the Machine that was deleted, when, and how often in a row."""

    machine: str
    time: datetime | None
    retry_count: int = 0

    def dump(self) -> str:
        """The annotation's value."""
        data: dict[str, Any] = {"machine": self.machine}
        if self.time is not None:
            data["timestamp"] = self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        data["retryCount"] = self.retry_count
        return json.dumps(data, separators=(",", ":"))

    @staticmethod
    def parse(value: str) -> RemediationData:
        """The data in an annotation; raises GarbledHistory."""
        try:
            data = json.loads(value)
            stamp = data.get("timestamp")
            return RemediationData(
                machine=str(data.get("machine", "")),
                time=datetime.fromisoformat(stamp).astimezone(UTC) if stamp else None,
                retry_count=int(data.get("retryCount", 0)),
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise GarbledHistory("failed to unmarshal remediation data") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a Machine is not remediated now (`reason` set), or that it may be, and the retry count that it would carry.

    `legacy` is the deprecated condition's (severity, reason, message).
    """

    reason: str = ""
    message: str = ""
    legacy: tuple[str, str, str] = ("", "", "")
    retry_count: int = 0

    @property
    def allowed(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationFacts:
    """What the decision looks at, beside the Machine itself."""

    machines: Sequence[ControlPlaneMachine]
    managed_etcd: bool
    members: Sequence[EtcdMember] | None
    nodes_listed: bool
    initialized: bool
    pending_topology_version: str
    max_retry: int | None
    retry_period: timedelta
    min_healthy_period: timedelta
    now: datetime


def lock_is_stale(lock: RemediationData, machines: Sequence[ControlPlaneMachine]) -> bool:
    """Whether a Machine was created after the lock was set, so that its replacement exists; a lock without a time is older than any."""
    return any(m.created is not None and (lock.time is None or m.created > lock.time) for m in machines)


def recovered(machine: ControlPlaneMachine) -> bool:
    """Whether a Machine marked for remediation became healthy again by itself."""
    return not machine.deleting and machine.is_true(names.HEALTH_CHECK_SUCCEEDED) and machine.is_false(names.OWNER_REMEDIATED)


def recovered_v1beta1(machine: ControlPlaneMachine) -> bool:
    """The same, judged by the deprecated conditions."""
    status = {c.type: c.status for c in machine.v1beta1_conditions}
    return not machine.deleting and status.get(names.HEALTH_CHECK_SUCCEEDED) == "True" and status.get(names.OWNER_REMEDIATED) == "False"


def choose(machines: Sequence[ControlPlaneMachine], *, managed_etcd: bool) -> ControlPlaneMachine | None:
    """The Machine to remediate first: what the user marked, what never came up, what hurts etcd, what hurts Kubernetes, the oldest."""
    types = ((names.ETCD_MEMBER, names.ETCD_POD) if managed_etcd else ()) + (*names.KUBERNETES_PODS, names.NODE_LABELS_AND_TAINTS)

    def urgency(machine: ControlPlaneMachine) -> tuple[Any, ...]:
        return (
            names.REMEDIATE_MACHINE not in machine.annotations,
            machine.has_node,
            *(machine.is_true(t) for t in types),
            *machine.age_key,
        )

    return min((m for m in machines if m.needs_remediation), key=urgency, default=None)


def retry_limits(machine: ControlPlaneMachine, facts: RemediationFacts) -> Verdict:
    """Whether the Machine, perhaps itself a replacement, may be replaced (again)."""
    annotation = machine.annotations.get(names.REMEDIATION_FOR)
    if annotation is None:
        return Verdict()
    last = RemediationData.parse(annotation)
    time = last.time or facts.now - 2 * max(facts.min_healthy_period, facts.retry_period)
    if time + facts.min_healthy_period <= facts.now:
        return Verdict()
    if time + facts.retry_period > facts.now:
        period = names.go_duration(int(facts.retry_period.total_seconds()))
        text = (
            "KubeadmControlPlane can't remediate this machine because the operation already failed in the latest "
            f"{period} (RetryPeriodSeconds)"
        )
        return Verdict(reason="RemediationDeferred", message=text, legacy=("Warning", "WaitingForRemediation", text))
    if facts.max_retry is not None and last.retry_count >= facts.max_retry:
        text = f"KubeadmControlPlane can't remediate this machine because the operation already failed {facts.max_retry} times (MaxRetry)"
        return Verdict(reason="CannotBeRemediated", message=text, legacy=("Warning", "WaitingForRemediation", text))
    return Verdict(retry_count=last.retry_count + 1)


def judge(machine: ControlPlaneMachine, member: str | None, facts: RemediationFacts) -> Verdict:
    """Whether the Machine may be deleted now. `member` is the name of its etcd member; None if it cannot be known."""
    if facts.pending_topology_version:
        text = (
            f"KubeadmControlPlane can't remediate while waiting for a version upgrade to {facts.pending_topology_version} "
            "to be propagated from Cluster.spec.topology"
        )
        return Verdict(reason="RemediationDeferred", message=text, legacy=("Warning", "WaitingForRemediation", text))
    limits = retry_limits(machine, facts)
    if not limits.allowed or not facts.initialized:
        return limits
    for denied in _denials(machine, member, facts):
        return denied
    return limits


def _denials(machine: ControlPlaneMachine, member: str | None, facts: RemediationFacts) -> list[Verdict]:
    """What speaks against deleting a Machine of a running control plane, the first reason first; at most one."""

    def deferred(text: str, legacy: str = "") -> list[Verdict]:
        return [Verdict(reason="RemediationDeferred", message=text, legacy=("Warning", "WaitingForRemediation", legacy or text))]

    def cannot(text: str, legacy: tuple[str, str, str]) -> list[Verdict]:
        return [Verdict(reason="CannotBeRemediated", message=text, legacy=legacy)]

    if len(facts.machines) <= 1:
        text = "KubeadmControlPlane can't remediate if current replicas are less or equal to 1"
        return cannot(text, ("Warning", "WaitingForRemediation", text))
    if any(not m.unhealthy and not m.has_node for m in facts.machines):
        return deferred(
            "KubeadmControlPlane waiting for control plane Machine provisioning to complete before triggering remediation",
            "KubeadmControlPlane waiting for control plane machine provisioning to complete before triggering remediation",
        )
    if any(m.deleting for m in facts.machines):
        return deferred(
            "KubeadmControlPlane waiting for control plane Machine deletion to complete before triggering remediation",
            "KubeadmControlPlane waiting for control plane machine deletion to complete before triggering remediation",
        )
    if facts.managed_etcd and (not facts.members or not facts.nodes_listed):
        return deferred("Failed to check etcd cluster health before remediation")
    safe = control_plane_survives(facts.machines, managed_etcd=facts.managed_etcd, remove=machine.name)
    if safe and facts.managed_etcd and member is not None:
        safe = project_etcd(facts.members or (), facts.machines, remove=member).safe
    if not safe:
        text = (
            "KubeadmControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components "
            "or in etcd quorum loss"
        )
        return cannot(text, ("Warning", "WaitingForRemediation", text))
    return []


NO_HEALTHY_MACHINE = Verdict(
    reason="CannotBeRemediated",
    message="KubeadmControlPlane can't remediate this Machine because there is no healthy Machine to forward etcd leadership to",
    legacy=(
        "Warning",
        "RemediationFailed",
        "A control plane machine needs remediation, but there is no healthy machine to forward etcd leadership to. Skipping remediation",
    ),
)
FAILED = Verdict(reason="InternalError", message=names.CHECK_LOGS, legacy=("Error", "RemediationFailed", ""))
DELETING = Verdict(reason="MachineDeleting", message="Machine is deleting", legacy=("Warning", "RemediationInProgress", ""))


def last_remediation(lock: str | None, machines: Sequence[ControlPlaneMachine]) -> RemediationData | None:
    """The newest remediation known: the one in progress, else the newest that a Machine remembers."""
    if lock is not None:
        return RemediationData.parse(lock)
    found = [RemediationData.parse(m.annotations[names.REMEDIATION_FOR]) for m in machines if names.REMEDIATION_FOR in m.annotations]
    return max(found, key=lambda d: d.time or datetime.min.replace(tzinfo=UTC), default=None)


def settings(spec: Mapping[str, Any]) -> tuple[int | None, timedelta, timedelta]:
    """(maxRetry, retryPeriod, minHealthyPeriod) of `spec.remediation`, with their defaults."""
    healthy = spec.get("minHealthyPeriodSeconds")
    return (
        spec.get("maxRetry"),
        timedelta(seconds=spec.get("retryPeriodSeconds") or 0),
        DEFAULT_MIN_HEALTHY_PERIOD if healthy is None else timedelta(seconds=healthy),
    )
