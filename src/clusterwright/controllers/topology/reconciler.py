"""The topology's own steps of a pass over a Cluster.

    observe     the class, its templates (`blueprint`) and the objects that exist (`current`); a failure to read is a value
    act         hooks, repair of managedFields, then the desired state (pure, `clusterwright.topology`), and what differs is written
    conclude    TopologyReconciled, the upgrade plans, and the variables with their defaults

The Cluster controller writes the rest of the status. This pass also writes the Cluster by merge patches; the patch at its end is
relative to the state after them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.core.cluster import Topology
from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import OK_TO_DELETE_ANNOTATION
from clusterwright.controllers.kit import conditions as kit
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.topology.applying import Applier
from clusterwright.controllers.topology.asking import Asker, marked
from clusterwright.controllers.topology.blueprint import BlueprintReader, read_class
from clusterwright.controllers.topology.conditions import TOPOLOGY_RECONCILED, TYPE
from clusterwright.controllers.topology.current import CurrentReader
from clusterwright.controllers.topology.failures import TopologyFailed, failing
from clusterwright.controllers.topology.lifecycle import Lifecycle
from clusterwright.controllers.topology.mapping import clusters_of_template
from clusterwright.controllers.topology.object_writing import Record, Rotated, gvk_of
from clusterwright.controllers.topology.repair import Repairer
from clusterwright.controllers.topology.rotations import Rotations
from clusterwright.controllers.topology.snapshot import State, TopologyDone, TopologySnapshot
from clusterwright.controllers.topology.status import with_upgrade_plan
from clusterwright.controllers.topology.writing import Writer
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.topology import hooks
from clusterwright.topology.desired import Computed, DesiredStateError, desired_state
from clusterwright.topology.extensions import ExtensionError
from clusterwright.topology.model import Current, Progress
from clusterwright.topology.paths import at
from clusterwright.topology.pinning import GATE
from clusterwright.topology.variables import default_and_validate, joined

SHAPE = Shape(kind=Cluster, done=TopologyDone, owned=(TYPE,), owned_v1beta1=(TYPE,), main=False)
Run = Pass[Cluster, TopologySnapshot, TopologyDone]


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of topologies."""
    return KindReconciler(deps, SHAPE, Topologies(deps))


