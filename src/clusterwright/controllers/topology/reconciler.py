"""One pass over a topology: class, variables, blueprint, current state, hooks, repair, desired state, writing, condition."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from clusterwright.api.codec import convert
from clusterwright.api.core import Cluster
from clusterwright.api.core.cluster import Topology
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import OK_TO_DELETE_ANNOTATION, PAUSED_ANNOTATION, TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.kit import conditions as kit
from clusterwright.controllers.topology.applying import Applier
from clusterwright.controllers.topology.asking import Asker, HookError
from clusterwright.controllers.topology.blueprint import BlueprintReader, read_class
from clusterwright.controllers.topology.conditions import TOPOLOGY_RECONCILED, TYPE, TopologySnapshot
from clusterwright.controllers.topology.current import MACHINE_HEALTH_CHECK, CurrentReader
from clusterwright.controllers.topology.failures import ClassNotReady, TopologyFailed
from clusterwright.controllers.topology.repair import ASSUME_OWNERS, Repairer
from clusterwright.controllers.topology.rotations import Rotations
from clusterwright.controllers.topology.wakes import clusters_of_template
from clusterwright.controllers.topology.writing import Writer, unmatched_health_checks
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Result
from clusterwright.topology import hooks
from clusterwright.topology.desired import Computed, DesiredStateError, desired_state
from clusterwright.topology.extensions import CallAll, ExtensionError
from clusterwright.topology.hooks import AskHook
from clusterwright.topology.model import Blueprint, Current, Desired, Progress
from clusterwright.topology.objects import own_labels
from clusterwright.topology.paths import at
from clusterwright.topology.variables import default_and_validate, joined

_AFTER_REPAIR = timedelta(seconds=1)


def make(deps: Dependencies) -> TopologyReconciler:
    """The reconciler of topologies."""
    return TopologyReconciler(deps)


class TopologyReconciler:
    """Reconciles the topologies of Clusters."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._applier = Applier(deps.client, deps.clock.monotonic)
        self._repairer = Repairer(deps.client, deps.clock.monotonic)
        self._asker = Asker(deps.client, deps.extensions, deps.clock.now)
        self._rotations = Rotations(deps.clock.monotonic)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        original = await self._client.read(Cluster, key)
        if original is None or original.object.spec.topology is None or not original.object.spec.topology.class_ref.name:
            return Result.await_change()
        work = _Pass(self, original)
        failure: TopologyFailed | None = None
        requeue: timedelta | None = None
        try:
            requeue = await work.run()
        except TopologyFailed as error:
            failure = error
            work.seen = replace(work.seen, error=str(error))
        await self._finish(work)
        if failure is not None and not isinstance(failure, ClassNotReady):
            self._tell(work, failure)
            raise failure
        return Result.soonest(requeue) if requeue is not None else Result.await_change()

    async def _finish(self, work: _Pass) -> None:
        """One patch of the Cluster: the condition in both forms, and the variables that were defaulted."""
        decision = TOPOLOGY_RECONCILED.decide(work.seen)
        self._deps.trace(work.key, {TYPE: decision.row})
        base = await self._client.read(Cluster, work.key)
        if base is None or base.object.metadata.uid != work.seen.object.metadata.uid:
            return
        after = base.object
        if work.topology is not None:
            after = msgspec.structs.replace(after, spec=msgspec.structs.replace(after.spec, topology=work.topology))
        after = kit.decided(after, TOPOLOGY_RECONCILED, decision, work.seen.now)
        await self._patcher.patch(base, after, owned_conditions=(TYPE,), owned_v1beta1_conditions=(TYPE,))

    def _tell(self, work: _Pass, failure: TopologyFailed) -> None:
        text = failure.details or str(failure)
        self._deps.events.record(work.seen.object, "Warning", "TopologyReconcileFailed", text)


