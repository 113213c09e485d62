"""Prepare objects of built-in kinds when they are created or changed."""

from __future__ import annotations

import base64
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins import customresourcedefinitions, defaults


def fit_secret(obj: Json) -> None:
    """Move stringData to data; it is not stored."""
    texts = obj.pop("stringData", None)
    if texts:
        data = dict(obj.get("data") or {})
        data.update({k: base64.b64encode(v.encode()).decode() for k, v in texts.items()})
        obj["data"] = data


def new_namespace(obj: Json) -> None:
    """Set the phase Active, and the finalizer for the content."""
    defaults.namespace(obj)  # a generated name is known by now
    obj["status"] = {"phase": "Active"}
    spec = obj.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if "kubernetes" not in finalizers:
        spec["finalizers"] = [*finalizers, "kubernetes"]


def kept_namespace(obj: Json, old: Json) -> None:
    """Keep spec.finalizers, which only the finalize subresource may write."""
    obj["spec"] = old.get("spec") or {}


def new_node(obj: Json) -> None:
    """Taint a new node until it is ready."""
    spec = obj.setdefault("spec", {})
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    taints = spec.get("taints") or []
    if not any(t.get("key") == taint["key"] and t.get("effect") == taint["effect"] for t in taints):
        spec["taints"] = [*taints, taint]
    node_status(obj)


def node_status(obj: Json) -> None:
    """Set allocatable to the capacity unless it is set."""
    status = obj.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def fit_pod(obj: Json) -> None:
    """Make podIP the first of podIPs; it decides if they differ."""
    status = obj.get("status") or {}
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def new_pod(obj: Json) -> None:
    """Set the phase Pending, and the priority and tolerations of every Pod."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _tolerate(spec)
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def _tolerate(spec: Json) -> None:
    """Add tolerations of five minutes for a node that is not ready or unreachable."""
    present = spec.get("tolerations") or []
    covered = {t.get("key") for t in present if t.get("effect") in (None, "", "NoExecute")}
    if None not in covered and "" not in covered:
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in _TOLERATIONS
            if key not in covered
        ]
        if added:
            spec["tolerations"] = [*present, *added]


def changed_pod(obj: Json, old: Json) -> None:
    """Add tolerations again when the spec changes."""
    if old.get("spec") != obj.get("spec"):
        _tolerate(obj["spec"])


def qos_class(spec: Json) -> str:
    """Return Guaranteed, Burstable or BestEffort, by the resources of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests = [c.get("resources", {}).get("requests") or {} for c in containers]
    limits = [c.get("resources", {}).get("limits") or {} for c in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    for request, limit in zip(requests, limits, strict=True):
        for name in ("cpu", "memory"):
            if name not in limit or request.get(name, limit[name]) != limit[name]:
                return "Burstable"
    return "Guaranteed"


def new_claim(obj: Json) -> None:
    """Set the phase Pending."""
    obj["status"] = {"phase": "Pending"}


def new_pv(obj: Json) -> None:
    """Set the phase Pending."""
    obj["status"] = {"phase": "Pending"}


def new_crd(obj: Json) -> None:
    """Clear the status."""
    obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
    customresourcedefinitions.record_storage_version(obj)


def changed_crd(obj: Json, old: Json) -> None:
    """Keep the status, and record a new storage version."""
    obj["status"] = {**(old.get("status") or {})}
    customresourcedefinitions.record_storage_version(obj)


def lease(obj: Json, old: Json | None = None) -> None:
    """Drop the fields of coordinated leader election, which is off."""
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    for field in ("strategy", "preferredHolder"):
        if before.get(field) is None:
            spec.pop(field, None)


def role(obj: Json, old: Json | None = None) -> None:
    """Set missing rules to null, as upstream shows objects from its storage."""
    obj["rules"] = obj.get("rules") or None
