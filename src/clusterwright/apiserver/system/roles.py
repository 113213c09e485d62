"""Aggregated ClusterRoles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.selectors import object_selector
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.storage.store import Event, Table

_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"
_LARGE: Final = 16 * 1024
"""The size of two roles, in bytes, from which their comparison is a separate step."""


class RoleAggregator:
    """Fills ClusterRoles that have an aggregationRule with the rules of the selected roles."""

    def __init__(self, server: Core) -> None:
        self.server = server
        self._is_due = True
        server.store.listeners.append(self.offer)
        server.in_steps(self.aggregate())

    def offer(self, table: Table, event: Event) -> None:
        """Aggregate again after any change of a ClusterRole."""
        del event
        if table.name == _ROLES and not self._is_due:
            self._is_due = True
            self.server.in_steps(self.aggregate())

    def aggregate(self) -> Iterator[int]:
        """Update all aggregating roles. Roles with large selectors are compared in steps."""
        self._is_due = False
        table = self.server.store.table(_ROLES)
        for entry in list(table.objects.values()):
            if b'"aggregationRule"' not in entry.raw:
                continue
            obj = msgspec.json.decode(entry.raw)
            matchers = [object_selector(s) for s in (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()]
            if not matchers:
                continue
            rules: dict[bytes, Json] = {}
            for other in table.range():
                if other.name != entry.name and any(m(other.labels) for m in matchers):
                    for rule in msgspec.json.decode(other.raw).get("rules") or ():
                        rules.setdefault(msgspec.json.encode(rule, order="sorted"), rule)
                if len(entry.raw) + len(other.raw) > _LARGE:
                    yield len(entry.raw) + len(other.raw)
            if table.objects.get(entry.key) is entry and list(rules.values()) != (obj.get("rules") or []):
                obj["rules"] = list(rules.values())
                self.server.put_system(table, entry, obj)
