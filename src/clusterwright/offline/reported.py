"""Collect the complaints that the objects of a cluster report about themselves, before their origins are determined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, Json, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conditions import InvalidConditions, conditions_of, get, is_true
from clusterwright.conditions.words import plural
from clusterwright.offline.complaints import (
    QUIET,
    SOON,
    STANDSTILL,
    Complaint,
    Tier,
    acquittal,
    acquitted,
    begun_of,
    complaint_of,
    condition_path,
    deletion,
    earlier,
    is_provided,
    is_up,
    old_conditions,
    own_pause,
    pause_path,
    references,
    severities,
    since,
    terminal_failures,
    text_of,
    time_of,
    without_summaries,
)
from clusterwright.offline.graph import reachable
from clusterwright.offline.managers import is_manager
from clusterwright.offline.nodes import Node
from clusterwright.offline.observation import Running
from clusterwright.offline.ownership import consumer_of, mentioned, related
from clusterwright.offline.ownership import name_of as node_id
from clusterwright.offline.summaries import Summaries
from clusterwright.offline.unreconciled import unreconciled
from clusterwright.offline.words import ABSENT, BLOCKED, NEVER_MADE, UNINSPECTED, names_in

SLACK = timedelta(seconds=10)
"""The time by which an Event may precede the condition that it explains."""
PASSING = timedelta(seconds=10)
"""The time for which a repeated failure counts as a wait: most failures end with the next try."""
WEBHOOK_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_NO_PARTNER = frozenset(
    {"Event", "Observation", "CustomResourceDefinition", "Lease", "Endpoints", "ServiceAccount", "ExtensionConfig", *WEBHOOK_CONFIGURATIONS}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The findings of a pass of our own controller over an object."""

    conditions: tuple[Condition, ...] | None = None
    """Conditions that replace the written ones; None: keep the written ones."""
    error: str = ""
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By condition: the objects that the guards of the fired row had read."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The limits of what is known about a cluster: the reader may have read only some kinds, or lacked rights."""

    now: datetime | None = None
    seen: frozenset[str] = frozenset()
    """Kinds of which all objects are known, even if there are none."""
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Kinds that could not be listed, each with the reason."""
    unreachable: str = ""
    """Why the workload cluster could not be read."""
    running: Running | None = None
    """The controllers' report on themselves, if they could be asked."""
    workload: tuple[Json, ...] = ()
    """Objects of the workload cluster, if it was read."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """By `Kind/namespace/name`: the time of the spec's change, for objects whose status is older."""
    suspicions: Mapping[str, str] = field(default_factory=dict)
    """By `Kind/namespace/name`: the faults that the recorder found in contents that it did not keep."""


