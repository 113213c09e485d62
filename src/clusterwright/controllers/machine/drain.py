"""Decide which Pods to evict from a Node, in which order, and the progress of a drain. Pure: the reads and evictions are in `deletion`.

A Pod is judged by an ordered chain, whose first Skip or WaitCompleted ends it (see `judge`). Of the Pods that have to go,
only those of the lowest order are evicted now; the others wait until these have left the Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from clusterwright.api.core import MachineDrainRule
from clusterwright.api.kubernetes import Pod
from clusterwright.api.meta import LabelSelector, ObjectKey
from clusterwright.api.selectors import InvalidSelector, matches, parsed
from clusterwright.api.wellknown import DRAIN_LABEL
from clusterwright.runtime.errors import ApiError, Forbidden, NotFound, TooManyRequests

RETRY = timedelta(seconds=20)
"""The interval of a running drain, if no change of a Pod starts a pass sooner."""

EVICTION_TIMEOUT = timedelta(seconds=10)
"""The longest time that one pass spends on evictions."""

UNREACHABLE_GRACE_PERIOD_SECONDS = 1
"""The grace period on an unreachable Node: no kubelet ends its Pods, so deletions use the shortest one, and nothing waits longer."""

MIRROR_POD = "kubernetes.io/config.mirror"
NAMES_SHOWN = 3
FAILURES_SHOWN = 5

BUDGET_VIOLATED = "cannot evict pod as it would violate the pod's disruption budget."
NOT_REMOVED = "deletionTimestamp set, but still not removed from the Node"
EVICTION_FAILED = "failed to evict Pod"
NOT_COMPLETED = "waiting for completion"

DAEMON_SET_GONE = "evicting Pod of a DaemonSet that is gone"
LOCAL_STORAGE = "evicting Pod that has pods with local storage"
UNMANAGED = "evicting Pod that has no controller"


class DrainError(Exception):
    """The drain cannot be planned: a rule or a Pod cannot be judged."""


class Behavior(StrEnum):
    """The treatment of a Pod while its Node is drained."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPod:
    """The facts of a Pod for a drain. `daemon_set_exists` is None for a Pod without a DaemonSet, or that is finished."""

    key: ObjectKey
    labels: Mapping[str, str] = field(default_factory=dict)
    deleted_at: datetime | None = None
    finished: bool = False
    mirror: bool = False
    controlled: bool = True
    daemon_set_exists: bool | None = None
    local_storage: bool = False
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about one Pod; `order` counts only for Pods that are not skipped. `warnings` are for the log."""

    pod: DrainPod
    behavior: Behavior
    order: int = 0
    warnings: tuple[str, ...] = ()


def daemon_set_of(pod: Pod) -> ObjectKey | None:
    """Return the DaemonSet that controls an unfinished Pod, if any: its existence decides about the Pod."""
    controller = pod.metadata.controller
    if controller is None or controller.kind != "DaemonSet" or _finished(pod):
        return None
    return ObjectKey(pod.metadata.namespace, controller.name)


def describe(pod: Pod, *, daemon_set_exists: bool | None) -> DrainPod:
    """Return the facts of a Pod as it was read."""
    metadata, volumes = pod.metadata, pod.spec.volumes
    return DrainPod(
        key=metadata.key,
        labels=metadata.labels,
        deleted_at=metadata.deletion_timestamp,
        finished=_finished(pod),
        mirror=MIRROR_POD in metadata.annotations,
        controlled=any(o.controller for o in metadata.owner_references),
        daemon_set_exists=daemon_set_exists,
        local_storage=any(v.empty_dir is not None for v in volumes),
        claims=tuple(v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim is not None),
    )


def _finished(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


# ------------------------------------------------------------------------------------------------------- rules


def applicable_rules(
    rules: Iterable[MachineDrainRule], machine_labels: Mapping[str, str], cluster_labels: Mapping[str, str]
) -> tuple[MachineDrainRule, ...]:
    """Return the rules for a Machine, by name.

    An invalid selector in any rule is an error for every Machine, so that no drain is partial.
    """
    ordered = sorted(rules, key=lambda r: r.metadata.name)
    for rule in ordered:
        for selector in _selectors(rule):
            try:
                parsed(selector)
            except InvalidSelector as error:
                raise DrainError(f"invalid selectors in MachineDrainRule {rule.metadata.name}: {error}") from error
    return tuple(
        rule
        for rule in ordered
        if not rule.spec.machines
        or any(matches(entry.selector, machine_labels) and matches(entry.cluster_selector, cluster_labels) for entry in rule.spec.machines)
    )


def _selectors(rule: MachineDrainRule) -> Iterable[LabelSelector]:
    for machines in rule.spec.machines:
        yield from (s for s in (machines.selector, machines.cluster_selector) if s is not None)
    for pods in rule.spec.pods:
        yield from (s for s in (pods.selector, pods.namespace_selector) if s is not None)


def _rule_for(pod: DrainPod, rules: Sequence[MachineDrainRule], namespace_labels: Mapping[str, str]) -> MachineDrainRule | None:
    return next(
        (
            rule
            for rule in rules
            if not rule.spec.pods
            or any(matches(entry.selector, pod.labels) and matches(entry.namespace_selector, namespace_labels) for entry in rule.spec.pods)
        ),
        None,
    )


# ----------------------------------------------------------------------------------------------------- verdicts


def judge(
    pod: DrainPod,
    *,
    rules: Sequence[MachineDrainRule],
    namespaces: Mapping[str, Mapping[str, str]],
    unreachable: bool,
    now: datetime,
) -> Verdict:
    """Return the decision about a Pod. `rules` are those of `applicable_rules`, `namespaces` the labels of every Namespace by name."""
    if unreachable and pod.deleted_at is not None and now - pod.deleted_at > timedelta(seconds=1):
        return Verdict(pod, Behavior.SKIP)
    if pod.daemon_set_exists or pod.mirror:
        return Verdict(pod, Behavior.SKIP)
    warnings = _warnings(pod)
    match pod.labels.get(DRAIN_LABEL, "").lower().replace("-", "", 1):
        case "skip":
            return Verdict(pod, Behavior.SKIP)
        case "waitcompleted":
            return Verdict(pod, Behavior.WAIT_COMPLETED)
    if pod.key.namespace not in namespaces:
        raise DrainError(f"Pod {pod.key}: its Namespace does not exist")
    rule = _rule_for(pod, rules, namespaces[pod.key.namespace])
    if rule is None:
        return Verdict(pod, Behavior.DRAIN, warnings=warnings)
    match rule.spec.drain.behavior:
        case Behavior.DRAIN:
            return Verdict(pod, Behavior.DRAIN, rule.spec.drain.order or 0, warnings)
        case Behavior.SKIP:
            return Verdict(pod, Behavior.SKIP)
        case Behavior.WAIT_COMPLETED:
            return Verdict(pod, Behavior.WAIT_COMPLETED)
        case unknown:
            raise DrainError(f"Pod {pod.key}: MachineDrainRule {rule.metadata.name} has unknown spec.drain.behavior {unknown!r}")


def _warnings(pod: DrainPod) -> tuple[str, ...]:
    if pod.finished:
        return ()
    found = (
        (pod.daemon_set_exists is False, DAEMON_SET_GONE),
        (pod.local_storage, LOCAL_STORAGE),
        (not pod.controlled, UNMANAGED),
    )
    return tuple(text for holds, text in found if holds)


def judge_all(
    pods: Iterable[DrainPod],
    *,
    rules: Sequence[MachineDrainRule],
    namespaces: Mapping[str, Mapping[str, str]],
    unreachable: bool,
    now: datetime,
) -> tuple[Verdict, ...]:
    """Return every Pod's decision, in the order of `namespace/name`; one Pod that cannot be judged fails the whole drain."""
    ordered = sorted(pods, key=lambda p: str(p.key))
    return tuple(judge(pod, rules=rules, namespaces=namespaces, unreachable=unreachable, now=now) for pod in ordered)


