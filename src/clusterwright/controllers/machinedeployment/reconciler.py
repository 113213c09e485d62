"""The pass of the MachineDeployment controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final, assert_never

import msgspec

from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, MachineDeployment, MachineSet
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import (
    ACKNOWLEDGED_MOVE_ANNOTATION,
    MACHINE_DEPLOYMENT_FINALIZER,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MOVE_MACHINES_TO_MACHINE_SET_ANNOTATION,
    RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION,
    REVISION_ANNOTATION,
)
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.kit.adopt import Providers
from clusterwright.controllers.kit.owners import ClusterFacts
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.machinedeployment import desired, inplace, revisions, rollout
from clusterwright.controllers.machinedeployment.conditions import OWNED, TABLES
from clusterwright.controllers.machinedeployment.conditions_v1beta1 import OWNED_V1BETA1, V1BETA1_TABLES
from clusterwright.controllers.machinedeployment.desired import FIELD_MANAGER, Maker
from clusterwright.controllers.machinedeployment.observing import Observer
from clusterwright.controllers.machinedeployment.plan import DELETE, STEPS, Deletion, Step
from clusterwright.controllers.machinedeployment.rollout import Limits, Rollout, Sized
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentDone, MachineDeploymentSnapshot
from clusterwright.controllers.machinedeployment.status import PHASE, counted, is_complete, is_spent, v1beta1_counted
from clusterwright.controllers.machinedeployment.templates import Division, biggest_first, divide, due, has_hash, oldest_first
from clusterwright.controllers.owned_machines import awaits_acknowledgement, missing_text
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, Conflict, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler

SHAPE: Final = Shape(
    kind=MachineDeployment, done=MachineDeploymentDone, finalizer=MACHINE_DEPLOYMENT_FINALIZER, owned=OWNED, owned_v1beta1=OWNED_V1BETA1
)
NO_MARKS: Final[Mapping[str, Mapping[str, str]]] = {}
_NOT_SEEN_WAIT: Final = timedelta(seconds=15)
Run = Pass[MachineDeployment, MachineDeploymentSnapshot, MachineDeploymentDone]


class MachineDeployments(Kind[MachineDeployment, ClusterFacts, MachineDeploymentSnapshot, MachineDeploymentDone]):
    """The MachineDeployment's own steps of a pass."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._providers = Providers(deps)
        self._applier = Applier(deps.client)
        self._observer = Observer(deps, self._providers)
        self._advisor = inplace.UpdateAdvisor(deps)

    async def owner(self, obj: MachineDeployment) -> ClusterFacts:
        """Return its Cluster; a missing one is an error."""
        return ClusterFacts.of(await self._deps.client.get(Cluster, ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)))

    async def observe(self, obj: MachineDeployment, owner: ClusterFacts) -> MachineDeploymentSnapshot:
        """Read everything that decisions need."""
        return await self._observer.observe(obj, owner)

    def forget(self, key: ObjectKey) -> None:
        """Forget a MachineDeployment that is gone."""
        self._providers.forget(key)
        self._applier.forget(key)

    def conclude(self, run: Run) -> None:
        """Set counters, phase, then conditions in both forms."""
        run.become(counted(run.done))
        if run.done.settled:
            run.become(v1beta1_counted(run.done))
        phase = run.decide(PHASE).phase
        run.become(replace(run.object, status=replace(run.object.status, phase=phase)))
        run.conclude(*TABLES, *V1BETA1_TABLES)

    # ---------------------------------------------------------------------------------------------------- act

    async def act(self, run: Run) -> None:
        """Classify the MachineSets, compute their sizes, write them, and clean up."""
        for failure in run.seen.failures:
            run.fail(failure)
        if run.done.machine_sets is None:
            return
        if run.seen.deleting:
            await self._delete(run)
            return
        step = run.decide(STEPS).chosen(Step)
        if step is None:
            return
        for machine_set in run.done.machine_sets:
            if machine_set.spec.replicas is None:
                run.fail(f"spec.replicas of MachineSet {machine_set.key} is not set. Set it, or delete the MachineSet")
                return
            if not has_hash(machine_set):
                run.fail(f"MachineSet {machine_set.key} does not have the machine-template-hash label")
                return
        division = divide(run.object, run.done.machine_sets, run.seen.now)
        run.done = replace(run.done, new=division.new.metadata.name if division.new else "")
        match step:
            case Step.SCALE:
                await self._scale(run, division)
            case Step.ROLL | Step.REPLACE:
                await self._roll_out(run, division, step)
            case never:
                assert_never(never)
        run.become(counted(run.done))
        run.done = replace(run.done, settled=not run.errors)
        if step is not Step.SCALE and is_complete(run.object):
            await self._clean_up(run)

    async def _delete(self, run: Run) -> None:
        match run.decide(DELETE).chosen(Deletion):
            case Deletion.DELETE:
                for machine_set in run.done.machine_sets or ():
                    if machine_set.metadata.deletion_timestamp is None:
                        await run.delete(self._deps.client, machine_set)
            case Deletion.RELEASE:
                run.become(without_finalizer(run.object, MACHINE_DEPLOYMENT_FINALIZER))
            case None:
                pass
            case never:
                assert_never(never)

    async def _clean_up(self, run: Run) -> None:
        """Delete old MachineSets without Machines after a rollout, the oldest first."""
        for machine_set in oldest_first(run.done.machine_sets or ()):
            if machine_set.metadata.name != run.done.new and is_spent(machine_set):
                await run.delete(self._deps.client, machine_set)

    # ----------------------------------------------------------------------------------------------- rollout

    async def _scale(self, run: Run, division: Division) -> None:
        """Scale existing MachineSets in proportion while the rollout is paused; create none."""
        found = run.done.limits or Limits()
        intents = rollout.proportional(
            replicas=run.done.desired,
            surge=found.surge,
            is_rolling=run.done.strategy == "RollingUpdate",
            new=run.done.new,
            sets=_sized(run.done.machine_sets or ()),
        )
        await self._write(run, division, intents, name=run.done.new, hash_label="")

    async def _roll_out(self, run: Run, division: Division, step: Step) -> None:
        name, hash_label = run.done.new, ""
        if division.new is None:
            if run.seen.missing:
                raise PassFailed(f"failed to create a new MachineSet: {missing_text(run.seen.missing)}")
            if await self._is_behind(run):
                return
            taken = [s.metadata.name for s in await self._deps.client.list(MachineSet, namespace=run.object.metadata.namespace)]
            after = due(run.object, run.seen.now)
            name, hash_label = desired.new_name(_maker(run), after.isoformat() if after else "", taken)
        plan = Rollout(
            replicas=run.done.desired,
            limits=run.done.limits or Limits(),
            new=Sized.of(division.new) if division.new else Sized(name),
            old=_sized(division.old),
        )
        marks: dict[str, dict[str, str]] = {}
        if step is Step.REPLACE:
            rollout.on_delete(plan)
        else:
            if run.seen.features.get("InPlaceUpdates"):
                self._acknowledge(run, division, plan, marks)
            rollout.grow_new(plan)
            may_go = rollout.shrink_old(plan)
            if run.seen.features.get("InPlaceUpdates"):
                asked = division.old if may_go else biggest_first(division.old)
                await self._update_in_place(run, replace(division, old=tuple(asked)), plan, marks, hash_label)
            rollout.break_deadlock(plan)
        await self._write(run, division, plan.intents, name=name, hash_label=hash_label, marks=marks)

    # ---------------------------------------------------------------------------------------------- in place

    def _acknowledge(self, run: Run, division: Division, plan: Rollout, marks: dict[str, dict[str, str]]) -> None:
        """Acknowledge the Machines that were moved to the new MachineSet."""
        new = division.new
        if new is None:
            return
        uid = new.metadata.uid
        awaiting = sorted(
            m.metadata.name
            for m in run.seen.machines
            if awaits_acknowledgement(m) and any(r.controller and r.uid == uid for r in m.metadata.owner_references)
        )
        if awaiting:
            known = new.metadata.annotations.get(ACKNOWLEDGED_MOVE_ANNOTATION, "").split(",")
            inplace.acknowledge(plan, awaiting, known)
            marks.setdefault(plan.new.name, {})[ACKNOWLEDGED_MOVE_ANNOTATION] = ",".join(awaiting)

    async def _update_in_place(
        self, run: Run, division: Division, plan: Rollout, marks: dict[str, dict[str, str]], hash_label: str
    ) -> None:
        """Let old MachineSets with updatable Machines give them to the new one, in order; raises PassFailed."""
        if plan.new.wanted >= plan.replicas:
            return
        maker, name = _maker(run), plan.new.name
        givers: list[str] = []
        for old in division.old:
            if not old.status.replicas or old.metadata.name in division.ineligible:
                continue
            planned = await self._planned(maker, old, old.spec.replicas or 0)
            wanted = (
                await self._planned(maker, division.new, plan.new.wanted)
                if division.new
                else desired.new_machine_set(maker, name, hash_label, replicas=0, annotations={})
            )
            if planned is not None and wanted is not None and await self._advisor.can_update(planned, wanted):
                givers.append(old.metadata.name)
                marks.setdefault(old.metadata.name, {})[MOVE_MACHINES_TO_MACHINE_SET_ANNOTATION] = name
        if givers:
            marks.setdefault(name, {})[RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION] = ",".join(sorted(givers))
            inplace.limit_growth(plan, going_on=inplace.is_going_on(plan, run.seen.machines))

    async def _planned(self, maker: Maker, machine_set: MachineSet, replicas: int) -> Json | None:
        """Return an existing MachineSet as this pass would write it, for an extension."""
        original = await self._deps.client.read(MachineSet, machine_set.key)
        if original is None:
            return None
        annotations = maker.annotations(revisions.present(machine_set.metadata.annotations), may_create=True)
        return desired.updated_machine_set(maker, msgspec.json.decode(original.raw), replicas=replicas, annotations=annotations)

    async def _is_behind(self, run: Run) -> bool:
        """Return whether the API server has MachineSets of ours that the cache lacks: none is created before they are seen."""
        metadata = run.object.metadata
        labels = {MACHINE_DEPLOYMENT_NAME_LABEL: metadata.name}
        existing = await self._deps.client.live.list(MachineSet, namespace=metadata.namespace, labels=labels)
        ours = {s.metadata.uid for s in existing if any(r.controller and r.uid == metadata.uid for r in s.metadata.owner_references)}
        unseen = ours - {s.metadata.uid for s in run.done.machine_sets or ()}
        if unseen:
            run.done = replace(run.done, unseen=len(unseen))
            run.vote(_NOT_SEEN_WAIT)
        return bool(unseen)

    # ----------------------------------------------------------------------------------------------- writing

    async def _write(
        self,
        run: Run,
        division: Division,
        intents: Mapping[str, int],
        *,
        name: str,
        hash_label: str,
        marks: Mapping[str, Mapping[str, str]] = NO_MARKS,
    ) -> None:
        """Write the new MachineSet, then the old ones, then the revision; stop at the first failure."""
        maker, may_create, number = _maker(run), run.done.strategy != "OnDelete", ""
        if name:
            before = division.new.metadata.annotations if division.new else {}
            try:
                revision = revisions.next_revision(before, division.old)
            except ValueError as error:
                run.fail(f"MachineSet {name}: {error}", error)
                return
            number = revision.number
            annotations = {**maker.annotations(revision, may_create=True), **marks.get(name, {})}
            if division.new is None:
                await self._create(
                    run, desired.new_machine_set(maker, name, hash_label, replicas=intents.get(name, 0), annotations=annotations)
                )
            else:
                await self._update(run, maker, division.new, intents, annotations)
        for old in division.old:
            revision = revisions.present(old.metadata.annotations)
            annotations = {**maker.annotations(revision, may_create=may_create), **marks.get(old.metadata.name, {})}
            await self._update(run, maker, old, intents, annotations)
        if number:
            metadata = run.object.metadata
            told = {**metadata.annotations, REVISION_ANNOTATION: number}
            run.become(replace(run.object, metadata=replace(metadata, annotations=told)))
        self._applier.keep_only(run.object.key, {s.metadata.uid for s in run.done.machine_sets or ()})

    async def _create(self, run: Run, intent: Json) -> None:
        name = intent["metadata"]["name"]
        try:
            answer = await self._applier.create(run.object.key, intent, FIELD_MANAGER)
        except ApiError as error:
            run.record("Warning", "FailedCreate", f"Failed to create MachineSet {name}: {error}")
            raise PassFailed(f"failed to create MachineSet {name}: {error}") from error
        run.record("Normal", "SuccessfulCreate", f"Created MachineSet {name} with {intent['spec']['replicas']} replicas")
        run.done = replace(run.done, machine_sets=(*(run.done.machine_sets or ()), convert(answer.json, MachineSet)), new=name)

    async def _update(
        self, run: Run, maker: Maker, machine_set: MachineSet, intents: Mapping[str, int], annotations: Mapping[str, str]
    ) -> None:
        original = await self._deps.client.read(MachineSet, machine_set.key)
        if original is None or original.object.metadata.uid != machine_set.metadata.uid:
            return
        known = Unstructured(msgspec.json.decode(original.raw))
        name, before = machine_set.metadata.name, machine_set.spec.replicas or 0
        replicas = intents.get(name, before)
        intent = desired.updated_machine_set(maker, known.json, replicas=replicas, annotations=annotations)
        try:
            applied = await self._applier.ensure(run.object.key, known, intent, FIELD_MANAGER)
        except (Conflict, NotFound) as error:
            if machine_set.metadata.deletion_timestamp is not None:
                return
            raise PassFailed(f"failed to update MachineSet {name}: {error}") from error
        except ApiError as error:
            raise PassFailed(f"failed to update MachineSet {name}: {error}") from error
        if applied.object is not None:
            after = convert(applied.object.json, MachineSet)
            sets = tuple(after if s.metadata.name == name else s for s in run.done.machine_sets or ())
            run.done = replace(run.done, machine_sets=sets)
        if replicas != before and not applied.repaired:
            way = "up" if replicas > before else "down"
            run.record("Normal", "SuccessfulScale", f"Scaled {way} MachineSet {name}: {before} -> {replicas}")


def _sized(machine_sets: Iterable[MachineSet]) -> tuple[Sized, ...]:
    """Return the sizes of MachineSets, the oldest first."""
    return tuple(Sized.of(s) for s in oldest_first(machine_sets))


def _maker(run: Run) -> Maker:
    """Return the MachineDeployment as the source of its MachineSets, as it is stored."""
    spec: Json = msgspec.json.decode(run.original.raw).get("spec") or {}
    found = run.done.limits or Limits()
    return Maker(run.object.metadata, run.object.api_version, spec, found.surge)


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler."""
    return KindReconciler(deps, SHAPE, MachineDeployments(deps))
