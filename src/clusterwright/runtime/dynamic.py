"""Watches on kinds learned at run time: a controller reads an object of a provider's kind and must react to its changes."""

from __future__ import annotations

from typing import Any

from clusterwright.api.meta import GroupVersionKind
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.runtime.controller import Controller
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.predicates import all_of, resource_version_changed
from clusterwright.runtime.reconcile import Mapper, Watch


class OwnerWatches:
    """Changes of the kinds queue the controller's own objects that own them; paused objects queue nothing."""

    def __init__(self, controller: Controller) -> None:
        own = gvk_of(controller.kind)
        self._controller = controller
        self._map = owners(own.group, own.kind)
        self._when = all_of(resource_version_changed, _is_not_paused)

    async def ensure(self, kind: GroupVersionKind, also: Mapper | None = None, *, lasting: bool = False) -> None:
        """Watch the kind from now on; cheap when it is watched already. Raises NoKindMatch; the next call tries again.

        `also` names further keys that a change queues; it must be the same function every time. `lasting`: creation and deletion of an
        object do not queue its owners. It is for objects that owners create and delete again after a failure: each attempt would cause the
        next one.
        """
        when = all_of(self._when, _is_lasting) if lasting else self._when
        await self._controller.watch(Watch(kind, self._map, when))
        if also is not None:
            await self._controller.watch(Watch(kind, also))


def _is_not_paused(old: Any | None, new: Any | None) -> bool:
    obj = new if new is not None else old
    return obj is not None and PAUSED_ANNOTATION not in obj.metadata.annotations


def _is_lasting(old: Any | None, new: Any | None) -> bool:
    return old is not None and new is not None
