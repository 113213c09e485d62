"""Which resources a server serves: the built-ins, shared by all servers, and what its own CRDs define."""

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
        """By group, version and kind."""
        found: dict[ResourceKey, Resource] = {}
        for resource in self.values():
            found.setdefault((resource.group, resource.version, resource.kind), resource)
        return found

    @cached_property
    def by_table(self) -> dict[str, list[Resource]]:
        """By the table that holds their objects."""
        found: dict[str, list[Resource]] = {}
        for resource in self.values():
            found.setdefault(resource.storage_key, []).append(resource)
        return found

    @cached_property
    def documents(self) -> dict[Hashable, Any]:
        """Documents made from these resources, by name. Servers with the same resources share them."""
        return {}


class Registry:
    """Resources by group, version and plural. `base` is shared and never changed; the rest belongs to one server."""

    __slots__ = ("__weakref__", "_base", "_own", "_versions", "generation")

    def __init__(self, base: Mapping[ResourceKey, Resource]) -> None:
        self._base = base if isinstance(base, Index) else Index(base)
        self._own = Index()
        self._versions: dict[str, Versions] = {}
        self.generation = 0
        """Grows with every change; discovery and OpenAPI documents are cached by it."""

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource that is served there, if any."""
        key = (group, version, plural)
        return self._own.get(key) or self._base.get(key)

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the resource whose objects have this kind, if any."""
        key = (group, version, kind)
        found = self._base.by_kind.get(key)
        return found if found is not None and self._is_served(found) else self._own.by_kind.get(key)

    def __iter__(self) -> Iterator[Resource]:
        yield from (r for k, r in self._base.items() if k not in self._own)
        yield from self._own.values()

    def _is_served(self, resource: Resource) -> bool:
        """Return whether a resource of the base is not overridden."""
        return (resource.group, resource.version, resource.plural) not in self._own

    def add(self, resources: Iterable[Resource]) -> None:
        """Serve these resources."""
        self._change({**self._own, **index(resources)})

    def share(self, other: Registry) -> None:
        """Serve what another registry with the same base serves."""
        self._own = other._own
        self.generation += 1
        self._versions = other._versions.copy()

    def remove(self, group: str, plural: str) -> None:
        """Serve this resource no longer, in any version."""
        self._change({k: r for k, r in self._own.items() if (k[0], k[2]) != (group, plural)})

    def _change(self, own: Mapping[ResourceKey, Resource]) -> None:
        self._own = Index(own)
        self.generation += 1
        self._versions.clear()

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
        return [*filter(self._is_served, self._base.by_table.get(table, ())), *self._own.by_table.get(table, ())]

    def of_table(self, table: str) -> Resource | None:
        """Return the resource in whose version a table's objects are stored."""
        sharing = self._sharing(table)
        stored = [r for r in sharing if r.api_version == (r.storage or r.api_version)]
        return stored[-1] if stored else next(iter(sharing), None)

    @property
    def documents(self) -> dict[Hashable, Any]:
        """Documents about the served resources by what they are; empty again when other resources are served."""
        return (self._own or self._base).documents

    def served(self) -> Served:
        """Return all resources by group and version, each list sorted by plural. Any thread may call it."""
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
