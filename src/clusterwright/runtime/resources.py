"""Which REST path serves a kind: from the scheme where we have a model, else from the API server's discovery."""

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
    """Resolves kinds to resources and remembers the answers; a kind that is not served is asked for again next time."""

    def __init__(self, fetch: Callable[[str], Awaitable[bytes]], known: Lookup) -> None:
        self._fetch = fetch
        self._known = known
        self._found: dict[GroupVersionKind, Resource] = {}

    def peek(self, kind: Kind) -> Resource | None:
        """The resource if no request is needed to tell it."""
        gvk = gvk_of(kind)
        return self._found.get(gvk) or self._known(gvk)

    async def of(self, kind: Kind) -> Resource:
        """Return the resource that serves the kind; raises NoKindMatch where the API server has none."""
        return self.peek(kind) or await self._discover(gvk_of(kind))

    def forget(self, gvk: GroupVersionKind) -> None:
        """Ask again next time: the API server does not serve it where it did."""
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
    """Return the error for a kind that the API server does not serve: never to be taken for a missing object."""
    return NoKindMatch(f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"')


def gvk_of_json(obj: Any) -> GroupVersionKind:
    """Return the kind that an object says it is; raises ValueError if it does not."""
    if not obj.get("kind") or not obj.get("apiVersion"):
        raise ValueError("an object to be written must name its apiVersion and kind")
    return GroupVersionKind.of(str(obj["apiVersion"]), str(obj["kind"]))
