"""What the objects of a cluster say, each of itself: the complaints, before it is asked whom they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

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
    deletion,
    earlier,
    is_provided,
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
from clusterwright.offline.ownership import name_of as node_id
from clusterwright.offline.ownership import related
from clusterwright.offline.summaries import Summaries
from clusterwright.offline.unreconciled import unreconciled
from clusterwright.offline.words import ABSENT, BLOCKED, NEVER_MADE, UNINSPECTED

SLACK = timedelta(seconds=10)
"""An Event may come a little before the condition that it explains."""
PASSING = timedelta(seconds=10)
"""How long something may fail, and be tried again, before that is more than a wait: most of it is over with the next try."""
KIND_AND_NAME = re.compile(r"\b([A-Z][A-Za-z]+)[ /]\"?([a-z0-9][a-z0-9./-]*[a-z0-9])")
WEBHOOK_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_NO_PARTNER = frozenset(
    {"Event", "Observation", "CustomResourceDefinition", "Lease", "Endpoints", "ServiceAccount", "ExtensionConfig", *WEBHOOK_CONFIGURATIONS}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a pass of our own controller over an object has found."""

    conditions: tuple[Condition, ...] | None = None
    """They replace those that were written; None: there is nothing to replace them with."""
    error: str = ""
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By condition: the objects that the row which fired had asked."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What could be seen of a cluster: whoever looked may not have looked at everything, nor been allowed to."""

    now: datetime | None = None
    seen: frozenset[str] = frozenset()
    """Kinds of which all objects are known, though there be none."""
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Kinds that could not be listed, and why."""
    unreachable: str = ""
    """Why the workload cluster could not be looked at."""
    running: Running | None = None
    """What the controllers say of themselves, where they could be asked."""
    workload: tuple[Json, ...] = ()
    """Objects of the workload cluster, where it was looked at."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """By `Kind/namespace/name`: when the spec was changed, of objects whose status is older."""
    suspicions: Mapping[str, str] = field(default_factory=dict)
    """By `Kind/namespace/name`: what the recorder found wrong with contents that it did not keep."""


class Reported:
    """The objects that belong to a cluster, with what each of them complains about."""

    def __init__(
        self,
        objects: Iterable[Json],
        subject: str,
        findings: Mapping[str, Finding] | None = None,
        sight: Sight | None = None,
        *,
        is_one_cluster: bool = False,
    ) -> None:
        """`findings` by object: what our controllers find now, not what they or others wrote.

        `is_one_cluster`: all objects belong to the subject's cluster, which need not be found out again.
        """
        sight = sight or Sight()
        self._now, self._seen, self._unseen, self._unreachable = sight.now, sight.seen, sight.unseen, sight.unreachable
        self._running = sight.running
        self._workload = {node_id(o.kind, *o.key): o for o in map(Unstructured, sight.workload)}
        self._suspicions, self._changed = sight.suspicions, sight.changed
        self._findings = findings or {}
        self._definitions: dict[tuple[str, str], Unstructured] = {}
        self._webhooks: dict[str, Unstructured] = {}
        """By the name of a webhook: the configuration that it stands in."""
        self._managers: list[Unstructured] = []
        self._extensions: dict[str, Unstructured] = {}
        """By name: the ExtensionConfigs, which belong to nobody."""
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
        """What belongs to other clusters, or to none, has no part in this."""
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
        for reference in node.object.metadata.owner_references:
            owner = node_id(reference.kind, node.namespace, reference.name)
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
        """Everything that the object itself has to say."""
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
        if not pause and (neglected := unreconciled(node.object, self._now, self._heard(node), self._changed.get(node.id, ""))) is not None:
            node.complaints.append(neglected)
        node.complaints += self._stall(node, conditions)
        if node.complaints:
            node.complaints += self._warnings(node)
        elif is_provided(node.object) and not node.object.at("status"):
            node.complaints += self._alarms(node)
        node.complaints = without_summaries(node.complaints)

    def _heard(self, node: Node) -> str:
        """When an Event last told of the object."""
        return max((time_of(e) for e in self.events.get(node.id, ())), default="")

    def _stall(self, node: Node, conditions: Sequence[Condition]) -> list[Complaint]:
        """Machines that should have been made at once and were not; controllers tell only their logs what the API server refused."""
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
        """A rollout without a Machine that comes or goes."""
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
        """Warning Events that no good news followed, about an object that is in trouble anyway."""
        found = []
        latest = self._latest_warnings(node)
        first = [(e.get("reason"), begun_of(e)) for e in latest]  # what is said again each time in other words goes on all the while
        lasting = f"{self._now - PASSING:%Y-%m-%dT%H:%M:%SZ}" if self._now is not None else "9"
        for event in latest:
            text = text_of(event)
            if BLOCKED.said_in(text):
                begun = min(since for reason, since in first if reason == event.get("reason"))
                is_failure = begun <= lasting and not text.startswith("Waiting")
                found.append(Complaint(Tier.ERROR if is_failure else Tier.WAITING, f"{event.get('reason')}: {text}", begun, raw=text))
        return found

    def _alarms(self, node: Node) -> list[Complaint]:
        """Return the Warning Events about an object that says nothing else."""
        texts = {f"{e.get('reason')}: {text_of(e)}": begun_of(e) for e in self._latest_warnings(node)}
        return [Complaint(Tier.ERROR, text, begun, raw=text, path="status") for text, begun in texts.items()]

    def _latest_warnings(self, node: Node) -> list[Json]:
        """Warnings that no good news followed, none from before what is wrong now began, none about what is gone."""
        told = self.events.get(node.id, [])
        better = [since(c) for c in self._conditions(node) if c.type not in QUIET and complaint_of(c) is None]
        good = max((*(time_of(e) for e in told if e.get("type") == "Normal"), *better), default="")
        begun = min((c.since for c in node.complaints if c.since and c.tier is not Tier.PROGRESS), default="")
        oldest = max(good, earlier(begun, SLACK))
        return [e for e in told if e.get("type") == "Warning" and time_of(e) >= oldest and not self._names_the_gone(node, e)]

    def _names_the_gone(self, node: Node, event: Json) -> bool:
        """Return whether an Event tells of an object that is no more, other than to say that it is missing or could not be made."""
        text = text_of(event)
        if ABSENT.said_in(text) or NEVER_MADE.said_in(text):
            return False
        named = [(m[1], m[2].rpartition("/")[2]) for m in KIND_AND_NAME.finditer(text) if m[1] in self._kinds]
        return any(node_id(kind, node.namespace, name.rstrip(".")) not in self._there for kind, name in named)

    # -------------------------------------------------------------------------------------- shared states

    def _add_shared_states(self) -> None:
        """What many objects wait for is a node of its own: initialization, the connection, a pause of everything."""
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
            self._share(cluster, "connection", Complaint(tier, text, since(probe), "RemoteConnectionProbe"))
        elif self._unreachable and not cluster.deleting:
            # that we cannot reach it proves nothing, unless a controller failed to look at it, too
            failing = [c for n in self.nodes.values() for c in n.complaints if UNINSPECTED.said_in(c.raw)]
            if failing:
                text = f"the workload cluster does not answer: {self._unreachable}"
                begun = min(c.since for c in failing)
                self._share(cluster, "connection", Complaint(Tier.UNHEALTHY, text, begun, "RemoteConnectionProbe"))

    def _put_down_to_the_connection(self) -> None:
        """What fails at the endpoint of a workload cluster that nobody reaches is no trouble of its own."""
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
