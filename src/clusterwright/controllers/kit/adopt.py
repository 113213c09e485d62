"""Reads, watches and adopts the objects that objects of one kind refer to: with the same code for all.

The kind is watched before the object is read, so that an object that appears later requeues the referrer. Adoption is a patch with the
resourceVersion that was read; after a conflict, the object is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clusterwright.api.codec import to_json
from clusterwright.api.meta import Json, Object, ObjectKey, OwnerReference, Unstructured
from clusterwright.controllers.external import AlreadyControlled, ContractUnknown, Reference, contract_of, with_owner
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Awaited, Expectations, Found, Lookup, Missing, Unreadable, names_anything
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, Conflict, NotFound

_TRIES = 3

Adoption = Callable[[Unstructured], Json | None]
"""Return the merge patch that adopts an object, None if it is adopted; may raise AlreadyControlled."""


class Providers:
    """The provider objects that a controller's objects refer to."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._expectations = Expectations()

    def forget(self, referrer: ObjectKey) -> None:
        """Forget a referrer that is gone."""
        self._expectations.forget(referrer)

    async def look_up(self, referrer: ObjectKey, reference: Reference | None, adoption: Adoption | None = None) -> Lookup:
        """Return the object that a reference names in the referrer's namespace, adopted by `adoption`; without `adoption` only read."""
        if reference is None or not names_anything(reference):
            return NOT_REFERENCED
        key = ObjectKey(referrer.namespace, reference.name)
        awaited = Awaited(reference.api_group, reference.kind, key)
        self._expectations.expect(referrer, awaited)
        try:
            contract = await contract_of(self._deps.client, reference.api_group, reference.kind)
            await self._deps.dynamic.ensure(contract.gvk, self._expectations.referrers)
            found = await self._deps.client.get(contract.gvk, key)
        except NotFound:
            return Missing()
        except (ApiError, ContractUnknown) as error:
            return Unreadable(f"failed to retrieve {reference.kind} {key}: {error}", error)
        if adoption is None:
            return Found(found, contract.contract)
        try:
            found = await self._adopted(found, adoption)
        except NotFound:
            return Missing()
        except (ApiError, AlreadyControlled) as error:
            return Unreadable(f"failed to set the owner of {reference.kind} {key}: {error}", error)
        self._expectations.met(referrer, awaited)
        return Found(found, contract.contract)

    async def _adopted(self, obj: Unstructured, adoption: Adoption) -> Unstructured:
        client = self._deps.client
        if adoption(obj) is None:
            return obj
        for attempt in range(1, _TRIES + 1):
            try:
                async with client.turn(obj.gvk, obj.key):
                    if attempt == 1:
                        obj = await client.get(obj.gvk, obj.key)  # as it is now that nobody else of this process writes it
                    patch = adoption(obj)
                    return obj if patch is None else await client.patch(obj.gvk, obj.key, patch)
            except Conflict:  # someone else wrote the object meanwhile: look at what is there now
                if attempt == _TRIES:
                    raise
            obj = await client.live.get(obj.gvk, obj.key)
        raise AssertionError("the last try returns or raises")


def owner_reference(owner: Object, *, controller: bool) -> OwnerReference:
    """Return a reference to the owner; the garbage collector waits for what a controller owns."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True if controller else None,
        block_owner_deletion=True if controller else None,
    )


def owned_metadata(
    obj: Unstructured, owner: OwnerReference, labels: Mapping[str, str], *, drops: Callable[[OwnerReference], bool] | None = None
) -> Json | None:
    """Return a merge patch after which the object has this owner and these labels; None if it has them. Raises AlreadyControlled. Pure.

    References that `drops` names go; all others are kept, with fields that we do not know.
    """
    metadata = obj.metadata
    kept = tuple(r for r in metadata.owner_references if drops is None or not drops(r))
    is_labelled = all(metadata.labels.get(name) == value for name, value in labels.items())
    if len(kept) == len(metadata.owner_references) and is_labelled and any(_is_exactly(r, owner) for r in kept):
        return None
    references = [to_json(r) for r in with_owner(kept, owner)]
    # the list replaces what is there, so that it must be what was read
    changes: Json = {"ownerReferences": references, "resourceVersion": metadata.resource_version, "uid": metadata.uid}
    if not is_labelled:
        changes["labels"] = dict(labels)
    return {"metadata": changes}


def _is_exactly(reference: OwnerReference, owner: OwnerReference) -> bool:
    mine = (owner.api_version, owner.kind, owner.name, owner.uid, bool(owner.controller))
    return (reference.api_version, reference.kind, reference.name, reference.uid, bool(reference.controller)) == mine
