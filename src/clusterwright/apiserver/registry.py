"""Which resources a server serves: the built-ins, shared by all servers, and what its own CRDs define."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.interfaces import Resource

ResourceKey = tuple[str, str, str]
"""Group, version, plural."""


class Registry:
    """Resources by group, version and plural. `base` is shared and never changed; the rest belongs to one server."""

    __slots__ = ("__weakref__", "_base", "_own", "_tables", "_versions", "generation")

    def __init__(self, base: Mapping[ResourceKey, Resource]) -> None:
        self._base = base
        self._own: dict[ResourceKey, Resource] = {}
        self._versions: dict[str, Versions] = {}
        self._tables: dict[str, Resource] = {}
        self.generation = 0
        """Grows with every change; discovery and OpenAPI documents are cached by it."""

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource served there, if any."""
        key = (group, version, plural)
        return self._own.get(key) or self._base.get(key)

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource whose objects have this kind."""
        for resource in self:
            if resource.kind == kind and resource.group == group and resource.version == version:
                return resource
        return None

    def __iter__(self) -> Iterator[Resource]:
        yield from (r for k, r in self._base.items() if k not in self._own)
        yield from self._own.values()

    def add(self, resources: Iterable[Resource]) -> None:
        """Serve these."""
        for resource in resources:
            self._own[resource.group, resource.version, resource.plural] = resource
        self._changed()

    def remove(self, group: str, plural: str) -> None:
        """Serve this resource no longer, in any version."""
        for key in [k for k in self._own if k[0] == group and k[2] == plural]:
            del self._own[key]
        self._changed()

    def _changed(self) -> None:
        self.generation += 1
        self._versions.clear()
        self._tables.clear()

    def versions(self, resource: Resource) -> Versions:
        """All versions of the resource's kind that share its objects."""
        key = storage_key(resource)
        found = self._versions.get(key)
        if found is None:
            handlers = {r.api_version: r.handler for r in self if storage_key(r) == key}
            found = self._versions[key] = Versions(handlers, resource.converter)
        return found

    def equivalents(self, resource: Resource) -> list[Resource]:
        """All resources of the same objects: the versions of a kind, and the same kind in another group."""
        key = storage_key(resource)
        return [r for r in self if storage_key(r) == key]

    def of_table(self, table: str) -> Resource | None:
        """The resource that stores a table's objects."""
        if not self._tables:
            for resource in self:
                key = storage_key(resource)
                if key not in self._tables or resource.api_version == (resource.storage or resource.api_version):
                    self._tables[key] = resource
        return self._tables.get(table)

    def groups(self) -> set[str]:
        """All groups served."""
        return {r.group for r in self}


def storage_key(resource: Resource) -> str:
    """The name of the table that holds the resource's objects."""
    return resource.storage_key


def index(resources: Iterable[Resource]) -> dict[ResourceKey, Resource]:
    """Resources by their key."""
    return {(r.group, r.version, r.plural): r for r in resources}