# -------------------------------------------------------------------------------------------------------- plans


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The actions of one pass on the Pods of a Node."""

    evict: tuple[Verdict, ...] = ()
    evict_later: tuple[ObjectKey, ...] = ()
    terminating: tuple[ObjectKey, ...] = ()
    wait: tuple[ObjectKey, ...] = ()
    wait_later: tuple[ObjectKey, ...] = ()


def plan(verdicts: Sequence[Verdict]) -> DrainPlan:
    """Return the plan to evict the Pods of the lowest order present; Pods that are terminating also hold later orders back."""
    going = [v for v in verdicts if v.behavior is not Behavior.SKIP]
    lowest = min((v.order for v in going), default=0)
    draining = [v for v in going if v.behavior is Behavior.DRAIN]
    waiting = [v for v in going if v.behavior is Behavior.WAIT_COMPLETED]
    alive = [v for v in draining if v.pod.deleted_at is None]
    return DrainPlan(
        evict=tuple(v for v in alive if v.order == lowest),
        evict_later=tuple(v.pod.key for v in alive if v.order != lowest),
        terminating=tuple(v.pod.key for v in draining if v.pod.deleted_at is not None),
        wait=tuple(v.pod.key for v in waiting if v.order == lowest),
        wait_later=tuple(v.pod.key for v in waiting if v.order != lowest),
    )


def skipped_claims(verdicts: Iterable[Verdict]) -> frozenset[ObjectKey]:
    """Return the PersistentVolumeClaims of Pods that stay on the Node: their volumes are not waited for."""
    return frozenset(ObjectKey(v.pod.key.namespace, claim) for v in verdicts if v.behavior is Behavior.SKIP for claim in v.pod.claims)


def eviction_body(key: ObjectKey, *, unreachable: bool) -> dict[str, object]:
    """Return the Eviction of a Pod."""
    options = {"deleteOptions": {"gracePeriodSeconds": UNREACHABLE_GRACE_PERIOD_SECONDS}} if unreachable else {}
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": key.name, "namespace": key.namespace},
        **options,
    }


# ----------------------------------------------------------------------------------------------------- progress


def eviction_failure(error: ApiError) -> str | None:
    """Return why an eviction failed, for the progress message; None if the Pod is gone, which counts as evicted."""
    if isinstance(error, NotFound):
        return None
    details = error.status.get("details") or {}
    causes = [c for c in details.get("causes") or () if isinstance(c, Mapping)]
    if isinstance(error, TooManyRequests):
        return f"{error.message} {','.join(str(c.get('message', '')) for c in causes)}" if details else error.message
    if isinstance(error, Forbidden) and any(c.get("reason", c.get("type")) == "NamespaceTerminating" for c in causes):
        return (
            "Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)"
        )
    return error.message


def timed_out() -> str:
    """Return the failure for evictions that the pass had no time for."""
    return f"eviction timeout of {int(EVICTION_TIMEOUT.total_seconds())}s reached, eviction will be retried"


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """The state of a drain after a pass. `evicted` Pods were evicted now; `failed` holds Pods by the reason of failure."""

    plan: DrainPlan
    evicted: tuple[ObjectKey, ...] = ()
    failed: Mapping[str, tuple[ObjectKey, ...]] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        """Whether no Pod is terminating, blocked, waited for or queued."""
        left = self.plan
        return not (left.terminating or self.evicted or self.failed or left.evict_later or left.wait or left.wait_later)

    def message(self, started: datetime) -> str:
        """Return the Deleting condition's message while the drain is under way."""
        lines = [f"Drain not completed yet (started at {started:%Y-%m-%dT%H:%M:%SZ}):"]
        if terminating := (*self.plan.terminating, *self.evicted):
            lines.append(f"* {_pods(terminating)}: {NOT_REMOVED}")
        texts = sorted(self.failed)
        lines += [f"* {_pods(self.failed[text])}: {_failure(text)}" for text in texts[:FAILURES_SHOWN]]
        if rest := sum(len(self.failed[text]) for text in texts[FAILURES_SHOWN:]):
            lines.append(f"* {rest} {'Pod' if rest == 1 else 'Pods'} with other issues")
        if self.plan.wait:
            lines.append(f"* {_pods(self.plan.wait)}: {NOT_COMPLETED}")
        above = "After above Pods have been removed from the Node,"
        if self.plan.evict_later:
            lines.append(f"{above} the following Pods will be evicted: {names(self.plan.evict_later)}")
        if self.plan.wait_later:
            lines.append(f"{above} waiting for the following Pods to complete without eviction: {names(self.plan.wait_later)}")
        return "\n".join(lines)


def _failure(text: str) -> str:
    text = text.replace(BUDGET_VIOLATED.capitalize(), BUDGET_VIOLATED)
    return text if text.startswith(BUDGET_VIOLATED) else f"{EVICTION_FAILED}, {text}"


def _pods(keys: Sequence[ObjectKey]) -> str:
    return f"{'Pod' if len(keys) == 1 else 'Pods'} {names(keys)}"


def names(items: Sequence[object], shown: int = NAMES_SHOWN) -> str:
    """Return the first names of a list, and how many more there are."""
    listed = [str(i) for i in items[:shown]]
    if len(items) > shown:
        listed.append(f"... ({len(items) - shown} more)")
    return ", ".join(listed)
