"""The objects of a live installation that today's admission would refuse: the next write of each would fail."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final

from clusterwright.admission.hook import Access, Request
from clusterwright.admission.registry import hook_for
from clusterwright.api.meta import Json, Unstructured
from clusterwright.apiserver.status import StatusError
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.offline.ownership import name_of
from clusterwright.runtime.client import Reader

_ALL_GATES: Final = dict.fromkeys(DEFAULT_FEATURES, True)
"""Which gates will be on is not known here; an object that is refused only because a gate is off is not reported."""


async def refused(reader: Reader, documents: Iterable[Json]) -> list[Json]:
    """Return each object that an update without any change would be refused for, with the reason."""
    found = []
    for document in documents:
        obj = Unstructured(document)
        hook = hook_for(obj.gvk.group, obj.gvk.kind)
        if hook is None or obj.gvk != hook.kind or obj.metadata.deletion_timestamp is not None:
            continue
        request = Request(
            operation="UPDATE",
            kind=hook.kind,
            namespace=obj.key.namespace,
            name=obj.key.name,
            object=copy.deepcopy(document),
            old_object=copy.deepcopy(document),
            dry_run=True,
        )
        access = Access(reader)
        try:
            await hook.default(request, _ALL_GATES, access)
            await hook.validate(request, _ALL_GATES, access)
        except StatusError as error:
            found.append({"object": name_of(obj.gvk.kind, *obj.key), "error": str(error)})
    return found
