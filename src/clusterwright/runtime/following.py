"""Objects as they change: a list and a watch, restarted when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.api.wire import UNREADABLE, Request
from clusterwright.runtime.client import Query
from clusterwright.runtime.errors import ConnectionFailed, from_response
from clusterwright.runtime.rest import RestClient

_PAUSE = 0.5


class Collection(Protocol):
    """A kind with the path of its objects."""

    def path(self, namespace: str = "") -> str:
        """Return the path of the collection."""


async def states(client: RestClient, path: str, query: Query = ()) -> AsyncGenerator[Mapping[tuple[str, str], Json], None]:
    """Yield the objects of the collection by namespace and name: as they are, then after every change. Raises ApiError if forbidden."""
    while True:
        listed = msgspec.json.decode(await _get(client, path, query))
        present = {_place(obj): obj for obj in listed["items"]}
        yield present
        watch = (*query, ("watch", "true"), ("resourceVersion", listed["metadata"]["resourceVersion"]), ("timeoutSeconds", "300"))
        try:
            response, lines = await client.transport.stream(Request(method="GET", path=path, query=watch, headers=client.headers))
            if response.status < 300:
                async with aclosing(lines):  # type: ignore[type-var]
                    async for line in lines:
                        event = msgspec.json.decode(line)
                        if event["type"] == "ERROR":
                            break
                        if event["type"] == "DELETED":
                            present.pop(_place(event["object"]), None)
                        else:
                            present[_place(event["object"])] = event["object"]
                        yield present
        except (ConnectionFailed, *UNREADABLE):
            pass  # the list says whether anybody is there
        await asyncio.sleep(_PAUSE)


async def follow(client: RestClient, collection: Collection, key: ObjectKey) -> AsyncGenerator[Json | None, None]:
    """Yield the object as it is, then after every change; None while it does not exist. Raises ApiError if forbidden."""
    async with aclosing(states(client, collection.path(key.namespace), (("fieldSelector", f"metadata.name={key.name}"),))) as seen:
        async for present in seen:
            yield next(iter(present.values()), None)


async def until_all(client: RestClient, collection: Collection, namespace: str, holds: Callable[[Json], bool]) -> None:
    """Wait until a predicate holds for every object of a kind in a namespace."""
    async with aclosing(states(client, collection.path(namespace))) as seen:
        async for present in seen:
            if all(map(holds, present.values())):
                return


async def changes(client: RestClient, places: Sequence[tuple[str, Query]], *, settle: float = 0.1) -> AsyncGenerator[None, None]:
    """Yield at once, then after changes at any of the places (path and query); simultaneous changes count once."""
    changed = asyncio.Event()

    async def watch(path: str, query: Query) -> None:
        async for _ in states(client, path, query):
            changed.set()

    tasks = [asyncio.create_task(watch(*place)) for place in places]
    for task in tasks:
        task.add_done_callback(lambda _: changed.set())
    try:
        while True:
            await changed.wait()
            for task in tasks:
                if task.done():
                    task.result()  # it ends only by failing
            await asyncio.sleep(settle)
            changed.clear()
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def of_cluster(key: ObjectKey) -> list[tuple[str, Query]]:
    """Return the places of a Cluster and of everything that belongs to it."""
    labelled: Query = (("labelSelector", f"{CLUSTER_NAME_LABEL}={key.name}"),)
    itself: Query = (("fieldSelector", f"metadata.name={key.name}"),)
    kinds = (Machine, MachineSet, MachineDeployment, MachinePool, MachineHealthCheck, KubeadmControlPlane)
    return [(SCHEME.of(Cluster).path(key.namespace), itself), *((SCHEME.of(kind).path(key.namespace), labelled) for kind in kinds)]


def _place(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


async def _get(client: RestClient, path: str, query: Query) -> bytes:
    response = await client.transport.send(Request(method="GET", path=path, query=query, headers=client.headers))
    if response.status >= 300:
        raise from_response(response.status, response.body)
    return response.body
