"""The resources that a server serves: the built-ins, shared by all servers, and those of its own CRDs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.interfaces import Resource

ResourceKey = tuple[str, str, str]
"""Group, version, plural."""
Served = Mapping[str, Mapping[str, Sequence[Resource]]]
"""Resources by group and version."""


class Index(dict[ResourceKey, Resource]):
    """Resources by key. Secondary indexes are built on first use, so the mapping must not change afterwards."""

    @cached_property
    def by_kind(self) -> dict[ResourceKey, Resource]:
        """The resources by group, version and kind."""
        found: dict[ResourceKey, Resource] = {}
        for resource in self.values():
            found.setdefault((resource.group, resource.version, resource.kind), resource)
        return found

    @cached_property
    def by_table(self) -> dict[str, list[Resource]]:
        """The resources by the table that holds their objects."""
        found: dict[str, list[Resource]] = {}
        for resource in self.values():
            found.setdefault(resource.storage_key, []).append(resource)
        return found

    @cached_property
    def documents(self) -> dict[Hashable, Any]:
        """Documents built from these resources, by name. Servers with the same resources share them."""
        return {}


class _By(dict[Hashable, dict[ResourceKey, Resource]]):
    """Resources by one of their properties, in the order in which they were added."""

    def add(self, value: Hashable, key: ResourceKey, resource: Resource) -> None:
        self.setdefault(value, {})[key] = resource

    def remove(self, value: Hashable, key: ResourceKey) -> None:
        having = self[value]
        del having[key]
        if not having:
            del self[value]

    def of(self, value: Hashable) -> list[Resource]:
        return list(self.get(value, {}).values())

    def copied(self) -> _By:
        return _By({value: resources.copy() for value, resources in self.items()})


class _Own:
    """The resources of one server's CRDs. The cost of adding and removing one does not depend on their number."""

    __slots__ = ("by_key", "by_kind", "by_name", "by_table")

    def __init__(self, by_key: dict[ResourceKey, Resource], by_kind: _By, by_name: _By, by_table: _By) -> None:
        self.by_key, self.by_kind, self.by_name, self.by_table = by_key, by_kind, by_name, by_table

    def copied(self) -> _Own:
        return _Own(self.by_key.copy(), self.by_kind.copied(), self.by_name.copied(), self.by_table.copied())

    def _places(self, resource: Resource) -> Iterable[tuple[_By, Hashable]]:
        yield self.by_kind, (resource.group, resource.version, resource.kind)
        yield self.by_name, (resource.group, resource.plural)
        yield self.by_table, resource.storage_key

    def add(self, key: ResourceKey, resource: Resource) -> None:
        self.remove(key)
        self.by_key[key] = resource
        for place, value in self._places(resource):
            place.add(value, key, resource)

    def remove(self, key: ResourceKey) -> None:
        resource = self.by_key.pop(key, None)
        if resource is not None:
            for place, value in self._places(resource):
                place.remove(value, key)


class Registry:
    """Resources by group, version and plural. `base` is shared and never changed; the rest belongs to one server."""

    __slots__ = ("__weakref__", "_base", "_own", "_versions", "documents", "generation")

    def __init__(self, base: Mapping[ResourceKey, Resource]) -> None:
        self._base = base if isinstance(base, Index) else Index(base)
        self._own = _Own({}, _By(), _By(), _By())
        self._versions: dict[str, Versions] = {}
        self.generation = 0
        """Grows with every change; hashes of OpenAPI documents contain it."""
        self.documents = self._base.documents
        """Documents about the served resources by name; cleared when the served resources change."""

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource with this key, if it is served."""
        key = (group, version, plural)
        return self._own.by_key.get(key) or self._base.get(key)

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the resource whose objects have this kind, if any."""
        key = (group, version, kind)
        found = self._base.by_kind.get(key)
        return found if found is not None and self._is_served(found) else next(iter(self._own.by_kind.of(key)), None)

    def __iter__(self) -> Iterator[Resource]:
        own = self._own.by_key
        yield from (r for k, r in self._base.items() if k not in own)
        yield from list(own.values())

    def _is_served(self, resource: Resource) -> bool:
        """Return whether a resource of the base is not overridden."""
        return (resource.group, resource.version, resource.plural) not in self._own.by_key

    def add(self, resources: Iterable[Resource]) -> None:
        """Serve these resources."""
        for resource in resources:
            self._own.add((resource.group, resource.version, resource.plural), resource)
        self._changed()

    def share(self, other: Registry) -> None:
        """Serve the resources of another registry with the same base."""
        self._own = other._own.copied()
        self.generation += 1
        self._versions = other._versions.copy()
        self.documents = other.documents

    def remove(self, group: str, plural: str) -> None:
        """Stop serving this resource, in all versions."""
        for resource in self._own.by_name.of((group, plural)):
            self._own.remove((group, resource.version, plural))
        self._changed()

    def _changed(self) -> None:
        self.generation += 1
        self._versions.clear()
        self.documents = {}

    def versions(self, resource: Resource) -> Versions:
        """Return all versions of the resource's kind that share its objects."""
        key = resource.storage_key
        found = self._versions.get(key)
        if found is None:
            found = self._versions[key] = Versions({r.api_version: r.handler for r in self._sharing(key)}, resource.converter)
        return found

    def equivalents(self, resource: Resource) -> list[Resource]:
        """Return all resources with the same objects: the versions of a kind, and the same kind in another group."""
        return self._sharing(resource.storage_key)

    def _sharing(self, table: str) -> list[Resource]:
        return [*filter(self._is_served, self._base.by_table.get(table, ())), *self._own.by_table.of(table)]

    def of_table(self, table: str) -> Resource | None:
        """Return the resource in whose version a table's objects are stored."""
        sharing = self._sharing(table)
        stored = [r for r in sharing if r.api_version == (r.storage or r.api_version)]
        return stored[-1] if stored else next(iter(sharing), None)

    def served(self) -> Served:
        """Return all resources by group and version, each list sorted by plural."""
        documents = self.documents
        found: dict[str, dict[str, list[Resource]]] | None = documents.get("served")
        if found is None:
            found = {}
            for resource in sorted(self, key=lambda r: r.plural):
                found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
            documents["served"] = found
        return found


def index(resources: Iterable[Resource]) -> Index:
    """Return resources by key."""
    return Index({(r.group, r.version, r.plural): r for r in resources})
