# ruff: noqa: E501 - tables are laid out to be read as such
"""Decide whether a Machine may be remediated, which one, and why not. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any

from clusterwright.api.meta import Condition, V1Beta1Condition
from clusterwright.api.wellknown import REMEDIATE_MACHINE_ANNOTATION, REMEDIATION_FOR_ANNOTATION
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import control_plane_survives, project_etcd
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine, subjects
from clusterwright.controllers.kubeadmcontrolplane.machines.selection import leadership_candidates
from clusterwright.kubeadm.durations import format_duration
from clusterwright.tables import KEEP, OTHERWISE, Message, Row, Subject, Table, Transition, false, guard, message
from clusterwright.workload.access import EtcdMember

DEFAULT_MIN_HEALTHY_PERIOD = timedelta(hours=1)

# ------------------------------------------------------------------------------------------------- history


class GarbledHistory(Exception):
    """A remediation annotation is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationData:
    """The content of the remediation annotations: the deleted Machine, the time, and the number of retries in a row."""

    machine: str
    time: datetime | None
    retry_count: int = 0

    def dump(self) -> str:
        """Return the annotation's value."""
        data: dict[str, Any] = {"machine": self.machine}
        if self.time is not None:
            data["timestamp"] = self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        data["retryCount"] = self.retry_count
        return json.dumps(data, separators=(",", ":"))

    @staticmethod
    def parse(value: str) -> RemediationData:
        """Return the data in an annotation; raises GarbledHistory."""
        try:
            data = json.loads(value)
            stamp = data.get("timestamp")
            return RemediationData(
                machine=str(data.get("machine", "")),
                time=datetime.fromisoformat(stamp).astimezone(UTC) if stamp else None,
                retry_count=int(data.get("retryCount", 0)),
            )
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise GarbledHistory("failed to unmarshal remediation data") from error


def last_remediation(lock: str | None, machines: Sequence[ControlPlaneMachine]) -> RemediationData | None:
    """Return the newest known remediation: the one in progress, else the newest recorded on a Machine."""
    if lock is not None:
        return RemediationData.parse(lock)
    found = [
        RemediationData.parse(m.annotations[REMEDIATION_FOR_ANNOTATION]) for m in machines if REMEDIATION_FOR_ANNOTATION in m.annotations
    ]
    return max(found, key=lambda d: d.time or datetime.min.replace(tzinfo=UTC), default=None)


def settings(spec: Mapping[str, Any]) -> tuple[int | None, timedelta, timedelta]:
    """Return (maxRetry, retryPeriod, minHealthyPeriod) of `spec.remediation`, with their defaults."""
    healthy = spec.get("minHealthyPeriodSeconds")
    return (
        spec.get("maxRetry"),
        timedelta(seconds=spec.get("retryPeriodSeconds") or 0),
        DEFAULT_MIN_HEALTHY_PERIOD if healthy is None else timedelta(seconds=healthy),
    )


# -------------------------------------------------------------------------------------------------- choice


def lock_is_stale(lock: RemediationData, machines: Sequence[ControlPlaneMachine]) -> bool:
    """Return whether a Machine was created after the lock was set, so that its replacement exists; a lock without time is the oldest."""
    return any(m.created is not None and (lock.time is None or m.created > lock.time) for m in machines)


def recovered(machine: ControlPlaneMachine) -> bool:
    """Return whether a Machine marked for remediation became healthy again by itself."""
    return not machine.deleting and machine.is_true(names.HEALTH_CHECK_SUCCEEDED) and machine.is_false(names.OWNER_REMEDIATED)


def recovered_v1beta1(machine: ControlPlaneMachine) -> bool:
    """Return the same, from the deprecated conditions."""
    status = {c.type: c.status for c in machine.v1beta1_conditions}
    return not machine.deleting and status.get(names.HEALTH_CHECK_SUCCEEDED) == "True" and status.get(names.OWNER_REMEDIATED) == "False"


