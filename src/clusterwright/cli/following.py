"""One object as it changes: a watch, begun again where it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.scheme import Resource
from clusterwright.api.wire import Request
from clusterwright.runtime.errors import ConnectionFailed, from_response
from clusterwright.runtime.rest import RestClient

_PAUSE = 0.5


async def follow(client: RestClient, resource: Resource, key: ObjectKey) -> AsyncGenerator[Json | None, None]:
    """The object as it is, then whenever it changes; None while it is not there. Raises ApiError where it may not be read."""
    path = resource.path(key.namespace)
    only = (("fieldSelector", f"metadata.name={key.name}"),)
    while True:
        listed = msgspec.json.decode(await _get(client, path, only))
        yield next(iter(listed["items"]), None)
        query = (*only, ("watch", "true"), ("resourceVersion", listed["metadata"]["resourceVersion"]), ("timeoutSeconds", "300"))
        try:
            response, lines = await client.transport.stream(Request(method="GET", path=path, query=query, headers=client.headers))
            if response.status < 300:
                async with aclosing(lines):  # type: ignore[type-var]
                    async for line in lines:
                        event = msgspec.json.decode(line)
                        if event["type"] == "ERROR":
                            break
                        yield None if event["type"] == "DELETED" else event["object"]
        except (ConnectionFailed, msgspec.DecodeError):
            pass  # the list says whether anybody is there
        await asyncio.sleep(_PAUSE)


async def _get(client: RestClient, path: str, query: tuple[tuple[str, str], ...]) -> bytes:
    response = await client.transport.send(Request(method="GET", path=path, query=query, headers=client.headers))
    if response.status >= 300:
        raise from_response(response.status, response.body)
    return response.body
