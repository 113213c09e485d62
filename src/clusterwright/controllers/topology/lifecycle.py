"""The hooks that are called after the desired state is computed and before it is written."""

from __future__ import annotations

from clusterwright.api.meta import Json
from clusterwright.controllers.topology.asking import Asker, marked
from clusterwright.topology import hooks
from clusterwright.topology.extensions import CallAll, Extensions
from clusterwright.topology.hooks import AskHook
from clusterwright.topology.model import Progress
from clusterwright.topology.paths import at


class Lifecycle:
    """Calls the hooks of one Cluster. `progress` records which are pending and which block."""

    def __init__(self, asker: Asker, extensions: Extensions, cluster: Json, progress: Progress) -> None:
        self._asker = asker
        self._extensions = extensions
        self._cluster = marked(cluster, progress.pending_hooks)
        self._progress = progress

    async def run(self, *, is_new: bool) -> None:
        """Call the hooks that are due. Raises ExtensionError."""
        progress = self._progress
        if is_new:
            await self._mark(progress.pending_hooks | {hooks.AFTER_CONTROL_PLANE_INITIALIZED})
        if hooks.AFTER_CONTROL_PLANE_INITIALIZED in progress.pending_hooks and self._is_initialized():
            request = {"cluster": hooks.clean_cluster(self._cluster)}
            await self._extensions.call_all(CallAll(hooks.AFTER_CONTROL_PLANE_INITIALIZED, self._cluster, request))
            await self._mark(progress.pending_hooks - {hooks.AFTER_CONTROL_PLANE_INITIALIZED})
        if self._is_upgrade_over():
            version = self._cluster["spec"]["topology"]["version"]
            request = {"cluster": hooks.clean_cluster(self._cluster), "kubernetesVersion": version}
            answer = await self._asker.ask(AskHook(hooks.AFTER_CLUSTER_UPGRADE, request, version), self._cluster)
            if answer.is_blocking:
                progress.answers[hooks.AFTER_CLUSTER_UPGRADE] = answer
            else:
                await self._mark(progress.pending_hooks - {hooks.AFTER_CLUSTER_UPGRADE})

    async def _mark(self, pending: frozenset[str]) -> None:
        await self._asker.mark(self._cluster, self._progress.pending_hooks, pending)
        self._progress.pending_hooks = pending
        self._cluster = marked(self._cluster, pending)

    def _is_initialized(self) -> bool:
        conditions = at(self._cluster, "status", "conditions") or ()
        return any(c.get("type") == "ControlPlaneInitialized" and c.get("status") == "True" for c in conditions)

    def _is_upgrade_over(self) -> bool:
        progress, pending = self._progress, self._progress.pending_hooks
        if hooks.AFTER_CLUSTER_UPGRADE not in pending or pending & {hooks.AFTER_CONTROL_PLANE_UPGRADE, hooks.AFTER_WORKERS_UPGRADE}:
            return False
        return progress.control_plane.is_stable and progress.machine_deployments.is_settled and progress.machine_pools.is_settled
