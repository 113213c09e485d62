"""The objects of a topology, field by field: clones of the class's templates, and the fields that the topology sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.api.contract import ContractVersion
from clusterwright.api.jsonvalues import copied
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    CLONED_FROM_GROUP_KIND_ANNOTATION,
    CLONED_FROM_NAME_ANNOTATION,
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    DEFER_UPGRADE_ANNOTATION,
    HOLD_UPGRADE_SEQUENCE_ANNOTATION,
    LAST_APPLIED_ANNOTATION,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_OWNED_LABEL,
    TOPOLOGY_POOL_NAME_LABEL,
    UPGRADE_STEP_ANNOTATION,
)
from clusterwright.topology.model import DesiredWorker
from clusterwright.topology.paths import at, put

CORE: Final = "cluster.x-k8s.io/v1beta2"
NODE_STARTUP_TIMEOUT: Final = 600
_TIMEOUTS: Final = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds")
_NOT_ON_OBJECTS: Final = (DEFER_UPGRADE_ANNOTATION, HOLD_UPGRADE_SEQUENCE_ANNOTATION)
_CHECKS: Final = ("nodeStartupTimeoutSeconds", "unhealthyNodeConditions", "unhealthyMachineConditions")


# ------------------------------------------------------------------------------------------------------ references


def group_of(obj: Json) -> str:
    """Return the group of an object's apiVersion."""
    group: str = obj["apiVersion"].rpartition("/")[0]
    return group


def reference(obj: Json) -> Json:
    """Return a reference without version."""
    return {"apiGroup": group_of(obj), "kind": obj["kind"], "name": obj["metadata"]["name"]}


def owner_reference(obj: Json) -> Json:
    """Return a reference to an owner that is not the controller."""
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def shim_name(cluster: Json) -> str:
    """Return the name of the Secret that owns objects to which the Cluster does not refer yet."""
    return f"{cluster['metadata']['name']}-shim"


def shim_owners(cluster: Json, current: Json | None) -> list[Json]:
    """Return the owner references of an object to the shim: kept until garbage collection removes them."""
    owners = at(current, "metadata", "ownerReferences") or ()
    kept = [o for o in owners if o.get("kind") == "Secret" and o.get("name") == shim_name(cluster)]
    return [{k: o[k] for k in ("apiVersion", "kind", "name", "uid") if k in o} for o in kept]


# --------------------------------------------------------------------------------------------------------- cloning


def own_labels(cluster: Json) -> dict[str, str]:
    """Return the labels of all objects of a topology."""
    return {CLUSTER_NAME_LABEL: cluster["metadata"]["name"], TOPOLOGY_OWNED_LABEL: ""}


def _cloned_from(template: Json) -> dict[str, str]:
    return {
        CLONED_FROM_NAME_ANNOTATION: template["metadata"]["name"],
        CLONED_FROM_GROUP_KIND_ANNOTATION: f"{template['kind']}.{group_of(template)}",
    }


def object_from_template(
    template: Json,
    cluster: Json,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owners: Sequence[Json] = (),
) -> Json:
    """Return an object made from a class's template."""
    content = copied(at(template, "spec", "template") or {})
    given = content.pop("metadata", None) or {}
    metadata: Json = {
        "name": name,
        "namespace": cluster["metadata"].get("namespace", ""),
        "labels": {**(given.get("labels") or {}), **(labels or {}), **own_labels(cluster)},
        "annotations": {**(given.get("annotations") or {}), **(annotations or {}), **_cloned_from(template)},
    }
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {
        **content,
        "apiVersion": template["apiVersion"],
        "kind": template["kind"].removesuffix("Template"),
        "metadata": metadata,
    }


def template_from_template(template: Json, cluster: Json, name: str, labels: Mapping[str, str] | None = None) -> Json:
    """Return a copy of a class's template for a Cluster, which owns it."""
    given = template["metadata"]
    annotations = {k: v for k, v in (given.get("annotations") or {}).items() if k != LAST_APPLIED_ANNOTATION}
    return {
        **copied({k: v for k, v in template.items() if k not in ("metadata", "status")}),
        "metadata": {
            "name": name,
            "namespace": cluster["metadata"].get("namespace", ""),
            "labels": {**(given.get("labels") or {}), **own_labels(cluster), **(labels or {})},
            "annotations": {**annotations, **_cloned_from(template)},
            "ownerReferences": [owner_reference(cluster)],
        },
    }


def merged(topology: Mapping[str, Any] | None, of_class: Mapping[str, Any] | None, part: str) -> dict[str, str]:
    """Return labels or annotations of a topology, merged over those of its class."""
    return {**(((of_class or {}).get("metadata") or {}).get(part) or {}), **(((topology or {}).get("metadata") or {}).get(part) or {})}


# --------------------------------------------------------------------------------------------------- control plane


def control_plane(
    template: Json,
    cluster: Json,
    cluster_class: Json,
    name: str,
    contract: ContractVersion,
    *,
    machine_template: Json | None,
    current: Json | None,
    version: str,
) -> Json:
    """Return the control plane, before patches."""
    entry = cluster["spec"]["topology"].get("controlPlane") or {}
    of_class = (cluster_class.get("spec") or {}).get("controlPlane") or {}
    labels = {**merged(entry, of_class, "labels"), **own_labels(cluster)}
    annotations = merged(entry, of_class, "annotations")
    made = object_from_template(template, cluster, name, labels=labels, annotations=annotations, owners=shim_owners(cluster, current))
    base = ("spec", "machineTemplate", "spec") if contract == "v1beta2" else ("spec", "machineTemplate")
    if machine_template is not None:
        put(made, _machine_reference(machine_template, current, contract), *base, "infrastructureRef")
        for part, own in (("labels", labels), ("annotations", annotations)):
            values = {**(at(made, "spec", "machineTemplate", "metadata", part) or {}), **own}
            if values:
                put(made, values, "spec", "machineTemplate", "metadata", part)
    if entry.get("replicas") is not None:
        put(made, entry["replicas"], "spec", "replicas")
    after = (entry.get("rollout") or {}).get("after")
    if after:
        put(made, _utc(after), "spec", "rollout", "after")
    for part in ("readinessGates", "taints"):
        listed = _first(entry.get(part), of_class.get(part))
        if listed is not None:
            put(made, copied(listed), *base, part)
    for timeout in _TIMEOUTS:
        seconds = _first(at(entry, "deletion", timeout), at(of_class, "deletion", timeout))
        if seconds is not None:
            if contract == "v1beta2":
                put(made, seconds, *base, "deletion", timeout)
            else:
                put(made, go_duration(seconds), *base, timeout.removesuffix("Seconds"))
    put(made, version, "spec", "version")
    return made


def _machine_reference(template: Json, current: Json | None, contract: ContractVersion) -> Json:
    if contract == "v1beta2":
        return reference(template)
    made = {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "namespace": template["metadata"]["namespace"],
        "name": template["metadata"]["name"],
    }
    old = at(current, "spec", "machineTemplate", "infrastructureRef") or {}
    if old.get("kind") == made["kind"] and str(old.get("apiVersion", "")).rpartition("/")[0] == group_of(template):
        made["apiVersion"] = old["apiVersion"]
    return made


def _utc(moment: str) -> str:
    try:
        return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return moment


