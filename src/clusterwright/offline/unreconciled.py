"""Find objects that no controller has reconciled since they were made or changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.offline.complaints import Complaint, Tier

AT_ONCE: Final = timedelta(seconds=15)
"""The time within which a running controller reports on a new object."""
TOPOLOGY: Final = "TopologyReconciled"
_ADDRESSES: Final = "ipam.cluster.x-k8s.io"
_CLAIM: Final = "IPAddressClaim"
"""The only kind of its group that every provider reports on."""
_UNREPORTED: Final = ("Template", "Binding", "ClusterResourceSet", "ExtensionConfig", "Revision")
"""Endings of kinds that report nothing, or only when they have work."""


def unreconciled(obj: Unstructured, now: datetime | None, heard: str = "", written: str = "") -> Complaint | None:
    """Return a complaint if no controller has reported on an object of Cluster API since its creation or the last change of its spec.

    `heard`: the time of its last Event, which may be all that a failing controller writes. `written`: the time of the spec's change,
    if the object itself does not show it.
    """
    group = obj.gvk.group
    is_ours = group == CORE_GROUP or group.endswith(f".{CORE_GROUP}")
    if now is None or not is_ours or obj.kind.endswith(_UNREPORTED) or (group == _ADDRESSES and obj.kind != _CLAIM):
        return None
    made = obj.metadata.creation_timestamp
    status = obj.at("status")
    if obj.kind == "Cluster" and obj.at("spec", "topology") and isinstance(status, Mapping) and status and made is not None:
        types = [c.get("type") for c in status.get("conditions") or () if isinstance(c, Mapping)]
        if TOPOLOGY not in types and now - made >= AT_ONCE and not obj.at("metadata", "deletionTimestamp"):
            text = f"nothing has reconciled its topology since it was made {ago(now - made)} ago"
            return Complaint(Tier.UNRECONCILED, text, f"{made:%Y-%m-%dT%H:%M:%SZ}", TOPOLOGY, path="spec.topology")
    if not (isinstance(status, Mapping) and status):
        if made is None or now - made < AT_ONCE:
            return None
        if heard >= f"{made:%Y-%m-%dT%H:%M:%SZ}":
            return Complaint(Tier.SILENT, "has no status, though a controller acts on it", f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")
        text = f"nothing has reconciled it since it was made {ago(now - made)} ago"
        return Complaint(Tier.UNRECONCILED, text, f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")
    observed, generation = observed_generation(obj), obj.at("metadata", "generation")
    changed = None if is_own_write(obj) else spec_changed(obj, written)
    if not isinstance(observed, int) or not isinstance(generation, int) or observed >= generation or changed is None:
        return None
    if now - changed < AT_ONCE or heard >= f"{changed:%Y-%m-%dT%H:%M:%SZ}":
        return None
    behind = f"the last observedGeneration is {observed}, metadata.generation is {generation}"
    text = f"nothing has reconciled it since its spec was changed {ago(now - changed)} ago: {behind}"
    return Complaint(Tier.UNRECONCILED, text, f"{changed:%Y-%m-%dT%H:%M:%SZ}", path="status.observedGeneration")


def observed_generation(obj: Unstructured) -> int | None:
    """Return the newest generation in the status. Conditions have a newer one if a pass failed after writing them."""
    conditions = obj.at("status", "conditions")
    told = [obj.at("status", "observedGeneration"), *(c.get("observedGeneration") for c in conditions or () if isinstance(c, Mapping))]
    return max((n for n in told if isinstance(n, int) and n > 0), default=None)


def is_own_write(obj: Unstructured) -> bool:
    """Return whether an object reports completion and the last writer of its spec also writes its status."""
    listed = [m for m in obj.at("metadata", "managedFields") or () if isinstance(m, Mapping)]
    newest = max((m for m in listed if not m.get("subresource")), key=lambda m: str(m.get("time")), default={})
    reporters = {m.get("manager") for m in listed if m.get("subresource") == "status"}
    is_done = obj.at("status", "ready") is True or any(
        obj.at("status", "initialization", flag) is True for flag in ("provisioned", "dataSecretCreated")
    )
    return is_done and newest.get("manager") in reporters


def spec_changed(obj: Unstructured, written: str = "") -> datetime | None:
    """Return the time of the last change outside the status, by the fields' managers, else `written`."""
    times = [m.get("time") for m in obj.at("metadata", "managedFields") or () if isinstance(m, Mapping) and not m.get("subresource")]
    newest = max((t for t in times if isinstance(t, str)), default=written)
    try:
        return datetime.fromisoformat(newest) if newest else None
    except ValueError:
        return None


def ago(span: timedelta) -> str:
    """Return a span of time in at most two units, for people."""
    seconds = max(0, int(span.total_seconds()))
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= length:
            rest = seconds % length // part
            return f"{seconds // length} {unit} {rest} {smaller}" if rest else f"{seconds // length} {unit}"
    return f"{seconds} s"
