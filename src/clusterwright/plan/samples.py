"""A sample Cluster of a ClusterClass, to see what a class renders without any server. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from clusterwright.api.contract import crd_name
from clusterwright.api.meta import Json, Unstructured
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.contracts import complete
from clusterwright.offline.observation import Observation
from clusterwright.plan.captured import Captured
from clusterwright.plan.changes import Apply, BadChange
from clusterwright.simulation.defaults import KUBERNETES_VERSION

NAME: Final = "sample"
_OF_TYPE: Final[Mapping[str, Any]] = {"string": "sample", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
_DEEPEST: Final = 20
_MACHINERY: Final = frozenset({"Machine", "MachineSet", "MachineDeployment", "KubeadmControlPlane", "KubeadmConfig"})
"""Kinds whose own objects are not part of what a class renders."""


def rendering(manifests: Sequence[Apply], now: datetime, values: Mapping[str, Any]) -> tuple[Captured, list[Apply], list[str]]:
    """Return an empty management cluster, the manifests with a sample Cluster for each class that has none, and notes on made-up values.

    `values`: of variables, by name. Raises BadChange if there is no class.
    """
    objects = [m.object for m in manifests]
    classes = [o for o in map(Unstructured, objects) if o.kind == "ClusterClass"]
    if not classes:
        raise BadChange("--class: the folder has no ClusterClass")
    used = {o.at("spec", "topology", "classRef", "name") for o in map(Unstructured, objects) if o.kind == "Cluster"}
    made, notes = list(manifests), []
    for one in classes:
        if one.key.name not in used:
            cluster, invented = _cluster(one, values, "" if len(classes) == 1 else f"-{one.key.name}")
            made.append(Apply(cluster))
            where = f"of class {one.key.name}"
            notes += [f"variable {name} {where}: the value {value!r} is made up; set another with --set" for name, value in invented]
    everything = Bundle(tuple(m.object for m in made), Observation())
    definitions = [o for o in complete(everything).objects if o["kind"] == "CustomResourceDefinition"]
    return Captured(tuple(_with_made_kinds(definitions)), now), made, notes


def _with_made_kinds(definitions: Sequence[Json]) -> list[Json]:
    """Return CRDs, with those of the kinds that are made from templates."""
    found = {crd["metadata"]["name"]: crd for crd in definitions}
    for crd in definitions:
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        name = crd_name(group, kind.removesuffix("Template"))
        if name not in found:
            names = {"kind": kind.removesuffix("Template"), "plural": name.partition(".")[0]}
            found[name] = {**crd, "metadata": {**crd["metadata"], "name": name}, "spec": {**crd["spec"], "names": names}}
    return list(found.values())


def _cluster(cluster_class: Unstructured, values: Mapping[str, Any], suffix: str) -> tuple[Json, list[tuple[str, Any]]]:
    """Return a Cluster with one Machine of each worker class, and the variables whose values are made up."""
    variables, invented = [], []
    for variable in _listed(cluster_class.at("spec", "variables")):
        name, schema = str(variable.get("name")), (variable.get("schema") or {}).get("openAPIV3Schema") or {}
        if name in values:
            variables.append({"name": name, "value": values[name]})
        elif variable.get("required") and "default" not in schema:
            value = sample_of(schema)
            variables.append({"name": name, "value": value})
            invented.append((name, value))
    workers = {
        kind: [{"class": str(c.get("class")), "name": str(c.get("class"))[:40], "replicas": 1} for c in found]
        for kind in ("machineDeployments", "machinePools")
        if (found := _listed(cluster_class.at("spec", "workers", kind)))
    }
    versions = cluster_class.at("spec", "kubernetesVersions")
    topology: Json = {
        "classRef": {"name": cluster_class.key.name},
        "version": versions[-1] if isinstance(versions, list) and versions else KUBERNETES_VERSION,
        "controlPlane": {"replicas": 1} if cluster_class.at("spec", "controlPlane", "machineInfrastructure") else {},
        **({"workers": workers} if workers else {}),
        **({"variables": variables} if variables else {}),
    }
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}}
    metadata = {"name": f"{NAME}{suffix}", "namespace": cluster_class.key.namespace}
    spec = {"clusterNetwork": network, "topology": topology}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": spec}, invented


def sample_of(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value that a schema of a variable allows: its example, default or first choice, else a small one of its type."""
    for name in ("default", "example"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object" and depth < _DEEPEST:
        properties = schema.get("properties") or {}
        return {name: sample_of(properties.get(name) or {}, depth + 1) for name in schema.get("required") or ()}
    if kind == "array" and schema.get("minItems") and depth < _DEEPEST:
        return [sample_of(schema.get("items") or {}, depth + 1) for _ in range(min(int(schema["minItems"]), 10))]
    if kind in {"integer", "number"}:
        return max(schema.get("minimum", 1), 1) if schema.get("maximum", 1) >= 1 else schema["maximum"]
    if kind == "string":
        text = "sample"
        text += "x" * (min(int(schema.get("minLength", 0)), 1000) - len(text))
        return text[: schema.get("maxLength", len(text))]
    return _OF_TYPE.get(str(kind), "sample")


def rendered(objects: Mapping[str, Mapping[str, Any]], owned: str) -> list[Json]:
    """Return what a topology consists of, as manifests. `owned`: the label of its objects."""
    found = []
    for name in sorted(objects):
        one = Unstructured(objects[name])
        if one.kind == "Machine" or owned not in one.metadata.labels or any(o.kind in _MACHINERY for o in one.metadata.owner_references):
            continue
        metadata = {k: v for k, v in one.json["metadata"].items() if k in {"name", "namespace", "labels", "annotations"}}
        found.append({**{k: v for k, v in one.json.items() if k not in {"status", "metadata"}}, "metadata": metadata})
    return found


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []
