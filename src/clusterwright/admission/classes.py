"""Check Clusters and ClusterClasses against each other: the class of a Cluster, compatibility of classes, and autoscaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.admission.rule import Fault, at, items
from clusterwright.admission.sets import is_filled
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import AUTOSCALER_MAX_SIZE_ANNOTATION, AUTOSCALER_MIN_SIZE_ANNOTATION
from clusterwright.apiserver.status import FieldError, forbidden
from clusterwright.golang.quoting import quote

WORKERS: Final = ("machineDeployments", "machinePools")
VARIABLE_RULES: Final = " ".join(f"VAR-{n}" for n in range(1, 25) if n != 7)
VALUE_RULES: Final = " ".join(f"VAL-{n}" for n in range(1, 10) if n != 5)


def topology_of(cluster: Any) -> Json | None:
    """Return the topology of a Cluster; None: it has none, or an empty one."""
    topology = at(cluster, "spec", "topology")
    return topology if is_filled(topology) else None


def is_deleting(cluster: Any) -> bool:
    """Return whether it is being deleted and only waits for finalizers."""
    return bool(at(cluster, "metadata", "deletionTimestamp"))


def class_key(cluster: Any, namespace: str) -> ObjectKey:
    """Return the class of a Cluster in that namespace; the name is empty if it has none."""
    reference = at(cluster, "spec", "topology", "classRef")
    return ObjectKey(at(reference, "namespace") or namespace, at(reference, "name") or "")


def topology_workers(cluster: Any, kind: str) -> list[Json]:
    """Return the MachineDeployments or MachinePools of a Cluster's topology."""
    return items(cluster, "spec", "topology", "workers", kind)


def class_workers(cluster_class: Any, kind: str) -> list[Json]:
    """Return the classes of MachineDeployments or MachinePools."""
    return items(cluster_class, "spec", "workers", kind)


def worker_class(cluster_class: Any, kind: str, name: str) -> Json | None:
    """Return the class of that name."""
    return next((entry for entry in class_workers(cluster_class, kind) if (entry.get("class") or "") == name), None)


def is_reconciled(cluster_class: Any) -> bool:
    """Return whether its controller has seen its present generation, with valid variables."""
    if (at(cluster_class, "metadata", "generation") or 0) != (at(cluster_class, "status", "observedGeneration") or 0):
        return False
    statuses = [c.get("status") for c in items(cluster_class, "status", "conditions") if c.get("type") == "VariablesReady"]
    return bool(statuses) and statuses[0] != "False"


# ----------------------------------------------------------------------------------------- compatibility


def incompatibilities(old: Any, new: Any) -> Iterator[FieldError]:
    """Return violations of CC-30 to CC-34: templates may change, but not the kinds that they produce."""
    for parts in (("infrastructure",), ("controlPlane",), ("controlPlane", "machineInfrastructure")):
        before, after = (at(c, "spec", *parts, "templateRef") for c in (old, new))
        yield from _unlike(before, after, ".".join(("spec", *parts, "templateRef")))
    for kind in WORKERS:
        for n, entry in enumerate(class_workers(new, kind)):
            for former in class_workers(old, kind):
                if (former.get("class") or "") == (entry.get("class") or ""):
                    before, after = (at(e, "infrastructure", "templateRef") for e in (former, entry))
                    yield from _unlike(before, after, f"spec.workers.{kind}[{n}].infrastructure.templateRef")


def _unlike(before: Any, after: Any, field: str) -> Iterator[FieldError]:
    suffix = "to prevent incompatible changes in the Clusters"
    groups = [_group(at(reference, "apiVersion") or "") for reference in (before, after)]
    if groups[0] != groups[1]:
        text = f"group of apiVersion cannot be changed from {quote(groups[0])} to {quote(groups[1])} {suffix}"
        yield forbidden(f"{field}.apiVersion", text)
    kinds = [at(reference, "kind") or "" for reference in (before, after)]
    if kinds[0] != kinds[1]:
        yield forbidden(f"{field}.kind", f"kind cannot be changed from {quote(kinds[0])} to {quote(kinds[1])} {suffix}")


def _group(api_version: str) -> str:
    return api_version.partition("/")[0] if api_version.count("/") == 1 else ""


# ----------------------------------------------------------------------------------------- who scales

SELF_SCALED: Final = (
    "cannot be set for cluster {cluster} in namespace {namespace} if the same MachineDeploymentTopology has autoscaler annotations"
)
CLASS_SCALED: Final = (
    "cannot be set for cluster {cluster} in namespace {namespace} if the source class {name} of this "
    "MachineDeploymentTopology has autoscaler annotations"
)


def scaled_by_itself(cluster: Any, name: str, namespace: str) -> Iterator[Fault]:
    """Return the MachineDeployments whose replicas an autoscaler manages by their own annotations."""
    for entry in topology_workers(cluster, "machineDeployments"):
        if entry.get("replicas") is not None and _is_scaled(entry):
            yield _scaled(entry, name, namespace)


def scaled_by_class(cluster: Any, cluster_class: Any, name: str, namespace: str) -> Iterator[Fault]:
    """Return the MachineDeployments whose replicas an autoscaler manages by their class."""
    for entry in topology_workers(cluster, "machineDeployments"):
        if entry.get("replicas") is None:
            continue
        for candidate in class_workers(cluster_class, "machineDeployments"):
            if (candidate.get("class") or "") == (entry.get("class") or "") and _is_scaled(candidate):
                yield _scaled(entry, name, namespace)


def _is_scaled(entry: Json) -> bool:
    annotations = at(entry, "metadata", "annotations") or {}
    return AUTOSCALER_MIN_SIZE_ANNOTATION in annotations or AUTOSCALER_MAX_SIZE_ANNOTATION in annotations


def _scaled(entry: Json, name: str, namespace: str) -> Fault:
    words = {"cluster": quote(name), "namespace": quote(namespace), "name": quote(entry.get("class") or "")}
    return Fault(entry["replicas"], (entry.get("name") or "",), **words)
