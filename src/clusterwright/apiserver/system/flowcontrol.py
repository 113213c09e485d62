"""Keep the built-in FlowSchemas and PriorityLevelConfigurations, and the status of all FlowSchemas."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.flows import AUTO_UPDATE, GROUP, LEVELS, MANDATORY, SCHEMAS, defaults
from clusterwright.apiserver.storage.store import Event
from clusterwright.apiserver.system import loading

_TABLES = {"FlowSchema": SCHEMAS, "PriorityLevelConfiguration": LEVELS}


class FlowControl:
    """Restores built-in objects that were deleted or changed, except for suggested ones whose annotation allows changes."""

    def __init__(self, server: Core) -> None:
        self._server = server
        self._is_due = False
        if server.registry.find(GROUP, "v1", "flowschemas") is None:
            return
        for table in _TABLES.values():
            server.store.table(table).hooks.append(self)
        server.later(self._keep)

    def offer(self, event: Event) -> None:
        """Check all of them after any change."""
        del event
        if not self._is_due:
            self._is_due = True
            self._server.later(self._keep)

    def _keep(self) -> None:
        for obj in defaults():
            loading.ensure(self._server, [obj], update=self._is_ours(obj))
        schemas, levels = (self._server.store.table(name) for name in (SCHEMAS, LEVELS))
        for entry in list(schemas.objects.values()):
            obj = msgspec.json.decode(entry.raw)
            if self._judge(obj, levels.objects.keys()):
                self._server.put_system(schemas, entry, obj)
        self._is_due = False

    def _is_ours(self, obj: Json) -> bool:
        name = obj["metadata"]["name"]
        stored = self._server.store.table(_TABLES[obj["kind"]]).objects.get(name)
        if stored is None or name in MANDATORY:
            return True
        annotations = msgspec.json.decode(stored.raw)["metadata"].get("annotations") or {}
        return annotations.get(AUTO_UPDATE) == "true"

    def _judge(self, obj: Json, levels: Collection[str]) -> bool:
        """Set whether the level of a FlowSchema exists; return whether that changed."""
        level = ((obj.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name") or ""
        is_there = level in levels
        found = "and it exists" if is_there else "but there is no such object"
        condition = {
            "type": "Dangling",
            "status": "False" if is_there else "True",
            "lastTransitionTime": self._server.timestamp(),
            "reason": "Found" if is_there else "NotFound",
            "message": f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" {found}',
        }
        status = obj.setdefault("status", {})
        before = [c for c in status.get("conditions") or () if c.get("type") == "Dangling"]
        if before and all(before[0].get(name) == condition[name] for name in ("status", "reason", "message")):
            return False
        status["conditions"] = [*(c for c in status.get("conditions") or () if c.get("type") != "Dangling"), condition]
        return True