class Topologies(Kind[Cluster, Unowned, TopologySnapshot, TopologyDone]):
    """Reconciles the topologies of Clusters."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._applier = Applier(deps.client, deps.clock.monotonic)
        self._repairer = Repairer(deps.client, deps.clock.monotonic)
        self._asker = Asker(deps.client, deps.extensions, deps.clock.now)
        self._rotations = Rotations(deps.clock.monotonic)

    def concerns(self, obj: Cluster) -> bool:
        """Return whether the Cluster has a topology."""
        return obj.spec.topology is not None and bool(obj.spec.topology.class_ref.name)

    async def owner(self, obj: Cluster) -> Unowned:
        """Return no owner: TopologyReconciled has a row for a paused Cluster."""
        return Unowned()

    # ----------------------------------------------------------------------------------------------------- observe

    async def observe(self, obj: Cluster, owner: Unowned) -> TopologySnapshot | None:
        """Read the class, its templates and the existing objects; of a paused or deleted Cluster only the Cluster."""
        found = await self._client.read(Cluster, obj.key)
        if found is None or found.object.metadata.uid != obj.metadata.uid or not self.concerns(found.object):
            return None
        seen = TopologySnapshot(object=found.object, now=self._deps.clock.now(), read=found.object, cluster=msgspec.json.decode(found.raw))
        if seen.is_paused or seen.is_deleting:
            return seen
        try:
            cluster_class = await read_class(self._client, seen.cluster)
        except TopologyFailed as error:
            return replace(seen, state=error)
        seen, problem = _with_defaults(seen, cluster_class)
        try:
            return replace(seen, state=problem or await self._state(seen.cluster, cluster_class))
        except TopologyFailed as error:
            return replace(seen, state=error)

    async def _state(self, cluster: Json, cluster_class: Json) -> State:
        with failing("error reading the ClusterClass"):
            blueprint = await BlueprintReader(self._client).read(cluster_class)
        reader = CurrentReader(self._client, self._deps.workload, cluster, blueprint)
        with failing("error reading current state of the Cluster topology"):
            current = await reader.read()
        return State(blueprint, await reader.with_upgrading(current))

    # --------------------------------------------------------------------------------------------------------- act

    async def act(self, run: Run) -> None:
        """Reconcile the objects with the topology; a failure is a row of TopologyReconciled, which ends the pass in its error."""
        try:
            await self._step(run)
        except TopologyFailed as error:
            note(run, failure=error)
            if error.details:
                run.record("Warning", "TopologyReconcileFailed", error.details)
        latest = await self._client.read(Cluster, run.seen.read.key)
        if latest is None or latest.object.metadata.uid != run.seen.read.metadata.uid:
            note(run, is_gone=True)
        else:
            run.rebase(latest)

    async def _step(self, run: Run) -> None:
        """Run the steps; raises TopologyFailed if one fails."""
        seen = run.seen
        if seen.is_deleting and not seen.is_paused:
            await self._delete(run)
        if isinstance(seen.state, TopologyFailed):
            raise seen.state
        if seen.state is None:
            return
        blueprint, current = seen.state.blueprint, seen.state.current
        runtime_sdk = bool(self._deps.features["RuntimeSDK"])
        if runtime_sdk and seen.is_new and await self._is_blocked(run, hooks.BEFORE_CLUSTER_CREATE):
            return
        await self._watch(seen.state)
        if await self._repairer.repair(current, seen.now):
            note(run, was_repaired=True)
            return
        if not runtime_sdk:
            current = replace(current, cluster=await self._without_hooks(current.cluster))
        with failing("error computing the desired state of the Cluster topology"):
            try:
                pinning = bool(self._deps.features[GATE])
                computing = desired_state(blueprint, current, runtime_sdk=runtime_sdk, pinning=pinning)
                computed = await self._asker.run(computing, current.cluster)
            except DesiredStateError as error:
                if error.progress is not None and error.progress.is_planned:
                    note(run, plan=error.progress)
                raise TopologyFailed(str(error)) from error
        note_computed(run, computed)
        with failing("error reconciling the Cluster topology"):
            await self._write(run, current, computed)

    async def _write(self, run: Run, current: Current, computed: Computed) -> None:
        progress, rotated = computed.progress, self._rotated(run)
        writer = Writer(self._client, self._applier, current, computed.desired, progress, self._recorder(run), rotated)
        await writer.shim()
        if self._deps.features["RuntimeSDK"]:
            try:
                await Lifecycle(self._asker, self._deps.extensions, current.cluster, progress).run(is_new=run.seen.is_new)
            except ExtensionError as error:
                raise TopologyFailed(str(error)) from error
        await writer.everything()

    async def _watch(self, state: State) -> None:
        """Watch what the Cluster refers to and every template, so that changes start a pass and the cache has them."""
        current, blueprint = state.current, state.blueprint
        kinds = {gvk_of(o): None for o in (current.infrastructure_cluster, current.control_plane) if o is not None}
        templates = [blueprint.infrastructure_cluster, blueprint.control_plane, blueprint.control_plane_machine]
        for worker in (*blueprint.machine_deployments.values(), *blueprint.machine_pools.values()):
            templates += [worker.bootstrap, worker.infrastructure]
        made = {gvk_of(t): None for t in templates if t is not None}
        for kind in {**kinds, **made}:
            with failing("error creating dynamic watch"):
                await self._deps.dynamic.ensure(kind, clusters_of_template, lasting=kind in made)

    def _rotated(self, run: Run) -> Rotated:
        """Return a function that counts rotations, and warns if they come too often."""
        cluster, state = run.seen.read, run.seen.state
        of_class = at(state.blueprint.cluster_class, "metadata", "generation") or 0 if isinstance(state, State) else 0

        def note_rotation(slot: str, template: Json) -> None:
            if self._rotations.note(cluster.metadata.uid, slot, (cluster.metadata.generation, of_class)):
                own = f"{template['kind']} {template['metadata']['name']}"
                text = f"{own} is the third in ten minutes for {slot}, although neither Cluster nor ClusterClass changed"
                text += ": a patch may use the name of the template that it changes"
                self._deps.events.record(cluster, "Warning", "TopologyRotation", text)

        return note_rotation

    def _recorder(self, run: Run) -> Record:
        """Return a function that records Events about objects."""

        def record(obj: Json, reason: str, message: str) -> None:
            about: Any = run.seen.read if obj.get("kind") == "Cluster" else Unstructured(obj)
            self._deps.events.record(about, "Normal", reason, message)

        return record

    # ------------------------------------------------------------------------------------------------------- hooks

    async def _is_blocked(self, run: Run, hook: str) -> bool:
        """Call a hook about the Cluster; return whether it blocks. Raises TopologyFailed."""
        cluster = run.seen.cluster
        try:
            answer = await self._asker.ask(hooks.AskHook(hook, {"cluster": hooks.clean_cluster(cluster)}), cluster)
        except ExtensionError as error:
            raise TopologyFailed(str(error)) from error
        note(run, progress=Progress(answers={hook: answer} if answer.is_blocking else {}))
        return answer.is_blocking

    async def _without_hooks(self, cluster: Json) -> Json:
        """Return the Cluster without pending hooks: with the gate off they are never called, so they must not block anything."""
        pending = hooks.pending_hooks(cluster)
        left = pending - frozenset(hooks.LIFECYCLE)
        try:
            await self._asker.mark(cluster, pending, left)
        except ExtensionError as error:
            raise TopologyFailed(str(error)) from error
        return marked(cluster, left)

    async def _delete(self, run: Run) -> None:
        """Let extensions block the deletion; do nothing else for a Cluster that is being deleted."""
        if not self._deps.features["RuntimeSDK"] or OK_TO_DELETE_ANNOTATION in run.seen.read.metadata.annotations:
            return
        if await self._is_blocked(run, hooks.BEFORE_CLUSTER_DELETE):
            return
        with failing("failed to mark the Cluster as ok to delete"):
            try:
                await self._client.patch(Cluster, run.seen.read.key, {"metadata": {"annotations": {OK_TO_DELETE_ANNOTATION: ""}}})
            except NotFound:
                return

    # ---------------------------------------------------------------------------------------------------- conclude

    def conclude(self, run: Run) -> None:
        """Set TopologyReconciled in both forms, and the variables with their defaults."""
        failure = run.done.failure
        origin = failure.__cause__ if failure is not None else None
        decision = run.decide(TOPOLOGY_RECONCILED, origin if isinstance(origin, Exception) else failure)
        if run.done.is_gone:
            return
        if run.seen.topology is not None:
            spec = replace(run.object.spec, topology=run.seen.topology)
            run.become(replace(run.object, spec=spec))
        if run.done.plan is not None:
            run.become(with_upgrade_plan(run.object, run.done.plan))
        run.become(kit.decided(run.object, TOPOLOGY_RECONCILED, decision, run.seen.now))


def note(run: Run, **done: Any) -> None:
    """Record progress: fields of `TopologyDone`."""
    run.done = replace(run.done, **done)


def note_computed(run: Run, computed: Computed) -> None:
    """Record what the computation found about the progress of upgrades."""
    plane = computed.desired.control_plane
    note(
        run,
        progress=computed.progress,
        plan=computed.progress,
        control_plane_kind=plane["kind"],
        control_plane_version=at(plane, "spec", "version") or "",
    )


def _with_defaults(seen: TopologySnapshot, cluster_class: Json) -> tuple[TopologySnapshot, TopologyFailed | None]:
    """Return the snapshot with the defaults of the variables, and their errors."""
    cluster = seen.cluster
    given = cluster["spec"]["topology"]
    topology, errors = default_and_validate(given, None, at(cluster_class, "status", "variables") or [])
    if topology != given:
        changed = {**cluster, "spec": {**cluster["spec"], "topology": topology}}
        seen = replace(seen, cluster=changed, topology=convert(topology, Topology))
    if not errors:
        return seen, None
    return seen, TopologyFailed(f'Cluster.cluster.x-k8s.io "{seen.read.metadata.name}" is invalid: {joined(errors)}')
