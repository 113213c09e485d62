"""Find the causes of a cluster's trouble in objects of any kind, most of them from controllers that we do not know.

Every sign of trouble becomes a complaint of an object: a bad condition, a deletion that does not
end, a pause, a reference to a missing object, a warning Event. A graph connects each troubled object to its reasons: the objects
that it refers to, those that it owns, and those that its messages say it waits for (the control plane, the
infrastructure, the bootstrap data, the connection). The sinks of the graph are the causes: no other object explains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clusterwright.api.meta import Condition, Json
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conditions import get, is_true
from clusterwright.offline import provider_reports
from clusterwright.offline.complaints import (
    TEMPLATE,
    Complaint,
    Reference,
    Tier,
    has_delivered,
    references,
    since,
    text_of,
)
from clusterwright.offline.credentials import suspicions
from clusterwright.offline.detectors import DETECTORS, FIRST
from clusterwright.offline.detectors.extensions import handlers
from clusterwright.offline.detectors.passes import failing_passes
from clusterwright.offline.graph import reachable, reverse, sinks
from clusterwright.offline.known import Found, Known
from clusterwright.offline.missing import MissingObjects
from clusterwright.offline.nodes import Node
from clusterwright.offline.ownership import class_of
from clusterwright.offline.ownership import name_of as node_id
from clusterwright.offline.reported import Finding, Sight
from clusterwright.offline.unreconciled import TOPOLOGY
from clusterwright.offline.words import BOOTSTRAP, CLASS_PATCH, CONNECTION, INFRASTRUCTURE, INITIALIZATION, UNINSPECTED, names_in

_DESCENDANTS = frozenset({"Machine", "MachineSet", "MachineDeployment", "MachinePool"})
_HEALTH = frozenset({"HealthCheckSucceeded", "OwnerRemediated", "NodeHealthy", "Ready"})


class Investigation(MissingObjects):
    """The objects of a cluster with their complaints, and the graph that connects each to the reasons for its trouble."""

    def __init__(
        self,
        objects: Iterable[Json],
        subject: str,
        findings: Mapping[str, Finding] | None = None,
        sight: Sight | None = None,
        *,
        is_one_cluster: bool = False,
    ) -> None:
        """See Reported."""
        super().__init__(objects, subject, findings, sight, is_one_cluster=is_one_cluster)
        if self._running is not None and self._running.failures:
            for one in failing_passes(self._known()):  # first, because its words lead to others
                self._take(one)
        self.look_for_absences()
        found: list[Found] = []
        for detectors in (*FIRST, DETECTORS):
            known = self._known()
            told = [one for detect in detectors for one in detect(known)]
            for one in told:
                self._take(one)
            found += told
        for node in list(self.nodes.values()):
            if node.complaints:
                self._connect(node)
        for one in found:
            self._explain(one)
        there = {name for name, node in self.nodes.items() if node.object is not None}
        for node in self.nodes.values():
            if node.object is not None and node.complaints and "#" not in node.id:
                node.complaints = [provider_reports.told(node.object, c, there) for c in node.complaints]

    def _known(self) -> Known:
        """Return the current knowledge, for detectors."""
        nodes = {name: node for name, node in self.nodes.items() if "#" not in name and node.object is not None}
        by_kind: dict[str, list[str]] = {}
        for name, node in nodes.items():
            by_kind.setdefault(node.kind, []).append(name)
        return Known(
            by_kind=by_kind,
            objects={name: node.object for name, node in nodes.items() if node.object is not None},
            conditions=lambda name: self._conditions(nodes[name]) if name in nodes else (),
            complaints={name: tuple(node.complaints) for name, node in nodes.items()},
            events=self.events,
            definitions=self._definitions,
            workload=self._workload,
            cluster=self.cluster.object if self.cluster is not None else None,
            now=self._now,
            running=self._running,
            seen=self._seen,
            suspicions=self._suspicions,
            webhooks=self._webhooks,
            extensions=self._extensions,
            managers=self._managers,
            is_initialized=self._shared("initialization") is None,
            is_reachable=self._shared("connection") is None and not self._unreachable,
        )

    def _take(self, found: Found) -> None:
        kind, _, rest = found.object.partition("/")
        namespace, _, name = rest.rpartition("/")
        node = self.nodes.setdefault(found.object, Node(found.object, kind, namespace, name, found.definition))
        if found.is_all:
            node.complaints = [found.complaint]
        elif found.replaces in node.complaints:
            node.complaints[node.complaints.index(found.replaces)] = found.complaint
        else:
            node.complaints = [*node.complaints, found.complaint]

    def _explain(self, found: Found) -> None:
        """Connect an object to the causes that a detector found, and those to what they explain."""
        node = self.nodes[found.object]
        if found.is_all:
            node.because_of.clear()
        node.because_of |= {name: how for name, how in found.because.items() if name in self.nodes}
        for explained, how in found.explains.items():
            if explained in self.nodes:
                self.nodes[explained].because_of[found.object] = how

    # --------------------------------------------------------------------------------------------- edges

    def _connect(self, node: Node) -> None:
        """Connect an object in trouble to the objects that cause its trouble."""
        if "#" in node.id:
            self._connect_shared(node)
            return
        if node.object is None:
            return
        if node.tier is Tier.UNRECONCILED:
            node.because_of = {t: why for t, why in node.because_of.items() if self.nodes[t].tier is Tier.MISSING}
            self._connect_unreconciled(node)
            return
        if any(c.tier is Tier.PAUSED or c.about == TEMPLATE for c in node.complaints):
            node.because_of.clear()  # nothing happens to it before it is released or corrected
            return
        if node.deleting:
            for target in self._partners(node):
                if self.nodes[target].deleting:
                    node.because_of[target] = "waits for its deletion"
            told = [*(c.raw for c in node.complaints), *(text_of(e) for e in self._latest_warnings(node))]
            if (shared := self._shared("connection")) and any(CONNECTION.said_in(words) for words in told):
                node.because_of[shared] = "needs the connection for its clean-up"
            if self.cluster is not None and node.id == self.cluster.id:
                self._connect_to_orphans(node)
                self._connect_to_lost_class(node)
            return
        for target in self._partners(node):
            if self.nodes[target].complaints:
                node.because_of.setdefault(target, "depends on it")
        self._connect_by_rows(node)
        self._connect_by_words(node)
        self._connect_to_infrastructure(node)
        cluster = self.cluster
        if cluster is not None and node.id != cluster.id and self._is_paused_by(node, cluster):
            node.because_of[cluster.id] = "is paused with the Cluster"

    def _connect_unreconciled(self, node: Node) -> None:
        """Connect an object without an owner to the object that would own it: most controllers wait for the owner reference."""
        assert node.object is not None
        if self.cluster is not None and node is not self.cluster and self.cluster.tier is Tier.PAUSED:
            node.because_of[self.cluster.id] = "waits for the Cluster, which is paused"
        definition = self._definitions.get((node.object.gvk.group, node.kind))
        if definition is not None and (crd := node_id(definition.kind, "", definition.metadata.name)) in self.nodes:
            node.because_of[crd] = "cannot be read by others"
        for other in self.nodes.values():
            if other.id == node.id or other.object is None or other.tier not in {Tier.UNRECONCILED, Tier.PAUSED, Tier.ERROR}:
                continue
            if other.id in {node_id(r.kind, node.namespace, r.name) for r in node.object.metadata.owner_references}:
                continue
            named = {node_id(r.kind, other.namespace, r.name) for r in references(other.object.at("spec"), home=other.namespace)}
            if node.id in named or (other is self.cluster and not node.object.metadata.owner_references):
                node.because_of[other.id] = "waits to be owned by it"

    def _connect_to_orphans(self, cluster: Node) -> None:
        """Connect a deletion to the descendants that it waits for and that nothing deletes, because their owners are gone."""
        said = get(self._conditions(cluster), "Deleting")
        if said is None or said.reason != "WaitingForWorkersDeletion":
            return
        for node in list(self.nodes.values()):
            if node.object is None or "#" in node.id or node.deleting or node.name not in names_in(said.message):
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
        """Connect a deletion that deletes nothing to a missing ClusterClass: without it, the objects to delete cannot be computed."""
        assert cluster.object is not None
        for reference in [] if cluster.because_of else class_of(cluster.object):
            target = node_id(reference.kind, reference.namespace or cluster.namespace, reference.name)
            if target not in self.nodes and not reference.namespace:
                self._miss(cluster, target, reference)

    def _connect_to_infrastructure(self, node: Node) -> None:
        """Connect objects to infrastructure that is not provisioned: nothing works before it, and no condition reports that."""
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
        carriers = self._known().control_plane()
        for target in carriers:
            if target in self.nodes and self.nodes[target].complaints:
                node.because_of[target] = "is the control plane"
        if not carriers and self.cluster is not None and self._shared("initialization"):
            node.because_of[self.cluster.id] = "has no control plane"
            if self.cluster.object is not None and not self.cluster.object.at("spec", "topology"):
                text = "has no control plane: neither a controlPlaneRef nor a control-plane Machine"
                facts = {"cluster": self.cluster.name, "namespace": self.cluster.namespace}
                node.complaints = [Complaint(Tier.ERROR, text, path="spec.controlPlaneRef", cause="cluster.headless", facts=facts)]
        if what == "connection":
            self._connect_connection(node)

    def _connect_connection(self, node: Node) -> None:
        """Connect the connection to the kubeconfig, and both to the control plane: each needs the next."""
        assert self.cluster is not None
        initialization = self._shared("initialization")
        if initialization:
            node.because_of[initialization] = "there is no control plane to connect to"
        name = f"{self.cluster.name}-kubeconfig"
        secret = node_id("Secret", self.cluster.namespace, name)
        if "Secret" not in self._kinds | self._seen or secret in self.nodes:
            return
        authority = self.nodes.get(node_id("Secret", self.cluster.namespace, f"{self.cluster.name}-ca"))
        why = suspicions({"ca": authority.object}, ()).get("ca") if authority is not None and authority.object is not None else None
        if authority is not None and why:
            authority.complaints.append(Complaint(Tier.ERROR, f"{why}, so that no kubeconfig can be made with it"))
            node.because_of[authority.id] = "no kubeconfig can be made without it"
        elif not initialization:
            self._miss(node, secret, Reference("", "Secret", name, "the connection"))

    def _partners(self, node: Node) -> list[str]:
        """Return the objects that the object refers to or owns, without missing ones."""
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
        """Return the owned objects; those of an owned object without complaints stand in its place."""
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
        """Return the objects with the Cluster's label and without an owner."""
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

    def _connect_by_rows(self, node: Node) -> None:
        """Connect an object to the troubled objects that the rows which fired had read."""
        finding = self._findings.get(node.id)
        for complaint in node.complaints if finding is not None else ():
            for target in finding.asked.get(complaint.about, ()) if finding is not None else ():
                if target != node.id and target in self.nodes and self.nodes[target].complaints:
                    node.because_of.setdefault(target, f"{complaint.about} depends on it")

    def _connect_by_words(self, node: Node) -> None:
        assert node.object is not None
        for complaint in node.complaints:
            words = complaint.raw
            if not words:
                continue
            if INITIALIZATION.said_in(words) and (shared := self._shared("initialization")):
                node.because_of.setdefault(shared, "waits for the control plane")
            if (CONNECTION.said_in(words) or UNINSPECTED.said_in(words)) and (shared := self._shared("connection")):
                node.because_of.setdefault(shared, "waits for the connection")
            if INFRASTRUCTURE.said_in(words) and self.cluster is not None:
                self._blame(node, self.cluster, "infrastructureRef", "waits for the cluster's infrastructure")
                self._blame_lack_of_infrastructure(node, self.cluster)
                if not node.because_of and (shared := self._shared("initialization")):
                    # the infrastructure is there by now; the control plane is what comes after it
                    node.because_of[shared] = "waits for the control plane"
            if complaint.about == TOPOLOGY and CLASS_PATCH.said_in(words) and not handlers(words):
                for source in [n for n in self.nodes.values() if n.kind == "ClusterClass" and n.object is not None]:
                    if not source.complaints:
                        source.complaints.append(
                            Complaint(complaint.tier, f"cannot be applied to {node.id}: {complaint.text}", complaint.since)
                        )
                    node.because_of.setdefault(source.id, "its patches come from there")
            if BOOTSTRAP.said_in(words):
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
                if target is not None and target.object is not None and reference.kind in names_in(words):
                    self._suspect(node, target, complaint, "says that it waits for it")

    def _blame_lack_of_infrastructure(self, node: Node, cluster: Node) -> None:
        """Complain about a Cluster without infrastructure and endpoint: nothing will ever set its endpoint."""
        assert cluster.object is not None
        spec = cluster.object.at("spec")
        spec = spec if isinstance(spec, Mapping) else {}
        endpoint = spec.get("controlPlaneEndpoint")
        if spec.get("infrastructureRef") or spec.get("topology") or (isinstance(endpoint, Mapping) and endpoint.get("host")):
            return
        text = "has neither an infrastructureRef nor a controlPlaneEndpoint"
        if all(c.text != text for c in cluster.complaints):
            facts = {"cluster": cluster.name, "namespace": cluster.namespace}
            cluster.complaints.append(Complaint(Tier.ERROR, text, path="spec.infrastructureRef", cause="cluster.bare", facts=facts))
        node.because_of.setdefault(cluster.id, "waits for the endpoint")

    def _blame(self, node: Node, holder: Node, field_name: str, why: str) -> None:
        assert holder.object is not None
        for reference in references(holder.object.at("spec"), home=holder.namespace):
            if reference.path.endswith(field_name):
                target = self.nodes.get(node_id(reference.kind, node.namespace, reference.name))
                if target is not None and target.id != node.id:
                    self._suspect(node, target, node.worst, why)

    def _suspect(self, node: Node, target: Node, complaint: Complaint | None, why: str) -> None:
        """Record that a node waits for a target. If the target reports nothing, its silence becomes its complaint."""
        if not target.complaints:
            if target.object is None or has_delivered(target.object):
                return
            target.complaints.append(Complaint(Tier.SILENT, f"is waited for by {node.id}", complaint.since if complaint else ""))
        node.because_of.setdefault(target.id, why)

    def _is_paused_by(self, node: Node, cluster: Node) -> bool:
        if not any(c.tier is Tier.PAUSED for c in cluster.complaints):
            return False
        return is_true(self._conditions(node), "Paused") or node.kind.endswith(("Config", "Template")) or bool(node.complaints)

    # ------------------------------------------------------------------------------------------- verdict

    @property
    def unseen(self) -> Mapping[str, str]:
        """The kinds that could not be listed, each with the reason."""
        return self._unseen

    @property
    def named_kinds(self) -> set[str]:
        """The kinds that the references of the cluster's objects name."""
        objects = [n.object for n in self.nodes.values() if n.object is not None]
        return {r.kind for o in objects for r in references(o.at("spec"), home=o.key.namespace)}

    def why_missing(self, node: Node) -> str:
        """Return the evidence that an object does not exist: the places that were searched."""
        where = f"namespace {node.namespace}" if node.namespace else "the whole management cluster"
        if node.worst is not None and node.worst.cause == "workload.missing":
            return f"a controller looked for it in namespace {node.namespace} of the workload cluster, and tells so"
        if node.kind in self._seen:
            number = sum(1 for n in self._there if n.startswith(f"{node.kind}/{node.namespace}/" if node.namespace else f"{node.kind}/"))
            return f"all {node.kind} objects of {where} were listed; of this cluster are {number}, and this one is not among them"
        if self._seen:
            return f"no API of the management cluster serves {node.kind}; all kinds of {where} were listed"
        if node.kind in self._kinds:
            return f"the file has other {node.kind} objects, but not this one"
        return f"the file does not have it, and {', '.join(node.referrers) or 'an object'} reports trouble with it"

    def may_have_changed(self, node: Node) -> bool:
        """Return whether the recorder knew that the spec of an object may be newer than its status."""
        return not self._seen or node.id in self._changed

    @property
    def is_being_set_up(self) -> bool:
        """Return whether the cluster's control plane has not come up yet."""
        return self._shared("initialization") is not None

    def said(self, node: Node, type_: str) -> Condition | None:
        """Return the condition of an object as a pass found it, else as it was written."""
        return get(self._conditions(node), type_)

    def owners(self, node: Node) -> list[Node]:
        """Return the owners of the object, and their owners."""
        found: dict[str, Node] = {}
        queue = [node]
        for one in queue:
            for reference in one.object.metadata.owner_references if one.object is not None else ():
                owner = self.nodes.get(node_id(reference.kind, one.namespace, reference.name))
                if owner is not None and owner.id not in found and owner is not self.cluster:
                    found[owner.id] = owner
                    queue.append(owner)
        return list(found.values())

    def machines_of(self, node: Node) -> list[Node]:
        """Return the Machines that the object owns, and those of what it owns."""
        return [self.nodes[name] for name in reachable(self._children, node.id) if name.startswith("Machine/") and name in self.nodes]

    def causes(self) -> list[Node]:
        """Return the causes that nothing else explains, the strongest evidence first; empty if all is well."""
        troubled = {n.id: [t for t in n.because_of if t in self.nodes] for n in self.nodes.values() if n.complaints}
        for node_name in [t for targets in list(troubled.values()) for t in targets]:
            troubled.setdefault(node_name, [])
        troubled = self._telling(troubled)
        backwards = reverse(troubled)
        from_subject = reachable(troubled, self.subject)
        chosen: dict[str, Node] = {}
        for group in sinks(troubled):
            members = [self.nodes[n] for n in group]
            best = min(members, key=lambda n: (n.tier, "#" in n.id, n.worst.since if n.worst else "", n.id))
            best = self._lifted(best)
            if best.tier is not Tier.PROGRESS and (best.id in from_subject or self.subject.startswith("Cluster/")):
                chosen.setdefault(best.id, best)
        reach = {name: len(reachable(backwards, name)) for name in chosen}
        is_cut_off = any(
            n.worst is not None and n.worst.about == "RemoteConnectionProbe" and n.tier is Tier.UNHEALTHY for n in chosen.values()
        )
        return sorted(
            chosen.values(),
            key=lambda n: (
                n.tier > Tier.UNHEALTHY,
                n.kind == "MachineHealthCheck" and n.tier is Tier.PAUSED,  # nothing waits for it
                is_cut_off and n.kind.endswith("Template"),  # only what is yet to be made needs a template
                n.id not in from_subject,
                n.tier,
                -reach[n.id],
                n.worst.since if n.worst else "",
                n.id,
            ),
        )

    def _telling(self, graph: dict[str, list[str]]) -> dict[str, list[str]]:
        """Return the graph without objects that make progress: these do not explain trouble elsewhere."""
        while idle := {name for group in sinks(graph) if all(self.nodes[n].tier is Tier.PROGRESS for n in group) for name in group}:
            graph = {name: [t for t in targets if t not in idle] for name, targets in graph.items() if name not in idle}
        return graph

    def _lifted(self, node: Node) -> Node:
        """Return the MachineDeployment instead of its MachineSet: people change the former."""
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
        """Return the shortest chain of nodes from the subject to a cause, or the cause alone if none leads there."""
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
