"""The Machine's own steps of a pass: read what it refers to, advance through the phases, delete or update, conclude.

The steps are a script, because answers of the workload cluster decide the next step; every choice in it is a table or a pure function of
this package. All phases run, even after a failure of another; errors are raised together at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import Json, ObjectKey, OwnerReference, Unstructured
from clusterwright.api.wellknown import CORE_GROUP, MACHINE_FINALIZER, UPDATE_IN_PROGRESS_ANNOTATION
from clusterwright.controllers.kit.adopt import Providers
from clusterwright.controllers.kit.conditions import decided
from clusterwright.controllers.kit.lookup import Found, Unreadable
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.machine import inplace, ownership, plan, remote
from clusterwright.controllers.machine.conditions import AVAILABLE, OF_THE_NODE, OWNED, OWNED_V1BETA1, STAGES, STATES
from clusterwright.controllers.machine.deletion import Deletion, MachinePass
from clusterwright.controllers.machine.inplace import Update
from clusterwright.controllers.machine.node_watches import NodeWatches
from clusterwright.controllers.machine.snapshot import (
    GRACE_PERIOD,
    ClusterFacts,
    MachineDone,
    MachineSnapshot,
    NodeFound,
    NodeLookup,
    NodeOutOfReach,
    NodeUnreadable,
    OwnerFacts,
)
from clusterwright.controllers.machine.status import PHASE, BadExpiry, with_certificates_expiry, with_phase, with_v1beta1_ready
from clusterwright.controllers.owned_machines import UPDATE_MACHINE_HOOK
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.tables import Table
from clusterwright.topology.answers import Answer, StandingAnswers
from clusterwright.topology.extensions import CallAll, ExtensionError, ListHandlers

SHAPE = Shape(kind=Machine, done=MachineDone, finalizer=MACHINE_FINALIZER, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of Machines."""
    return KindReconciler(deps, SHAPE, Machines(deps))


