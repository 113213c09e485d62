"""Ask the controllers in the process of an API server for their state: those that run, their failures and their queues."""

from __future__ import annotations

import msgspec

from clusterwright.api.wire import UNREADABLE
from clusterwright.offline.observation import Running
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError


async def ask_now(client: Client, namespace: str) -> Running | None:
    """Return the report, or None if no such controllers run or the caller may not ask them."""
    query = (("only", "now"), *((("namespace", namespace),) if namespace else ()))
    try:
        told = msgspec.json.decode(await client.raw_get("/traces", query=query))
        return msgspec.convert(told, Running) if isinstance(told, dict) and "controllers" in told else None
    except (ApiError, msgspec.ValidationError, *UNREADABLE):
        return None
