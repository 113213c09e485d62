"""Our kinds in the admission chain of the embedded API server: the hooks of `HOOKS`, without the way over a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.admission.hook import Access, Hook, Request
from clusterwright.admission.registry import hook_for
from clusterwright.api.meta import Json
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.verbs.scale import scale_of
from clusterwright.runtime.rest import RestClient


class OwnKinds:
    """A link that defaults and validates writes of our kinds; all others pass."""

    def __init__(self, features: Mapping[str, bool]) -> None:
        self._features = features

    async def mutate(self, attributes: Attributes) -> None:
        """Fill in defaults."""
        hook = self._hook(attributes)
        if hook is not None and hook.is_mutating:
            await hook.default(_request(attributes), self._features, _access(attributes))

    async def validate(self, attributes: Attributes) -> None:
        """Refuse with every broken rule at once."""
        hook = self._hook(attributes)
        if hook is not None:
            await hook.validate(_request(attributes), self._features, _access(attributes))

    def _hook(self, attributes: Attributes) -> Hook | None:
        resource = attributes.resource
        return hook_for(resource.group, resource.kind, attributes.subresource)


def _request(attributes: Attributes) -> Request:
    operation: Any = attributes.operation
    new, old = attributes.object, attributes.old_object
    if attributes.subresource == "scale":
        new, old = (_scale(attributes, obj) for obj in (new, old))
    return Request(
        operation=operation,
        kind=attributes.resource.gvk,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
        object=new,
        old_object=old,
        dry_run=attributes.dry_run,
        warnings=attributes.warnings,
    )


def _scale(attributes: Attributes, obj: Json | None) -> Json | None:
    paths = attributes.resource.scale
    return obj if obj is None or paths is None else scale_of(obj, paths)


def _access(attributes: Attributes) -> Access:
    return Access(RestClient(InProcessTransport(attributes.server)))
