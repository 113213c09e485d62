"""The informers of one process, and the client that reads from them.

A watched kind is read from its informer; any other is read live. So is a watched kind whose cache is in doubt: a write of ours ended
without an answer, and its effect is unknown until a later list is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Literal, TypeVar

from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.api.selectors import parse_labels
from clusterwright.runtime import models
from clusterwright.runtime.client import Original, PatchType, Query, Reader
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.informer import Informer
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.runtime.resources import Kind, gvk_of_json
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.turns import Turns
from clusterwright.runtime.watcher import Watcher

T = TypeVar("T", bound=Object)


class Cache:
    """Informers by kind. Kinds may be added at any time; each is listed and watched while `run` runs."""

    def __init__(self, rest: RestClient, *, random: Random, namespace: str = "", metrics: RuntimeMetrics | None = None) -> None:
        self._rest = rest
        self._random = random
        self._namespace = namespace
        self._metrics = metrics
        self._informers: dict[GroupVersionKind, Informer] = {}
        self._watchers: dict[GroupVersionKind, Watcher] = {}
        self._group: asyncio.TaskGroup | None = None
        self._on_added: list[Callable[[Informer], None]] = []
        rest.observer = self

    async def informer(self, kind: Kind) -> Informer:
        """Return the informer of the kind, created and started if new; raises NoKindMatch if the API server does not serve it."""
        gvk = gvk_of(kind)
        if (present := self._informers.get(gvk)) is not None:
            return present
        resource = await self._rest.resources.of(gvk)
        if (present := self._informers.get(gvk)) is not None:  # made by another task meanwhile
            return present
        namespace = self._namespace if resource.namespaced else ""
        informer = self._informers[gvk] = Informer(gvk, namespace=namespace, metrics=self._metrics)
        self._watchers[gvk] = Watcher(
            self._rest, resource, informer, random=Random(self._random.getrandbits(64)), namespace=namespace, metrics=self._metrics
        )
        self._start(gvk)
        for added in self._on_added:
            added(informer)
        return informer

    def when_added(self, added: Callable[[Informer], None]) -> None:
        """Call back with every existing informer, and with each later one."""
        for informer in list(self._informers.values()):
            added(informer)
        self._on_added.append(added)

    def serving(self, kind: Kind, namespace: str) -> Informer | None:
        """Return the informer that can answer for this kind and namespace (empty: all) now."""
        gvk = gvk_of(kind)
        informer = self._informers.get(gvk)
        if informer is None or not informer.is_synced or self._watchers[gvk].in_doubt:
            return None
        return informer if not informer.namespace or informer.namespace == namespace else None

    async def run(self) -> None:
        """Run all informers until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for gvk in list(self._watchers):
                    self._start(gvk)
                await asyncio.Event().wait()
            finally:
                self._group = None

    def _start(self, gvk: GroupVersionKind) -> None:
        if self._group is not None:
            self._group.create_task(self._watchers[gvk].run(), name=f"watch {gvk.kind}")

    async def synced(self) -> None:
        """Return when every informer that exists now has been listed once."""
        waiting: list[asyncio.Future[None]] = []
        for informer in self._informers.values():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            informer.when_synced(lambda future=future: future.done() or future.set_result(None))  # type: ignore[misc]
            waiting.append(future)
        for future in waiting:
            await future

    @property
    def is_synced(self) -> bool:
        """Whether every informer has been listed once."""
        return all(informer.is_synced for informer in self._informers.values())

    # Told by the RestClient.

    def begins(self, gvk: GroupVersionKind) -> int:
        """Record that a write of ours is about to be sent."""
        informer = self._informers.get(gvk)
        return informer.lists if informer is not None else 0

    def wrote(self, gvk: GroupVersionKind, key: ObjectKey, body: bytes, *, deleted: bool, began: int) -> None:
        """Record that a write of ours was acknowledged."""
        informer = self._informers.get(gvk)
        if informer is None:
            return
        # a list that began while the write was under way may or may not know of it, and of what others did after it
        if informer.lists != began or not informer.wrote(key, body, deleted=deleted):
            self.doubts(gvk)

    def doubts(self, gvk: GroupVersionKind) -> None:
        """Record that a write of ours ended without an answer."""
        if (watcher := self._watchers.get(gvk)) is not None:
            watcher.doubt()


