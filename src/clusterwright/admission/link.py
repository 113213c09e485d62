"""Our kinds in the admission chain of the embedded API server: the hooks of `HOOKS`, without a network."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from clusterwright.admission.hook import Access, Hook, Request
from clusterwright.admission.registry import hook_for
from clusterwright.admission.workloads import Workloads
from clusterwright.api.meta import Json
from clusterwright.apiserver.attributes import Attributes
from clusterwright.apiserver.conversion import Versions, convert_for_admission
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.verbs.scale import scale_of
from clusterwright.runtime.rest import RestClient


class OwnKinds:
    """A link that defaults and validates writes of our kinds; all others pass."""

    def __init__(self, features: Mapping[str, bool], workloads: Workloads) -> None:
        self._features = features
        self._workloads = workloads

    async def mutate(self, attributes: Attributes) -> None:
        """Set defaults; a write in an old version gets them through the hooks' version."""
        hook = self._hook(attributes)
        if hook is None or not hook.is_mutating or attributes.object is None:
            return
        request = await _request(attributes, hook)
        before = copy.deepcopy(request.object) if request.object is not attributes.object else None
        await hook.default(request, self._features, self._access(attributes))
        if before is not None and request.object is not None and request.object != before:
            (attributes.object,) = await convert_for_admission(_versions(attributes), [request.object], attributes.resource.api_version)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse a write with all violated rules at once."""
        hook = self._hook(attributes)
        if hook is not None:
            await hook.validate(await _request(attributes, hook), self._features, self._access(attributes))

    def _access(self, attributes: Attributes) -> Access:
        return Access(RestClient(InProcessTransport(attributes.server)), self._workloads, worker=attributes.server.worker)

    def _hook(self, attributes: Attributes) -> Hook | None:
        resource = attributes.resource
        return hook_for(resource.group, resource.kind, attributes.subresource)


async def _request(attributes: Attributes, hook: Hook) -> Request:
    """Return the write in the version of the hook; its objects are copies if it is not the requested version."""
    operation: Any = attributes.operation
    new, old = attributes.object, attributes.old_object
    if attributes.subresource == "scale":
        new, old = (_scale(attributes, obj) for obj in (new, old))
    elif hook.kind.version != attributes.resource.version:
        given = [copy.deepcopy(o) for o in (new, old) if o]
        made = iter(await convert_for_admission(_versions(attributes), given, hook.kind.api_version))
        new, old = (next(made) if obj else obj for obj in (new, old))
    return Request(
        operation=operation,
        kind=hook.kind,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
        object=new,
        old_object=old,
        dry_run=attributes.dry_run,
        warnings=attributes.warnings,
    )


def _versions(attributes: Attributes) -> Versions:
    server: Core = attributes.server
    return server.registry.versions(attributes.resource)


def _scale(attributes: Attributes, obj: Json | None) -> Json | None:
    paths = attributes.resource.scale
    return obj if obj is None or paths is None else scale_of(obj, paths)
