"""Map a change of a Node, a remediation template or a remediation request to MachineHealthChecks.

State is kept in memory only: after a restart every check is reconciled once anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Object, ObjectKey
from clusterwright.runtime.client import Reader

Seen = tuple[tuple[str, str, str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """The facts of a pass: the checked Machines, their Nodes by name, and the kind of template, if any."""

    cluster: ObjectKey
    nodes: dict[str, set[ObjectKey]] = field(default_factory=dict)
    machines: frozenset[ObjectKey] = frozenset()
    template: tuple[GroupVersionKind, ObjectKey] | None = None


class NodeWatches:
    """Finds the checks of a Machine."""

    def __init__(self, enqueue: Callable[[ObjectKey, str], None]) -> None:
        self._enqueue = enqueue
        self._known: dict[ObjectKey, _Known] = {}
        self._checks: dict[ObjectKey, set[ObjectKey]] = {}
        self._seen: dict[ObjectKey, dict[str, Seen]] = {}

    def learn(
        self, check: ObjectKey, cluster: ObjectKey, machines: Iterable[Machine], template: tuple[GroupVersionKind, ObjectKey] | None
    ) -> None:
        """Remember the Machines of a check. Call this before reading Nodes, so that no change is missed."""
        known = _Known(cluster, machines=frozenset(m.key for m in machines), template=template)
        for machine in machines:
            if machine.status.node_ref is not None:
                known.nodes.setdefault(machine.status.node_ref.name, set()).add(machine.key)
        before = self._known.get(check)
        if before is not None and before.cluster != cluster:
            self.forget(check)
        self._known[check] = known
        self._checks.setdefault(cluster, set()).add(check)

    def forget(self, check: ObjectKey) -> None:
        """Forget a check that is gone."""
        known = self._known.pop(check, None)
        if known is None:
            return
        checks = self._checks[known.cluster]
        checks.discard(check)
        if not checks:
            del self._checks[known.cluster]
            self._seen.pop(known.cluster, None)

    def node_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return the handler for changes of Nodes in a cluster; it ignores heartbeats, which change no condition."""

        def notify(obj: Object) -> None:
            if isinstance(obj, Node) and self._is_news(cluster, obj):
                for check in self.checks_of(cluster, obj.metadata.name):
                    self._enqueue(check, f"Node {obj.metadata.name} changed")

        return notify

    def checks_of(self, cluster: ObjectKey, node: str) -> tuple[ObjectKey, ...]:
        """Return the checks of a Node's Machine; none if several Machines claim the Node."""
        checks = [c for c in self._checks.get(cluster, ()) if node in self._known[c].nodes]
        machines = {m for c in checks for m in self._known[c].nodes[node]}
        return tuple(sorted(checks)) if len(machines) == 1 else ()

    def _is_news(self, cluster: ObjectKey, node: Node) -> bool:
        if cluster not in self._checks:
            return False
        seen = self._seen.setdefault(cluster, {})
        if node.metadata.deletion_timestamp is not None:
            seen.pop(node.metadata.name, None)
            return True
        now = tuple((c.type, c.status, c.reason, c.last_transition_time) for c in node.status.conditions)
        if seen.get(node.metadata.name) == now:
            return False
        seen[node.metadata.name] = now
        return True

    async def of_template(self, obj: Any, _reader: Reader) -> Sequence[ObjectKey]:
        """Return the checks that use a remediation template."""
        return tuple(c for c, known in self._known.items() if known.template == (obj.gvk, obj.key))

    async def of_request(self, obj: Any, _reader: Reader) -> Sequence[ObjectKey]:
        """Return the checks of the Machine that a remediation request is named after."""
        return tuple(c for c, known in self._known.items() if obj.key in known.machines and known.template is not None)
