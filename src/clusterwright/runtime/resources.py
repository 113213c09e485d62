"""Find the REST path of a kind: from the scheme if it has a model, else from the API server's discovery."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind, Object
from clusterwright.api.scheme import Resource, gvk_of
from clusterwright.runtime.errors import NoKindMatch, NotFound

Kind = type[Object] | GroupVersionKind


class _ApiResource(msgspec.Struct):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _ApiResourceList(msgspec.Struct):
    resources: tuple[_ApiResource, ...] = ()


Lookup = Callable[[GroupVersionKind], Resource | None]


class Resources:
    """Resolves kinds to resources and caches the answers; an unserved kind is requested again next time."""

    def __init__(self, fetch: Callable[[str], Awaitable[bytes]], known: Lookup) -> None:
        self._fetch = fetch
        self._known = known
        self._found: dict[GroupVersionKind, Resource] = {}

    def peek(self, kind: Kind) -> Resource | None:
        """Return the resource if that needs no request."""
        gvk = gvk_of(kind)
        return self._found.get(gvk) or self._known(gvk)

    async def of(self, kind: Kind) -> Resource:
        """Return the resource of the kind; raises NoKindMatch if the API server does not serve it."""
        return self.peek(kind) or await self._discover(gvk_of(kind))

    def forget(self, gvk: GroupVersionKind) -> None:
        """Drop the cached resource: the API server no longer serves it there."""
        self._found.pop(gvk, None)

    async def _discover(self, gvk: GroupVersionKind) -> Resource:
        try:
            body = await self._fetch(f"/apis/{gvk.api_version}" if gvk.group else f"/api/{gvk.version}")
        except NotFound as error:
            raise no_kind_match(gvk) from error
        for item in msgspec.json.decode(body, type=_ApiResourceList).resources:
            if "/" not in item.name and item.kind:
                found = GroupVersionKind(gvk.group, gvk.version, item.kind)
                self._found.setdefault(found, Resource(found, item.name, item.namespaced))
        resource = self._found.get(gvk)
        if resource is None:
            raise no_kind_match(gvk)
        return resource


def no_kind_match(gvk: GroupVersionKind) -> NoKindMatch:
    """Return the error for a kind that the API server does not serve: different from a missing object."""
    return NoKindMatch(f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"')


def gvk_of_json(obj: Any) -> GroupVersionKind:
    """Return the kind in an object's JSON; raises ValueError if there is none."""
    if not obj.get("kind") or not obj.get("apiVersion"):
        raise ValueError("an object to write must have apiVersion and kind")
    return GroupVersionKind.of(str(obj["apiVersion"]), str(obj["kind"]))
