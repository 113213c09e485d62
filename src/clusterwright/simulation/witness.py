"""A checking client: no read is older than an own write, and the cache has no deleted objects in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.runtime.cache import CachedClient
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ConnectionFailed, ServerError
from clusterwright.simulation.world import World

T = TypeVar("T", bound=Object)


class Witness(CachedClient):
    """A process's client, which checks that no read is older than an effective write of this process, answered or not."""

    def __init__(self, inner: CachedClient, world: World, kinds: tuple[type[Object], ...]) -> None:
        super().__init__(inner.rest, inner.cache)
        self._world = world
        self._kinds = kinds
        self._written: dict[tuple[GroupVersionKind, ObjectKey], tuple[str, int]] = {}
        self._gone: dict[str, None] = {}
        world.checks["cache"] = self._ghosts

    def _ghosts(self) -> str:
        """Return objects that the cache still holds after everything is gone."""
        informers = [self.cache.serving(kind, "") for kind in self._kinds]
        return ", ".join(f"{entry.key} lives on in the cache" for informer in informers if informer for entry in informer.select())

    async def create(self, obj: Object | Json, *, field_manager: str = "") -> Unstructured:
        """Create, and record the result."""
        assert isinstance(obj, Object)
        async with self._in_doubt(type(obj), obj.key):
            answer = await super().create(obj, field_manager=field_manager)
        return self._remember(type(obj), answer)

    async def patch(self, kind: Any, key: ObjectKey, patch: Any, **options: Any) -> Unstructured:
        """Patch, and record the result."""
        async with self._in_doubt(kind, key):
            answer = await super().patch(kind, key, patch, **options)
        return self._remember(kind, answer)

    async def delete(self, kind: Any, key: ObjectKey, **options: Any) -> None:
        """Delete, and record the result; children have no finalizers."""
        async with self._in_doubt(kind, key):
            await super().delete(kind, key, **options)
        self._gone[options["uid"]] = None

    def _remember(self, kind: Any, answer: Unstructured) -> Unstructured:
        meta = answer.metadata
        if meta.deletion_timestamp is not None and not meta.finalizers:
            self._gone[meta.uid] = None
        else:
            self._written[gvk_of(kind), answer.key] = (meta.uid, int(meta.resource_version))
        return answer

    @asynccontextmanager
    async def _in_doubt(self, kind: Any, key: ObjectKey) -> AsyncIterator[None]:
        try:
            yield
        except (ConnectionFailed, ServerError):
            # no answer: what is there now is what must be seen from now on
            if (truth := await self._world.client.find(gvk_of(kind), key)) is not None:
                self._written[gvk_of(kind), key] = (truth.metadata.uid, int(truth.metadata.resource_version))
            raise

    async def read(self, kind: type[T], key: ObjectKey) -> Original[T] | None:
        """Read, and check the result."""
        found = await super().read(kind, key)
        await self._compare(kind, key, None if found is None else found.object)
        return found

    async def list(self, kind: Any, **options: Any) -> Any:
        """List, and check the result."""
        found = await super().list(kind, **options)
        by_key = {obj.key: obj for obj in found}
        for written, key in list(self._written):
            if written == gvk_of(kind):
                await self._compare(kind, key, by_key.get(key), owner=options.get("owner", ""))
        return found

    async def _compare(self, kind: Any, key: ObjectKey, seen: Object | None, owner: str = "") -> None:
        uid, version = self._written.get((gvk_of(kind), key), ("", 0))
        if seen is not None and (seen.metadata.uid in self._gone or int(seen.metadata.resource_version) < version):
            self._world.violations.append(f"{kind.__name__} {key} was read as of {seen.metadata.resource_version}, written as of {version}")
        if seen is None and uid:
            truth = await self._world.client.find(gvk_of(kind), key)
            is_owned = truth is not None and (not owner or any(r.uid == owner for r in truth.metadata.owner_references))
            if truth is not None and truth.metadata.uid == uid and is_owned:
                self._world.violations.append(f"{kind.__name__} {key} was written but is not seen")
