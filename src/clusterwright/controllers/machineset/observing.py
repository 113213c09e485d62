"""All reads of a MachineSet's pass; matching orphans are adopted on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterwright.api.codec import convert, to_json
from clusterwright.api.contract import CONTRACTS, crd_name
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.core.shared import TemplateObjectMeta
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import LabelSelector, ObjectKey
from clusterwright.api.selectors import InvalidSelector, as_labels
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    CORE_GROUP,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    SKIP_PREFLIGHT_CHECKS_ANNOTATION,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
)
from clusterwright.controllers.external import is_owned_by, with_owner
from clusterwright.controllers.kit.adopt import Providers, owner_reference
from clusterwright.controllers.kit.contract import field_of
from clusterwright.controllers.kit.lookup import Found, Unreadable
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.machine_templates import failed, look_at_templates
from clusterwright.controllers.machineset.preflight import ControlPlane, Preflight, is_kubeadm, skipped_checks
from clusterwright.controllers.machineset.snapshot import ClusterFacts, DeploymentFacts, MachineSetSnapshot, is_current_revision
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.reached import reported_versions
from clusterwright.runtime.errors import ApiError
from clusterwright.topology.pinning import GATE
from clusterwright.workload.access import NotConnected


def belonging(machine_set: MachineSet, cluster: ClusterFacts) -> MachineSet:
    """Return the MachineSet with its Cluster's label on it and its template; a stand-alone one is owned by the Cluster. Pure."""
    name, metadata, spec = cluster.name, machine_set.metadata, machine_set.spec
    belongs = {CLUSTER_NAME_LABEL: name}
    has_owner = any(
        r.kind in {"MachineDeployment", "Cluster"} and r.api_version.startswith(f"{CORE_GROUP}/") for r in metadata.owner_references
    )
    owners = metadata.owner_references
    if MACHINE_DEPLOYMENT_NAME_LABEL not in metadata.labels and (
        not has_owner or is_owned_by(metadata, CORE_GROUP, "Cluster", cluster.name)
    ):
        owners = with_owner(owners, cluster.reference)
    template = spec.template
    given = template.metadata
    return replace(
        machine_set,
        metadata=replace(metadata, labels={**metadata.labels, **belongs}, owner_references=owners),
        spec=replace(
            spec,
            selector=LabelSelector(
                match_labels={**spec.selector.match_labels, **belongs}, match_expressions=spec.selector.match_expressions
            ),
            template=replace(
                template,
                metadata=replace(given, labels={**given.labels, **belongs}) if given else TemplateObjectMeta(labels=belongs),
            ),
        ),
    )