class CachedClient:
    """A `Client` that reads watched kinds from memory and sends everything else to the API server."""

    def __init__(self, rest: RestClient, cache: Cache) -> None:
        self.rest = rest
        self.cache = cache
        self._turns = Turns()

    async def get(self, kind: Any, key: ObjectKey) -> Any:
        """Return the object; raises NotFound."""
        found = await self.find(kind, key)
        if found is None:
            # in the API server's own words
            resource = await self.rest.resources.of(kind)
            details = {"name": key.name, "group": resource.gvk.group, "kind": resource.plural}
            named = f"{resource.plural}.{resource.gvk.group}" if resource.gvk.group else resource.plural
            message = f'{named} "{key.name}" not found'
            status = {"kind": "Status", "status": "Failure", "message": message, "reason": "NotFound", "details": details, "code": 404}
            raise NotFound(message, status)
        return found

    async def find(self, kind: Any, key: ObjectKey) -> Any:
        """Return the object, or None if it does not exist."""
        informer = self.cache.serving(kind, key.namespace)
        if informer is None:
            return await self.rest.find(kind, key)
        entry = informer.find(key)
        return None if entry is None else informer.decode(kind, entry)

    async def read(self, kind: type[T], key: ObjectKey) -> Original[T] | None:
        """Return the object with its bytes (without managedFields when they come from the cache)."""
        informer = self.cache.serving(kind, key.namespace)
        if informer is None:
            return await self.rest.read(kind, key)
        entry = informer.find(key)
        return None if entry is None else Original(informer.decode(kind, entry), entry.raw)

    async def list(self, kind: Any, *, namespace: str = "", labels: str | Mapping[str, str] = "", fields: str = "", owner: str = "") -> Any:
        """Return all objects of the kind that match, ordered by namespace and name."""
        informer = self.cache.serving(kind, namespace)
        if informer is None:
            return await self.rest.list(kind, namespace=namespace, labels=labels, fields=fields, owner=owner)
        found = informer.select(namespace=namespace, labels=parse_labels(labels), fields=fields, owner=owner)
        return [informer.decode(kind, entry) for entry in found]

    @property
    def live(self) -> Reader:
        """A reader that always asks the API server."""
        return self.rest

    def known(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> bytes | None:
        """Return the cached state of the object."""
        informer = self.cache.serving(kind, key.namespace)
        entry = informer.find(key) if informer is not None else None
        return None if entry is None else entry.raw

    def turn(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> AbstractAsyncContextManager[None]:
        """Return a lock: while it is held, no other task writes the object through this client."""
        return self._turns.take(gvk_of(kind), key)

    async def raw_get(self, path: str, *, query: Query = (), accept: str = "", timeout: float | None = None) -> bytes:
        """Send GET to any path."""
        return await self.rest.raw_get(path, query=query, accept=accept, timeout=timeout)

    async def create(self, obj: Object | Json, *, field_manager: str = "") -> Unstructured:
        """Create an object; raises AlreadyExists."""
        return await self.rest.create(obj, field_manager=field_manager)

    async def update(self, obj: Object | Json, *, subresource: str = "") -> Unstructured:
        """Replace the whole object."""
        return await self.rest.update(obj, subresource=subresource)

    async def patch(
        self,
        kind: type[Object] | GroupVersionKind,
        key: ObjectKey,
        patch: Json | Sequence[Json],
        *,
        type: PatchType = "merge",
        subresource: str = "",
        field_manager: str = "",
    ) -> Unstructured:
        """Patch the object or its subresource."""
        async with self.turn(kind, key):
            return await self.rest.patch(kind, key, patch, type=type, subresource=subresource, field_manager=field_manager)

    async def apply(
        self, obj: Object | Json, *, field_manager: str, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> Unstructured:
        """Apply server-side; `dry_run`: only return the result."""
        body = obj if isinstance(obj, Mapping) else models.to_json(obj)
        metadata = body["metadata"]
        async with self.turn(gvk_of_json(body), ObjectKey(metadata.get("namespace", ""), metadata["name"])):
            return await self.rest.apply(body, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run)

    async def delete(
        self,
        kind: type[Object] | GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Literal["", "Background", "Foreground", "Orphan"] = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Request the deletion; raises NotFound."""
        await self.rest.delete(
            kind, key, uid=uid, resource_version=resource_version, propagation=propagation, grace_period_seconds=grace_period_seconds
        )

    async def create_subresource(self, kind: type[Object] | GroupVersionKind, key: ObjectKey, subresource: str, body: Json) -> Json:
        """Send POST to a subresource."""
        return await self.rest.create_subresource(kind, key, subresource, body)
