"""Finds why a cluster is in trouble, in objects of any kind, most of which belong to controllers that we know nothing of.

Everything that an object can tell is turned into complaints: a condition that is not as it should be, a deletion that does not
end, a pause, a reference to nothing, a warning Event. Then a graph is drawn: whose trouble comes from whom. An object's trouble
comes from what it refers to, from what it owns, and from what its own words say it waits for (the control plane, the
infrastructure, the bootstrap data, the connection). What nothing else explains is a cause: the sinks of the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clusterwright.api.meta import Condition, Json, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.conditions import InvalidConditions, conditions_of, get, is_true
from clusterwright.conditions.words import plural
from clusterwright.offline.complaints import (
    BLOCKED,
    CONNECTION,
    INFRASTRUCTURE,
    INITIALIZATION,
    QUIET,
    SOON,
    STANDSTILL,
    TEMPLATE,
    Complaint,
    Reference,
    Tier,
    complaint_of,
    deletion,
    has_delivered,
    is_template_expected,
    old_conditions,
    own_pause,
    references,
    secret_sources,
    since,
    time_of,
    used_up,
    without_summaries,
)
from clusterwright.offline.credentials import (
    CERTIFICATE_AUTHORITIES,
    CERTIFICATES,
    EXTERNAL_ETCD,
    KEYS,
    external_etcd_secrets,
    suspicions,
)
from clusterwright.offline.graph import sinks
from clusterwright.offline.kinship import class_of, related, resources
from clusterwright.offline.kinship import name_of as node_id

_NO_PARTNER = frozenset({"Event", "Observation", "CustomResourceDefinition", "Lease", "Endpoints", "ServiceAccount"})
_DESCENDANTS = frozenset({"Machine", "MachineSet", "MachineDeployment", "MachinePool"})
_HEALTH = frozenset({"HealthCheckSucceeded", "OwnerRemediated", "NodeHealthy", "Ready"})
_BOOTSTRAP = re.compile(r"WaitingForBootstrapData|WaitingForDataSecret|[Bb]ootstrap [Dd]ata|dataSecretName")
_CORE_REFERENCES = ("infrastructureRef", "controlPlaneRef", "configRef", "templateRef", "dataSecretName", "classRef", "topology.class")
_RESOURCES = "spec.resources["
_CLASS_PATCH = re.compile(r"\bpatch(es)?\b")
_NOT_FOUND = re.compile(r'([A-Za-z]+)(?:\.[a-z0-9.-]+)? "(?:[a-z0-9-]+/)?([a-z0-9.-]+)" not found')
_QUOTA = re.compile(r"exceeded quota: ([a-z0-9.-]+)")


@dataclass(slots=True)
class Node:
    """An object, or one that should be there, and what is wrong with it."""

    id: str
    kind: str
    namespace: str
    name: str
    object: Unstructured | None = None
    complaints: list[Complaint] = field(default_factory=list)
    because_of: dict[str, str] = field(default_factory=dict)
    """Where its trouble comes from: id of another node, and how that is known."""
    referrers: list[str] = field(default_factory=list)

    @property
    def deleting(self) -> bool:
        """It is being deleted."""
        return self.object is not None and bool(self.object.at("metadata", "deletionTimestamp"))

    @property
    def worst(self) -> Complaint | None:
        """The most telling complaint, the oldest of those."""
        return min(self.complaints, key=lambda c: (c.tier, c.secondary, c.since or "9")) if self.complaints else None

    @property
    def tier(self) -> Tier:
        """How telling the best evidence is."""
        return self.worst.tier if self.worst else Tier.PROGRESS


class Investigation:
    """The objects of a namespace with their complaints, and the graph of whose trouble comes from whom."""

    def __init__(
        self,
        objects: Iterable[Json],
        subject: str,
        conditions: Sequence[Condition] | None = None,
        *,
        error: str = "",
        now: datetime | None = None,
    ) -> None:
        """`conditions` replace those of the subject: what our controller finds, not what another one wrote; `error`: how its pass ended."""
        self._now = now
        self.nodes: dict[str, Node] = {}
        self.events: dict[str, list[Json]] = {}
        self._children: dict[str, list[str]] = {}
        self._kinds: set[str] = set()
        self._groups: set[str] = set()
        self._plurals: dict[str, str] = {}
        self._served: set[str] = set()
        self._dumped: set[str] = set()
        self.subject = subject
        self._subject_conditions = conditions
        for json in objects:
            self._add(json)
        for node in list(self.nodes.values()):
            self._adopt(node)
        self.cluster = self._find_cluster()
        self._there = set(self.nodes)
        self._forget_strangers()
        for node in list(self.nodes.values()):
            self._hear(node)
        for node in list(self.nodes.values()):
            self._notice_standstill(node)
        if error and subject in self.nodes:
            self.nodes[subject].complaints.append(Complaint(Tier.ERROR, error, raw=error))
        self._add_shared_states()
        for node in [n for n in self.nodes.values() if "#" not in n.id]:
            self._follow_references(node)
        self._look_at_credentials()
        for node in list(self.nodes.values()):
            if node.complaints:
                self._connect(node)

    def _find_cluster(self) -> Node | None:
        """The Cluster that the subject is or belongs to."""
        node = self.nodes.get(self.subject)
        if node is None or node.kind == "Cluster" or node.object is None:
            return node
        return self.nodes.get(node_id("Cluster", node.namespace, node.object.metadata.labels.get(CLUSTER_NAME_LABEL, "")))

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
        if node.id == self.subject and self._subject_conditions is not None:
            return tuple(self._subject_conditions)
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
            node.complaints.append(Complaint(Tier.PAUSED, pause, since(get(conditions, "Paused")), "Paused"))
        for condition in conditions:
            complaint = complaint_of(condition)
            if complaint is not None:
                node.complaints.append(complaint)
        for name in ("failureReason", "failureMessage"):
            for path in (("status", name), ("status", "deprecated", "v1beta1", name)):
                text = node.object.at(*path)
                if isinstance(text, str) and text:
                    node.complaints.append(Complaint(Tier.ERROR, f"{name}: {text}", raw=text))
        node.complaints += self._stall(node, conditions)
        if node.complaints:
            node.complaints += self._warnings(node)
        node.complaints = without_summaries(node.complaints)

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
        condition = get(self._conditions(node), "RollingOut") if node.complaints and node.kind != "Cluster" else None
        begun = condition.last_transition_time if condition is not None and condition.status == "True" else None
        if begun is None or self._now is None or self._now - begun < STANDSTILL:
            return
        below = [self.nodes[name] for name in _reachable(self._children, node.id) if name in self.nodes]
        if all(n.tier is Tier.PROGRESS for n in below) and any(n.kind == "Machine" for n in below):
            node.complaints.append(
                Complaint(Tier.UNHEALTHY, "is rolling out, but no Machine comes or goes", since(condition), "RollingOut")
            )

    def _warnings(self, node: Node) -> list[Complaint]:
        """Warning Events that no good news followed, about an object that is in trouble anyway."""
        found = []
        for event in self._latest_warnings(node):
            text = str(event.get("message") or "")
            if BLOCKED.search(text):
                found.append(Complaint(Tier.ERROR, f"{event.get('reason')}: {text}", time_of(event), raw=text))
        return found

    def _latest_warnings(self, node: Node) -> list[Json]:
        told = self.events.get(node.id, [])
        good = max((time_of(e) for e in told if e.get("type") == "Normal"), default="")
        return [e for e in told if e.get("type") == "Warning" and time_of(e) >= good]

    # ---------------------------------------------------------------------------------------- references

    def _follow_references(self, node: Node) -> None:
        """Objects that are named but not there. What is being deleted may well have lost them."""
        if node.object is None or node.deleting:
            return
        if node.kind == "MachineSet" and not node.object.at("spec", "replicas"):
            return  # an old revision: what it was made from may be gone
        named = list(references(node.object.at("spec"), home=node.namespace))
        secret = node.object.at("spec", "bootstrap", "dataSecretName")
        if isinstance(secret, str) and secret and not node.object.at("status", "nodeRef"):
            named.append(Reference("", "Secret", secret, "spec.bootstrap.dataSecretName"))
        if any("secret" in c.raw.lower() for c in node.complaints):  # a Secret that nobody misses any more is no trouble
            named += secret_sources(node.object.at("spec"))
        named += self._unapplied(node)
        named += external_etcd_secrets(node.object, self.cluster.name) if self.cluster and _lacks_certificates(node) else []
        named += class_of(node.object)
        for reference in named:
            if is_template_expected(node.kind, reference) and not reference.kind.endswith("Template"):
                text = f"names {reference.kind} {reference.name} in {reference.path}, which is no template"
                node.complaints.append(Complaint(Tier.ERROR, text, node.worst.since if node.worst else "", about=TEMPLATE))
            target = node_id(reference.kind, node.namespace, reference.name)
            found = self.nodes.get(target)
            if found is not None and found.object is not None:
                self._look_at_content(node, found, reference)
            elif self._is_surely_missing(node, reference):
                self._miss(node, target, reference)
        self._follow_words(node)

    def _look_at_content(self, node: Node, source: Node, reference: Reference) -> None:
        """A Secret or ConfigMap that is there without what is asked of it, or with what nobody can use."""
        data = source.object.at("data") if source.object is not None else None
        if reference.key and not (isinstance(data, Mapping) and reference.key in data):
            text = f"has no key {reference.key}, which {node.id} asks for in {reference.path}"
        elif reference.path.startswith(_RESOURCES) and node.complaints and self._shared("connection") is None:
            text = f"could not be applied by {node.id}"
        else:
            return
        source.complaints.append(Complaint(Tier.ERROR, text, node.worst.since if node.worst else ""))
        node.because_of[source.id] = f"refers to it in {reference.path}"

    def _unapplied(self, node: Node) -> list[Reference]:
        """What a ClusterResourceSet names but did not bring to the cluster, as its binding says; it is silent about what it cannot find."""
        named = list(resources(node.object)) if node.object is not None else []
        binding = self.nodes.get(node_id("ClusterResourceSetBinding", node.namespace, self.cluster.name)) if self.cluster else None
        if not named or binding is None or binding.object is None:
            return named if node.complaints else []
        sets = [b for b in _mappings(binding.object.at("spec", "bindings")) if b.get("clusterResourceSetName") == node.name]
        applied = {(r.get("kind"), r.get("name")) for b in sets for r in _mappings(b.get("resources")) if r.get("applied") is True}
        return [r for r in named if (r.kind, r.name) not in applied]

    def _is_surely_missing(self, node: Node, reference: Reference) -> bool:
        """Whoever made the bundle may not have looked at all kinds.

        A kind that is there, or whose CRD is, or words that say so, are proof; so is a bundle with Events and Secrets: all was dumped.
        Where others of its API group are there and who names it is in trouble, that is likely enough.
        """
        if reference.kind in self._kinds or reference.kind in self._served:
            return True
        if reference.path.startswith(_RESOURCES) or reference.path.endswith(EXTERNAL_ETCD):
            return True  # the binding, or the lack of certificates, bears witness
        if {"Event", "Secret"} <= self._dumped and reference.path.endswith(_CORE_REFERENCES):
            return True
        if (
            reference.group
            and reference.group in self._groups
            and reference.path.endswith(_CORE_REFERENCES)
            and node.tier <= Tier.UNHEALTHY
        ):
            return True
        if reference.path.endswith("dataSecretName"):
            return False  # many leave Secrets out of a bundle
        speakers = (node, self.cluster) if node.kind == "ClusterClass" and self.cluster is not None else (node,)
        words = " ".join(c.raw or c.text for speaker in speakers for c in speaker.complaints)
        # a name alone proves nothing: a Machine and what it refers to often share theirs
        return reference.kind in words or (reference.kind.lower() in words.lower() and reference.name in words)

    def _miss(self, referrer: Node, target: str, reference: Reference) -> None:
        missing = self.nodes.get(target)
        if missing is None:
            missing = Node(target, reference.kind, referrer.namespace, reference.name)
            self.nodes[target] = missing
        by = referrer.id.partition("#")[0]
        missing.referrers.append(by)
        worst = referrer.worst
        text = f"does not exist, but {by} names it in {reference.path}" if by == referrer.id else f"does not exist, but {by} needs it"
        missing.complaints.append(Complaint(Tier.MISSING, text, worst.since if worst else ""))
        if not referrer.complaints:
            referrer.complaints.append(Complaint(Tier.PROGRESS, f"refers to {target}, which does not exist"))
        referrer.because_of[target] = f"refers to it in {reference.path}"

    def _follow_words(self, node: Node) -> None:
        """Objects that a message says were not found, and quotas that it names."""
        for complaint in list(node.complaints):
            for match in _NOT_FOUND.finditer(complaint.raw):
                word = match[1]
                kind = word if word in self._kinds else self._plurals.get(word.lower(), "")
                kind = kind or {"secrets": "Secret", "configmaps": "ConfigMap"}.get(word.lower(), "")
                target = node_id(kind, node.namespace, match[2])
                if kind and target not in self._there and target not in self.nodes:
                    self._miss(node, target, Reference("", kind, match[2], "its messages"))
            for match in _QUOTA.finditer(complaint.raw):
                quota = self.nodes.get(node_id("ResourceQuota", node.namespace, match[1]))
                if quota is not None:
                    quota.complaints.append(Complaint(Tier.ERROR, complaint.text, complaint.since))
                    node.because_of[quota.id] = "a request exceeds it"
        if any(c.about == "ScalingUp" and c.tier is Tier.UNHEALTHY for c in node.complaints):
            for quota in [n for n in self.nodes.values() if n.kind == "ResourceQuota" and n.object is not None]:
                spent = used_up(quota.object) if quota.object is not None else ""
                if spent:
                    quota.complaints.append(Complaint(Tier.ERROR, f"is used up: {spent}", node.worst.since if node.worst else ""))
                    node.because_of[quota.id] = "may not create more"

    # -------------------------------------------------------------------------------------- shared states

    def _add_shared_states(self) -> None:
        """What many objects wait for is a node of its own: initialization, the connection, a pause of everything."""
        cluster = self.cluster
        if cluster is None or cluster.object is None:
            return
        conditions = self._conditions(cluster)
        if not is_true(conditions, "ControlPlaneInitialized"):
            self._share(cluster, "initialization", Complaint(Tier.PROGRESS, "the control plane is not initialized"))
        probe = get(conditions, "RemoteConnectionProbe")
        if probe is not None and probe.status == "False" and not cluster.deleting:
            text = f"the workload cluster cannot be reached: {probe.message}"
            self._share(cluster, "connection", Complaint(Tier.UNHEALTHY, text, since(probe), "RemoteConnectionProbe"))

    def _look_at_credentials(self) -> None:
        """Secrets of the cluster that look wrong, if something is wrong that they could explain."""
        cluster = self.cluster
        if cluster is None or cluster.deleting:
            return
        found = {p: self.nodes.get(node_id("Secret", cluster.namespace, f"{cluster.name}-{p}")) for p in KEYS}
        self._miss_certificates(cluster, {p for p, secret in found.items() if secret is None})
        complaining = [n for n in self.nodes.values() if any(CERTIFICATES.search(f"{c.about} {c.raw}") for c in n.complaints)]
        connection = self.nodes.get(self._shared("connection") or "") if self._shared("initialization") is None else None
        if not complaining and connection is None:
            return
        for node, purpose in [(n, p) for n in complaining for p, secret in found.items() if secret is None and "Secret" in self._kinds]:
            if any(re.search(rf"\b{purpose}\b", c.raw) for c in node.complaints):
                name = f"{cluster.name}-{purpose}"
                self._miss(node, node_id("Secret", cluster.namespace, name), Reference("", "Secret", name, "its messages"))
        secrets = {p: n.object for p, n in found.items() if n is not None and n.object is not None}
        used = [n.object.at("spec", "bootstrap", "dataSecretName") for n in self.nodes.values() if n.kind == "Machine" and n.object]
        bootstrap = [self.nodes.get(node_id("Secret", cluster.namespace, str(name))) for name in used if name]
        for purpose, why in suspicions(secrets, [n.object for n in bootstrap if n is not None and n.object is not None]).items():
            secret = found[purpose]
            assert secret is not None
            blamed = complaining if purpose != "kubeconfig" else []
            blamed = [*blamed, connection] if connection is not None and purpose in {"kubeconfig", "ca"} else blamed
            if blamed:
                secret.complaints.append(Complaint(Tier.ERROR, why))
            for node in blamed:
                node.because_of[secret.id] = "depends on it"

    def _miss_certificates(self, cluster: Node, absent: set[str]) -> None:
        """Once kubeadm has set up a control plane, its certificates were there; who deletes them is not told of by any condition."""
        if "Secret" not in self._dumped:
            return
        configs = [n.object for n in self.nodes.values() if n.kind == "KubeadmConfig" and n.object is not None]
        first = [c for c in configs if c.at("spec", "initConfiguration") and has_delivered(c)]
        outside = [c for c in first if c.at("spec", "clusterConfiguration", "etcd", "external")]
        for purpose in absent & (CERTIFICATE_AUTHORITIES - ({"etcd"} if outside else set())) if first else ():
            name = f"{cluster.name}-{purpose}"
            missing = Node(node_id("Secret", cluster.namespace, name), "Secret", cluster.namespace, name, referrers=[cluster.id])
            missing.complaints.append(Complaint(Tier.MISSING, "does not exist, but the control plane was set up with it"))
            self.nodes.setdefault(missing.id, missing)

    def _share(self, cluster: Node, what: str, complaint: Complaint) -> None:
        node = Node(f"{cluster.id}#{what}", cluster.kind, cluster.namespace, cluster.name, cluster.object, [complaint])
        self.nodes[node.id] = node

    def _shared(self, what: str) -> str | None:
        name = f"{self.cluster.id if self.cluster else self.subject}#{what}"
        return name if name in self.nodes else None

    def _control_plane(self) -> list[str]:
        """The control-plane object, or the Machines that stand for it."""
        assert self.cluster is not None
        assert self.cluster.object is not None
        reference = self.cluster.object.at("spec", "controlPlaneRef")
        if isinstance(reference, Mapping) and reference.get("name"):
            return [node_id(str(reference.get("kind")), self.cluster.namespace, str(reference["name"]))]
        machines = [n for n in self.nodes.values() if n.kind == "Machine" and n.object is not None]
        return [n.id for n in machines if n.object is not None and CONTROL_PLANE_LABEL in n.object.metadata.labels]

    # --------------------------------------------------------------------------------------------- edges

    def _connect(self, node: Node) -> None:
        """From an object in trouble to those that its trouble comes from."""
        if "#" in node.id:
            self._connect_shared(node)
            return
        if node.object is None:
            return
        if any(c.tier is Tier.PAUSED or c.about == TEMPLATE for c in node.complaints):
            node.because_of.clear()  # nothing will happen to it before it is released, or nothing good before it is corrected
            return
        if node.deleting:
            for target in self._partners(node):
                if self.nodes[target].deleting:
                    node.because_of[target] = "waits for its deletion"
            told = [*(c.raw for c in node.complaints), *(str(e.get("message")) for e in self._latest_warnings(node))]
            if (shared := self._shared("connection")) and any(CONNECTION.search(words) for words in told):
                node.because_of[shared] = "needs the connection for its clean-up"
            if self.cluster is not None and node.id == self.cluster.id:
                self._connect_to_orphans(node)
                self._connect_to_lost_class(node)
            return
        for target in self._partners(node):
            if self.nodes[target].complaints:
                node.because_of.setdefault(target, "depends on it")
        self._connect_by_words(node)
        self._connect_to_infrastructure(node)
        cluster = self.cluster
        if cluster is not None and node.id != cluster.id and self._is_paused_by(node, cluster):
            node.because_of[cluster.id] = "is paused with the Cluster"

    def _connect_to_orphans(self, cluster: Node) -> None:
        """Descendants that a deletion waits for although nobody deletes them: their owners are gone."""
        said = get(self._conditions(cluster), "Deleting")
        if said is None or said.reason != "WaitingForWorkersDeletion":
            return
        for node in list(self.nodes.values()):
            if node.object is None or "#" in node.id or node.deleting or not re.search(rf"\b{re.escape(node.name)}\b", said.message):
                continue
            metadata = node.object.metadata
            owners = [node_id(r.kind, node.namespace, r.name) for r in metadata.owner_references]
            if (
                metadata.labels.get(CLUSTER_NAME_LABEL) == cluster.name
                and node.kind in _DESCENDANTS
                and not any(o in self.nodes for o in owners)
            ):
                text = "keeps the Cluster from being deleted, but nobody deletes it: its owner is gone"
                node.complaints.append(Complaint(Tier.DELETING, text, since(said)))
                cluster.because_of[node.id] = "waits for its deletion"

    def _connect_to_lost_class(self, cluster: Node) -> None:
        """Where nothing else is being deleted, that may be because nobody can compute what there is to delete."""
        assert cluster.object is not None
        for reference in [] if cluster.because_of else class_of(cluster.object):
            target = node_id(reference.kind, cluster.namespace, reference.name)
            if target not in self.nodes:
                self._miss(cluster, target, reference)

    def _connect_to_infrastructure(self, node: Node) -> None:
        """Before the infrastructure is provisioned, nothing else can be; no condition says so."""
        cluster = self.cluster
        if cluster is None or cluster.object is None or cluster.object.at("status", "initialization", "infrastructureProvisioned") is True:
            return
        for reference in references(cluster.object.at("spec"), home=cluster.namespace):
            target = self.nodes.get(node_id(reference.kind, cluster.namespace, reference.name))
            if reference.path != "spec.infrastructureRef" or target is None or target.id == node.id or node.id in target.because_of:
                continue
            if target.complaints or node.id == cluster.id:
                self._suspect(node, target, node.worst, "needs the cluster's infrastructure first")

    def _connect_shared(self, node: Node) -> None:
        what = node.id.rpartition("#")[2]
        carriers = self._control_plane()
        for target in carriers:
            if target in self.nodes and self.nodes[target].complaints:
                node.because_of[target] = "is the control plane"
        if not carriers and self.cluster is not None:
            node.because_of[self.cluster.id] = "has no control plane"
            if self.cluster.object is not None and not self.cluster.object.at("spec", "topology"):
                text = "has no control plane: neither a controlPlaneRef nor a control-plane Machine"
                node.complaints = [Complaint(Tier.ERROR, text)]
        if what == "connection":
            self._connect_connection(node)

    def _connect_connection(self, node: Node) -> None:
        """Without a kubeconfig there is no connection; before there is a control plane, there is neither."""
        assert self.cluster is not None
        initialization = self._shared("initialization")
        if initialization:
            node.because_of[initialization] = "there is no control plane to connect to"
        name = f"{self.cluster.name}-kubeconfig"
        secret = node_id("Secret", self.cluster.namespace, name)
        if "Secret" not in self._kinds or secret in self.nodes:
            return
        authority = self.nodes.get(node_id("Secret", self.cluster.namespace, f"{self.cluster.name}-ca"))
        why = suspicions({"ca": authority.object}, ()).get("ca") if authority is not None and authority.object is not None else None
        if authority is not None and why:
            authority.complaints.append(Complaint(Tier.ERROR, f"{why}, so that no kubeconfig can be made with it"))
            node.because_of[authority.id] = "no kubeconfig can be made without it"
        elif not initialization:
            self._miss(node, secret, Reference("", "Secret", name, "the connection"))

    def _partners(self, node: Node) -> list[str]:
        """What the object refers to and what it owns, as far as it is there."""
        assert node.object is not None
        references_ = (*references(node.object.at("spec"), home=node.namespace), *class_of(node.object))
        named = [node_id(r.kind, node.namespace, r.name) for r in references_]
        found = [n for n in dict.fromkeys((*named, *self._descendants(node.id))) if n in self.nodes and n != node.id]
        if node.kind == "MachineHealthCheck":
            found += [n.id for n in self.nodes.values() if n.kind == "Machine" and any(c.about in _HEALTH for c in n.complaints)]
        if self.cluster is not None and node.id == self.cluster.id:
            found += [n for what in ("initialization", "connection") if (n := self._shared(what))]
            found += [n for n in self._labelled() if n not in found]
        return found

    def _descendants(self, name: str) -> list[str]:
        """What the object owns; what says nothing lets what it owns speak for it."""
        found: dict[str, None] = {}
        queue = list(self._children.get(name, []))
        while queue:
            child = queue.pop(0)
            if child in found:
                continue
            found[child] = None
            if not self.nodes[child].complaints:
                queue += self._children.get(child, [])
        return list(found)

    def _labelled(self) -> list[str]:
        """Whatever carries the Cluster's label and has no owner of its own."""
        assert self.cluster is not None
        return [
            n.id
            for n in self.nodes.values()
            if n.object is not None
            and "#" not in n.id
            and n.id != self.cluster.id
            and n.object.metadata.labels.get(CLUSTER_NAME_LABEL) == self.cluster.name
            and not n.object.metadata.owner_references
        ]

    def _connect_by_words(self, node: Node) -> None:
        assert node.object is not None
        for complaint in node.complaints:
            words = complaint.raw
            if not words:
                continue
            if INITIALIZATION.search(words) and (shared := self._shared("initialization")):
                node.because_of.setdefault(shared, "waits for the control plane")
            if CONNECTION.search(words) and (shared := self._shared("connection")):
                node.because_of.setdefault(shared, "waits for the connection")
            if INFRASTRUCTURE.search(words) and self.cluster is not None:
                self._blame(node, self.cluster, "infrastructureRef", "waits for the cluster's infrastructure")
                self._blame_lack_of_infrastructure(node, self.cluster)
                if not node.because_of and (shared := self._shared("initialization")):
                    # the infrastructure is there by now; the control plane is what comes after it
                    node.because_of[shared] = "waits for the control plane"
            if complaint.about == "TopologyReconciled" and _CLASS_PATCH.search(words):
                for source in [n for n in self.nodes.values() if n.kind == "ClusterClass" and n.object is not None]:
                    self._suspect(node, source, complaint, "its patches come from there")
            if _BOOTSTRAP.search(words):
                for owner in node.object.metadata.owner_references:
                    machine = self.nodes.get(node_id(owner.kind, node.namespace, owner.name))
                    if machine is None or machine.object is None:
                        continue
                    if machine.tier is Tier.PAUSED:
                        node.because_of.setdefault(machine.id, "its Machine is paused")
                    else:
                        self._blame(node, machine, "configRef", "waits for bootstrap data")
            for reference in references(node.object.at("spec"), home=node.namespace):
                target = self.nodes.get(node_id(reference.kind, node.namespace, reference.name))
                if target is not None and target.object is not None and re.search(rf"\b{re.escape(reference.kind)}\b", words):
                    self._suspect(node, target, complaint, "says that it waits for it")

    def _blame_lack_of_infrastructure(self, node: Node, cluster: Node) -> None:
        """Nobody will ever give an endpoint to a Cluster that has no infrastructure, if its author did not."""
        assert cluster.object is not None
        spec = cluster.object.at("spec")
        spec = spec if isinstance(spec, Mapping) else {}
        endpoint = spec.get("controlPlaneEndpoint")
        if spec.get("infrastructureRef") or spec.get("topology") or (isinstance(endpoint, Mapping) and endpoint.get("host")):
            return
        text = "has neither an infrastructureRef nor a controlPlaneEndpoint"
        if all(c.text != text for c in cluster.complaints):
            cluster.complaints.append(Complaint(Tier.ERROR, text))
        node.because_of.setdefault(cluster.id, "waits for the endpoint")

    def _blame(self, node: Node, holder: Node, field_name: str, why: str) -> None:
        assert holder.object is not None
        for reference in references(holder.object.at("spec"), home=holder.namespace):
            if reference.path.endswith(field_name):
                target = self.nodes.get(node_id(reference.kind, node.namespace, reference.name))
                if target is not None and target.id != node.id:
                    self._suspect(node, target, node.worst, why)

    def _suspect(self, node: Node, target: Node, complaint: Complaint | None, why: str) -> None:
        """Others wait for it; if it says nothing itself, that is its trouble."""
        if not target.complaints:
            if target.object is None or has_delivered(target.object):
                return
            target.complaints.append(Complaint(Tier.SILENT, f"{node.id} waits for it", complaint.since if complaint else ""))
        node.because_of.setdefault(target.id, why)

    def _is_paused_by(self, node: Node, cluster: Node) -> bool:
        if not any(c.tier is Tier.PAUSED for c in cluster.complaints):
            return False
        return is_true(self._conditions(node), "Paused") or node.kind.endswith(("Config", "Template")) or bool(node.complaints)

    # ------------------------------------------------------------------------------------------- verdict

    def causes(self) -> list[Node]:
        """What nothing else explains, the most telling first; empty if all is well."""
        troubled = {n.id: [t for t in n.because_of if t in self.nodes] for n in self.nodes.values() if n.complaints}
        for node_name in [t for targets in list(troubled.values()) for t in targets]:
            troubled.setdefault(node_name, [])
        troubled = self._telling(troubled)
        backwards = _reversed(troubled)
        from_subject = _reachable(troubled, self.subject)
        chosen: dict[str, Node] = {}
        for group in sinks(troubled):
            members = [self.nodes[n] for n in group]
            best = min(members, key=lambda n: (n.tier, "#" in n.id, n.worst.since if n.worst else "", n.id))
            best = self._lifted(best)
            if best.tier is not Tier.PROGRESS and (best.id in from_subject or self.subject.startswith("Cluster/")):
                chosen.setdefault(best.id, best)
        reach = {name: len(_reachable(backwards, name)) for name in chosen}
        return sorted(
            chosen.values(),
            key=lambda n: (
                n.tier > Tier.UNHEALTHY,
                n.id not in from_subject,
                n.tier,
                -reach[n.id],
                n.worst.since if n.worst else "",
                n.id,
            ),
        )

    def _telling(self, graph: dict[str, list[str]]) -> dict[str, list[str]]:
        """The graph without those that are only getting on: what is wrong with others is not explained by that."""
        while idle := {name for group in sinks(graph) if all(self.nodes[n].tier is Tier.PROGRESS for n in group) for name in group}:
            graph = {name: [t for t in targets if t not in idle] for name, targets in graph.items() if name not in idle}
        return graph

    def _lifted(self, node: Node) -> Node:
        """A MachineSet is made from its MachineDeployment: who must act acts there."""
        if node.kind != "MachineSet" or node.object is None or node.deleting or node.tier is Tier.PAUSED:
            return node
        for owner in node.object.metadata.owner_references:
            parent = self.nodes.get(node_id(owner.kind, node.namespace, owner.name))
            if parent is not None and parent.kind == "MachineDeployment" and parent.complaints:
                if node.worst is not None and node.tier < parent.tier:
                    parent.complaints.append(node.worst)
                return parent
        return node

    def path_to(self, target: str) -> list[str]:
        """The chain of nodes from the subject to a cause, shortest first; only the cause if nothing leads there."""
        before: dict[str, str] = {self.subject: ""}
        queue = [self.subject]
        for current in queue:
            if current == target:
                break
            node = self.nodes.get(current)
            for following in node.because_of if node else ():
                if following not in before and following in self.nodes:
                    before[following] = current
                    queue.append(following)
        if target not in before:
            return [target]
        chain = [target]
        while before[chain[-1]]:
            chain.append(before[chain[-1]])
        return chain[::-1]


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _lacks_certificates(node: Node) -> bool:
    return any(c.about == "CertificatesAvailable" for c in node.complaints)


def _reachable(graph: Mapping[str, Sequence[str]], start: str) -> set[str]:
    seen, queue = {start}, [start]
    for current in queue:
        for following in graph.get(current, ()):
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return seen


def _reversed(graph: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The same edges, seen from where they lead to."""
    turned: dict[str, list[str]] = {}
    for node, targets in graph.items():
        for target in targets:
            turned.setdefault(target, []).append(node)
    return turned