def go_duration(seconds: int) -> str:
    """Return seconds in Go's duration format: `1m0s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


# --------------------------------------------------------------------------------------------------------- workers


def machine_deployment(entry: Json, of_class: Json, cluster: Json, name: str, version: str, worker: tuple[Json, Json]) -> DesiredWorker:
    """Return a MachineDeployment with its templates and its health check."""
    bootstrap, infrastructure = worker
    own = {**own_labels(cluster), TOPOLOGY_DEPLOYMENT_NAME_LABEL: entry["name"]}
    made = _worker_object("MachineDeployment", entry, of_class, cluster, name, version, worker, own)
    spec = made["spec"]
    spec["selector"] = {"matchLabels": dict(own)}
    rollout = _without_empty(entry.get("rollout") or {})
    if rollout:
        put(made, {k: copied(rollout[k]) for k in ("after", "strategy") if k in rollout}, "spec", "rollout")
        if "after" in spec["rollout"]:
            spec["rollout"]["after"] = _utc(spec["rollout"]["after"])
    elif strategy := _without_empty(at(of_class, "rollout", "strategy") or {}):
        put(made, copied(strategy), "spec", "rollout", "strategy")
    in_flight = _first(at(entry, "healthCheck", "remediation", "maxInFlight"), at(of_class, "healthCheck", "remediation", "maxInFlight"))
    if in_flight is not None:
        put(made, in_flight, "spec", "remediation", "maxInFlight")
    if order := at(entry, "deletion", "order") or at(of_class, "deletion", "order"):
        put(made, order, "spec", "deletion", "order")
    template = spec["template"]["spec"]
    if domain := entry.get("failureDomain") or of_class.get("failureDomain"):
        template["failureDomain"] = domain
    if (gates := _first(entry.get("readinessGates"), of_class.get("readinessGates"))) is not None:
        template["readinessGates"] = copied(gates)
    check = health_check(
        entry.get("healthCheck"), of_class.get("healthCheck"), cluster, name, {TOPOLOGY_DEPLOYMENT_NAME_LABEL: entry["name"]}
    )
    return DesiredWorker(made, bootstrap, infrastructure, check)


def machine_pool(entry: Json, of_class: Json, cluster: Json, name: str, version: str, worker: tuple[Json, Json]) -> DesiredWorker:
    """Return a MachinePool with its objects."""
    own = {**own_labels(cluster), TOPOLOGY_POOL_NAME_LABEL: entry["name"]}
    made = _worker_object("MachinePool", entry, of_class, cluster, name, version, worker, own)
    if (domains := _first(entry.get("failureDomains"), of_class.get("failureDomains"))) is not None:
        made["spec"]["failureDomains"] = list(domains)
    return DesiredWorker(made, *worker)


def _worker_object(
    kind: str, entry: Json, of_class: Json, cluster: Json, name: str, version: str, worker: tuple[Json, Json], own: Mapping[str, str]
) -> Json:
    """Return the common parts of MachineDeployments and MachinePools."""
    labels = {**merged(entry, of_class, "labels"), **own}
    annotations = {k: v for k, v in merged(entry, of_class, "annotations").items() if k not in _NOT_ON_OBJECTS}
    metadata: Json = {"labels": labels, **({"annotations": annotations} if annotations else {})}
    cluster_name = cluster["metadata"]["name"]
    bootstrap, infrastructure = worker
    template: Json = {
        "clusterName": cluster_name,
        "version": version,
        "bootstrap": {"configRef": reference(bootstrap)},
        "infrastructureRef": reference(infrastructure),
    }
    for timeout in _TIMEOUTS:
        if (seconds := _first(at(entry, "deletion", timeout), at(of_class, "deletion", timeout))) is not None:
            put(template, seconds, "deletion", timeout)
    if (taints := _first(entry.get("taints"), of_class.get("taints"))) is not None:
        template["taints"] = copied(taints)
    if (seconds := _first(entry.get("minReadySeconds"), of_class.get("minReadySeconds"))) is not None:
        template["minReadySeconds"] = seconds
    made: Json = {
        "apiVersion": CORE,
        "kind": kind,
        "metadata": {"name": name, "namespace": cluster["metadata"].get("namespace", ""), **copied(metadata)},
        "spec": {"clusterName": cluster_name, "template": {"metadata": copied(metadata), "spec": template}},
    }
    if entry.get("replicas") is not None:
        made["spec"]["replicas"] = entry["replicas"]
    return made


def _without_empty(value: Any) -> Any:
    """Return an object without empty members."""
    if not isinstance(value, dict):
        return value
    cleaned = {k: _without_empty(v) for k, v in value.items()}
    return {k: v for k, v in cleaned.items() if v not in (None, {}, "")}


# --------------------------------------------------------------------------------------------------- health checks


def is_defined(check: Json | None) -> bool:
    """Return whether a health check has any check; the limit of concurrent remediations is not a check."""
    given = check or {}
    remediation = {k: v for k, v in (given.get("remediation") or {}).items() if k != "maxInFlight"}
    return bool(_without_empty(given.get("checks") or {}) or _without_empty(remediation))


def health_check(topology: Json | None, of_class: Json | None, cluster: Json, name: str, selected: Mapping[str, str]) -> Json | None:
    """Return the MachineHealthCheck of a control plane or MachineDeployment; None if none is wanted."""
    if (topology or {}).get("enabled") is False:
        return None
    chosen = topology if is_defined(topology) else of_class if is_defined(of_class) else None
    if chosen is None:
        return None
    given = chosen.get("checks") or {}
    checks: Json = {k: copied(given[k]) for k in _CHECKS if given.get(k) is not None}
    checks.setdefault("nodeStartupTimeoutSeconds", NODE_STARTUP_TIMEOUT)
    remediation = {k: copied(v) for k, v in (chosen.get("remediation") or {}).items() if k in ("triggerIf", "templateRef") and v}
    spec: Json = {
        "clusterName": cluster["metadata"]["name"],
        "selector": {"matchLabels": {TOPOLOGY_OWNED_LABEL: "", **selected}},
        "checks": checks,
    }
    if remediation:
        spec["remediation"] = remediation
    return {
        "apiVersion": CORE,
        "kind": "MachineHealthCheck",
        "metadata": {
            "name": name,
            "namespace": cluster["metadata"].get("namespace", ""),
            "labels": own_labels(cluster),
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": spec,
    }


CONTROL_PLANE_SELECTION: Final = {CONTROL_PLANE_LABEL: ""}


def cluster_object(cluster: Json, infrastructure: Json, control_plane: Json, step: str) -> Json:
    """Return the desired Cluster: fields outside the topology stay as they are."""
    made: Json = copied(cluster)
    metadata = made["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **own_labels(cluster)}
    others = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != UPGRADE_STEP_ANNOTATION}
    metadata["annotations"] = {**others, UPGRADE_STEP_ANNOTATION: step} if step else others
    made["spec"]["infrastructureRef"] = reference(infrastructure)
    made["spec"]["controlPlaneRef"] = reference(control_plane)
    return made
