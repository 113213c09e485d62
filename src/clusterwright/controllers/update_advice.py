"""Ask a runtime extension whether Machines can be updated in place, and judge its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from clusterwright.api.core import MachineSpec
from clusterwright.api.meta import Json
from clusterwright.controllers.update_patches import at, patched
from clusterwright.golang.jsonpatch import PatchFailed
from clusterwright.topology.extensions import CallHandler, ExtensionError, Extensions, ListHandlers

_COMPARED: Final = ("version", "failure_domain")
"""The Machine fields that show whether an in-place update had the wanted effect; others change without one, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A hook that returns what can be updated.

    `path` selects the updatable fields of each part; `machine` names the part like a Machine.
    """

    name: str
    path: Sequence[str]
    machine: str

    async def handler(self, extensions: Extensions, subject: Json) -> str:
        """Return the one extension with this hook; empty if there is none. Raises ExtensionError."""
        handlers = await extensions.handlers(ListHandlers(self.name, subject))
        if len(handlers) > 1:
            raise ExtensionError(f"found multiple {self.name} hooks ({','.join(handlers)}): only one hook is supported")
        return handlers[0] if handlers else ""

    async def can_update(
        self, extensions: Extensions, handler: str, subject: Json, current: Mapping[str, Json], desired: Mapping[str, Json]
    ) -> bool:
        """Return whether the extension can bring each part to its desired state. Raises ExtensionError or PatchFailed."""
        request = {"current": current, "desired": desired}
        answer = await extensions.call(CallHandler(self.name, handler, subject, request))
        after = {part: patched(obj, answer.get(f"{part}Patch"), self.path) for part, obj in current.items()}
        return self.matches(after, desired)

    def matches(self, current: Mapping[str, Json], desired: Mapping[str, Json]) -> bool:
        """Return whether the patched objects match the desired ones. Raises PatchFailed for unreadable ones."""
        return all(self._judged(part, current.get(part)) == self._judged(part, wanted) for part, wanted in desired.items())

    def _judged(self, part: str, obj: Json | None) -> Any:
        """Return the compared fields of a part."""
        found = at(obj, self.path)
        if part != self.machine:
            return found
        try:
            spec = msgspec.convert({} if found is None else found, MachineSpec)
        except msgspec.ValidationError as error:
            raise PatchFailed(f"{part} cannot be read: {error}") from None
        return [getattr(spec, field) for field in _COMPARED]
