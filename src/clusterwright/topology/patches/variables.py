"""The variables of patches: those of the Cluster that are defined for the patch, and the builtin ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.wellknown import COPIES_OF_THE_OBJECT
from clusterwright.topology.model import Desired, DesiredWorker
from clusterwright.topology.paths import at

BUILTIN: Final = "builtin"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PatchVariables:
    """Variables by name, in their order: for all items, and additional ones for some items."""

    everywhere: Values
    control_plane: Values
    machine_deployments: Mapping[str, Values]
    machine_pools: Mapping[str, Values]


def merged(everywhere: Values, item: Values) -> Json:
    """Return the variables for a template of one item: the item's override, `builtin` is merged."""
    out = {**everywhere, **item}
    if BUILTIN in everywhere and BUILTIN in item:
        out[BUILTIN] = {**everywhere[BUILTIN], **item[BUILTIN]}
    return out


def patch_variables(cluster: Json, cluster_class: Json, desired: Desired, source: str) -> PatchVariables:
    """Return the variables for a patch.

    `source` is `inline`, or the name of an external patch: only variables that it defines are included.
    """
    defined = (cluster_class.get("status") or {}).get("variables") or ()
    visible = {v["name"] for v in defined if any(d.get("from") == source for d in v.get("definitions") or ())} - {BUILTIN}
    topology = cluster["spec"]["topology"]
    workers = topology.get("workers") or {}

    def chosen(values: Sequence[Json] | None, builtin: Json) -> Json:
        return {**{v["name"]: v.get("value") for v in values or () if v["name"] in visible}, BUILTIN: builtin}

    def of_workers(kind: str, key: str, made: Mapping[str, DesiredWorker]) -> dict[str, Json]:
        return {
            entry["name"]: chosen(_overrides(entry), {key: _worker(entry, made[entry["name"]])})
            for entry in workers.get(kind) or ()
            if entry["name"] in made
        }

    control_plane = topology.get("controlPlane") or {}
    return PatchVariables(
        chosen(topology.get("variables"), {"cluster": _cluster(cluster, cluster_class, desired.cluster)}),
        chosen(_overrides(control_plane), {"controlPlane": _control_plane(control_plane, desired)}),
        of_workers("machineDeployments", "machineDeployment", desired.machine_deployments),
        of_workers("machinePools", "machinePool", desired.machine_pools),
    )


def _overrides(entry: Json) -> Sequence[Json]:
    return (entry.get("variables") or {}).get("overrides") or ()


def _without_absent(json: Json) -> Json:
    return {k: v for k, v in json.items() if v not in (None, {}, [], "")}


def _metadata(obj: Json) -> Json:
    metadata = obj.get("metadata") or {}
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in COPIES_OF_THE_OBJECT}
    return _without_absent({"labels": metadata.get("labels"), "annotations": annotations})


def _cluster(cluster: Json, cluster_class: Json, desired: Json) -> Json:
    metadata, topology = cluster["metadata"], cluster["spec"]["topology"]
    network = cluster["spec"].get("clusterNetwork") or {}
    class_key = {"name": topology["classRef"]["name"], "namespace": topology["classRef"].get("namespace") or metadata.get("namespace", "")}
    return _without_absent(
        {
            "name": metadata["name"],
            "namespace": metadata.get("namespace"),
            "uid": metadata.get("uid"),
            "metadata": _metadata(desired),
            "topology": {
                "version": topology.get("version", ""),
                "classRef": class_key,
                "class": class_key["name"],
                "classNamespace": class_key["namespace"],
            },
            "network": _without_absent(
                {
                    "serviceDomain": network.get("serviceDomain"),
                    "services": (network.get("services") or {}).get("cidrBlocks"),
                    "pods": (network.get("pods") or {}).get("cidrBlocks"),
                }
            ),
        }
    )


def _control_plane(entry: Json, desired: Desired) -> Json:
    made = desired.control_plane
    out = _without_absent({"name": made["metadata"]["name"], "version": at(made, "spec", "version"), "metadata": _metadata(made)})
    if entry.get("replicas") is not None:
        out["replicas"] = at(made, "spec", "replicas")
    if desired.control_plane_machine is not None:
        out["machineTemplate"] = {"infrastructureRef": {"name": desired.control_plane_machine["metadata"]["name"]}}
    return out


def _worker(entry: Json, worker: DesiredWorker) -> Json:
    made = worker.object
    out = _without_absent(
        {
            "version": at(made, "spec", "template", "spec", "version"),
            "class": entry.get("class"),
            "name": made["metadata"]["name"],
            "topologyName": entry["name"],
            "metadata": _metadata(made),
            "bootstrap": {"configRef": {"name": worker.bootstrap["metadata"]["name"]}},
            "infrastructureRef": {"name": worker.infrastructure["metadata"]["name"]},
        }
    )
    if at(made, "spec", "replicas") is not None:
        out["replicas"] = made["spec"]["replicas"]
    return out
