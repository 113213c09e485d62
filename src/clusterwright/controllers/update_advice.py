"""Asking a runtime extension whether Machines can be updated in place, and judging its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.controllers.update_patches import patched
from clusterwright.topology.extensions import CallHandler, ExtensionError, Extensions, ListHandlers

_NOT_COMPARED: Final = frozenset(
    {
        "clusterName",
        "bootstrap",
        "infrastructureRef",
        "providerID",
        "minReadySeconds",
        "readinessGates",
        "deletion",
        "taints",
    }
)
"""Fields of a Machine that do not tell whether an update in place brought about what is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A hook that says what can be updated. `path` leads to what may change in each part; `machine` names the part like a Machine."""

    name: str
    path: Sequence[str]
    machine: str

    async def handler(self, extensions: Extensions, subject: Json) -> str:
        """The one extension that can be asked; empty: there is none. Raises ExtensionError."""
        handlers = await extensions.handlers(ListHandlers(self.name, subject))
        if len(handlers) > 1:
            raise ExtensionError(f"found multiple {self.name} hooks ({','.join(handlers)}): only one hook is supported")
        return handlers[0] if handlers else ""

    async def can_update(
        self, extensions: Extensions, handler: str, subject: Json, current: Mapping[str, Json], desired: Mapping[str, Json]
    ) -> bool:
        """Whether the extension can make of each part what is desired. Raises ExtensionError or PatchFailed."""
        request = {"current": current, "desired": desired}
        answer = await extensions.call(CallHandler(self.name, handler, subject, request))
        after = {part: patched(obj, answer.get(f"{part}Patch"), self.path) for part, obj in current.items()}
        return self.matches(after, desired)

    def matches(self, current: Mapping[str, Json], desired: Mapping[str, Json]) -> bool:
        """Whether the patched objects are what is wanted."""
        for part, wanted in desired.items():
            ours, theirs = self._changeable(current.get(part) or {}), self._changeable(wanted)
            if part == self.machine:
                ours, theirs = ({k: v for k, v in s.items() if k not in _NOT_COMPARED and v not in (None, "")} for s in (ours, theirs))
            if ours != theirs:
                return False
        return True

    def _changeable(self, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Any = obj
        for step in self.path:
            found = (found or {}).get(step)
        return found or {}