class _Pass:
    """One pass under way. `seen` is what the condition is decided on."""

    def __init__(self, reconciler: TopologyReconciler, original: Original[Cluster]) -> None:
        self._deps = reconciler._deps
        self._client = reconciler._client
        self._applier = reconciler._applier
        self._repairer = reconciler._repairer
        self._asker = reconciler._asker
        self._rotations = reconciler._rotations
        self._class_generation = 0
        self.key = original.object.key
        self.cluster: Json = msgspec.json.decode(original.raw)
        spec = self.cluster["spec"]
        is_new = not any((spec.get(f) or {}).get("name") for f in ("infrastructureRef", "controlPlaneRef"))
        self.seen = TopologySnapshot(original.object, self._deps.clock.now(), is_new=is_new)
        self.topology: Topology | None = None
        """The topology with defaults, if that changed it."""

    @property
    def _runtime_sdk(self) -> bool:
        return bool(self._deps.features["RuntimeSDK"])

    async def run(self) -> timedelta | None:
        """Everything up to the condition; when to look again. Raises TopologyFailed."""
        cluster = self.seen.object
        if cluster.spec.paused or PAUSED_ANNOTATION in cluster.metadata.annotations:
            return None
        if cluster.metadata.deletion_timestamp is not None:
            return await self._delete()
        cluster_class = await read_class(self._client, self.cluster)
        self._class_generation = cluster_class["metadata"].get("generation") or 0
        self._default_variables(cluster_class)
        try:
            blueprint = await BlueprintReader(self._client).read(cluster_class)
        except TopologyFailed as error:
            raise error.within("error reading the ClusterClass") from error
        reader = CurrentReader(self._client, self._deps.workload, self.cluster, blueprint)
        try:
            current = await reader.read()
        except TopologyFailed as error:
            raise error.within("error reading current state of the Cluster topology") from error
        if self._runtime_sdk and self.seen.is_new:
            progress = Progress()
            retry = await self._ask_alone(hooks.BEFORE_CLUSTER_CREATE, progress)
            if retry is not None:
                self.seen = replace(self.seen, progress=progress)
                return retry
        await self._watch(current, blueprint)
        if not self._deps.options.get(ASSUME_OWNERS) and await self._repairer.repair(current, self.seen.now):
            self.seen = replace(self.seen, was_repaired=True)
            return _AFTER_REPAIR
        if not self._runtime_sdk:
            await self._forget_hooks()
        current = await reader.with_upgrading(replace(current, cluster=self.cluster))
        computed = await self._compute(blueprint, current)
        self._see(computed)
        try:
            await self._write(current, computed)
        except (TopologyFailed, HookError) as error:
            failed = error if isinstance(error, TopologyFailed) else TopologyFailed(str(error), hook=error.hook)
            raise failed.within("error reconciling the Cluster topology") from error
        retries = [a.retry_after for a in computed.progress.answers.values() if a.is_blocking]
        return timedelta(seconds=min(retries)) if retries else None

    def _see(self, computed: Computed) -> None:
        plane = computed.desired.control_plane
        self.seen = replace(
            self.seen,
            progress=computed.progress,
            control_plane_kind=plane["kind"],
            control_plane_version=at(plane, "spec", "version") or "",
        )

    # ------------------------------------------------------------------------------------------------- steps

    def _default_variables(self, cluster_class: Json) -> None:
        definitions = at(cluster_class, "status", "variables") or []
        topology, errors = default_and_validate(self.cluster["spec"]["topology"], None, definitions)
        if topology != self.cluster["spec"]["topology"]:
            self.cluster["spec"]["topology"] = topology
            self.topology = convert(topology, Topology)
        if errors:
            raise TopologyFailed(f'Cluster.cluster.x-k8s.io "{self.key.name}" is invalid: {joined(errors)}')

    async def _watch(self, current: Current, blueprint: Blueprint) -> None:
        """Hear of changes of what the Cluster refers to and of every template; and have them at hand in the cache."""
        kinds = {_gvk(o): None for o in (current.infrastructure_cluster, current.control_plane) if o is not None}
        templates = [blueprint.infrastructure_cluster, blueprint.control_plane, blueprint.control_plane_machine]
        for worker in (*blueprint.machine_deployments.values(), *blueprint.machine_pools.values()):
            templates += [worker.bootstrap, worker.infrastructure]
        made = {_gvk(t): None for t in templates if t is not None}
        for kind in {**kinds, **made}:
            try:
                await self._deps.dynamic.ensure(kind, clusters_of_template, lasting=kind in made)
            except ApiError as error:
                raise TopologyFailed(f"error creating dynamic watch: {error}") from error

    async def _forget_hooks(self) -> None:
        """Without the gate nobody will ever call them: they must not hold anything up."""
        pending = hooks.pending_hooks(self.cluster)
        left = pending - frozenset(hooks.LIFECYCLE)
        if left != pending:
            try:
                await self._asker.mark(self.cluster, left)
            except HookError as error:
                raise TopologyFailed(str(error), hook=error.hook) from error

    async def _compute(self, blueprint: Blueprint, current: Current) -> Computed:
        context = "error computing the desired state of the Cluster topology"
        try:
            return await self._asker.run(desired_state(blueprint, current, runtime_sdk=self._runtime_sdk), self.cluster)
        except DesiredStateError as error:
            hook = next((e.hook for e in _causes(error) if isinstance(e, HookError)), "")
            raise TopologyFailed(f"{context}: {error}", patch=error.patch, hook=hook) from error

    async def _write(self, current: Current, computed: Computed) -> None:
        desired, progress = computed.desired, computed.progress
        writer = Writer(self._client, self._applier, self._record, current, desired, progress, self._note_rotation)
        await writer.shim()
        if self._runtime_sdk:
            await self._lifecycle(progress)
        await writer.everything()
        await self._clean_up(writer, current, desired)

    async def _clean_up(self, writer: Writer, current: Current, desired: Desired) -> None:
        """Health checks whose control plane or MachineDeployment is gone; asked of the cache, it costs nothing where there are none."""
        labels = own_labels(self.cluster)
        try:
            found = await self._client.list(MACHINE_HEALTH_CHECK, namespace=self.key.namespace, labels=labels)
        except ApiError as error:
            raise TopologyFailed(f"failed to list MachineHealthChecks: {error}") from error
        checks = [dict(c.json) for c in found if TOPOLOGY_OWNED_LABEL in c.metadata.labels]
        for check in unmatched_health_checks(checks, current, desired):
            await writer.delete_health_check(check)

    def _note_rotation(self, slot: str, template: Json) -> None:
        generations = (self.seen.object.metadata.generation, self._class_generation)
        if self._rotations.note(self.seen.object.metadata.uid, slot, generations):
            text = (
                f"{template['kind']} {template['metadata']['name']} is the third in ten minutes for {slot}, although neither Cluster nor "
                "ClusterClass changed: a patch may use the name of the template that it changes"
            )
            self._deps.events.record(self.seen.object, "Warning", "TopologyRotation", text)

    def _record(self, obj: Json, reason: str, message: str) -> None:
        about: Any = self.seen.object if obj.get("kind") == "Cluster" else Unstructured(obj)
        self._deps.events.record(about, "Normal", reason, message)

    # ------------------------------------------------------------------------------------------------- hooks

    async def _ask_alone(self, hook: str, progress: Progress) -> timedelta | None:
        """Ask a hook of the Cluster itself; for how long to wait, if it blocks. Raises TopologyFailed."""
        try:
            answer = await self._asker.ask(AskHook(hook, {"cluster": hooks.clean_cluster(self.cluster)}), self.cluster)
        except ExtensionError as error:
            raise TopologyFailed(str(error), hook=hook) from error
        if not answer.is_blocking:
            return None
        progress.answers[hook] = answer
        return timedelta(seconds=answer.retry_after)

    async def _lifecycle(self, progress: Progress) -> None:
        """The hooks that are called before anything is written. Raises HookError."""
        if self.seen.is_new:
            await self._mark(progress, progress.pending_hooks | {hooks.AFTER_CONTROL_PLANE_INITIALIZED})
        if hooks.AFTER_CONTROL_PLANE_INITIALIZED in progress.pending_hooks and self._is_initialized():
            request = {"cluster": hooks.clean_cluster(self.cluster)}
            try:
                await self._deps.extensions.call_all(CallAll(hooks.AFTER_CONTROL_PLANE_INITIALIZED, self.cluster, request))
            except ExtensionError as error:
                raise HookError(str(error), hooks.AFTER_CONTROL_PLANE_INITIALIZED) from error
            await self._mark(progress, progress.pending_hooks - {hooks.AFTER_CONTROL_PLANE_INITIALIZED})
        if self._is_upgrade_over(progress):
            version = self.cluster["spec"]["topology"]["version"]
            request = {"cluster": hooks.clean_cluster(self.cluster), "kubernetesVersion": version}
            try:
                answer = await self._asker.ask(AskHook(hooks.AFTER_CLUSTER_UPGRADE, request, version), self.cluster)
            except ExtensionError as error:
                raise HookError(str(error), hooks.AFTER_CLUSTER_UPGRADE) from error
            if answer.is_blocking:
                progress.answers[hooks.AFTER_CLUSTER_UPGRADE] = answer
            else:
                await self._mark(progress, progress.pending_hooks - {hooks.AFTER_CLUSTER_UPGRADE})

    async def _mark(self, progress: Progress, pending: frozenset[str]) -> None:
        await self._asker.mark(self.cluster, pending)
        progress.pending_hooks = pending

    def _is_initialized(self) -> bool:
        conditions = at(self.cluster, "status", "conditions") or ()
        return any(c.get("type") == "ControlPlaneInitialized" and c.get("status") == "True" for c in conditions)

    @staticmethod
    def _is_upgrade_over(progress: Progress) -> bool:
        pending = progress.pending_hooks
        if hooks.AFTER_CLUSTER_UPGRADE not in pending or pending & {hooks.AFTER_CONTROL_PLANE_UPGRADE, hooks.AFTER_WORKERS_UPGRADE}:
            return False
        return progress.control_plane.is_stable and progress.machine_deployments.is_settled and progress.machine_pools.is_settled

    async def _delete(self) -> timedelta | None:
        """Let extensions hold up the deletion; nothing else is done here for a Cluster that goes."""
        if not self._runtime_sdk or OK_TO_DELETE_ANNOTATION in self.seen.object.metadata.annotations:
            return None
        progress = Progress()
        retry = await self._ask_alone(hooks.BEFORE_CLUSTER_DELETE, progress)
        self.seen = replace(self.seen, progress=progress)
        if retry is not None:
            return retry
        try:
            await self._client.patch(Cluster, self.key, {"metadata": {"annotations": {OK_TO_DELETE_ANNOTATION: ""}}})
        except NotFound:
            return None
        except ApiError as error:
            raise TopologyFailed(f"failed to mark the Cluster as ok to delete: {error}", hook=hooks.BEFORE_CLUSTER_DELETE) from error
        return None


def _gvk(obj: Json) -> GroupVersionKind:
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    link: BaseException | None = error
    while link is not None:
        found.append(link)
        link = link.__cause__
    return found
