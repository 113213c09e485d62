"""Answer the calls of runtime extensions in a replica: by calling them, or by assuming that they agree. Every call is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.plan.result import Hook
from clusterwright.runtimesdk.client import Post
from clusterwright.runtimesdk.registry import Handler
from clusterwright.topology.extensions import HOOKS_API_VERSION

CONTENT: Final[Mapping[str, str]] = {
    "GeneratePatches": "it is assumed to patch nothing",
    "DiscoverVariables": "it is assumed to define no variables",
    "GenerateUpgradePlan": "it is assumed to plan no upgrades",
}
"""Hooks whose answers are content: an assumed answer makes a plan wrong where the extension says more than yes."""


class Answering:
    """A `Post` that records calls. Without a `call` of its own, extensions agree to everything and change nothing."""

    def __init__(self, call: Post | None, objects: Iterable[Mapping[str, Any]]) -> None:
        self._call = call
        self._known = {str(o["metadata"]["name"]): o for o in objects if o.get("kind") == "ExtensionConfig"}
        self._seconds: Callable[[], float] | None = None
        self._origin = 0.0
        self.hooks: list[Hook] = []
        self._invented: dict[tuple[str, str], None] = {}

    def begin(self, seconds: Callable[[], float]) -> None:
        """Record calls from now on."""
        self._seconds, self._origin = seconds, seconds()

    def doubts(self) -> list[str]:
        """Return which assumed answers may make the plan wrong."""
        return [
            f"{hook} of {name} was not called, and {CONTENT[hook]}: the plan is only right with --call-extensions"
            for hook, name in self._invented
        ]

    async def __call__(self, handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
        """Answer one call."""
        if handler.hook != "Discovery" and self._seconds is not None:
            self.hooks.append(Hook(handler.hook, handler.name, self._seconds() - self._origin, self._call is None))
        if self._call is None and handler.hook in CONTENT:
            self._invented[handler.hook, handler.name] = None
        if self._call is not None:
            return await self._call(handler, url, body)
        return 200, msgspec.json.encode(self._assumed(handler))

    def _assumed(self, handler: Handler) -> Json:
        answer: Json = {"apiVersion": HOOKS_API_VERSION, "kind": f"{handler.hook}Response", "status": "Success", "message": ""}
        if handler.hook == "Discovery":
            config = self._known.get(handler.config) or {}
            return {**answer, "kind": "DiscoveryResponse", "handlers": [_described(h, handler.config) for h in _handlers(config)]}
        return answer


def _handlers(config: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (config.get("status") or {}).get("handlers") or ()


def _described(handler: Mapping[str, Any], config: str) -> Json:
    return {**handler, "name": str(handler.get("name", "")).removesuffix(f".{config}")}
