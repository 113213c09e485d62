"""Make a bundle for an object whose Cluster does not exist, from all objects of its namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.offline.listing import everything
from clusterwright.offline.observation import API_VERSION
from clusterwright.offline.record import ask_controllers, redacted
from clusterwright.runtime.client import Client


async def namespace_bundle(client: Client, namespace: str, now: datetime, *, keep_secrets: bool = False) -> list[Json]:
    """Return the objects of a namespace that may be listed, and an Observation.

    `keep_secrets` is for a bundle that is used at once and never written.
    """
    found = await everything(client, namespace)
    observation: Json = {"apiVersion": API_VERSION, "kind": "Observation", "now": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    observation |= {"seen": found.seen, "unseen": found.unseen}
    if (running := await ask_controllers(client, namespace)) is not None:
        observation |= {"running": running, "features": running.get("features") or {}}
    shown: Callable[[Mapping[str, Any]], Json] = dict if keep_secrets else redacted
    return [*(shown(o.json) for o in found.objects), observation]
