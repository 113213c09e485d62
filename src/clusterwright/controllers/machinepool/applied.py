"""Server-side apply that is not repeated: an intent that was applied to a state of an object changes nothing there.

Held in memory only: after a restart everything is applied once more, which is as good.
"""

from __future__ import annotations

import hashlib

import msgspec

from clusterwright.api.core import Machine
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.runtime.client import Client


class Applied:
    """Remembers which intent made which state of which Machine of a pool."""

    def __init__(self, client: Client, field_manager: str) -> None:
        self._client = client
        self._manager = field_manager
        self._known: dict[ObjectKey, dict[str, tuple[str, str]]] = {}

    def forget(self, pool: ObjectKey) -> None:
        """The pool is gone."""
        self._known.pop(pool, None)

    def keep(self, pool: ObjectKey, names: set[str]) -> None:
        """Only these Machines are left."""
        self._known[pool] = {name: known for name, known in self._known.get(pool, {}).items() if name in names}

    async def apply(self, pool: ObjectKey, intent: Json, present: Machine | None) -> Unstructured | None:
        """Apply the intent unless the Machine, as it is now, came of it; the answer, or None. Raises ApiError."""
        known, name = self._known.setdefault(pool, {}), intent["metadata"]["name"]
        digest = hashlib.sha256(msgspec.json.encode(intent, order="sorted")).hexdigest()
        if present is not None and known.get(name) == (digest, present.metadata.resource_version):
            return None
        answer = await self._client.apply(intent, field_manager=self._manager)
        known[name] = (digest, answer.metadata.resource_version)
        return answer
