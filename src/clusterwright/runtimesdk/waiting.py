"""Requeue passes that failed because of an extension when extensions are registered: their retries may be many minutes apart."""

from __future__ import annotations

from collections.abc import Callable

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.reconcile import Reconciler, Result
from clusterwright.runtimesdk.registry import Registry
from clusterwright.topology.extensions import ExtensionError


class WokenByExtensions:
    """A reconciler whose keys are requeued by the registry if their last pass failed because of an extension."""

    def __init__(self, inner: Reconciler, registry: Registry, enqueue: Callable[[ObjectKey, str], None]) -> None:
        self._inner = inner
        self._enqueue = enqueue
        self._waiting: set[ObjectKey] = set()
        registry.subscribe(self._wake)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass."""
        self._waiting.discard(key)
        try:
            return await self._inner.reconcile(key)
        except Exception as error:
            if is_of_an_extension(error):
                self._waiting.add(key)
            raise

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for key in sorted(waiting):
            self._enqueue(key, "an extension was registered")


def is_of_an_extension(error: BaseException | None) -> bool:
    """Return whether an error is, or contains, a failed call of an extension."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ExtensionError):
            return True
        if isinstance(error, BaseExceptionGroup):
            return any(map(is_of_an_extension, error.exceptions))
        error = error.__cause__
    return False
