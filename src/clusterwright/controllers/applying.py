"""Server-side apply that sends a request only if it may change something."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from clusterwright.api.meta import Json, ObjectKey, ObjectMeta, Unstructured
from clusterwright.api.wellknown import CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION
from clusterwright.controllers import field_ownership
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import Conflict

_TRIES = 3
CREATORS: Final = (CLONED_FROM_NAME_ANNOTATION, CLONED_FROM_GROUP_KIND_ANNOTATION)
"""Fields that stay with the creator of an object: they record how it was made."""


async def take_over(client: Client, live: Unstructured, giver: str, taker: str) -> None:
    """Take over labels and annotations of an object for another manager of ours, unless done before; raises ApiError.

    `live` is the object with its managedFields. Without this, an apply by the old manager that omits them would remove them.
    """
    for attempt in range(1, _TRIES + 1):
        patch = field_ownership.handed_over(live.json, giver, taker, CREATORS)
        if patch is None:
            return
        try:
            await client.patch(live.gvk, live.key, patch, type="json")
            return
        except Conflict:  # a provider was quick to write
            if attempt == _TRIES:
                raise
        live = await client.live.get(live.gvk, live.key)


class _InForce(NamedTuple):
    digest: str
    resource_version: str
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply. `object` is the API server's answer, None if no request was needed.

    `mended`: managedFields had to be repaired first, and nothing was applied; retry soon.
    """

    object: Unstructured | None = None
    repaired: bool = False


class Applier:
    """Applies intents of one controller, and remembers which are in force.

    Caches do not keep managedFields. Read them once per object and process, and whenever the intent is new or its values differ: then we
    may own fields that must be removed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._in_force: dict[ObjectKey, dict[tuple[str, str], _InForce]] = {}

    async def create(self, owner: ObjectKey, intent: Json, manager: str) -> Unstructured:
        """Apply an intent for an object that is not expected to exist; raises ApiError."""
        answer = await self._client.apply(intent, field_manager=manager)
        self._note(owner, answer, intent, manager)
        return answer

    async def apply_if_changed(self, owner: ObjectKey, known: ObjectMeta | None, intent: Json, manager: str) -> None:
        """Apply the intent unless the object has not changed since the same intent was applied; raises ApiError.

        `known` is the metadata of the object as a cache shows it, None if there is no object.
        """
        before = self._in_force.get(owner, {}).get((known.uid, manager)) if known is not None else None
        if known is None or before != _InForce(field_ownership.digest(intent), known.resource_version):
            await self.create(owner, intent, manager)

    def is_settled(self, owner: ObjectKey, known: ObjectMeta, basis: str, manager: str) -> bool:
        """Return whether `ensure` found the intent of the same basis in force, and the object has not changed since."""
        before = self._in_force.get(owner, {}).get((known.uid, manager))
        return before is not None and before.basis == basis and before.resource_version == known.resource_version

    def made_with(self, owner: ObjectKey, created: Unstructured, intent: Json, manager: str) -> None:
        """Record that an object was created with the whole intent: no apply is needed until `manager` wants a change."""
        self._note(owner, created, intent, manager)

    async def ensure(
        self, owner: ObjectKey, known: Unstructured, intent: Json, manager: str, *, previous_manager: str = "", basis: str = ""
    ) -> Applied:
        """Apply the intent unless it is in force; raises ApiError. `known` is the object as a cache shows it.

        `previous_manager`: another manager of ours, which created the object with its labels and annotations. They are taken over when they
        have to change for the first time, which is rare. `basis`: a digest of what else the intent was made of (`is_settled`).
        """
        metadata, digest = known.metadata, field_ownership.digest(intent)
        before = self._in_force.get(owner, {}).get((metadata.uid, manager))
        if before is not None and before.digest == digest:
            if before.resource_version == metadata.resource_version:
                self._in_force[owner][metadata.uid, manager] = before._replace(basis=basis)
                return Applied()
            if field_ownership.contains(known.json, intent):
                self._note(owner, known, intent, manager, basis)
                return Applied()
        fresh = await self._client.live.get(known.gvk, known.key)
        repair = field_ownership.repaired(fresh.json, manager)
        if repair is not None:
            await self._client.patch(fresh.gvk, fresh.key, repair, type="json")
            return Applied(repaired=True)
        is_tracked = bool((fresh.json.get("metadata") or {}).get("managedFields"))
        is_held = bool(previous_manager) and field_ownership.is_held(fresh.json, intent, previous_manager, manager, CREATORS)
        if is_tracked and (is_held or field_ownership.is_in_force(fresh.json, intent, manager)):
            self._note(owner, known, intent, manager, basis)
            return Applied()
        if previous_manager:
            await take_over(self._client, fresh, previous_manager, manager)
        return Applied(await self.create(owner, intent, manager))

    def _note(self, owner: ObjectKey, obj: Unstructured, intent: Json, manager: str, basis: str = "") -> None:
        metadata = obj.metadata
        in_force = _InForce(field_ownership.digest(intent), metadata.resource_version, basis)
        self._in_force.setdefault(owner, {})[metadata.uid, manager] = in_force

    def keep_only(self, owner: ObjectKey, uids: Collection[str]) -> None:
        """Forget all objects of the owner except these."""
        known = self._in_force.get(owner)
        if known:
            self._in_force[owner] = {identity: state for identity, state in known.items() if identity[0] in uids}

    def forget(self, owner: ObjectKey) -> None:
        """Forget the owner and all its objects."""
        self._in_force.pop(owner, None)
