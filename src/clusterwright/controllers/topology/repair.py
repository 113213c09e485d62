"""Repair objects that lost their managedFields: without an entry of ours, fields that we drop would stay forever.

The Cluster itself is written by merge patches. Entries in its managedFields from earlier applies are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.controllers.topology.applying import MANAGER
from clusterwright.controllers.topology.failures import failing, shown
from clusterwright.controllers.topology.object_writing import gvk_of, key_of
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import NotFound
from clusterwright.topology.model import Current

_FIRST: Final = "before-first-apply"
_PATCHER: Final = "manager"
_TRUSTED_FOR: Final = 600.0
_EXTRA_ARGS: Final = ("extraArgs", "kubeletExtraArgs")


class Repairer:
    """Checks each object once in ten minutes: lost owners are rare."""

    def __init__(self, client: Client, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._trusted: dict[str, float] = {}

    async def repair(self, current: Current, now: datetime) -> bool:
        """Repair all objects of a topology; return whether any had to be. Raises TopologyFailed."""
        was_broken = False
        for obj in _objects(current):
            uid = obj["metadata"].get("uid", "")
            if uid and self._trusted.get(uid, 0.0) > self._monotonic():
                continue
            with failing(f"failed to mitigate managedFields issue for {obj['kind']} {shown(obj)}"), suppress(NotFound):
                was_broken = await self._repair(obj, now) or was_broken
            if len(self._trusted) > 50_000:
                self._trusted.clear()
            self._trusted[uid] = self._monotonic() + _TRUSTED_FOR
        return was_broken

    async def _repair(self, obj: Json, now: datetime) -> bool:
        """Return whether the object had lost its owners. An old apply entry on a Cluster does not end the pass."""
        gvk, key = gvk_of(obj), key_of(obj)
        live = await self._client.live.get(gvk, key)
        fields = live.at("metadata", "managedFields") or []
        is_cluster = obj["kind"] == "Cluster"
        was_broken = not fields or any(e.get("manager") == _FIRST for e in fields)
        unwanted = {_FIRST, MANAGER} if is_cluster else {_FIRST}
        kept = [e for e in fields if e.get("manager") not in unwanted]
        if not was_broken and len(kept) == len(fields):
            return False
        if not kept if is_cluster else not any(e.get("manager") == MANAGER for e in kept):
            kept.append(_entry(dict(live.json), now))
        patch: list[Json] = [
            {"op": "replace" if "managedFields" in live.json["metadata"] else "add", "path": "/metadata/managedFields", "value": kept},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live.metadata.resource_version},
        ]
        await self._client.patch(gvk, key, patch, type="json")
        return was_broken


def _objects(current: Current) -> Iterator[Json]:
    found = [current.cluster, current.infrastructure_cluster, current.control_plane_health_check, current.control_plane]
    found.append(current.control_plane_machine)
    for worker in current.machine_deployments.values():
        found += [worker.health_check, worker.object, worker.infrastructure, worker.bootstrap]
    for worker in current.machine_pools.values():
        found += [worker.object, worker.infrastructure, worker.bootstrap]
    return (o for o in found if o is not None)


def _entry(obj: Json, now: datetime) -> Json:
    fields: Json = {"f:metadata": {"f:name": {}}}
    if obj["kind"] == "KubeadmControlPlane":
        owned = _argument_fields(obj.get("spec") or {})
        if owned:
            fields = {"f:spec": owned}
    is_cluster = obj["kind"] == "Cluster"
    return {
        "manager": _PATCHER if is_cluster else MANAGER,
        "operation": "Update" if is_cluster else "Apply",
        "apiVersion": obj["apiVersion"],
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _argument_fields(value: Any) -> Json:
    """Return every extraArgs and kubeletExtraArgs below a value, as owned fields."""
    out: Json = {}
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _EXTRA_ARGS:
                out[f"f:{key}"] = {}
            elif below := _argument_fields(item):
                out[f"f:{key}"] = below
    return out
