"""Read the objects that a pass needs from the management cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.meta import GroupVersionKind, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_GROUP, CONTROL_PLANE_LABEL, CORE_GROUP
from clusterwright.controllers.external import ContractUnknown, Reference, get_external, refers_to
from clusterwright.controllers.kit.adopt import Adoption, Providers, owned_metadata
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Found, Lookup, Missing, Unreadable
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.adoption import adopt, is_orphan
from clusterwright.controllers.kubeadmcontrolplane.machines.comparison import compare, is_cloned
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ClusterFacts, ControlPlaneSnapshot, Descendants
from clusterwright.controllers.machine_templates import failed
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.patch import Patcher

_KIND = "KubeadmControlPlane"
KUBEADM_CONFIG = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig")


async def owner_cluster(deps: Dependencies, control_plane: KubeadmControlPlane) -> ClusterFacts | None:
    """Return the Cluster that owns the control plane; None without an owner. Raises PassFailed, also if the Cluster is gone."""
    for reference in control_plane.metadata.owner_references:
        if reference.kind == "Cluster" and reference.api_version.rpartition("/")[0] == CORE_GROUP:
            try:
                return ClusterFacts.of(await deps.client.get(Cluster, ObjectKey(control_plane.metadata.namespace, reference.name)))
            except ApiError as error:
                raise failed(f"failed to retrieve owner Cluster: {error}", error) from error
    return None


@dataclass(frozen=True, slots=True)
class Observer:
    """Reads the objects of control planes."""

    deps: Dependencies
    providers: Providers
    patcher: Patcher

    async def observe(self, control_plane: KubeadmControlPlane, cluster: ClusterFacts) -> ControlPlaneSnapshot | None:
        """Return everything that is known before the pass acts; None if stand-alone Machines were adopted instead.

        Raises PassFailed if the Machines or their dependent objects cannot be read, or have another controller.
        """
        seen = ControlPlaneSnapshot(
            now=self.deps.clock.now(),
            object=control_plane,
            spec=await self._spec(control_plane.key),
            cluster=cluster,
            features=self.deps.features,
        )
        if seen.cluster.infrastructure_provisioned and seen.cluster.has_endpoint:
            found = await self._listed(seen)
            orphans = [m for m in found if is_orphan(m)]
            if orphans and not seen.deleting:
                await adopt(self.deps, self.patcher, seen, orphans)
                return None
            seen = replace(seen, owned=await self._owned(seen, found))
            if seen.deleting and seen.owned:
                seen = replace(seen, descendants=await self._descendants(seen))
        template = await self._template(seen)
        seen = replace(seen, template=template)
        if isinstance(template, Unreadable):  # perhaps it can be read, and only not be made ours
            template = await self.providers.look_up(seen.key, seen.object.spec.machine_template.spec.infrastructure_ref)
        return self._compared(seen, template)

    async def _spec(self, key: ObjectKey) -> Mapping[str, Any]:
        """Return the spec as stored, with unknown fields: objects made from it must contain them."""
        original = await self.deps.client.read(KubeadmControlPlane, key)
        return msgspec.json.decode(original.raw).get("spec") or {} if original is not None else {}

    # ------------------------------------------------------------------------------------------------ Machines

    async def _listed(self, seen: ControlPlaneSnapshot) -> Sequence[Machine]:
        selector = {CLUSTER_NAME_LABEL: seen.cluster.key.name, CONTROL_PLANE_LABEL: ""}
        try:
            return await self.deps.client.list(Machine, namespace=seen.key.namespace, labels=selector)
        except ApiError as error:
            raise failed(f"failed to list control plane Machines: {error}", error) from error

    async def _owned(self, seen: ControlPlaneSnapshot, found: Sequence[Machine]) -> tuple[ControlPlaneMachine, ...]:
        ours = [m for m in found if any(refers_to(r, CONTROL_PLANE_GROUP, _KIND, seen.key.name) for r in m.metadata.owner_references)]
        if not seen.deleting and len(ours) != len(found):
            raise PassFailed(
                "not all control plane machines are owned by this KubeadmControlPlane, refusing to operate in mixed management mode"
            )
        originals = [await self.deps.client.read(Machine, m.key) for m in sorted(ours, key=lambda m: m.metadata.name)]
        return tuple([await self._with_neighbours(o) for o in originals if o is not None])

    async def _with_neighbours(self, original: Original[Machine]) -> ControlPlaneMachine:
        machine, namespace = original.object, original.object.metadata.namespace
        infrastructure = await self._infrastructure(machine.spec.infrastructure_ref, namespace)
        reference = machine.spec.bootstrap.config_ref
        config: Unstructured | None = None
        if reference is not None and reference.name:
            try:
                config = await self.deps.client.find(KUBEADM_CONFIG, ObjectKey(namespace, reference.name))
            except ApiError as error:
                raise failed(f"failed to get KubeadmConfig {namespace}/{reference.name}: {error}", error) from error
        return ControlPlaneMachine(object=machine, original=original, infrastructure=infrastructure, config=config)

    async def _infrastructure(self, reference: Reference, namespace: str) -> Unstructured | None:
        """Return an InfraMachine, and watch its kind from now on, so that the next read costs no request."""
        if not reference.kind or not reference.name:
            return None
        try:
            found = (await get_external(self.deps.client, reference, namespace)).object
            await self.deps.dynamic.ensure(found.gvk)
            return found
        except NotFound:
            return None
        except (ApiError, ContractUnknown) as error:
            raise failed(f"failed to get {reference.kind} {namespace}/{reference.name}: {error}", error) from error

    async def _descendants(self, seen: ControlPlaneSnapshot) -> Descendants | Unreadable:
        client, labels = self.deps.client, {CLUSTER_NAME_LABEL: seen.cluster.key.name}
        try:
            machines = await client.list(Machine, namespace=seen.key.namespace, labels=labels)
            pools = (
                await client.list(MachinePool, namespace=seen.key.namespace, labels=labels)
                if seen.features.get("MachinePool", True)
                else ()
            )
        except ApiError as error:
            return Unreadable(str(error), error)
        return Descendants(
            pools=tuple(p.metadata.name for p in pools),
            workers=tuple(m.metadata.name for m in machines if CONTROL_PLANE_LABEL not in m.metadata.labels),
            machines=len(machines),
        )

    # ------------------------------------------------------------------------------------------------ template

    async def _template(self, seen: ControlPlaneSnapshot) -> Lookup:
        """Return the infrastructure template, owned by the Cluster; a control plane under deletion does not adopt it."""
        reference = seen.object.spec.machine_template.spec.infrastructure_ref
        if seen.deleting and not any(map(is_cloned, seen.owned)):
            return NOT_REFERENCED
        is_ours = reference.kind.endswith("Template") and not seen.deleting
        adoption: Adoption | None = (lambda obj: owned_metadata(obj, seen.cluster.reference, {})) if is_ours else None
        return await self.providers.look_up(seen.key, reference, adoption)

    def _compared(self, seen: ControlPlaneSnapshot, template: Lookup) -> ControlPlaneSnapshot:
        """Return the snapshot with the differences of each Machine."""
        reference = seen.object.spec.machine_template.spec.infrastructure_ref
        if any(map(is_cloned, seen.owned)):
            if isinstance(template, Unreadable):
                raise failed(f"failed to compute desired InfraMachine: {template.error}", template.cause)
            if isinstance(template, Missing) and not seen.deleting:
                raise PassFailed(f"failed to compute desired InfraMachine: {reference.kind} {reference.name} does not exist")
        compared: list[ControlPlaneMachine] = []
        for machine in seen.owned:
            judged = machine if isinstance(template, Found) else replace(machine, infrastructure=None)
            try:
                compared.append(replace(machine, differences=compare(seen.owner, judged, now=seen.now)))
            except ValueError as error:
                raise failed(f"failed to compute whether Machine {machine.name} is up-to-date: {error}", error) from error
        return replace(seen, owned=tuple(compared))
