"""The pass of the MachineSet controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, assert_never
from weakref import WeakValueDictionary

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineSet
from clusterwright.api.meta import Condition, Json, ObjectKey, V1Beta1Condition
from clusterwright.api.selectors import as_labels, parsed
from clusterwright.api.wellknown import (
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MACHINE_SET_FINALIZER,
    MAX_REPLICAS_ANNOTATION,
)
from clusterwright.conditions import delete_condition, get, v1beta1
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.intstr import count
from clusterwright.controllers.kit.adopt import Providers
from clusterwright.controllers.kit.conditions import with_condition, with_v1beta1, with_v1beta1_status
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.machineset import desired, remediation
from clusterwright.controllers.machineset.conditions import OWNED, TABLES
from clusterwright.controllers.machineset.conditions_v1beta1 import OWNED_V1BETA1, V1BETA1_TABLES
from clusterwright.controllers.machineset.creation import REFUSED, CreationFailed, Creator
from clusterwright.controllers.machineset.deletion_order import UnknownOrder, in_order
from clusterwright.controllers.machineset.desired import Maker
from clusterwright.controllers.machineset.guards import moves, surplus
from clusterwright.controllers.machineset.inplace import InPlace
from clusterwright.controllers.machineset.machine_writer import MachineWriter, Run
from clusterwright.controllers.machineset.observing import Observer
from clusterwright.controllers.machineset.plan import DELETE, SCALE, Deletion, Scale
from clusterwright.controllers.machineset.preflight import Verdict, verdict
from clusterwright.controllers.machineset.remediation import OWNER_REMEDIATED, REMEDIATE, Remediation, Remedy
from clusterwright.controllers.machineset.snapshot import ClusterFacts, MachineSetDone, MachineSetSnapshot, Refusal
from clusterwright.controllers.machineset.status import counted, look_again, v1beta1_counters
from clusterwright.controllers.machineset.sync import Sync, Syncer
from clusterwright.controllers.owned_machines import CREATION_WAIT, creation_budget, is_deleting
from clusterwright.controllers.unconfirmed import Unconfirmed
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.naming import BadNamingTemplate
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler

SHAPE: Final = Shape(kind=MachineSet, done=MachineSetDone, finalizer=MACHINE_SET_FINALIZER, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)


class MachineSets(Kind[MachineSet, ClusterFacts, MachineSetSnapshot, MachineSetDone]):
    """The MachineSet's own steps of a pass."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._writer = MachineWriter(deps)
        self._in_place = InPlace(deps, self._writer)
        self._providers = Providers(deps)
        self._applier = Applier(deps.client)
        self._syncer = Syncer(deps, self._writer, self._applier)
        self._observer = Observer(deps, self._providers)
        self._unconfirmed = Unconfirmed()
        self._creating: WeakValueDictionary[ObjectKey, asyncio.Lock] = WeakValueDictionary()

    async def owner(self, obj: MachineSet) -> ClusterFacts:
        """Return its Cluster; a missing one is an error."""
        return ClusterFacts.of(await self._deps.client.get(Cluster, ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)))

    async def observe(self, obj: MachineSet, owner: ClusterFacts) -> MachineSetSnapshot:
        """Read everything that decisions need."""
        return await self._observer.observe(obj, owner)

    def forget(self, key: ObjectKey) -> None:
        """Forget a MachineSet that is gone."""
        self._providers.forget(key)
        self._applier.forget(key)
        self._unconfirmed.forget(key)

    # --------------------------------------------------------------------------------------------------- act

    async def act(self, run: Run) -> None:
        """Replace unhealthy Machines, sync the others, then scale. Do nothing without a list of Machines."""
        for failure in run.seen.failures:
            run.fail(failure)
        if run.done.machines is None:
            return
        if run.seen.deleting:
            await self._delete_all(run)
            return
        maker = _maker(run)
        try:
            await self._remediate(run)
        except ApiError as error:
            run.fail(error)
        synced = await self._syncer.sync(run, maker)
        goes_on = synced is Sync.FAILED and run.seen.features.get("InPlaceUpdates")  # others are updated all the same
        if synced is Sync.DONE or goes_on:
            await self._in_place.trigger(run, maker)
        await self._in_place.give_up(run)
        if synced is Sync.DONE or (goes_on and surplus(run.done) and moves(run.done)):
            await self._scale(run, maker)

    def conclude(self, run: Run) -> None:
        """Set counters, then conditions in both forms."""
        deleting_done = run.seen.deleting and not run.object.metadata.finalizers
        run.become(counted(run.done))
        if run.done.machines is not None and run.done.replicas is not None:
            counters = v1beta1_counters(run.done)
            run.become(
                with_v1beta1_status(
                    run.object,
                    fully_labeled_replicas=counters.fully_labeled,
                    ready_replicas=counters.ready,
                    available_replicas=counters.available,
                )
            )
        run.conclude(*TABLES, *V1BETA1_TABLES)
        if not run.seen.deleting and not deleting_done:
            run.vote(look_again(run.object))

    async def _delete_all(self, run: Run) -> None:
        match run.decide(DELETE).chosen(Deletion):
            case Deletion.DELETE:
                await self._writer.delete(run, [m for m in run.done.machines or () if not is_deleting(m)])
            case Deletion.RELEASE:
                run.become(without_finalizer(run.object, MACHINE_SET_FINALIZER))
            case None:
                pass
            case never:
                assert_never(never)

    # -------------------------------------------------------------------------------------------- remediation

    async def _preflight(self, run: Run) -> Verdict:
        found = verdict(await self._observer.preflight(run.done), run.decide_on)
        if found.passed and not run.seen.missing:
            self._providers.forget(run.object.key)  # nothing is waited for: what the control plane does is no concern of ours any more
        return found

    async def _remediate(self, run: Run) -> None:
        seen = run.seen
        failures: list[ApiError] = []
        for machine in seen.machines or ():
            if remediation.has_recovered(machine) or remediation.has_recovered_v1beta1(machine):
                try:
                    await self._recovered(run, machine)
                except ApiError as error:
                    failures.append(error)
        if failures:
            text = "; ".join(map(str, failures))
            raise PassFailed(f"failed to remove OwnerRemediated condition from healthy Machines: {text}") from failures[0]
        found = remediation.assess(run.done.machines or (), seen.deployment, is_current=not seen.in_deployment or seen.is_current)
        if found.candidates and found.is_current and not found.error and found.budget != 0:
            found = found.after(await self._preflight(run))
        match run.decide_on(REMEDIATE, found).chosen(Remedy):
            case Remedy.DECLINE:
                await self._say(run, found.candidates, remediation.declined())
            case Remedy.DEFER:
                await self._say(run, found.candidates, remediation.deferred(found))
            case Remedy.POSTPONE:
                await self._defer_rest(run, found)
                await self._say(run, found.chosen, *remediation.postponed(found.preflight))
            case Remedy.REPLACE:
                await self._defer_rest(run, found)
                await self._say(run, found.chosen, *remediation.replaced())
                await self._writer.delete(run, found.chosen)
            case None:
                pass
            case never:
                assert_never(never)

    async def _defer_rest(self, run: Run, found: Remediation) -> None:
        if found.deferred:
            await self._say(run, found.deferred, remediation.deferred(found))

    async def _say(self, run: Run, machines: Sequence[Machine], condition: Condition, old: V1Beta1Condition | None = None) -> None:
        """Set OwnerRemediated on all Machines before any is deleted; raises PassFailed if a write failed."""
        now, failures = run.seen.now, list[ApiError]()
        for machine in machines:
            try:
                await self._writer.patch(run, machine.key, lambda m: with_v1beta1(with_condition(m, condition, now), old, now))
            except ApiError as error:
                failures.append(error)
        if failures:
            raise PassFailed(f"failed to patch Machines: {'; '.join(map(str, failures))}") from failures[0]

    async def _recovered(self, run: Run, machine: Machine) -> None:
        def change(m: Machine) -> Machine:
            if remediation.has_recovered_v1beta1(m):
                m = with_v1beta1_status(m, conditions=v1beta1.delete_condition(v1beta1.reporter_conditions(m), OWNER_REMEDIATED))
            if remediation.has_recovered(m):
                m = replace(m, status=replace(m.status, conditions=delete_condition(m.status.conditions, OWNER_REMEDIATED)))
            return m

        await self._writer.patch(run, machine.key, change)

    # --------------------------------------------------------------------------------------------------- sync

    # -------------------------------------------------------------------------------------------------- scale

    async def _scale(self, run: Run, maker: Maker) -> None:
        seen = run.done
        if seen.replicas is not None and seen.count < seen.desired and not seen.creation_disabled:
            await self._grow(run, maker)
            return
        try:
            match run.decide(SCALE).chosen(Scale):
                case Scale.MOVE:
                    await self._in_place.move(run, self._in_order(run))
                case Scale.DELETE:
                    await self._writer.delete(run, await self._to_delete(run))
                case Scale.CREATE | None:
                    pass
                case never:
                    assert_never(never)
        except UnknownOrder as error:
            run.fail(str(error), error)

    async def _grow(self, run: Run, maker: Maker) -> None:
        """Create missing Machines, unless preflight checks fail, they exist already, or the MachineDeployment has too many.

        MachineSets of one MachineDeployment create one after the other: each sees the others' Machines.
        """
        checked = await self._preflight(run)
        run.done = replace(run.done, preflight=checked)
        if not checked.passed:
            text = "; ".join([*checked.messages, *([checked.error] if checked.error else [])])
            run.done = replace(run.done, refusal=Refusal("PreflightCheckFailed", text))
            run.decide(SCALE)
            return
        family = run.object.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL, "")
        key = ObjectKey(run.object.metadata.namespace, family or f"/{run.object.metadata.name}")
        async with self._creating.setdefault(key, asyncio.Lock()):
            existing, room = await self._existing(run, family)
            run.done = replace(run.done, existing=existing, room=room)
            if run.decide(SCALE).chosen(Scale) is Scale.CREATE:
                await self._create(run, maker)

    def _in_order(self, run: Run) -> list[Machine]:
        return self._ordered(run, run.done.machines or ())

    def _ordered(self, run: Run, machines: Iterable[Machine]) -> list[Machine]:
        spec = run.object.spec.deletion
        return in_order(machines, spec.order if spec else "", run.seen.now)

    async def _to_delete(self, run: Run) -> list[Machine]:
        """Return the Machines to delete now, as the API server has them.

        An autoscaler marks a Machine and then lowers the number. The cache of Machines may not have the mark yet: then another Machine
        would go, and the marked one later.
        """
        labels, namespace = dict(run.object.spec.selector.match_labels), run.object.metadata.namespace
        found = await self._deps.client.live.list(Machine, namespace=namespace, labels=labels)
        known = {m.metadata.uid for m in run.done.machines or ()}
        fresh = [m for m in found if m.metadata.uid in known]
        return [m for m in self._ordered(run, fresh)[: max(len(fresh) - run.done.desired, 0)] if not is_deleting(m)]

    async def _existing(self, run: Run, family: str) -> tuple[tuple[Machine, ...], int | None]:
        """Return our Machines from the API server, not the cache, and how many more the MachineDeployment may have.

        A Machine whose labels no longer match the selector was released, and is replaced.
        """
        labels = {MACHINE_DEPLOYMENT_NAME_LABEL: family} if family else as_labels(run.object.spec.selector)
        found = await self._deps.client.live.list(Machine, namespace=run.object.metadata.namespace, labels=labels)
        controllers = [(m, m.metadata.controller) for m in found]
        uid, selector = run.object.metadata.uid, parsed(run.object.spec.selector)
        ours = tuple(m for m, r in controllers if r is not None and r.uid == uid and selector.matches(m.metadata.labels))
        limit = count(run.object.metadata.annotations.get(MAX_REPLICAS_ANNOTATION, ""))
        if not family or limit is None:
            return ours, None
        return ours, limit - sum(r is not None and r.kind == "MachineSet" for _, r in controllers)

    async def _create(self, run: Run, maker: Maker) -> None:
        """Create missing Machines one after the other, within the budget; stop the pass at the first failure."""
        client, existing = self._deps.client, run.done.existing
        missing = run.done.to_create
        budget = creation_budget((m.metadata.creation_timestamp for m in existing), run.seen.now)
        if missing > budget:
            run.done = replace(run.done, postponed=missing - budget)
            run.vote(CREATION_WAIT)
        taken = [m.metadata.name for m in await client.list(Machine, namespace=run.object.metadata.namespace)]
        creator = Creator(client, self._applier, maker)
        created = v1beta1.get(v1beta1.reporter_conditions(run.original.object), "MachinesCreated")
        was_refused = created is not None and created.status == "False" and created.reason == REFUSED
        try:
            present = [*(m.metadata.uid for m in existing), _since(run.original.object)]
            unanswered = self._unanswered(run.object.key, existing)
            new = desired.new_names(maker, present=present, taken=[*taken, *unanswered])
            names = list(islice(chain(unanswered, new), min(missing, budget)))
            await creator.sweep({*taken, *names, *unanswered, *(m.metadata.name for m in existing)})
            for name in names:
                await asyncio.sleep(0)  # other tasks run between two Machines, even if no request waits for anything
                now = await client.find(MachineSet, run.object.key)
                if now is None or now.metadata.generation != run.object.metadata.generation:
                    return  # it was told otherwise meanwhile, and will look again
                with self._unconfirmed.creating(run.object.key, name):
                    await creator.create(name, was_refused=was_refused)
                run.record("Normal", "SuccessfulCreate", f"Created Machine {name}")
        except CreationFailed as error:
            self._refused(run, error.refusal, error)
        except (ApiError, BadNamingTemplate) as error:
            self._refused(run, Refusal(REFUSED, f"failed to create Machine: {error}"), error)

    def _unanswered(self, key: ObjectKey, existing: Iterable[Machine]) -> list[str]:
        """Return the names of earlier creates that got no answer and whose Machines do not exist yet."""
        for machine in existing:
            self._unconfirmed.confirm(key, machine.metadata.name)
        return list(self._unconfirmed.names(key))

    def _refused(self, run: Run, refusal: Refusal, cause: Exception) -> None:
        run.done = replace(run.done, refusal=refusal)
        run.record("Warning", "FailedCreate", refusal.message)
        run.fail(refusal.message, cause.__cause__ if isinstance(cause.__cause__, Exception) else cause)


def _since(machine_set: MachineSet) -> str:
    """Return when ScalingUp last changed. Without it, a replacement would get the deleted Machine's name."""
    told = get(machine_set.status.conditions, "ScalingUp")
    return told.last_transition_time.isoformat() if told is not None and told.last_transition_time else ""


def _maker(run: Run) -> Maker:
    """Return the MachineSet as the source of its objects, as stored, with the changes of this pass."""
    spec: Json = dict(msgspec.json.decode(run.original.raw).get("spec") or {})
    obj, template = run.object, dict(spec.get("template") or {})
    given: Mapping[str, Any] = template.get("metadata") or {}
    labels = dict(obj.spec.template.metadata.labels) if obj.spec.template.metadata else {}
    return Maker(obj.metadata, obj.api_version, {**spec, "template": {**template, "metadata": {**given, "labels": labels}}})


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler."""
    return KindReconciler(deps, SHAPE, MachineSets(deps))
