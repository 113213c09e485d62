"""Read the class of a Cluster and all its templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.contract import ContractVersion, NoContract, contract_of, crd_name
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.topology.failures import ClassNotReady, TopologyFailed, failing, shown
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError
from clusterwright.topology.model import Blueprint, WorkerTemplates
from clusterwright.topology.objects import CORE
from clusterwright.topology.paths import at

CLUSTER_CLASS = GroupVersionKind.of(CORE, "ClusterClass")


def class_key(cluster: Json) -> ObjectKey:
    """Return the key of the class that a Cluster names."""
    ref = cluster["spec"]["topology"].get("classRef") or {}
    return ObjectKey(ref.get("namespace") or cluster["metadata"].get("namespace", ""), ref.get("name", ""))


async def read_class(reader: Reader, cluster: Json) -> Json:
    """Return the class, which must have been reconciled. Raises TopologyFailed, ClassNotReady."""
    key = class_key(cluster)
    with failing(f"failed to retrieve ClusterClass {key}"):
        found: Json = dict((await reader.get(CLUSTER_CLASS, key)).json)
    ready = next((c for c in at(found, "status", "conditions") or () if c.get("type") == "VariablesReady"), None)
    if ready is None or ready.get("status") == "False":
        text = 'status of VariablesReady condition on ClusterClass must be "True"'
        raise ClassNotReady(f"ClusterClass is not successfully reconciled: {text}")
    generation, observed = found["metadata"].get("generation") or 0, at(found, "status", "observedGeneration") or 0
    if generation != observed:
        text = f"ClusterClass.status.observedGeneration must be {generation}, but is {observed}"
        raise ClassNotReady(f"ClusterClass is not successfully reconciled: {text}")
    return found


class BlueprintReader:
    """Reads the templates of a class, each by the apiVersion that the class names."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def read(self, cluster_class: Json) -> Blueprint:
        """Return the class with its templates. Raises TopologyFailed."""
        spec, key = cluster_class.get("spec") or {}, shown(cluster_class)
        infrastructure = await self._template(
            cluster_class,
            at(spec, "infrastructure", "templateRef"),
            f"failed to get infrastructure cluster template for ClusterClass {key}",
        )
        plane = await self._template(
            cluster_class, at(spec, "controlPlane", "templateRef"), f"failed to get control plane template for ClusterClass {key}"
        )
        machine_ref = at(spec, "controlPlane", "machineInfrastructure", "templateRef")
        machine = None
        if machine_ref:
            context = f"failed to get control plane's machine template for ClusterClass {key}"
            machine = await self._template(cluster_class, machine_ref, context)
        deployments = await self._workers(
            cluster_class,
            at(spec, "workers", "machineDeployments") or (),
            "MachineDeployment",
            ("infrastructure machine template", "bootstrap config template"),
        )
        pools = await self._workers(
            cluster_class,
            at(spec, "workers", "machinePools") or (),
            "MachinePool",
            ("InfrastructureMachinePoolTemplate", "bootstrap config"),
        )
        contract, problem = await self._contract(plane)
        return Blueprint(cluster_class, infrastructure, plane, machine, deployments, pools, contract, problem)

    async def _workers(self, cluster_class: Json, classes: Sequence[Json], noun: str, words: tuple[str, str]) -> dict[str, WorkerTemplates]:
        found = {}
        for of in classes:
            where = f'for ClusterClass {shown(cluster_class)}, {noun} class "{of.get("class", "")}"'
            infrastructure = await self._template(
                cluster_class, at(of, "infrastructure", "templateRef"), f"failed to get {words[0]} {where}"
            )
            bootstrap = await self._template(cluster_class, at(of, "bootstrap", "templateRef"), f"failed to get {words[1]} {where}")
            found[of["class"]] = WorkerTemplates(bootstrap, infrastructure)
        return found

    async def _template(self, cluster_class: Json, ref: Any, context: str) -> Json:
        if not ref:
            raise TopologyFailed(f"{context}: reference is not set")
        key = ObjectKey(cluster_class["metadata"].get("namespace", ""), ref.get("name", ""))
        with failing(context):
            return await retrieve(self._reader, GroupVersionKind.of(ref.get("apiVersion", ""), ref.get("kind", "")), key)

    async def _contract(self, control_plane: Json) -> tuple[ContractVersion | None, str]:
        group, _, version = control_plane["apiVersion"].rpartition("/")
        name = crd_name(group, control_plane["kind"].removesuffix("Template"))
        try:
            crd = await self._reader.get(CustomResourceDefinitionMeta, ObjectKey("", name))
            return contract_of({"name": name, "labels": crd.metadata.labels}, version), ""
        except NoContract:
            return None, f"cannot find any contract version matching version {version} for CRD {name}"
        except ApiError as error:
            return None, str(error)


async def retrieve(reader: Reader, gvk: GroupVersionKind, key: ObjectKey) -> Json:
    """Return an object. Raises TopologyFailed with upstream's message, which names it twice."""
    once = f"failed to retrieve {gvk.kind} {key}"
    with failing(f"{once}: {once}"):
        return dict((await reader.get(gvk, key)).json)
