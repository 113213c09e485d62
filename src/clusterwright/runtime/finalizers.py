"""The four cases of a finalizer. It is added before any other action, by a separate patch that ends the pass.

              no finalizer of ours            our finalizer is there
  living      add it, end the pass: ADDED     go on: PRESENT
  deleting    ours to do is nothing: ABSENT   clean up, then patch the object `without` it: CLEANUP

Guarantee: whatever a reconcile creates after PRESENT is cleaned up by some pass that sees CLEANUP. A finalizer is never added
to an object that is being deleted (the API server refuses it), so ABSENT objects are on their way out.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from clusterwright.api.copying import replace
from clusterwright.api.meta import Object
from clusterwright.runtime.client import Original
from clusterwright.runtime.patch import Patcher

T = TypeVar("T", bound=Object)


class Finalization(Enum):
    """Which of the four cases holds."""

    ADDED = "added"
    PRESENT = "present"
    CLEANUP = "cleanup"
    ABSENT = "absent"


async def ensure_finalizer(patcher: Patcher, original: Original[T], finalizer: str) -> Finalization:
    """Return the case, after adding a missing finalizer; after ADDED the pass must end."""
    metadata = original.object.metadata
    match (finalizer in metadata.finalizers, metadata.deletion_timestamp is not None):
        case (True, True):
            return Finalization.CLEANUP
        case (False, True):
            return Finalization.ABSENT
        case (True, False):
            return Finalization.PRESENT
    await patcher.patch(original, with_finalizer(original.object, finalizer))
    return Finalization.ADDED


def with_finalizer(obj: T, finalizer: str) -> T:
    """Return the object with the finalizer."""
    if finalizer in obj.metadata.finalizers:
        return obj
    return replace(obj, metadata=replace(obj.metadata, finalizers=(*obj.metadata.finalizers, finalizer)))


def without_finalizer(obj: T, finalizer: str) -> T:
    """Return the object without the finalizer."""
    left = tuple(name for name in obj.metadata.finalizers if name != finalizer)
    return replace(obj, metadata=replace(obj.metadata, finalizers=left))