class Machines(Kind[Machine, ClusterFacts, MachineSnapshot, MachineDone]):
    """Reconciles Machines."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._providers = Providers(deps)
        self._watches = NodeWatches(deps.enqueue, deps.workload.unwatch)
        self._deletion = Deletion(deps, self._watches)
        self._sync = remote.NodeSync(
            _patterns(deps.options.get("additional-sync-machine-labels") or ()),
            _patterns(deps.options.get("additional-sync-machine-annotations") or ()),
        )
        self._grace_period: timedelta = deps.options.get("remote-conditions-grace-period") or GRACE_PERIOD
        self._standing = StandingAnswers()

    def forget(self, key: ObjectKey) -> None:
        """Forget a Machine that is gone."""
        self._watches.forget(key)
        self._providers.forget(key)

    async def owner(self, obj: Machine) -> ClusterFacts:
        """Return the Cluster, which must exist."""
        return ClusterFacts.of(await self._client.get(Cluster, ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)))

    # ------------------------------------------------------------------------------------------------------ observe

    async def observe(self, obj: Machine, owner: ClusterFacts) -> MachineSnapshot:
        """Return the Machine, its owners and the objects that it refers to, which are adopted; the Node is read later."""
        machine_set, deployment = await self._owners(obj)

        def adoption(found: Unstructured) -> Json | None:
            return ownership.adoption(obj, owner.control_plane_ref, found)

        return MachineSnapshot(
            now=self._deps.clock.now(),
            object=obj,
            cluster=owner,
            machine_set=machine_set,
            deployment=deployment,
            bootstrap=await self._providers.look_up(obj.key, obj.spec.bootstrap.config_ref, adoption),
            infrastructure=await self._providers.look_up(obj.key, obj.spec.infrastructure_ref, adoption),
            health=self._deps.workload.health(owner.key),
            grace_period=self._grace_period,
            features=self._deps.features,
        )

    async def _owners(self, machine: Machine) -> tuple[OwnerFacts | None, OwnerFacts | None]:
        """Return the MachineSet and MachineDeployment of the Machine; one that is named must exist."""
        namespace = machine.metadata.namespace
        ref = next((o for o in machine.metadata.owner_references if o.kind == "MachineSet" and _is_core(o)), None)
        if ref is None:
            return None, None
        machine_set = OwnerFacts.of(await self._client.get(MachineSet, ObjectKey(namespace, ref.name)))
        if not machine_set.deployment:
            return machine_set, None
        return machine_set, OwnerFacts.of(await self._client.get(MachineDeployment, ObjectKey(namespace, machine_set.deployment)))

    # ---------------------------------------------------------------------------------------------------------- act

    async def act(self, run: MachinePass) -> None:
        """Copy values from the objects and the Node; then continue a deletion or an in-place update."""
        config, infra = run.seen.bootstrap, run.seen.infrastructure
        run.become(ownership.with_owner_and_label(run.done))
        run.become(plan.with_failure(plan.with_failure(run.object, config), infra))
        _advance(run, plan.BOOTSTRAP, config.cause if isinstance(config, Unreadable) else None)
        _advance(run, plan.INFRASTRUCTURE, infra.cause if isinstance(infra, Unreadable) else None)
        await self._find_node(run)
        try:
            run.become(with_certificates_expiry(run.done))
        except BadExpiry as error:
            run.fail(error)
        await (self._deletion.advance(run) if run.seen.deleting else self._update_in_place(run))

    async def _find_node(self, run: MachinePass) -> None:
        had_node, cluster = run.object.status.node_ref is not None, run.seen.cluster.key
        self._watches.learn(run.object, cluster)
        found = await remote.observe_node(self._deps.workload, self._watches, run.done, self._sync)
        run.done = replace(run.done, node=found)
        _advance(run, plan.NODE, _cause(found))
        if run.object.status.node_ref is not None and not had_node:
            self._watches.learn(run.object, cluster)
            run.record("Normal", "SuccessfulSetNodeRef", run.object.status.node_ref.name)

    # ------------------------------------------------------------------------------------------------------ updates

    async def _update_in_place(self, run: MachinePass) -> None:
        match run.decide(inplace.IN_PLACE_UPDATE).chosen(Update):
            case None:
                pass
            case Update.CLEAN_UP:
                await self._end_update(run)
            case Update.FAIL:
                run.done = replace(run.done, updating=inplace.INFRA_GONE)
                run.fail("in-place update failed: InfraMachine not found")
            case Update.CALL:
                await self._call_extension(run)
            case never:
                assert_never(never)

    async def _call_extension(self, run: MachinePass) -> None:
        try:
            answer = await self._ask(run)
        except ExtensionError as error:
            run.done = replace(run.done, updating=inplace.HOOK_FAILED)
            run.fail(f"in-place update failed: {error}", error)
            return
        if answer.is_blocking:
            run.vote(timedelta(seconds=answer.retry_after))
            run.done = replace(run.done, updating=inplace.in_progress(answer))
            return
        await self._end_update(run)

    async def _ask(self, run: MachinePass) -> Answer:
        """Return the extension's answer about the update; raises ExtensionError. Do not call before the retry time that it asked for."""
        request = inplace.request(run.object, run.done)
        subject = request["desired"]["machine"]
        found = await self._deps.extensions.handlers(ListHandlers(UPDATE_MACHINE_HOOK, subject))
        if not found:
            raise ExtensionError(f"no extensions registered for {UPDATE_MACHINE_HOOK} hook")
        if len(found) > 1:
            raise ExtensionError(f"found multiple {UPDATE_MACHINE_HOOK} hooks ({','.join(found)}): only one hook is supported")
        key, now = run.object.metadata.uid, run.seen.now
        standing = self._standing.of(key, now)
        if standing is not None:
            return standing
        answer = Answer.of(await self._deps.extensions.call_all(CallAll(UPDATE_MACHINE_HOOK, subject, request)))
        self._standing.keep(key, answer, now)
        return answer

    async def _end_update(self, run: MachinePass) -> None:
        """Remove the update marks.

        Start with the Machine's mark, so that a pass after a crash does not request the update again; the pending hook goes last, in the
        pass's own patch, so that an interrupted cleanup is continued.
        """
        try:
            await run.save(inplace.without_mark(run.original.object))
            run.become(inplace.without_mark(run.object))
            for lookup in (run.seen.infrastructure, run.seen.bootstrap):
                if isinstance(lookup, Found) and UPDATE_IN_PROGRESS_ANNOTATION in lookup.object.metadata.annotations:
                    patch = {"metadata": {"annotations": {UPDATE_IN_PROGRESS_ANNOTATION: None}}}
                    await self._client.patch(lookup.object.gvk, lookup.object.key, patch)
        except ApiError as error:
            run.fail(f"failed to complete in-place update: {error}", error)
            return
        run.become(inplace.without_hook(run.object))

    # ----------------------------------------------------------------------------------------------------- conclude

    def conclude(self, run: MachinePass) -> None:
        """Set the conditions and the phase."""
        run.conclude(*STATES)
        run.conclude(*OF_THE_NODE, together=True)
        run.conclude(*STAGES)
        run.become(with_phase(run.object, run.decide(PHASE).phase, run.seen.now))
        run.conclude(AVAILABLE)
        run.become(with_v1beta1_ready(run.object, run.seen.now))


def _advance(run: MachinePass, table: Table[MachineDone], cause: Exception | None) -> None:
    """Evaluate a phase's table, copy the values that it names, and set its v1beta1 condition."""
    decision = run.decide(table, cause)
    run.become(plan.copied(run.done, decision.chosen(plan.Copy)))
    run.become(decided(run.object, table, decision, run.seen.now))


def _cause(found: NodeLookup) -> Exception | None:
    """Return the error that kept the Node from being found or updated, if any."""
    if isinstance(found, NodeOutOfReach | NodeUnreadable):
        return found.error
    return found.sync_error if isinstance(found, NodeFound) else None


def _is_core(owner: OwnerReference) -> bool:
    return owner.api_version.partition("/")[0] == CORE_GROUP


def _patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(t) for t in texts)
