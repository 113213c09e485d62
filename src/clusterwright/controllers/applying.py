"""Server-side apply that asks only when it may change something."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.controllers import field_ownership
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import Conflict

_TRIES = 3


class _InForce(NamedTuple):
    digest: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of it. `object` is the API server's answer, None if nothing had to be sent.

    `mended`: managedFields had to be repaired first, and nothing was applied; look again soon.
    """

    object: Unstructured | None = None
    mended: bool = False


class Applier:
    """Applies intents of one controller, and remembers which are in force.

    Caches do not keep managedFields. Those of an object are looked at once in the life of this process, and whenever the intent is
    new or its values are not there: then we may own what has to go.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._in_force: dict[ObjectKey, dict[tuple[str, str], _InForce]] = {}

    def turn(self, intent: Json) -> AbstractAsyncContextManager[None]:
        """While it is held, nobody else of this process writes the object."""
        metadata = intent["metadata"]
        kind = GroupVersionKind.of(intent["apiVersion"], intent["kind"])
        return self._client.turn(kind, ObjectKey(metadata.get("namespace", ""), metadata["name"]))

    async def create(self, owner: ObjectKey, intent: Json, manager: str) -> Unstructured:
        """Apply an intent for an object that is not expected to exist; raises ApiError."""
        answer = await self._client.apply(intent, field_manager=manager)
        self._note(owner, answer, intent, manager)
        return answer

    async def hand_over(self, owner: ObjectKey, created: Unstructured, intent: Json, giver: str, taker: str) -> Unstructured:
        """Leave the labels and annotations of `intent` to another manager of ours, as if it had applied them; raises ApiError."""
        for attempt in range(1, _TRIES + 1):
            patch = field_ownership.handed_over(created.json, giver, taker, intent)
            if patch is None:
                break
            try:
                created = await self._client.patch(created.gvk, created.key, patch, type="json")
                break
            except Conflict:  # a provider was quick to write
                if attempt == _TRIES:
                    raise
            created = await self._client.live.get(created.gvk, created.key)
        self._note(owner, created, intent, taker)
        return created

    async def ensure(self, owner: ObjectKey, known: Unstructured, intent: Json, manager: str) -> Applied:
        """Apply the intent unless it is in force; raises ApiError. `known` is the object as a cache shows it."""
        metadata, digest = known.metadata, field_ownership.digest(intent)
        before = self._in_force.get(owner, {}).get((metadata.uid, manager))
        if before is not None and before.digest == digest:
            if before.resource_version == metadata.resource_version:
                return Applied()
            if field_ownership.contains(known.json, intent):
                self._note(owner, known, intent, manager)
                return Applied()
        fresh = await self._client.live.get(known.gvk, known.key)
        repair = field_ownership.repaired(fresh.json, manager)
        if repair is not None:
            await self._client.patch(fresh.gvk, fresh.key, repair, type="json")
            return Applied(mended=True)
        is_tracked = bool((fresh.json.get("metadata") or {}).get("managedFields"))
        if is_tracked and field_ownership.is_in_force(fresh.json, intent, manager):
            self._note(owner, known, intent, manager)
            return Applied()
        return Applied(await self.create(owner, intent, manager))

    def _note(self, owner: ObjectKey, obj: Unstructured, intent: Json, manager: str) -> None:
        metadata = obj.metadata
        in_force = _InForce(field_ownership.digest(intent), metadata.resource_version)
        self._in_force.setdefault(owner, {})[metadata.uid, manager] = in_force

    def keep_only(self, owner: ObjectKey, uids: Collection[str]) -> None:
        """Drop what is known about objects that are gone."""
        known = self._in_force.get(owner)
        if known:
            self._in_force[owner] = {identity: state for identity, state in known.items() if identity[0] in uids}

    def forget(self, owner: ObjectKey) -> None:
        """The owner is gone."""
        self._in_force.pop(owner, None)