def choose(machines: Sequence[ControlPlaneMachine], *, managed_etcd: bool) -> ControlPlaneMachine | None:
    """Return the Machine to remediate first: user-marked, never started, harmful to etcd, harmful to Kubernetes, oldest."""
    types = ((names.ETCD_MEMBER, names.ETCD_POD) if managed_etcd else ()) + (*names.KUBERNETES_PODS, names.NODE_LABELS_AND_TAINTS)

    def urgency(machine: ControlPlaneMachine) -> tuple[Any, ...]:
        return (
            REMEDIATE_MACHINE_ANNOTATION not in machine.annotations,
            machine.has_node,
            *(machine.is_true(t) for t in types),
            *machine.age_key,
        )

    return min((m for m in machines if m.needs_remediation), key=urgency, default=None)


# ----------------------------------------------------------------------------------------------- judgement


class Remedy(Enum):
    """The action on the chosen Machine."""

    DELETE = "delete the Machine, and lock"
    FORWARD_AND_DELETE = "move the etcd leadership to another Machine, then delete the Machine, and lock"


@dataclass(frozen=True, kw_only=True)
class RemediationFacts:
    """The facts for the decision about the chosen `machine`; None: none needs remediation.

    `member` is the name of its etcd member; None if unknown. `unreachable`: why the workload cluster cannot be used.
    """

    machine: ControlPlaneMachine | None
    machines: Sequence[ControlPlaneMachine]
    in_progress: bool = False
    managed_etcd: bool
    members: Sequence[EtcdMember] | None
    leader: EtcdMember | None = None
    member: str | None = None
    nodes_listed: bool
    unreachable: str = ""
    initialized: bool
    pending_topology_version: str = ""
    max_retry: int | None = None
    retry_period: timedelta = timedelta(0)
    min_healthy_period: timedelta = DEFAULT_MIN_HEALTHY_PERIOD
    now: datetime

    @cached_property
    def history(self) -> RemediationData | GarbledHistory | None:
        """The remediation record of the Machine, if it is a replacement and the record still counts; else None."""
        annotation = self.machine.annotations.get(REMEDIATION_FOR_ANNOTATION) if self.machine is not None else None
        if annotation is None:
            return None
        try:
            last = RemediationData.parse(annotation)
        except GarbledHistory as error:
            return error
        return last if self._time(last) + self.min_healthy_period > self.now else None

    def _time(self, last: RemediationData) -> datetime:
        return last.time or self.now - 2 * max(self.min_healthy_period, self.retry_period)

    @property
    def is_too_soon(self) -> bool:
        """Whether the last retry was too recent."""
        last = self.history
        return isinstance(last, RemediationData) and self._time(last) + self.retry_period > self.now

    @property
    def is_too_often(self) -> bool:
        """Whether the limit of retries in a row is reached."""
        last = self.history
        return isinstance(last, RemediationData) and self.max_retry is not None and last.retry_count >= self.max_retry

    @property
    def retry_count(self) -> int:
        """The number of retries in a row after this one."""
        return self.history.retry_count + 1 if isinstance(self.history, RemediationData) else 0

    @property
    def is_safe(self) -> bool:
        """Whether the cluster stays healthy without the Machine."""
        name = self.machine.name if self.machine is not None else None
        if not control_plane_survives(self.machines, managed_etcd=self.managed_etcd, remove=name):
            return False
        return not self.managed_etcd or self.member is None or project_etcd(self.members or (), self.machines, remove=self.member).safe

    @property
    def leads(self) -> bool:
        """Whether the Machine's member leads etcd."""
        machine = self.machine
        return self.leader is not None and machine is not None and machine.has_node and machine.node == self.leader.name


def _coming_up(f: RemediationFacts) -> tuple[Subject, ...]:
    return subjects(m for m in f.machines if not m.unhealthy and not m.has_node)


def _going(f: RemediationFacts) -> tuple[Subject, ...]:
    return subjects(m for m in f.machines if m.deleting)


@guard("no Machine is to be remediated, or it is being deleted already")
def nobody(f: RemediationFacts) -> bool:
    return f.machine is None or f.machine.deleting