@dataclass(slots=True)
class Observer:
    """Reads the objects of MachineSets."""

    deps: Dependencies
    providers: Providers

    async def observe(self, machine_set: MachineSet, cluster: ClusterFacts) -> MachineSetSnapshot:
        """Return everything that is known before the pass acts; failed reads are values in the snapshot."""
        try:
            deployment = await self._deployment(machine_set)
        except PassFailed as error:
            return MachineSetSnapshot(now=self.deps.clock.now(), object=machine_set, cluster=cluster, failures=(error,))
        machine_set = belonging(machine_set, cluster)
        failures: list[PassFailed] = []
        missing = await self._templates(machine_set, cluster, deployment, failures)
        machines: tuple[Machine, ...] | None
        try:
            machines = await self._machines(machine_set)
        except (ApiError, InvalidSelector) as error:
            machines = None
            failures.append(failed(f"failed to list Machines of MachineSet {machine_set.key}: {error}", error))
        return MachineSetSnapshot(
            now=self.deps.clock.now(),
            object=machine_set,
            cluster=cluster,
            deployment=deployment,
            machines=machines,
            missing=missing,
            nodes=await self._nodes(cluster, machines or ()),
            failures=tuple(failures),
            features=self.deps.features,
        )

    async def _deployment(self, machine_set: MachineSet) -> DeploymentFacts | None:
        name = machine_set.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL, "")
        if not name:
            return None
        try:
            return DeploymentFacts.of(await self.deps.client.get(MachineDeployment, ObjectKey(machine_set.metadata.namespace, name)))
        except ApiError as error:
            raise failed(f"failed to get owner MachineDeployment {name} of MachineSet {machine_set.key}: {error}", error) from error

    async def _templates(
        self, machine_set: MachineSet, cluster: ClusterFacts, deployment: DeploymentFacts | None, failures: list[PassFailed]
    ) -> tuple[str, ...]:
        """Return the kinds of missing templates. Only a MachineSet that is deleted or rolled away from can do without."""
        found = await look_at_templates(
            self.providers, machine_set.key, machine_set.spec.template.spec, cluster.reference, all_of_them=True
        )
        failures += found.failures
        if machine_set.metadata.deletion_timestamp is None and is_current_revision(machine_set, deployment):
            failures += [failed(f"{name} does not exist") for name in found.names]
        return found.missing

    # ---------------------------------------------------------------------------------------------- Machines

    async def _machines(self, machine_set: MachineSet) -> tuple[Machine, ...]:
        """Return the matching Machines that are ours, or can be adopted. Others are skipped."""
        metadata = machine_set.metadata
        found = await self.deps.client.list(Machine, namespace=metadata.namespace, labels=as_labels(machine_set.spec.selector))
        ours: list[Machine] = []
        for machine in found:
            controller = machine.metadata.controller
            if controller is None:
                adopted = await self._adopted(machine_set, machine)
                ours += [adopted] if adopted is not None else []
            elif controller.uid == metadata.uid:
                ours.append(machine)
        return tuple(ours)

    async def _adopted(self, machine_set: MachineSet, machine: Machine) -> Machine | None:
        owners = with_owner(machine.metadata.owner_references, owner_reference(machine_set, controller=True))
        # the list replaces what is there, so that it must be what was read
        patch = {
            "metadata": {
                "ownerReferences": [to_json(r) for r in owners],
                "resourceVersion": machine.metadata.resource_version,
                "uid": machine.metadata.uid,
            }
        }
        record = self.deps.events.record
        try:
            answer = await self.deps.client.patch(Machine, machine.key, patch)
        except ApiError as error:
            record(machine_set, "Warning", "FailedAdopt", f"Failed to adopt Machine {machine.metadata.name}: {error}")
            return None
        record(machine_set, "Normal", "SuccessfulAdopt", f"Adopted Machine {machine.metadata.name}")
        return convert(answer.json, Machine)

    async def _nodes(self, cluster: ClusterFacts, machines: Iterable[Machine]) -> dict[str, Node] | None:
        """Return the Nodes of Machines, as far as readable."""
        names = [m.status.node_ref.name for m in machines if m.status.node_ref]
        try:
            client = await self.deps.workload.client(cluster.key)
            found = {}
            for name in names:
                node = await client.find(Node, ObjectKey("", name))
                if node is not None:
                    found[name] = node
            return found
        except (NotConnected, ApiError):
            return None

    # --------------------------------------------------------------------------------------------- preflight

    async def preflight(self, seen: MachineSetSnapshot) -> Preflight:
        """Return the facts of the preflight checks."""
        cluster, spec = seen.cluster, seen.object.spec.template.spec
        config = spec.bootstrap.config_ref
        skipped, error = await self._skipped(seen)
        return Preflight(
            version=spec.version,
            kubeadm=config is not None and is_kubeadm(config.api_group, config.kind),
            control_plane=await self._control_plane(seen),
            topology_version=(cluster.topology_version or None) if seen.features.get("ClusterTopology") else None,
            upgrade_step=cluster.upgrade_step,
            is_pinned=seen.features.get(GATE, False) and seen.metadata.labels.get(TOPOLOGY_DEPLOYMENT_NAME_LABEL, "") in cluster.pinned,
            skipped=skipped_checks(skipped),
            skipped_error=error,
            enabled=seen.features.get("MachineSetPreflightChecks", True),
        )

    async def _skipped(self, seen: MachineSetSnapshot) -> tuple[str, str]:
        """Return the skipped checks, from the MachineSet or else its bootstrap template; and the error if they are unknown."""
        own = seen.metadata.annotations.get(SKIP_PREFLIGHT_CHECKS_ANNOTATION, "")
        reference = seen.object.spec.template.spec.bootstrap.config_ref
        if own or reference is None or not reference.name:
            return own, ""
        found = await self.providers.look_up(seen.object.key, reference)
        if isinstance(found, Found):
            return found.object.metadata.annotations.get(SKIP_PREFLIGHT_CHECKS_ANNOTATION, ""), ""
        if isinstance(found, Unreadable):
            return "", found.error
        named = f"{reference.kind} {seen.object.key.namespace}/{reference.name}"
        return "", f'failed to retrieve {named}: {crd_name(reference.api_group, reference.kind)} "{reference.name}" not found'

    async def _control_plane(self, seen: MachineSetSnapshot) -> ControlPlane | None:
        reference = seen.cluster.control_plane_ref
        if reference is None or not reference.name:
            return None
        key = ObjectKey(seen.cluster.key.namespace, reference.name)
        found = await self.providers.look_up(seen.object.key, reference)
        if not isinstance(found, Found):
            error = found.error if isinstance(found, Unreadable) else f"{reference.kind} {key} does not exist"
            return ControlPlane(kind=reference.kind, key=key, error=error)
        paths = CONTRACTS[found.contract].control_plane
        try:
            version, status = field_of(found, paths.spec_version), field_of(found, paths.status_version)
            versions = reported_versions(found.object.json, found.contract)
        except ValueError as error:
            return ControlPlane(kind=reference.kind, key=key, error=str(error))
        lowest = versions[0] if versions else status or ""
        return ControlPlane(kind=reference.kind, key=key, version=version, status_version=lowest, status_versions=versions)
