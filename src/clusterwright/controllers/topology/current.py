"""Read the current state of a topology."""

from __future__ import annotations

from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Json, LabelSelector, ObjectKey
from clusterwright.api.selectors import InvalidSelector, as_labels
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_OWNED_LABEL,
    TOPOLOGY_POOL_NAME_LABEL,
)
from clusterwright.controllers.external import ContractUnknown, contract_of
from clusterwright.controllers.topology.blueprint import retrieve
from clusterwright.controllers.topology.failures import TopologyFailed, failing, shown
from clusterwright.kubeadm.reached import runs
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError
from clusterwright.topology.model import Blueprint, Current, CurrentWorker
from clusterwright.topology.objects import CORE, group_of
from clusterwright.topology.paths import at
from clusterwright.workload.access import WorkloadClusters

MACHINE_DEPLOYMENT = GroupVersionKind.of(CORE, "MachineDeployment")
MACHINE_POOL = GroupVersionKind.of(CORE, "MachinePool")
MACHINE_HEALTH_CHECK = GroupVersionKind.of(CORE, "MachineHealthCheck")


class CurrentReader:
    """Reads the current state of one Cluster."""

    def __init__(self, client: Client, workload: WorkloadClusters, cluster: Json, blueprint: Blueprint) -> None:
        self._client = client
        self._workload = workload
        self._cluster = cluster
        self._blueprint = blueprint
        self._namespace = cluster["metadata"].get("namespace", "")

    async def read(self) -> Current:
        """Return all objects of the topology that exist. Raises TopologyFailed."""
        cluster, blueprint = self._cluster, self._blueprint
        infrastructure = await self._of_cluster("infrastructureRef", blueprint.infrastructure_cluster)
        plane = await self._of_cluster("controlPlaneRef", blueprint.control_plane)
        machine = check = None
        if plane is not None and blueprint.control_plane_machine is not None:
            machine = await self._machine_template(plane, blueprint.control_plane_machine)
            check = await self._health_check(plane)
        return Current(
            cluster,
            infrastructure,
            plane,
            machine,
            check,
            await self._machine_deployments(),
            await self._machine_pools(),
        )

    # ------------------------------------------------------------------------------------------------ references

    async def _of_cluster(self, field: str, template: Json) -> Json | None:
        ref = at(self._cluster, "spec", field)
        if not ref or not ref.get("name"):
            return None
        key = ObjectKey(self._namespace, ref["name"])
        with failing(f"failed to read {ref.get('kind', '')} {key}"):
            found = await self._referenced(ref, template, is_object=True)
        return self._owned(found, self._cluster)

    async def _machine_template(self, plane: Json, template: Json) -> Json:
        contract = self._blueprint.contract
        if contract is None:
            raise TopologyFailed(f"failed to get contract version for the ControlPlane object: {self._blueprint.contract_problem}")
        path = ("spec", "machineTemplate", "spec") if contract == "v1beta2" else ("spec", "machineTemplate")
        ref = at(plane, *path, "infrastructureRef")
        required = ("apiGroup" if contract == "v1beta2" else "apiVersion", "kind", "name")
        missing = next((f for f in required if not isinstance(ref, dict) or not isinstance(ref.get(f), str)), "")
        if missing:
            text = f"failed to get {'.'.join((*path, 'infrastructureRef', missing))} from {plane['kind']}"
            raise TopologyFailed(f"failed to get InfrastructureMachineTemplate reference for {plane['kind']} {shown(plane)}: {text}")
        if "apiGroup" not in ref:
            ref = {**ref, "apiGroup": str(ref.get("apiVersion", "")).rpartition("/")[0]}
        with failing(f"failed to get InfrastructureMachineTemplate for {plane['kind']} {shown(plane)}"):
            found = await self._referenced(ref, template, is_object=False)
        return self._owned(found, plane)

    async def _referenced(self, ref: Json, template: Json, *, is_object: bool) -> Json:
        """Return a referenced object, in the version of the class's template if it is of that kind, else in the newest of its contract."""
        group, kind = ref.get("apiGroup", ""), ref.get("kind", "")
        own_kind = template["kind"].removesuffix("Template") if is_object else template["kind"]
        key = ObjectKey(self._namespace, ref.get("name", ""))
        if (group, kind) == (group_of(template), own_kind):
            gvk = GroupVersionKind.of(template["apiVersion"], kind)
        else:
            try:
                gvk = (await contract_of(self._client, group, kind)).gvk
            except ContractUnknown as error:
                raise TopologyFailed(f"failed to align ref apiVersion: {error}") from error
        return await retrieve(self._client, gvk, key)

    @staticmethod
    def _owned(obj: Json, referrer: Json) -> Json:
        if TOPOLOGY_OWNED_LABEL not in (obj["metadata"].get("labels") or {}):
            text = f"{obj['kind']} {shown(obj)} referenced from {referrer['kind']} {shown(referrer)} is not topology owned"
            raise TopologyFailed(text)
        return obj

    async def _health_check(self, owner: Json) -> Json | None:
        with failing(f"failed to get MachineHealthCheck for {owner['kind']} {shown(owner)}"):
            found = await self._client.find(MACHINE_HEALTH_CHECK, ObjectKey(self._namespace, owner["metadata"]["name"]))
        return None if found is None else dict(found.json)

    # --------------------------------------------------------------------------------------------------- workers

    async def _machine_deployments(self) -> dict[str, CurrentWorker]:
        found = {}
        for name, obj in (await self._labelled(MACHINE_DEPLOYMENT, TOPOLOGY_DEPLOYMENT_NAME_LABEL)).items():
            bootstrap = infrastructure = None
            if not obj["metadata"].get("deletionTimestamp"):
                bootstrap, infrastructure = await self._parts(name, obj, "machineDeployments", "InfrastructureMachineTemplate")
            check = await self._health_check(obj)
            found[name] = CurrentWorker(obj, bootstrap, infrastructure, check)
        return found

    async def _machine_pools(self) -> dict[str, CurrentWorker]:
        found = {}
        for name, obj in (await self._labelled(MACHINE_POOL, TOPOLOGY_POOL_NAME_LABEL)).items():
            bootstrap = infrastructure = None
            if not obj["metadata"].get("deletionTimestamp"):
                bootstrap, infrastructure = await self._parts(name, obj, "machinePools", "InfrastructureMachinePool")
            found[name] = CurrentWorker(obj, bootstrap, infrastructure)
        return found

    async def _labelled(self, gvk: GroupVersionKind, label: str) -> dict[str, Json]:
        """Return the objects of a kind that belong to the topology, by topology name."""
        selector = {CLUSTER_NAME_LABEL: self._cluster["metadata"]["name"], TOPOLOGY_OWNED_LABEL: ""}
        with failing(f"failed to read {gvk.kind}s for managed topology"):
            listed = await self._client.list(gvk, namespace=self._namespace, labels=selector)
        found: dict[str, Json] = {}
        for item in listed:
            obj = dict(item.json)
            name = (obj["metadata"].get("labels") or {}).get(label) or ""
            if not name:
                raise TopologyFailed(f"failed to find label {label} in {gvk.kind} {shown(obj)}")
            if name in found:
                raise TopologyFailed(f"duplicate {gvk.kind} {shown(obj)} found for label {label}: {name}")
            found[name] = obj
        return found

    async def _parts(self, name: str, obj: Json, kind: str, noun: str) -> tuple[Json, Json]:
        """Return the objects that a worker refers to: bootstrap, infrastructure. Raises TopologyFailed."""
        template = at(obj, "spec", "template", "spec") or {}
        bootstrap_ref = at(template, "bootstrap", "configRef") or {}
        infrastructure_ref = template.get("infrastructureRef") or {}
        own = f"{obj['kind']} {shown(obj)}"
        if not bootstrap_ref.get("name"):
            raise TopologyFailed(f"{own} does not have a reference to a Bootstrap Config")
        if not infrastructure_ref.get("name"):
            raise TopologyFailed(f"{own} does not have a reference to a {noun}")
        bootstrap_template, infrastructure_template = self._templates(name, kind, obj["kind"])
        is_object = kind == "machinePools"
        with failing(f"{own} Bootstrap reference could not be retrieved"):
            bootstrap = await self._referenced(bootstrap_ref, bootstrap_template or _unlike(bootstrap_ref), is_object=is_object)
        self._owned(bootstrap, obj)
        template = infrastructure_template or _unlike(infrastructure_ref)
        with failing(f"{own} Infrastructure reference could not be retrieved"):
            infrastructure = await self._referenced(infrastructure_ref, template, is_object=is_object)
        return bootstrap, self._owned(infrastructure, obj)

    def _templates(self, name: str, kind: str, noun: str) -> tuple[Json | None, Json | None]:
        """Return the templates of a worker's class; None if the topology no longer names the worker."""
        entries = at(self._cluster, "spec", "topology", "workers", kind) or ()
        entry = next((e for e in entries if e.get("name") == name), None)
        if entry is None:
            return None, None
        known = self._blueprint.machine_deployments if kind == "machineDeployments" else self._blueprint.machine_pools
        templates = known.get(entry.get("class", ""))
        if templates is None:
            raise TopologyFailed(f"failed to find {noun} class {entry.get('class', '')} in ClusterClass")
        return templates.bootstrap, templates.infrastructure

    # ------------------------------------------------------------------------------------------------- upgrading

    async def with_upgrading(self, current: Current) -> Current:
        """Return the state with the workers whose Machines or Nodes do not all have their version; a failure to read is a value."""
        try:
            deployments = [w.name for w in current.machine_deployments.values() if await self._is_deployment_upgrading(w.object)]
        except ApiError as error:
            text = f"failed to check if any MachineDeployment is upgrading: failed to list upgrading MachineDeployments: {error}"
            return replace(current, upgrading_problem=text)
        try:
            pools = await self._upgrading_pools(current)
        except ApiError as error:
            return replace(current, upgrading_problem=f"failed to check if any MachinePool is upgrading: {error}")
        return replace(current, upgrading_deployments=frozenset(deployments), upgrading_pools=frozenset(pools))

    async def _is_deployment_upgrading(self, obj: Json) -> bool:
        version = at(obj, "spec", "template", "spec", "version")
        if not version:
            return False
        context = f"failed to check if MachineDeployment {obj['metadata']['name']} is upgrading"
        labels = _selector(obj, context)
        with failing(f"{context}: failed to list Machines"):
            machines = await self._client.list(Machine, namespace=self._namespace, labels=labels)
        for machine in machines:
            if not machine.spec.version:
                raise TopologyFailed(f"{context}: Machine {machine.metadata.name} has no version")
            info = machine.status.node_info
            kubelet = info.kubelet_version if info is not None else ""
            if machine.spec.version != version or (kubelet and not runs(kubelet, version)):
                return True
        return False

    async def _upgrading_pools(self, current: Current) -> list[str]:
        pools = [w.object for w in current.machine_pools.values()]
        if not any(at(pool, "status", "nodeRefs") for pool in pools):
            return []
        client = await self._workload.client(ObjectKey(self._namespace, self._cluster["metadata"]["name"]))
        with failing("failed to list upgrading MachinePools"):
            return [pool["metadata"]["name"] for pool in pools if await self._is_pool_upgrading(pool, client)]

    @staticmethod
    async def _is_pool_upgrading(pool: Json, client: Client) -> bool:
        version = at(pool, "spec", "template", "spec", "version")
        if not version:
            return False
        for ref in at(pool, "status", "nodeRefs") or ():
            try:
                node = await client.get(Node, ObjectKey("", ref.get("name", "")))
            except ApiError as error:
                name = pool["metadata"]["name"]
                raise TopologyFailed(
                    f"failed to check if MachinePool {name} is upgrading: failed to get Node {ref.get('name', '')}"
                ) from error
            kubelet = node.status.node_info.kubelet_version
            if not kubelet or not runs(kubelet, version):
                return True
        return False


def _unlike(ref: Json) -> Json:
    """Return a template that no reference matches, for a worker without a class."""
    return {"apiVersion": "/", "kind": "", "metadata": {}, "of": ref}


def _selector(obj: Json, context: str) -> dict[str, str]:
    """Return the labels that a worker's selector requires. Raises TopologyFailed."""
    try:
        return as_labels(convert(at(obj, "spec", "selector") or {}, LabelSelector))
    except InvalidSelector as error:
        raise TopologyFailed(f"{context}: failed to convert label selector to map: {error}") from error
