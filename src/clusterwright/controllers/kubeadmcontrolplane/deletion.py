"""The end of a control plane: workers first, then all Machines at once, then the finalizer."""

from __future__ import annotations

from contextlib import suppress

from clusterwright.api.core import Machine
from clusterwright.api.meta import GroupVersionKind
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.departure import remove_hook
from clusterwright.controllers.kubeadmcontrolplane.inspection import reconcile_conditions, set_legacy_machines_ready
from clusterwright.controllers.kubeadmcontrolplane.machines import stale_text
from clusterwright.controllers.kubeadmcontrolplane.scope import EndOfPass, Scope
from clusterwright.runtime.errors import ApiError, NotFound

MACHINE = gvk_of(Machine)
MACHINE_POOL = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachinePool")


async def reconcile_deletion(scope: Scope) -> None:
    """Wait for the workers, then delete all Machines at once; etcd goes down with them."""
    if not scope.machines:
        scope.finalizers = tuple(f for f in scope.finalizers if f != names.FINALIZER)
        scope.deleting_reason, scope.deleting_message = "DeletionCompleted", "Deletion completed"
        return
    set_legacy_machines_ready(scope)
    with suppress(EndOfPass, PassFailed):  # what cannot be looked at does not keep anyone from being deleted
        await reconcile_conditions(scope)
    try:
        blockers = await _blocking_deletion(scope)
    except ApiError as error:
        scope.deleting_reason, scope.deleting_message = names.INTERNAL_ERROR, names.CHECK_LOGS
        raise PassFailed(f"failed to list descendants: {error}") from error
    if blockers is not None:
        scope.set_v1beta1("Resized", "False", "Info", "Deleting", "Waiting for worker nodes to be deleted first")
        scope.deleting_reason, scope.deleting_message = "WaitingForWorkersDeletion", blockers
        raise EndOfPass(names.DELETE_WAIT)
    failures = await _delete_machines(scope)
    if failures:
        text = f"Failed to delete control plane Machines for cluster {scope.cluster_key} control plane: {'; '.join(failures)}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "FailedDelete", text)
        scope.deleting_reason, scope.deleting_message = names.INTERNAL_ERROR, names.CHECK_LOGS
        raise PassFailed(text)
    scope.set_v1beta1("Resized", "False", "Info", "Deleting")
    count = len(scope.machines)
    stale = stale_text(scope.all_machines, scope.now)
    scope.deleting_reason = "WaitingForMachineDeletion"
    scope.deleting_message = f"Deleting {count} Machine{'' if count == 1 else 's'}{f' and {stale}' if stale else ''}"
    raise EndOfPass(names.DELETE_WAIT)


async def _blocking_deletion(scope: Scope) -> str | None:
    """What must be gone before the control plane may go; None if nothing is left."""
    client, cluster = scope.dependencies.client, scope.cluster.metadata.name
    machines = await client.list(Machine, namespace=scope.key.namespace, labels={names.CLUSTER_NAME: cluster})
    pools: list[str] = []
    if scope.dependencies.features.get("MachinePool", True):
        found = await client.list(MACHINE_POOL, namespace=scope.key.namespace, labels={names.CLUSTER_NAME: cluster})
        pools = [p.key.name for p in found]
    workers = [m.metadata.name for m in machines if names.CONTROL_PLANE not in m.metadata.labels]
    if not pools and len(machines) == len(scope.machines):
        return None
    lines = [f"* {kind}: {names.limited(who, 5)}" for kind, who in (("MachinePools", pools), ("Machines", workers)) if who]
    return "KubeadmControlPlane deletion blocked because following objects still exist:\n" + "\n".join(lines)


async def _delete_machines(scope: Scope) -> list[str]:
    failures: list[str] = []
    for name in sorted(scope.machines):
        machine = scope.machines[name]
        if names.PRE_TERMINATE_HOOK in machine.annotations:
            try:
                await remove_hook(scope, name)
            except PassFailed as error:
                failures.append(str(error))
                continue
        if machine.deleting:
            continue
        try:
            await scope.dependencies.client.delete(MACHINE, machine.key, uid=machine.uid)
        except NotFound:
            continue
        except ApiError as error:
            failures.append(f"failed to delete Machine {name}: {error}")
    return failures
