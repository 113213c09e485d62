"""Wire the collection of templates of deleted MachineDeployments."""

from __future__ import annotations

from contextlib import suppress

from clusterwright.api.core import Cluster, MachineDeployment, MachineHealthCheck
from clusterwright.api.wellknown import MACHINE_DEPLOYMENT_TOPOLOGY_FINALIZER, TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.kit import watching
from clusterwright.controllers.kit.owners import ClusterFacts
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.templates.collecting import by_deployment, collector, delete_unused, in_use
from clusterwright.controllers.wiring import Access, ControllerDefinition, Dependencies, providers
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch


async def clean_up(deps: Dependencies, deployment: MachineDeployment) -> None:
    """Delete the templates that no MachineSet uses, and the topology's health check of the same name."""
    used = await in_use(deps, deployment.metadata.namespace, deployment, by_deployment(deployment.metadata.name))
    await delete_unused(deps, deployment, used)
    try:
        check = await deps.client.find(MachineHealthCheck, deployment.key)
        if check is not None and TOPOLOGY_OWNED_LABEL in check.metadata.labels:  # a user's own has any name
            with suppress(NotFound):
                await deps.client.delete(MachineHealthCheck, check.key, uid=check.metadata.uid)
    except ApiError as error:
        raise PassFailed(f"failed to delete MachineHealthCheck {deployment.key}: {error}") from error


CONTROLLER = ControllerDefinition(
    name="topology/machinedeployment",
    kind=MachineDeployment,
    watches=(Watch(Cluster, watching.of_cluster(MachineDeployment, having=TOPOLOGY_OWNED_LABEL), changed(ClusterFacts.of)),),
    make=lambda deps: collector(deps, MachineDeployment, MACHINE_DEPLOYMENT_TOPOLOGY_FINALIZER, clean_up),
    access=(
        *providers("delete", "infrastructure", "bootstrap"),
        Access("machinehealthchecks.cluster.x-k8s.io", "get list watch delete"),
        Access("machinesets.cluster.x-k8s.io", "get list"),
    ),
    gate="ClusterTopology",
)
