"""Special deletion rules of some kinds: namespaces, CustomResourceDefinitions, Pods."""

from __future__ import annotations

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.system import definitions

NAMESPACES = "namespaces"


def may_vanish(resource: Resource, obj: Json) -> bool:
    """Return whether only metadata.finalizers can delay the removal of the object."""
    return resource.storage_key != NAMESPACES or not (obj.get("spec") or {}).get("finalizers")


def mark_deleting(resource: Resource, obj: Json, now: str) -> bool:
    """Set the status that announces the deletion; return whether it changed."""
    key = resource.storage_key
    if key == NAMESPACES:
        status = obj.setdefault("status", {})
        news = bool(status.get("phase") != "Terminating")
        status["phase"] = "Terminating"
        return news
    return key == definitions.TABLE and definitions.mark_deleting(obj, now)


def deletion_finalizers(resource: Resource) -> tuple[str, ...]:
    """Return finalizers that the server adds when a deletion begins."""
    return (definitions.CLEANUP,) if resource.storage_key == definitions.TABLE else ()


def grace_period(resource: Resource, obj: Json, options: Json) -> int:
    """Return the grace period of a deletion in seconds; 0 for a Pod that is not scheduled or has ended."""
    if not resource.grace:
        return 0
    asked = options.get("gracePeriodSeconds")
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30)
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        period = 0
    return 1 if period < 0 else int(period)