class Reported:
    """The objects that belong to a cluster, with the complaints that each reports."""

    def __init__(
        self,
        objects: Iterable[Json],
        subject: str,
        findings: Mapping[str, Finding] | None = None,
        sight: Sight | None = None,
        *,
        is_one_cluster: bool = False,
    ) -> None:
        """Collect the complaints. `findings`: by object, the findings of our controllers' passes, which replace written conditions.

        `is_one_cluster`: all objects belong to the subject's cluster, so they are not filtered.
        """
        sight = sight or Sight()
        self._now, self._seen, self._unseen, self._unreachable = sight.now, sight.seen, sight.unseen, sight.unreachable
        self._running = sight.running
        self._workload = {node_id(o.kind, *o.key): o for o in map(Unstructured, sight.workload)}
        self._suspicions, self._changed = sight.suspicions, sight.changed
        self._findings = findings or {}
        self._definitions: dict[tuple[str, str], Unstructured] = {}
        self._webhooks: dict[str, Unstructured] = {}
        """By the name of a webhook: the configuration that contains it."""
        self._managers: list[Unstructured] = []
        self._extensions: dict[str, Unstructured] = {}
        """By name: the ExtensionConfigs, which belong to no cluster."""
        self.nodes: dict[str, Node] = {}
        self.events: dict[str, list[Json]] = {}
        self._children: dict[str, list[str]] = {}
        self._kinds: set[str] = set()
        self._groups: set[str] = set()
        self._plurals: dict[str, str] = {}
        self._served: set[str] = set()
        self._dumped: set[str] = set()
        self.subject = subject
        for json in objects:
            self._add(json)
        for node in list(self.nodes.values()):
            self._adopt(node)
        self.cluster = self._find_cluster()
        self._there = set(self.nodes)
        if not is_one_cluster:
            self._forget_strangers()
        self._named = {name for node in self.nodes.values() if node.object is not None for name in mentioned(node.object)}
        for node in list(self.nodes.values()):
            self._hear(node)
        for node in list(self.nodes.values()):
            self._notice_standstill(node)
        Summaries(self.nodes, self._children, self.cluster, self._conditions, self._now).hush()
        for name, finding in self._findings.items():
            if finding.error and name in self.nodes:
                self.nodes[name].complaints.append(Complaint(Tier.ERROR, finding.error, raw=finding.error))
        self._add_shared_states()
        self._put_down_to_the_connection()

    def _find_cluster(self) -> Node | None:
        """Return the Cluster that the subject is or belongs to."""
        node = self.nodes.get(self.subject)
        if node is None or node.kind == "Cluster" or node.object is None:
            return node
        name = node.object.metadata.labels.get(CLUSTER_NAME_LABEL) or node.object.at("spec", "clusterName") or ""
        return self.nodes.get(node_id("Cluster", node.namespace, str(name)))

    def _forget_strangers(self) -> None:
        """Remove objects that belong to other clusters or to none."""
        if self.cluster is None or self.cluster.object is None:
            return
        kin = related([n.object for n in self.nodes.values() if n.object is not None], self.cluster.object, self.subject)
        self.nodes = {name: node for name, node in self.nodes.items() if name in kin}
        self._children = {name: [c for c in children if c in kin] for name, children in self._children.items() if name in kin}

    # ------------------------------------------------------------------------------------------ reading

    def _add(self, json: Json) -> None:
        obj = Unstructured(json)
        self._dumped.add(obj.kind)
        if obj.kind == "CustomResourceDefinition":
            self._served.add(str(obj.at("spec", "names", "kind")))
            self._definitions[str(obj.at("spec", "group")), str(obj.at("spec", "names", "kind"))] = obj
        if obj.kind in WEBHOOK_CONFIGURATIONS:
            hooks = obj.at("webhooks")
            self._webhooks |= {str(h.get("name")): obj for h in hooks if isinstance(h, Mapping)} if isinstance(hooks, list) else {}
        if obj.kind == "ExtensionConfig":
            self._extensions[obj.metadata.name] = obj
        if is_manager(obj):
            self._managers.append(obj)
            return
        if obj.kind == "Event":
            involved = json.get("involvedObject") or json.get("regarding") or {}
            about = node_id(str(involved.get("kind", "")), str(involved.get("namespace", "")), str(involved.get("name", "")))
            self.events.setdefault(about, []).append(json)
        if obj.kind in _NO_PARTNER:
            return
        key = obj.key
        node = Node(node_id(obj.kind, *key), obj.kind, key.namespace, key.name, obj)
        self.nodes[node.id] = node
        self._kinds.add(obj.kind)
        self._groups.add(obj.gvk.group)
        for kind in (obj.kind, *(r.kind for r in references(obj.at("spec"), home=key.namespace))):
            self._plurals[plural(kind.lower())] = kind

    def _adopt(self, node: Node) -> None:
        assert node.object is not None
        owners = [node_id(r.kind, node.namespace, r.name) for r in node.object.metadata.owner_references]
        for owner in (*owners, consumer_of(node.object)):
            if owner in self.nodes:
                self._children.setdefault(owner, []).append(node.id)

    def _conditions(self, node: Node) -> tuple[Condition, ...]:
        finding = self._findings.get(node.id)
        if finding is not None and finding.conditions is not None:
            return finding.conditions
        try:
            return conditions_of(node.object) if node.object else ()
        except InvalidConditions as error:
            node.complaints.append(Complaint(Tier.ERROR, f"reports conditions that cannot be read: {error}"))
            return ()

    def _hear(self, node: Node) -> None:
        """Collect all complaints of the object itself."""
        assert node.object is not None
        metadata = node.object.metadata
        if metadata.deletion_timestamp is not None:
            node.complaints.append(deletion(node.object, self._conditions(node), self._now))
            return
        pause = own_pause(node.object)
        conditions = self._conditions(node)
        if all(c.type in QUIET for c in conditions):
            conditions = (*conditions, *old_conditions(node.object))
        if pause:
            node.complaints.append(Complaint(Tier.PAUSED, pause, since(get(conditions, "Paused")), "Paused", path=pause_path(node.object)))
        severity = severities(node.object)
        said = [c for one in conditions if (c := complaint_of(one, severity.get(one.type, ""))) is not None]
        least = acquittal(node.object, conditions)
        node.complaints += said if least is None else acquitted(said, least)
        node.complaints += terminal_failures(node.object)
        neglected = unreconciled(node.object, self._now, self._heard(node), self._changed.get(node.id, ""))
        if neglected is not None and not pause and not self._is_left_over(node):
            node.complaints.append(neglected)
        node.complaints += self._stall(node, conditions)
        if node.complaints:
            node.complaints += self._warnings(node)
        elif is_provided(node.object) and not is_up(node.object):
            node.complaints += self._alarms(node)
        node.complaints = without_summaries(node.complaints)

    def _is_left_over(self, node: Node) -> bool:
        """Return whether nobody owns or names a provider's object, so that its controller rightly leaves it alone."""
        assert node.object is not None
        is_of_a_provider = node.object.gvk.group.partition(".")[0] in {"infrastructure", "bootstrap"}
        return is_of_a_provider and not node.object.metadata.owner_references and node.id not in self._named

    def _heard(self, node: Node) -> str:
        """Return the time of the last Event about the object."""
        return max((time_of(e) for e in self.events.get(node.id, ())), default="")

    def _stall(self, node: Node, conditions: Sequence[Condition]) -> list[Complaint]:
        """Complain about missing Machines that should exist at once: controllers report refused creations only in their logs."""
        assert node.object is not None
        condition, wanted = get(conditions, "ScalingUp"), node.object.at("spec", "replicas")
        if condition is None or condition.status != "True" or not isinstance(wanted, int) or self._now is None:
            return []
        made = [c for c in self._children.get(node.id, ()) if c.startswith("Machine/")]
        begun = condition.last_transition_time
        if node.kind == "MachineDeployment" or len(made) >= wanted or begun is None or self._now - begun < SOON:
            return []
        text = f"has {len(made)} of {wanted} Machines, and the others do not appear"
        return [Complaint(Tier.UNHEALTHY, text, since(condition), "ScalingUp", raw=text)]

    def _notice_standstill(self, node: Node) -> None:
        """Complain about a rollout in which no Machine is created or deleted."""
        is_manual = node.object is not None and node.object.at("spec", "rollout", "strategy", "type") == "OnDelete"
        is_asked = bool(node.complaints) and node.kind != "Cluster" and not is_manual
        condition = get(self._conditions(node), "RollingOut") if is_asked else None
        begun = condition.last_transition_time if condition is not None and condition.status == "True" else None
        if begun is None or self._now is None or self._now - begun < STANDSTILL:
            return
        below = [self.nodes[name] for name in reachable(self._children, node.id) if name in self.nodes]
        if all(n.tier is Tier.PROGRESS for n in below) and any(n.kind == "Machine" for n in below):
            node.complaints.append(
                Complaint(Tier.UNHEALTHY, "is rolling out, but no Machine comes or goes", since(condition), "RollingOut")
            )

    def _warnings(self, node: Node) -> list[Complaint]:
        """Add Warning Events that no good news followed to an object that has other complaints."""
        found = []
        latest = self._latest_warnings(node)
        first = [(e.get("reason"), begun_of(e)) for e in latest]  # what is said again each time in other words goes on all the while
        lasting = f"{self._now - PASSING:%Y-%m-%dT%H:%M:%SZ}" if self._now is not None else "9"
        for event in latest:
            text = text_of(event)
            if BLOCKED.said_in(text):
                begun = min(since for reason, since in first if reason == event.get("reason"))
                is_failure = begun <= lasting and not text.startswith("Waiting")
                tier = Tier.ERROR if is_failure else Tier.WAITING
                found.append(Complaint(tier, f"{event.get('reason')}: {text}", begun, raw=text, path="status"))
        return found

    def _alarms(self, node: Node) -> list[Complaint]:
        """Return the Warning Events about an object without other complaints."""
        texts = {f"{e.get('reason')}: {text_of(e)}": begun_of(e) for e in self._latest_warnings(node)}
        return [Complaint(Tier.ERROR, text, begun, raw=text, path="status") for text, begun in texts.items()]

    def _latest_warnings(self, node: Node) -> list[Json]:
        """Return Warning Events that no good news followed, without those from before the current trouble or about deleted objects."""
        told = self.events.get(node.id, [])
        better = [since(c) for c in self._conditions(node) if c.type not in QUIET and complaint_of(c) is None]
        good = max((*(time_of(e) for e in told if e.get("type") == "Normal"), *better), default="")
        begun = min((c.since for c in node.complaints if c.since and c.tier is not Tier.PROGRESS), default="")
        oldest = max(good, earlier(begun, SLACK))
        return [e for e in told if e.get("type") == "Warning" and time_of(e) >= oldest and not self._names_the_gone(node, e)]

    def _names_the_gone(self, node: Node, event: Json) -> bool:
        """Return whether an Event is about a deleted object, unless it reports that the object is missing or could not be created."""
        text = text_of(event)
        if ABSENT.said_in(text) or NEVER_MADE.said_in(text):
            return False
        words = [part for name in names_in(text) for part in ((name,) if name[0].islower() else name.split("/", 1))]
        named = [(kind, name.rpartition("/")[2]) for kind, name in pairwise(words) if kind in self._kinds and not name[0].isupper()]
        return any(node_id(kind, node.namespace, name.rstrip(".")) not in self._there for kind, name in named)

    # -------------------------------------------------------------------------------------- shared states

    def _add_shared_states(self) -> None:
        """Add a node for each state that many objects wait for: initialization and the connection."""
        cluster = self.cluster
        if cluster is None or cluster.object is None:
            return
        conditions = self._conditions(cluster)
        is_initialized = (
            is_true(conditions, "ControlPlaneInitialized")
            or cluster.object.at("status", "initialization", "controlPlaneInitialized") is True
        )
        if not is_initialized:
            self._share(cluster, "initialization", Complaint(Tier.PROGRESS, "the control plane is not initialized"))
        probe = get(conditions, "RemoteConnectionProbe")
        if probe is not None and probe.status == "False" and not cluster.deleting:
            text = f"the workload cluster cannot be reached: {probe.message}"
            tier = Tier.UNHEALTHY if is_initialized else Tier.WAITING  # there is nobody to connect to yet
            path = condition_path("RemoteConnectionProbe")
            self._share(cluster, "connection", Complaint(tier, text, since(probe), "RemoteConnectionProbe", path=path))
        elif self._unreachable and not cluster.deleting:
            # that we cannot reach it proves nothing, unless a controller failed to look at it, too
            failing = [c for n in self.nodes.values() for c in n.complaints if UNINSPECTED.said_in(c.raw)]
            if failing:
                text = f"the workload cluster does not answer: {self._unreachable}"
                begun = min(c.since for c in failing)
                self._share(
                    cluster, "connection", Complaint(Tier.UNHEALTHY, text, begun, "RemoteConnectionProbe", path="spec.controlPlaneEndpoint")
                )

    def _put_down_to_the_connection(self) -> None:
        """Attribute failures at the endpoint of an unreachable workload cluster to the connection."""
        cluster = self.cluster
        if self._shared("connection") is None or cluster is None or cluster.object is None:
            return
        host, port = (cluster.object.at("spec", "controlPlaneEndpoint", part) for part in ("host", "port"))
        for node in self.nodes.values():
            node.complaints = [
                replace(c, tier=max(c.tier, Tier.WAITING), raw=f"{c.raw} (connection to the workload cluster)")
                if host and "#" not in node.id and f"{host}:{port}" in c.raw
                else c
                for c in node.complaints
            ]

    def _share(self, cluster: Node, what: str, complaint: Complaint) -> None:
        node = Node(f"{cluster.id}#{what}", cluster.kind, cluster.namespace, cluster.name, cluster.object, [complaint])
        self.nodes[node.id] = node

    def _shared(self, what: str) -> str | None:
        name = f"{self.cluster.id if self.cluster else self.subject}#{what}"
        return name if name in self.nodes else None
