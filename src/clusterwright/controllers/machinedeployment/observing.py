"""All reads of a MachineDeployment's pass; matching MachineSets without owner are adopted on the way."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.codec import convert, to_json
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import Json
from clusterwright.api.selectors import InvalidSelector, as_labels, is_empty, parsed, selector_text
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_DEPLOYMENT_NAME_LABEL
from clusterwright.controllers.external import with_owner
from clusterwright.controllers.kit.adopt import Providers, owner_reference
from clusterwright.controllers.kit.owners import ClusterFacts
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.machine_templates import Templates, failed, look_at_templates
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentSnapshot, MachineFacts
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError


def belonging(deployment: MachineDeployment, cluster: ClusterFacts) -> MachineDeployment:
    """Return the MachineDeployment with label and owner of its Cluster. Pure."""
    metadata = deployment.metadata
    return replace(
        deployment,
        metadata=replace(
            metadata,
            labels={**metadata.labels, CLUSTER_NAME_LABEL: cluster.name},
            owner_references=with_owner(metadata.owner_references, cluster.reference),
        ),
    )


@dataclass(slots=True)
class Observer:
    """Reads the objects of MachineDeployments."""

    deps: Dependencies
    providers: Providers

    async def observe(self, deployment: MachineDeployment, cluster: ClusterFacts) -> MachineDeploymentSnapshot:
        """Return everything that is known before the pass acts; raises PassFailed if the Machines cannot be read."""
        machines = await self._machines(deployment)
        templates = Templates()
        if deployment.metadata.deletion_timestamp is None:
            deployment = belonging(deployment, cluster)
            templates = await look_at_templates(
                self.providers, deployment.key, deployment.spec.template.spec, cluster.reference, all_of_them=False
            )
        failures = [*templates.failures]
        machine_sets: tuple[MachineSet, ...] | None = None
        try:
            # who cannot read a template cannot tell either whether a MachineSet is what is wanted
            machine_sets = None if failures else await self._machine_sets(deployment)
        except (ApiError, InvalidSelector) as error:
            failures.append(failed(f"failed to list MachineSets of MachineDeployment {deployment.key}: {error}", error))
        return MachineDeploymentSnapshot(
            now=self.deps.clock.now(),
            object=deployment,
            machines=machines,
            machine_sets=machine_sets,
            missing=templates.missing,
            failures=tuple(failures),
            features=self.deps.features,
        )

    async def _machines(self, deployment: MachineDeployment) -> tuple[MachineFacts, ...]:
        try:
            labels = as_labels(deployment.spec.selector)
            found = await self.deps.client.list(Machine, namespace=deployment.metadata.namespace, labels=labels)
            return tuple(map(MachineFacts.of, found))
        except (ApiError, InvalidSelector) as error:
            raise failed(f"failed to list Machines of MachineDeployment {deployment.key}: {error}", error) from error

    async def _machine_sets(self, deployment: MachineDeployment) -> tuple[MachineSet, ...]:
        """Return our MachineSets, and those that match and can be adopted, by name."""
        if is_empty(deployment.spec.selector):
            raise PassFailed("its selector is empty, and would match every MachineSet")
        selector, uid = parsed(deployment.spec.selector), deployment.metadata.uid
        ours: list[MachineSet] = []
        client, namespace = self.deps.client, deployment.metadata.namespace
        owned = await client.list(MachineSet, namespace=namespace, owner=uid)
        matching = await client.list(MachineSet, namespace=namespace, labels=selector_text(deployment.spec.selector))
        for _, machine_set in sorted({s.metadata.name: s for s in (*owned, *matching)}.items()):
            controller = machine_set.metadata.controller
            adopted: MachineSet | None = machine_set
            if controller is None and selector.matches(machine_set.metadata.labels):
                adopted = await self._adopted(deployment, machine_set)
            elif controller is None or controller.uid != uid:
                continue
            if adopted is not None:
                ours.append(await self._labelled(deployment, adopted))
        return tuple(ours)

    async def _adopted(self, deployment: MachineDeployment, machine_set: MachineSet) -> MachineSet | None:
        owners = with_owner(machine_set.metadata.owner_references, owner_reference(deployment, controller=True))
        record, name = self.deps.events.record, machine_set.metadata.name
        try:
            # the list replaces what is there, so that it must be what was read
            adopted = await self._patched(
                machine_set,
                {
                    "ownerReferences": [to_json(r) for r in owners],
                    "resourceVersion": machine_set.metadata.resource_version,
                    "uid": machine_set.metadata.uid,
                },
            )
        except ApiError as error:
            record(deployment, "Warning", "FailedAdopt", f"Failed to adopt MachineSet {name}: {error}")
            return None
        record(deployment, "Normal", "SuccessfulAdopt", f"Adopted MachineSet {name}")
        return adopted

    async def _labelled(self, deployment: MachineDeployment, machine_set: MachineSet) -> MachineSet:
        name = deployment.metadata.name
        if machine_set.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL) == name:
            return machine_set
        return await self._patched(machine_set, {"labels": {MACHINE_DEPLOYMENT_NAME_LABEL: name}, "uid": machine_set.metadata.uid})

    async def _patched(self, machine_set: MachineSet, metadata: Json) -> MachineSet:
        answer = await self.deps.client.patch(MachineSet, machine_set.key, {"metadata": metadata})
        return convert(answer.json, MachineSet)