@guard("a remediation is in progress")
def in_progress(f: RemediationFacts) -> bool:
    return f.in_progress


@guard("the topology wants another version than spec.version, and it is not a step of an upgrade")
def upgrade_pending(f: RemediationFacts) -> bool:
    return bool(f.pending_topology_version)


@guard("what the Machine remembers of its own remediation cannot be read")
def garbled(f: RemediationFacts) -> bool:
    return isinstance(f.history, GarbledHistory)


@guard("remediated less than spec.remediation.retryPeriodSeconds ago")
def too_soon(f: RemediationFacts) -> bool:
    return f.is_too_soon


@guard("remediated spec.remediation.maxRetry times in a row")
def too_often(f: RemediationFacts) -> bool:
    return f.is_too_often


@guard("status.initialization.controlPlaneInitialized")
def initialized(f: RemediationFacts) -> bool:
    return f.initialized


@guard("there is no other Machine")
def alone(f: RemediationFacts) -> bool:
    return len(f.machines) <= 1


@guard("another Machine that is not unhealthy has no Node yet", about=_coming_up)
def provisioning(f: RemediationFacts) -> bool:
    return bool(_coming_up(f))


@guard("a Machine is being deleted", about=_going)
def any_deleting(f: RemediationFacts) -> bool:
    return any(m.deleting for m in f.machines)


@guard("etcdIsManaged")
def managed_etcd(f: RemediationFacts) -> bool:
    return f.managed_etcd


@guard("etcd members or Nodes could not be listed")
def etcd_unknown(f: RemediationFacts) -> bool:
    return not f.members or not f.nodes_listed


@guard("at least one other Machine has healthy components, and etcd keeps its quorum")
def safe(f: RemediationFacts) -> bool:
    return f.is_safe


@guard("the workload cluster cannot be used")
def unreachable(f: RemediationFacts) -> bool:
    return bool(f.unreachable)


@guard("it is not known which etcd member leads")
def leader_unknown(f: RemediationFacts) -> bool:
    return f.leader is None


@guard("the Machine's member leads etcd, and no other Machine has a Node and stays")
def nobody_to_lead(f: RemediationFacts) -> bool:
    return f.leads and f.machine is not None and not leadership_candidates(f.machines, f.machine)


@message("KubeadmControlPlane can't remediate while waiting for a version upgrade to <version> to be propagated from Cluster.spec.topology")
def topology_text(f: RemediationFacts) -> str:
    return (
        f"KubeadmControlPlane can't remediate while waiting for a version upgrade to {f.pending_topology_version} "
        "to be propagated from Cluster.spec.topology"
    )


_CANNOT = "KubeadmControlPlane can't remediate this machine because the operation already failed"


@message(f"{_CANNOT} in the latest <period> (RetryPeriodSeconds)")
def too_soon_text(f: RemediationFacts) -> str:
    return f"{_CANNOT} in the latest {format_duration(int(f.retry_period.total_seconds()))} (RetryPeriodSeconds)"


@message(f"{_CANNOT} <n> times (MaxRetry)")
def too_often_text(f: RemediationFacts) -> str:
    return f"{_CANNOT} {f.max_retry} times (MaxRetry)"


@message("failed to create client to workload cluster: <error>")
def unreachable_text(f: RemediationFacts) -> str:
    return f"failed to create client to workload cluster: {f.unreachable}"


_WAITING = "KubeadmControlPlane waiting for control plane {} to complete before triggering remediation"
_ALONE = "KubeadmControlPlane can't remediate if current replicas are less or equal to 1"
_ETCD_UNKNOWN = "Failed to check etcd cluster health before remediation"
_UNSAFE = (
    "KubeadmControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components "
    "or in etcd quorum loss"
)
_Text = str | Message[RemediationFacts]


def _deferred(text: _Text) -> Transition[RemediationFacts]:
    return false("RemediationDeferred", text)


def _cannot(text: _Text) -> Transition[RemediationFacts]:
    return false("CannotBeRemediated", text)


