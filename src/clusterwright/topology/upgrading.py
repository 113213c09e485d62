"""The version of each part of a topology in this pass: one step at a time, control plane first, workers when it allows."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    DEFER_UPGRADE_ANNOTATION,
    HOLD_UPGRADE_SEQUENCE_ANNOTATION,
    UPGRADE_CONCURRENCY_ANNOTATION,
    UPGRADE_STEP_ANNOTATION,
)
from clusterwright.kubeadm.reached import is_any_older, reported_versions
from clusterwright.topology import hooks
from clusterwright.topology.answers import Answer
from clusterwright.topology.hooks import AskHook, Computing, Mark
from clusterwright.topology.model import Current, CurrentWorker, Progress, WorkersProgress
from clusterwright.topology.paths import at
from clusterwright.topology.versions import Version, compare, parse

_WORKER_HOOKS: Final = (hooks.BEFORE_WORKERS_UPGRADE, hooks.AFTER_WORKERS_UPGRADE)


class UpgradeError(Exception):
    """A version cannot be determined. The text says why."""


def concurrency(cluster: Json) -> int:
    """Return how many MachineDeployments, and how many MachinePools, may upgrade at a time."""
    text = (cluster["metadata"].get("annotations") or {}).get(UPGRADE_CONCURRENCY_ANNOTATION, "")
    try:
        return max(int(text), 1)
    except ValueError:
        return 1


def _observed(version: str) -> Version:
    """Return the version that a control plane reports. Raises ValueError."""
    try:
        return parse(version)
    except ValueError as error:
        raise ValueError(f"failed to parse control plane status version: {error}") from None


def control_plane_version(current: Current, progress: Progress, *, runtime_sdk: bool) -> Computing[str]:
    """Yield the control plane's version for this pass. Raises UpgradeError, ExtensionError."""
    topology: str = current.cluster["spec"]["topology"]["version"]
    if current.control_plane is None:
        return topology
    state = progress.control_plane
    own: str = at(current.control_plane, "spec", "version") or ""
    if not own:
        raise UpgradeError("failed to get the version from control plane spec: path .spec.version: field not found")
    state.is_pending = own != topology
    try:
        reported = reported_versions(current.control_plane)
        observed = at(current.control_plane, "status", "version")
        if not reported and not observed:
            state.is_provisioning = True
            return own
        state.is_upgrading = is_any_older(reported, parse(own)) if reported else compare(parse(own), _observed(observed)) >= 1
    except ValueError as error:
        raise UpgradeError(f"failed to check if control plane is upgrading: {error}") from None
    talk = _Talk(current, progress, own) if runtime_sdk else None
    if state.is_upgrading:
        if talk is not None:
            yield from talk.recover_pending()
        return own
    if talk is not None and not ((yield from talk.after_control_plane_upgrade()) and (yield from talk.before_workers_upgrade())):
        return own
    if any(plan[:1] == [own] for plan in (progress.machine_deployments.plan, progress.machine_pools.plan)):
        state.is_waiting_for_workers = True
        return own
    if progress.machine_deployments.upgrading or progress.machine_pools.upgrading:
        return own
    if talk is not None and not (yield from talk.after_workers_upgrade()):
        return own
    if not state.is_pending:
        return own
    if talk is not None and not (yield from talk.before_cluster_upgrade(topology)):
        return own
    if not state.plan:
        text = "cannot compute the control plane version if the control plane is pending upgrade and the upgrade plan is not set"
        raise UpgradeError(text)
    following = state.plan[0]
    if talk is not None and not (yield from talk.before_control_plane_upgrade(following)):
        return own
    state.is_starting, state.is_pending = True, False
    return following


