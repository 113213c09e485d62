"""The report of a process on its passes and queues: last errors, objects that wait, and earlier verdicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec

from clusterwright.api.meta import Json
from clusterwright.offline.ownership import name_of


class Failing(msgspec.Struct, frozen=True, rename="camel"):
    """The error in which the last passes over an object ended, as `runtime.failures` keeps it."""

    since: datetime
    at: datetime
    error: str
    kind: str
    name: str
    namespace: str = ""
    controller: str = ""
    passes: int = 1
    same: int = 1
    """How many of the passes, up to the last one, ended in this error."""
    retry_at: datetime | None = None

    @property
    def object(self) -> str:
        """`Kind/namespace/name`."""
        return name_of(self.kind, self.namespace, self.name)


class Queue(msgspec.Struct, frozen=True, rename="camel"):
    """The objects that wait for a controller, as `runtime.backlogs` reports them."""

    controller: str
    kind: str
    length: int = 0
    oldest_seconds: float = 0.0
    processing: int = 0
    ahead: Mapping[str, int] = {}
    """By `namespace/name` of an object that waits: how many are handed out before it."""
    at_work: tuple[str, ...] = ()


class Past(msgspec.Struct, frozen=True, omit_defaults=True):
    """A verdict that was given at a moment and held until the next one."""

    at: str
    """RFC 3339."""
    state: str
    brief: str
    """State, object and cause, in one line."""
    cause: str = ""
    object: str = ""
    left: str = ""
    """When the cluster ceased to be fine; empty while it is."""

    @property
    def is_fine(self) -> bool:
        """Whether it was fine."""
        return self.state == "fine"

    @property
    def of(self) -> tuple[str, str, str]:
        """State, cause and object."""
        return self.state, self.cause, self.object


def about(running: Json, names: Collection[str]) -> Json:
    """Return what the controllers say, as far as it is about the objects with these names (`Kind/namespace/name`)."""
    kept = dict(running)
    for field in ("traces", "failures"):
        kept[field] = [t for t in running.get(field) or () if name_of(t["kind"], t["namespace"], t["name"]) in names]
    kept["verdicts"] = {key: past for key, past in (running.get("verdicts") or {}).items() if f"Cluster/{key}" in names}
    kept["queues"] = [_queue_about(queue, names) for queue in running.get("queues") or ()]
    return kept


def _queue_about(queue: Mapping[str, Any], names: Collection[str]) -> Json:
    def is_about(key: str) -> bool:
        namespace, _, name = key.rpartition("/")
        return name_of(queue["kind"], namespace, name) in names

    ahead = {key: place for key, place in queue["ahead"].items() if is_about(key)}
    return {**queue, "ahead": ahead, "atWork": [key for key in queue["atWork"] if is_about(key)]}
