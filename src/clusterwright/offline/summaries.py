"""Find conditions that summarise or repeat others and are out of date, and lower them to progress.

A summary is written later than its parts. Between the two writes a healthy cluster seems to be in trouble, and the summary would
be the only explanation. So a summary that its parts contradict counts as a state that passes by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition
from clusterwright.conditions import get, is_true
from clusterwright.conditions.words import plural
from clusterwright.offline.complaints import SOON, SUMMARIES, Complaint, Tier, references
from clusterwright.offline.graph import reachable
from clusterwright.offline.nodes import Node
from clusterwright.offline.ownership import name_of as node_id
from clusterwright.offline.words import AWAITED

_OF_MACHINES: Final = ("MachinesReady", "MachinesUpToDate")
_OF_SETS: Final = frozenset({"Available", "WorkersAvailable"})
"""Conditions that repeat those of Machines. On MachineDeployments and Clusters they also tell whether there are enough."""
_COUNTING: Final = frozenset({"MachineDeployment", "Cluster"})
_MIRRORS: Final = {
    "ControlPlaneAvailable": ("controlPlaneRef", "Available"),
    "InfrastructureReady": ("infrastructureRef", "Ready"),
    "BootstrapConfigReady": ("configRef", "Ready"),
}
"""Conditions that repeat one of another object: the path of the reference to it, and the name of its condition."""
_WORKERS: Final = frozenset({"Machine", "MachineSet", "MachineDeployment", "MachinePool"})
_ORDER: Final = ("Machine", "MachineSet", "MachineDeployment", "MachinePool")
"""The order of the checks: these kinds, then all others, the Cluster last. A summary is checked after its parts."""
_NAME: Final = r"[a-z0-9][a-z0-9.-]*"
_OF_OTHERS: Final = re.compile(rf"([A-Z][A-Za-z]+) ({_NAME}(?:, {_NAME})*)(, \.\.\. \(\d+ more\))?:(.*)", re.DOTALL)
_OF_ITSELF: Final = re.compile(r"([A-Z][A-Za-z ]+):")
_TOGETHER: Final = {
    "Control plane components": ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy")
}
"""Collective names of conditions in messages."""
_REST: Final = re.compile(r"^And \d+ ([A-Z][A-Za-z]+) ", re.MULTILINE)
_TYPE: Final = re.compile(rf"(?:^|\* )[ \t]*+([A-Z][A-Za-z]+|{'|'.join(_TOGETHER)}):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Summaries:
    """The objects of a cluster with their conditions and complaints."""

    nodes: Mapping[str, Node]
    children: Mapping[str, Sequence[str]]
    cluster: Node | None
    conditions: Callable[[Node], Sequence[Condition]]
    now: datetime | None

    def hush(self) -> None:
        """Lower every complaint that the objects concerned contradict to progress."""
        rank = {kind: place for place, kind in enumerate(_ORDER)}
        for node in sorted(self.nodes.values(), key=lambda n: (n is self.cluster, rank.get(n.kind, len(_ORDER)))):
            if node.object is not None and not node.deleting and node.complaints:
                node.complaints = [
                    replace(c, tier=Tier.PROGRESS) if c.tier is not Tier.PROGRESS and self._is_over(node, c) else c for c in node.complaints
                ]

    def _is_over(self, node: Node, complaint: Complaint) -> bool:
        tests = (self._is_mirror, self._is_echo, self._is_sum, self._is_served)
        return any(test(node, complaint) for test in tests)

    def _is_mirror(self, node: Node, complaint: Complaint) -> bool:
        """Return whether it repeats a condition of another object that is good by now, or in progress."""
        assert node.object is not None
        field_name, type_ = _MIRRORS.get(complaint.about, ("", ""))
        named = [r for r in references(node.object.at("spec"), home=node.namespace) if type_ and r.path.endswith(f".{field_name}")]
        sources = [self.nodes.get(node_id(r.kind, node.namespace, r.name)) for r in named]
        return bool(sources) and all(source is not None and self._says_no_more(source, type_) for source in sources)

    def _says_no_more(self, source: Node, type_: str) -> bool:
        if source.object is None:
            return False
        says_so = any(c.about == type_ for c in source.complaints)
        return is_true(self.conditions(source), type_) or (says_so and source.tier is Tier.PROGRESS)

    def _is_echo(self, node: Node, complaint: Complaint) -> bool:
        """Return whether it is about Machines that are all there and of which none complains."""
        assert node.object is not None
        if not complaint.about.endswith(_OF_MACHINES) and not (node.kind in _COUNTING and complaint.about in _OF_SETS):
            return False
        below = [self.nodes[n] for n in reachable(self.children, node.id) if n.startswith("Machine/") and n in self.nodes]
        if node is self.cluster:
            below = [n for n in self.nodes.values() if n.kind in _WORKERS]
        machines, wanted = [n for n in below if n.kind == "Machine"], node.object.at("spec", "replicas")
        is_whole = bool(machines) and not (isinstance(wanted, int) and len(machines) < wanted)
        return is_whole and all(n.tier is Tier.PROGRESS for n in below)

    def _is_sum(self, node: Node, complaint: Complaint) -> bool:
        """Return whether it is about other objects or other conditions, all of which are good by now."""
        said = get(self.conditions(node), complaint.about) if complaint.about else None
        lines = list(_lines(said.message)) if said is not None else []
        return bool(lines) and all(self._is_good(node, line, complaint) for line in lines)

    def _is_good(self, node: Node, line: str, complaint: Complaint) -> bool:
        found = _OF_OTHERS.match(line)
        kind = self._kind(found[1]) if found else ""
        if found and kind:
            everybody = [n for n in self.nodes.values() if n.kind == kind and n.object is not None]
            named = found[2].split(", ")
            return all(self._contradicts(n, found[4]) for n in everybody if found[3] or n.name in named)
        if found := _REST.match(line):
            kind = self._kind(found[1])
            return bool(kind) and all(n.tier is Tier.PROGRESS for n in self.nodes.values() if n.kind == kind)
        if (found := _OF_ITSELF.match(line)) and complaint.about in SUMMARIES:
            return self._are_true(node, _TOGETHER.get(found[1], (found[1],)))
        return False

    def _is_served(self, node: Node, complaint: Complaint) -> bool:
        """Return whether it waits for a control plane that came up a moment ago."""
        if self.cluster is None or complaint.tier is not Tier.WAITING or not AWAITED.said_in(complaint.raw):
            return False
        said = get(self.conditions(self.cluster), "ControlPlaneInitialized")
        begun = said.last_transition_time if said is not None and said.status == "True" else None
        return begun is not None and self.now is not None and self.now - begun < SOON

    def _kind(self, word: str) -> str:
        """Return the kind that a word means, if there is an object of it."""
        return next((n.kind for n in self.nodes.values() if n.object is not None and word in {n.kind, plural(n.kind)}), "")

    def _contradicts(self, part: Node, words: str) -> bool:
        """Return whether an object contradicts the message with the named conditions. An old object without any of them does not."""
        types = [type_ for head in _TYPE.findall(words) for type_ in _TOGETHER.get(head, (head,))]
        return self._are_true(part, types) if types else part.tier is Tier.PROGRESS

    def _are_true(self, node: Node, types: Sequence[str]) -> bool:
        """Return whether the conditions of these types hold that the object has, and it has one."""
        conditions = self.conditions(node)
        known = [t for t in types if get(conditions, t) is not None]
        return bool(known) and all(is_true(conditions, t) for t in known)


def _lines(message: str) -> Iterator[str]:
    """Yield the points of a message, each with the lines below it."""
    if message.startswith(("* ", "And ")):
        points: list[str] = []
        for line in message.split("\n"):
            if line[:1].strip() or not points:
                points.append(line)
            else:
                points[-1] += f"\n{line}"
        yield from (part.removeprefix("* ") for part in points)