def _waits(text: _Text) -> Transition[RemediationFacts]:
    """Return the deprecated form of all refusals except one."""
    return false("WaitingForRemediation", text, "Warning")


def _failed(text: str) -> Transition[RemediationFacts]:
    return false("RemediationFailed", text, "Error")


# fmt: off
REMEDIATE: Table[RemediationFacts] = Table(
    names.OWNER_REMEDIATED,
    Row("nobody",       nobody,                       KEEP),
    Row("in-progress",  in_progress,                  KEEP),
    Row("topology",     upgrade_pending,              _deferred(topology_text),                            v1beta1=_waits(topology_text)),
    Row("garbled",      garbled,                      KEEP,                                                error="failed to unmarshal remediation data"),
    Row("too-soon",     too_soon,                     _deferred(too_soon_text),                            v1beta1=_waits(too_soon_text)),
    Row("too-often",    too_often,                    _cannot(too_often_text),                             v1beta1=_waits(too_often_text)),
    Row("first",        ~initialized,                 KEEP,                                                act=Remedy.DELETE),
    Row("alone",        alone,                        _cannot(_ALONE),                                     v1beta1=_waits(_ALONE)),
    Row("provisioning", provisioning,                 _deferred(_WAITING.format("Machine provisioning")),  v1beta1=_waits(_WAITING.format("machine provisioning"))),
    Row("deleting",     any_deleting,                 _deferred(_WAITING.format("Machine deletion")),      v1beta1=_waits(_WAITING.format("machine deletion"))),
    Row("etcd-unknown", managed_etcd & etcd_unknown,  _deferred(_ETCD_UNKNOWN),                            v1beta1=_waits(_ETCD_UNKNOWN)),
    Row("unsafe",       ~safe,                        _cannot(_UNSAFE),                                    v1beta1=_waits(_UNSAFE)),
    Row("unreachable",  unreachable,                  KEEP,                                                error=unreachable_text),
    Row("external",     ~managed_etcd,                KEEP,                                                act=Remedy.DELETE),
    Row("no-leader",    leader_unknown,               _cannot(names.LEADER_UNKNOWN),                       v1beta1=_failed(names.LEADER_UNKNOWN), error=names.LEADER_UNKNOWN),
    Row("no-candidate", nobody_to_lead,               _cannot(names.NO_CANDIDATE),                         v1beta1=_failed(names.NO_CANDIDATE),   error=names.NO_CANDIDATE),
    Row("delete",       OTHERWISE,                    KEEP,                                                act=Remedy.FORWARD_AND_DELETE),
    about="Whether the chosen unhealthy Machine may be deleted to be replaced; the objections are set on the Machine.",
    at_most_one=[(nobody, garbled), (nobody, too_soon), (nobody, too_often), (leader_unknown, nobody_to_lead)],
    assuming=[~(garbled & (too_soon | too_often))],
)
# fmt: on


def deleted() -> tuple[Condition, V1Beta1Condition]:
    """Return the condition of a Machine that was deleted to be replaced."""
    return (
        Condition(type=names.OWNER_REMEDIATED, status="False", reason="MachineDeleting", message="Machine is deleting"),
        V1Beta1Condition(type=names.OWNER_REMEDIATED, status="False", severity="Warning", reason="RemediationInProgress"),
    )


def leads_on(text: str) -> tuple[Condition, V1Beta1Condition]:
    """Return the condition of a Machine that is kept because its member still leads etcd."""
    _, old = failed(text)
    return Condition(type=names.OWNER_REMEDIATED, status="False", reason="CannotBeRemediated", message=text), old


def failed(text: str) -> tuple[Condition, V1Beta1Condition]:
    """Return the condition of a Machine whose deletion failed."""
    return (
        Condition(type=names.OWNER_REMEDIATED, status="False", reason="InternalError", message=CHECK_LOGS),
        V1Beta1Condition(type=names.OWNER_REMEDIATED, status="False", severity="Error", reason="RemediationFailed", message=text),
    )
