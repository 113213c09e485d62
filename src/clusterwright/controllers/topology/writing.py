"""Write a topology: the differences between the current and the desired state, in an order that leaves no orphans."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.meta import Json
from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.topology.applying import Applier, endpoint_paths
from clusterwright.controllers.topology.current import MACHINE_HEALTH_CHECK
from clusterwright.controllers.topology.failures import TopologyFailed, failing
from clusterwright.controllers.topology.object_writing import ObjectWriter, Record, Rotated, key_of, own
from clusterwright.controllers.topology.shim import Shim
from clusterwright.controllers.topology.worker_writing import DEPLOYMENTS, POOLS, WorkerWriter
from clusterwright.runtime.client import Client
from clusterwright.topology.desired import machine_prefix
from clusterwright.topology.model import Current, Desired, Progress
from clusterwright.topology.objects import own_labels
from clusterwright.topology.paths import at


class Writer:
    """Writes one topology. Every method raises TopologyFailed."""

    def __init__(
        self, client: Client, applier: Applier, current: Current, desired: Desired, progress: Progress, record: Record, rotated: Rotated
    ) -> None:
        self._client = client
        self._current = current
        self._desired = desired
        self._progress = progress
        self._cluster = current.cluster
        self._objects = ObjectWriter(client, applier, current.cluster, record, rotated)

    async def shim(self) -> None:
        """Create or delete the shim."""
        await Shim(self._client, self._objects, self._cluster).ensure(self._current, self._desired)

    async def everything(self) -> None:
        """Write all objects; the shim must exist."""
        current, desired, progress = self._current, self._desired, self._progress
        infrastructure = desired.infrastructure_cluster
        created = await self._objects.put(current.infrastructure_cluster, infrastructure, endpoint_paths(infrastructure))
        await self._control_plane_and_cluster(is_infrastructure_new=created)
        workers = WorkerWriter(self._client, self._objects, self._cluster)
        await workers.write(DEPLOYMENTS, current.machine_deployments, desired.machine_deployments, progress.machine_deployments)
        await workers.write(POOLS, current.machine_pools, desired.machine_pools, progress.machine_pools)
        await self._delete_lost_health_checks()

    # ----------------------------------------------------------------------------------------- cluster and control plane

    async def _control_plane_and_cluster(self, *, is_infrastructure_new: bool) -> None:
        """Write the control plane, then the references of the Cluster; refer to new infrastructure even if the former failed."""
        failure: TopologyFailed | None = None
        try:
            await self._control_plane()
        except TopologyFailed as error:
            if not is_infrastructure_new:
                raise
            failure = error
        wanted = self._desired.cluster
        is_missing = failure is not None and self._current.control_plane is None
        if is_missing and not at(self._cluster, "spec", "controlPlaneRef", "name"):
            wanted = {**wanted, "spec": {k: v for k, v in wanted["spec"].items() if k != "controlPlaneRef"}}
        try:
            await self._objects.change_cluster(wanted)
        except TopologyFailed as error:
            if failure is None:
                raise
            raise TopologyFailed(f"[{failure}, {error}]") from error
        if failure is not None:
            raise failure

    async def _control_plane(self) -> None:
        current, desired = self._current, self._desired
        is_new = current.control_plane is None
        if not is_new:
            # the check of a new control plane is created after it: if that failed, no object would have its name
            await self._objects.put_health_check(current.control_plane_health_check, desired.control_plane_health_check)
        if self._progress.control_plane.is_pending:
            return
        machine, kept = desired.control_plane_machine, current.control_plane_machine
        created: list[Json] = []
        if machine is not None:
            if await self._objects.put_template(kept, machine, machine_prefix(self._cluster), "IMT"):
                created.append(machine)
            _point(desired.control_plane, machine)
        try:
            ignore = endpoint_paths(desired.control_plane)
            await self._objects.put(current.control_plane, desired.control_plane, ignore, version=("spec", "version"))
        except TopologyFailed as error:
            await self._objects.take_back(created, desired.control_plane, error)
            raise
        if is_new:
            await self._objects.put_health_check(current.control_plane_health_check, desired.control_plane_health_check)
        if machine is not None and kept is not None and machine["metadata"]["name"] != kept["metadata"]["name"]:
            await self._objects.delete(kept, f"failed to delete old {own(kept)} of {own(desired.control_plane)}")

    # ---------------------------------------------------------------------------------------------------- what is left

    async def _delete_lost_health_checks(self) -> None:
        """Delete health checks whose control plane or MachineDeployment is gone. Only the cache is read."""
        with failing("failed to list MachineHealthChecks"):
            found = await self._client.list(
                MACHINE_HEALTH_CHECK, namespace=key_of(self._cluster).namespace, labels=own_labels(self._cluster)
            )
        checks = [dict(c.json) for c in found if TOPOLOGY_OWNED_LABEL in c.metadata.labels]
        for check in unmatched_health_checks(checks, self._current, self._desired):
            await self._objects.delete_health_check(check)


def _point(plane: Json, machine: Json) -> None:
    """Let the control plane refer to the present machine template."""
    newer = at(plane, "spec", "machineTemplate", "spec", "infrastructureRef")
    reference = newer if newer is not None else at(plane, "spec", "machineTemplate", "infrastructureRef")
    if isinstance(reference, dict):
        reference["name"] = machine["metadata"]["name"]


def unmatched_health_checks(checks: Sequence[Json], current: Current, desired: Desired) -> list[Json]:
    """Return the health checks that have the name of neither a control plane nor a MachineDeployment: their object is gone."""
    known = {at(o, "metadata", "name") for o in (current.control_plane, desired.control_plane)}
    known |= {w.name for w in current.machine_deployments.values()}
    known |= {w.object["metadata"]["name"] for w in desired.machine_deployments.values()}
    return [c for c in checks if c["metadata"]["name"] not in known]