class _Talk:
    """The hooks around the steps of a control plane. Every method returns whether to continue."""

    def __init__(self, current: Current, progress: Progress, own: str) -> None:
        self._cluster = current.cluster
        self._progress = progress
        self._own = own
        # what is to follow a step follows it only once the control plane has taken it
        step = (current.cluster["metadata"].get("annotations") or {}).get(UPGRADE_STEP_ANNOTATION)
        self._is_step_taken = not step or step == own

    def _request(self, **fields: Any) -> Json:
        plans = {
            "controlPlaneUpgrades": hooks.steps(self._progress.control_plane.plan),
            "workersUpgrades": hooks.steps(self._progress.worker_plan),
        }
        return {"cluster": hooks.clean_cluster(self._cluster), **fields, **{k: v for k, v in plans.items() if v}}

    def _ask(self, hook: str, request: Json, version: str) -> Computing[bool]:
        answer: Answer = yield AskHook(hook, request, version)
        if answer.is_blocking:
            self._progress.answers[hook] = answer
        return not answer.is_blocking

    def _mark(self, pending: frozenset[str], step: str | None = None) -> Computing[None]:
        if pending != self._progress.pending_hooks:
            yield Mark(pending, step)
            self._progress.pending_hooks = pending
            hooks.note_pending(self._cluster, pending)

    def _tracked(self, hook: str, request: Json, version: str) -> Computing[bool]:
        """Yield a hook that is called as long as it is pending."""
        if hook not in self._progress.pending_hooks or not self._is_step_taken:
            return True
        if not (yield from self._ask(hook, request, version)):
            return False
        yield from self._mark(self._progress.pending_hooks - {hook})
        return True

    def after_control_plane_upgrade(self) -> Computing[bool]:
        """Handle the hook after the control plane has reached a version."""
        return (yield from self._tracked(hooks.AFTER_CONTROL_PLANE_UPGRADE, self._request(kubernetesVersion=self._own), self._own))

    def before_workers_upgrade(self) -> Computing[bool]:
        """Handle the hook before workers are upgraded."""
        request = self._request(fromKubernetesVersion=self._progress.lowest_worker, toKubernetesVersion=self._own)
        return (yield from self._tracked(hooks.BEFORE_WORKERS_UPGRADE, request, self._own))

    def after_workers_upgrade(self) -> Computing[bool]:
        """Handle the hook after workers were upgraded."""
        return (yield from self._tracked(hooks.AFTER_WORKERS_UPGRADE, self._request(kubernetesVersion=self._own), self._own))

    def before_cluster_upgrade(self, target: str) -> Computing[bool]:
        """Handle the hook before an upgrade; it is called once for all its steps."""
        if hooks.AFTER_CLUSTER_UPGRADE in self._progress.pending_hooks:
            return True
        answer = hooks.blocked_by_annotations(self._cluster)
        if answer.is_blocking:
            self._progress.answers[hooks.BEFORE_CLUSTER_UPGRADE] = answer
            return False
        request = self._request(fromKubernetesVersion=self._own, toKubernetesVersion=target)
        if not (yield from self._ask(hooks.BEFORE_CLUSTER_UPGRADE, request, target)):
            return False
        yield from self._mark(self._progress.pending_hooks | {hooks.AFTER_CLUSTER_UPGRADE})
        return True

    def before_control_plane_upgrade(self, following: str) -> Computing[bool]:
        """Handle the hook before a step of the control plane, and record the hooks to follow."""
        request = self._request(fromKubernetesVersion=self._own, toKubernetesVersion=following)
        if not (yield from self._ask(hooks.BEFORE_CONTROL_PLANE_UPGRADE, request, following)):
            return False
        yield from self._mark(self._progress.pending_hooks | self._hooks_after(following), following)
        return True

    def recover_pending(self) -> Computing[None]:
        """Note what must follow the step that the control plane is taking, if nobody did: Cluster API notes it only after the step."""
        if hooks.AFTER_CONTROL_PLANE_UPGRADE not in self._progress.pending_hooks:
            yield from self._mark(self._progress.pending_hooks | self._hooks_after(self._own))

    def _hooks_after(self, version: str) -> frozenset[str]:
        """Return the hooks that must be called once the control plane has a version."""
        plans = (self._progress.machine_deployments.plan, self._progress.machine_pools.plan)
        workers_follow = any(plan[:1] == [version] for plan in plans)
        return frozenset({hooks.AFTER_CONTROL_PLANE_UPGRADE, *(_WORKER_HOOKS if workers_follow else ())})


def is_deferred(entry: Json, entries: list[Json]) -> bool:
    """Return whether an entry of the topology, or one before it in its list, defers its upgrade."""
    annotations = (entry.get("metadata") or {}).get("annotations") or {}
    if DEFER_UPGRADE_ANNOTATION in annotations:
        return True
    for other in entries:
        if HOLD_UPGRADE_SEQUENCE_ANNOTATION in ((other.get("metadata") or {}).get("annotations") or {}):
            return True
        if other is entry:
            return False
    return False


def worker_version(
    entry: Json,
    entries: list[Json],
    current: CurrentWorker | None,
    progress: Progress,
    workers: WorkersProgress,
    target: str,
    limit: int,
    noun: str,
) -> str:
    """Return the version of a worker for this pass, and record it in `workers`. Raises UpgradeError.

    Pinned workers have their version, whatever the rest of the topology does. Only new ones wait for a control plane that is changing.
    """
    if entry["name"] in workers.pinned:
        if current is None and progress.control_plane.is_changing:
            workers.pending_create.add(entry["name"])
        return workers.pinned[entry["name"]]
    is_held = any(
        h in progress.answers and progress.answers[h].is_blocking for h in (hooks.AFTER_CONTROL_PLANE_UPGRADE, hooks.BEFORE_WORKERS_UPGRADE)
    )
    if current is None:
        if not progress.control_plane.is_stable or is_held:
            workers.pending_create.add(entry["name"])
        return target
    own = at(current.object, "spec", "template", "spec", "version") or ""
    if own == target:
        return own
    if is_deferred(entry, entries):
        workers.deferred.add(current.name)
        workers.pending.add(current.name)
        return own
    if is_held or len(workers.upgrading) >= limit or not progress.control_plane.is_stable_or_waiting:
        workers.pending.add(current.name)
        return own
    if not workers.plan:
        text = f"cannot compute the {noun} version if the {noun} is pending upgrade and the upgrade plan is not set"
        raise UpgradeError(text)
    following = workers.plan[0]
    if following == own:
        workers.pending.add(current.name)
        return own
    workers.upgrading.add(current.name)
    return following
