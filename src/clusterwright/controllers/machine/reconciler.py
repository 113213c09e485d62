"""One pass over a Machine: read, advance through the phases, delete or update, conclude, write one patch.

A straight script, because what the workload cluster answers decides the next step; every choice in it is a table or a pure
function of this package. All phases run whatever befalls the others; errors are raised together at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey, OwnerReference, Unstructured
from clusterwright.api.wellknown import MACHINE_DEPLOYMENT_NAME_LABEL, MACHINE_FINALIZER, UPDATE_IN_PROGRESS_ANNOTATION
from clusterwright.controllers.external import AlreadyControlled, ContractUnknown, Reference, contract_of
from clusterwright.controllers.machine import inplace, plan, remote
from clusterwright.controllers.machine.conditions import OWNED, OWNED_V1BETA1, conclude
from clusterwright.controllers.machine.ownership import owned_metadata
from clusterwright.controllers.machine.snapshot import GRACE_PERIOD, Found, Lookup, MachineSnapshot, Missing, Unreadable
from clusterwright.controllers.machine.status import BadExpiry, with_certificates_expiry, with_status, with_v1beta1_ready
from clusterwright.controllers.machine.teardown import Teardown
from clusterwright.controllers.machine.wakes import Awaited, Wakes
from clusterwright.controllers.machine.work import Pass, cause_of, failure
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, Conflict, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result


class MachineReconciler:
    """Brings Machines nearer to their spec."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._clock = deps.clock
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._wakes = Wakes(deps.enqueue, deps.workload.unwatch)
        self._teardown = Teardown(deps, self._wakes, self._patch)
        self._sync = remote.NodeSync(
            _patterns(deps.options.get("additional-sync-machine-labels") or ()),
            _patterns(deps.options.get("additional-sync-machine-annotations") or ()),
        )
        self._grace_period: timedelta = deps.options.get("remote-conditions-grace-period") or GRACE_PERIOD
        self._update_extensions: Sequence[inplace.UpdateExtension] = deps.options.get("update-machine-extensions") or ()

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        original = await self._client.read(Machine, key)
        if original is None:
            self._wakes.forget(key)
            return Result.await_change()
        machine = original.object
        cluster = await self._client.get(Cluster, ObjectKey(key.namespace, machine.spec.cluster_name))
        if await ensure_finalizer(self._patcher, original, MACHINE_FINALIZER) is Finalization.ADDED:
            return Result.await_change()
        pause = await ensure_paused_condition(self._patcher, self._clock, original, cluster_paused=bool(cluster.spec.paused))
        if pause.ends_pass:
            return Result.await_change()
        machine_set, deployment = await self._owners(machine)
        run = Pass(
            MachineSnapshot(
                now=self._clock.now(),
                machine=pause.object,
                cluster=cluster,
                machine_set=machine_set,
                deployment=deployment,
                health=self._deps.workload.health(cluster.key),
                grace_period=self._grace_period,
                features=self._deps.features,
            ),
            original,
        )
        await self._phases(run)
        if run.seen.deleting:
            await self._teardown.advance(run)
        else:
            await self._update_in_place(run)
        await self._conclude(run)
        if run.errors:
            raise failure(run.errors)
        return Result.soonest(*run.votes)

    async def _owners(self, machine: Machine) -> tuple[MachineSet | None, MachineDeployment | None]:
        """The MachineSet and MachineDeployment that the Machine comes from; one that is named must be there."""
        namespace = machine.metadata.namespace
        ref = next((o for o in machine.metadata.owner_references if o.kind == "MachineSet" and _is_core(o)), None)
        if ref is None:
            return None, None
        machine_set = await self._client.get(MachineSet, ObjectKey(namespace, ref.name))
        name = machine_set.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL)
        if not name:
            return machine_set, None
        return machine_set, await self._client.get(MachineDeployment, ObjectKey(namespace, name))

    # ------------------------------------------------------------------------------------------------------- phases

    async def _phases(self, run: Pass) -> None:
        spec = run.machine.spec
        run.become(plan.with_owner_and_label(run.seen))
        if spec.bootstrap.config_ref is not None:
            config = await self._adopt(run.seen, spec.bootstrap.config_ref)
            run.seen = replace(run.seen, bootstrap=config, machine=plan.with_failure(run.machine, config))
        run.advance(plan.BOOTSTRAP, cause_of(run.seen.bootstrap))
        infra = await self._adopt(run.seen, spec.infrastructure_ref)
        run.seen = replace(run.seen, infrastructure=infra, machine=plan.with_failure(run.machine, infra))
        run.advance(plan.INFRASTRUCTURE, cause_of(infra))
        had_node = run.machine.status.node_ref is not None
        self._wakes.learn(run.machine, run.seen.cluster.key)
        found = await remote.observe_node(self._deps.workload, self._wakes, run.seen, self._sync)
        run.seen = replace(run.seen, node=found)
        run.advance(plan.NODE, cause_of(found))
        if run.machine.status.node_ref is not None and not had_node:
            self._wakes.learn(run.machine, run.seen.cluster.key)
            run.record(self._deps.events, "Normal", "SuccessfulSetNodeRef", run.machine.status.node_ref.name)
        try:
            run.become(with_certificates_expiry(run.seen))
        except BadExpiry as error:
            run.errors.append(error)

    async def _adopt(self, s: MachineSnapshot, reference: Reference) -> Lookup:
        """Read a provider's object, after making sure that the Machine controls it and that its changes wake us."""
        key = ObjectKey(s.machine.metadata.namespace, reference.name)
        awaited = Awaited(reference.api_group, reference.kind, key)
        self._wakes.expect(s.machine.key, awaited)
        try:
            contract = await contract_of(self._client, reference.api_group, reference.kind)
            await self._deps.dynamic.ensure(contract.gvk, self._wakes.expecting)
            obj = await self._client.get(contract.gvk, key)
            patch = owned_metadata(obj, s.machine, s.cluster)
            if patch is not None:
                obj = await self._client.patch(obj.gvk, obj.key, patch)
        except NotFound:
            return Missing()
        except Conflict:
            raise  # what was read is out of date: the next pass knows better
        except (ApiError, ContractUnknown, AlreadyControlled) as error:
            return Unreadable(error)
        self._wakes.met(s.machine.key, awaited)
        return Found(obj, contract.contract)

    # ------------------------------------------------------------------------------------------------------ updates

    async def _update_in_place(self, run: Pass) -> None:
        decision = inplace.IN_PLACE_UPDATE.decide(run.seen)
        run.rows[decision.table] = decision.row
        match decision.outcome and decision.outcome.status:
            case "CleanUp":
                await self._end_update(run)
            case "Fail":
                run.seen = replace(run.seen, updating=inplace.INFRA_GONE)
                run.fail(f"in-place update of Machine {run.machine.key}: its infrastructure machine does not exist")
            case "Call":
                await self._call_extension(run)

    async def _call_extension(self, run: Pass) -> None:
        infra, config = run.seen.infrastructure, run.seen.bootstrap
        if len(self._update_extensions) != 1 or not isinstance(infra, Found):
            run.seen = replace(run.seen, updating=inplace.HOOK_FAILED)
            run.fail(f"in-place update: exactly one extension must handle UpdateMachine, not {len(self._update_extensions)}")
            return
        try:
            answer = await self._update_extensions[0](run.machine, infra.object, config.object if isinstance(config, Found) else None)
        except Exception as error:
            run.seen = replace(run.seen, updating=inplace.HOOK_FAILED)
            run.fail("in-place update: the extension failed", error)
            return
        if answer.retry_after:
            run.votes.append(answer.retry_after)
            run.seen = replace(run.seen, updating=inplace.in_progress(answer))
            return
        await self._end_update(run)

    async def _end_update(self, run: Pass) -> None:
        """Take the marks away, the Machine's last: it is what a later pass would go by."""
        try:
            for lookup in (run.seen.infrastructure, run.seen.bootstrap):
                if isinstance(lookup, Found) and UPDATE_IN_PROGRESS_ANNOTATION in lookup.object.metadata.annotations:
                    patch = {"metadata": {"annotations": {UPDATE_IN_PROGRESS_ANNOTATION: None}}}
                    await self._client.patch(lookup.object.gvk, lookup.object.key, patch)
        except ApiError as error:
            run.errors.append(error)
            return
        run.become(inplace.without_mark(run.machine))

    # -------------------------------------------------------------------------------------------------------- status

    async def _conclude(self, run: Pass) -> None:
        if run.seen.deleting and not run.machine.metadata.finalizers:
            # nobody will read a status of what is gone with this write
            self._wakes.forget(run.machine.key)
            await self._patch(run, without_finalizer(run.original.object, MACHINE_FINALIZER))
            return
        run.seen, decisions, vote = conclude(run.seen)
        run.rows.update({d.table: d.row for d in decisions})
        if vote is not None:
            run.votes.append(vote)
        machine = with_v1beta1_ready(run.machine, run.seen.now)
        if not run.errors and machine.status.observed_generation != machine.metadata.generation:
            machine = with_status(machine, observed_generation=machine.metadata.generation)
        self._deps.trace(machine.key, run.rows)
        await self._patch(run, machine)

    async def _patch(self, run: Pass, machine: Machine) -> Unstructured | None:
        return await self._patcher.patch(run.original, machine, owned_conditions=OWNED, owned_v1beta1_conditions=OWNED_V1BETA1)


def _is_core(owner: OwnerReference) -> bool:
    return owner.api_version.partition("/")[0] == "cluster.x-k8s.io"


def _patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(t) for t in texts)
