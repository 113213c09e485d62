"""A bundle for an object whose Cluster does not exist: all that its namespace has, so that the answer is about the object itself."""

from __future__ import annotations

from datetime import datetime

from clusterwright.api.meta import Json
from clusterwright.offline.listing import everything
from clusterwright.offline.observation import API_VERSION
from clusterwright.offline.record import ask_controllers
from clusterwright.runtime.client import Client


async def namespace_bundle(client: Client, namespace: str, now: datetime) -> list[Json]:
    """Return the objects of a namespace that may be listed, and an Observation. It holds Secrets: use it here and now, write it nowhere."""
    found = await everything(client, namespace)
    observation: Json = {"apiVersion": API_VERSION, "kind": "Observation", "now": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    observation |= {"seen": found.seen, "unseen": found.unseen}
    if (running := await ask_controllers(client, namespace)) is not None:
        observation |= {"running": running, "features": running.get("features") or {}}
    return [*(dict(o.json) for o in found.objects), observation]
