"""The MachineHealthCheck's own steps of a pass: find its Machines and their Nodes, judge them, request remediation of unhealthy ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineHealthCheck
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import InvalidSelector, parsed
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conditions import ConditionConflict, is_false
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.machinehealthcheck import plan
from clusterwright.controllers.machinehealthcheck.conditions import MACHINE_OWNED, OWNED, OWNED_V1BETA1, TABLES
from clusterwright.controllers.machinehealthcheck.evaluation import ClusterFacts, MachineFacts, Target, is_exempt, next_check
from clusterwright.controllers.machinehealthcheck.node_watches import NodeWatches
from clusterwright.controllers.machinehealthcheck.remediation import request_for, request_kind, template_of
from clusterwright.controllers.machinehealthcheck.snapshot import HealthCheckDone, HealthCheckSnapshot, Request, TargetSnapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Reconciler

SHAPE = Shape(kind=MachineHealthCheck, done=HealthCheckDone, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)
CheckPass = Pass[MachineHealthCheck, HealthCheckSnapshot, HealthCheckDone]


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of MachineHealthChecks."""
    return KindReconciler(deps, SHAPE, MachineHealthChecks(deps))


class MachineHealthChecks(Kind[MachineHealthCheck, ClusterFacts, HealthCheckSnapshot, HealthCheckDone]):
    """Marks unhealthy Machines, and requests their remediation."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._watches = NodeWatches(deps.enqueue)

    def forget(self, key: ObjectKey) -> None:
        """Forget a check that is gone."""
        self._watches.forget(key)

    async def owner(self, obj: MachineHealthCheck) -> ClusterFacts:
        """Return the Cluster that the check names; it must exist."""
        return ClusterFacts.of(await self._client.get(Cluster, ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)))

    # ---------------------------------------------------------------------------------------------- observe

    async def observe(self, obj: MachineHealthCheck, owner: ClusterFacts) -> HealthCheckSnapshot:
        """Return the check, its Cluster and the Machines that it selects."""
        found: Sequence[Target] = ()
        unread: Exception | None = None
        try:
            found = await self._targets(obj, owner)
        except (ApiError, InvalidSelector) as error:
            unread = error
        return HealthCheckSnapshot(now=self._deps.clock.now(), object=obj, cluster=owner, found=tuple(found), unread=unread)

    async def _targets(self, check: MachineHealthCheck, cluster: ClusterFacts) -> Sequence[Target]:
        """Return the selected Machines, with their Nodes if the workload cluster is reachable. Raises ApiError."""
        selector = parsed(check.spec.selector)
        own = {CLUSTER_NAME_LABEL: check.spec.cluster_name}
        found = await self._client.list(Machine, namespace=check.metadata.namespace, labels=own)
        machines = [MachineFacts.of(m) for m in found if selector.matches(m.metadata.labels) and not is_exempt(m)]
        self._watches.learn(check.key, cluster.key, machines, template_of(check))
        if cluster.initialized.status != "True":
            return [Target(m) for m in machines]
        client = await self._deps.workload.client(cluster.key)
        await self._deps.workload.watch(cluster.key, "machinehealthcheck", Node, self._watches.node_changed(cluster.key))
        targets = []
        for machine in machines:
            ref = machine.status.node_ref
            node = await client.find(Node, ObjectKey("", ref.name)) if ref else None
            targets.append(Target(machine, node, is_node_gone=ref is not None and node is None))
        return targets

    # -------------------------------------------------------------------------------------------------- act

    async def act(self, run: CheckPass) -> None:
        """Write the verdict on every Machine; a failure does not stop the others."""
        run.become(plan.with_owner_and_label(run.object, run.seen.cluster))
        if (unread := run.seen.unread) is not None:
            run.fail(f"spec.selector: {unread}" if isinstance(unread, InvalidSelector) else unread, unread)
            return
        run.done = plan.judged(run.done)
        if run.done.limit_error:
            return
        done = [await self._handled(run, target) for target in run.done.targets]
        run.done = replace(run.done, targets=tuple(done))
        wait = next_check([t.evaluation for t in done])
        if run.done.is_remediation_allowed:
            run.vote(wait)
        elif wait is not None:  # nothing will be remediated then, but unhealthy Machines are reported
            self._deps.enqueue_after(run.object.key, wait, "a timeout has passed")

    async def _handled(self, run: CheckPass, target: TargetSnapshot) -> TargetSnapshot:
        try:
            target = await self._requested(run, target)
            await self._write(run, target)
        except (ApiError, ConditionConflict) as error:
            run.fail(error)
        return target

    async def _requested(self, run: CheckPass, target: TargetSnapshot) -> TargetSnapshot:
        """Create a request for external remediation, or delete that of a recovered Machine. Raises ApiError."""
        template = template_of(target.check)
        if template is None or not target.allowed:
            return target
        kind = request_kind(template[0])
        await self._deps.dynamic.ensure(template[0], self._watches.of_template)
        await self._deps.dynamic.ensure(kind, self._watches.of_request)
        request = await self._client.find(kind, target.machine.key)
        if target.evaluation.is_healthy and request is not None and request.metadata.deletion_timestamp is None:
            with suppress(NotFound):
                await self._client.delete(kind, target.machine.key, uid=request.metadata.uid)
        if not target.evaluation.is_unhealthy:
            return target
        if request is not None:
            return replace(target, request=Request.EXISTS)
        step = Request.TEMPLATE_MISSING
        try:
            source = await self._client.get(*template)
            step = Request.REFUSED
            await self._client.create(request_for(target.machine, target.check, source))
        except AlreadyExists:
            return replace(target, request=Request.EXISTS)
        except ApiError as error:
            run.fail(f"external remediation of Machine {target.machine.key}: {error}", error)
            run.done = replace(run.done, external_error=str(error))
            return replace(target, request=step)
        return replace(target, request=Request.CREATED)

    async def _write(self, run: CheckPass, target: TargetSnapshot) -> None:
        """Write the conditions of one Machine; skip a deleted one. Raises ApiError and ConditionConflict."""
        original = await self._client.read(Machine, target.machine.key)
        if original is None or original.object.metadata.uid != target.machine.metadata.uid:
            return
        machine, decisions = plan.conclude(target, original.object)
        run.rows.update({f"{d.table} of {machine.metadata.name}": d.row for d in decisions})
        try:
            await self._patcher.patch(original, machine, owned_conditions=MACHINE_OWNED, owned_v1beta1_conditions=MACHINE_OWNED)
        except NotFound:
            return
        if target.evaluation.is_unhealthy and not is_false(original.object.status.conditions, "HealthCheckSucceeded"):
            text = f"Machine {machine.key} has been marked as unhealthy by MachineHealthCheck {run.object.key}"
            self._deps.events.record(machine, "Normal", "MachineMarkedUnhealthy", text)

    # --------------------------------------------------------------------------------------------- conclude

    def conclude(self, run: CheckPass) -> None:
        """Set counters and conditions; unchanged if the Machines could not be judged."""
        if not run.done.is_judged:
            return
        was_allowed = not is_false(run.object.status.conditions, "RemediationAllowed")
        run.become(plan.with_counters(run.done))
        run.conclude(*TABLES)
        restricted = next((c for c in run.object.status.conditions if c.type == "RemediationAllowed" and c.status == "False"), None)
        if restricted is not None and was_allowed and run.done.unhealthy:
            run.record("Warning", "RemediationRestricted", restricted.message)
