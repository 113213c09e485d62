"""Find faults of a cluster that none of its objects reports: broken contracts, lost quorum, machines that never come up."""

from __future__ import annotations

from collections.abc import Mapping

from clusterwright.api.contract import NoContract, contract_of
from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, PROVIDER_LABEL
from clusterwright.offline.complaints import Complaint, Reference, Tier, has_delivered, references
from clusterwright.offline.contract_breaches import ROLES, breach, breach_of_definition, without_endpoint
from clusterwright.offline.managers import TOPOLOGY_GATE, why_idle
from clusterwright.offline.missing import MissingObjects
from clusterwright.offline.nodes import Node
from clusterwright.offline.observation import Running
from clusterwright.offline.ownership import name_of as node_id
from clusterwright.offline.preflights import ABOUT, VERSION, Failure, failures
from clusterwright.offline.unreconciled import IDLE, RIGHTS, TOPOLOGY, Seat, booting_in_vain, is_of_a_halt, lost_quorum, without_contract


class Unreported(MissingObjects):
    """The complaints of the base classes, and those that follow from several objects together."""

    def look_for_neglect(self) -> None:
        """Run all checks for faults that no object reports."""
        self._look_for_contracts()
        self._look_for_controllers()  # after the complaint that nothing reconciles kinds of other groups
        self._look_at_preflights()
        self._look_for_quorum()
        self._look_for_boots()

    def _look_for_controllers(self) -> None:
        """Add the reason to complaints about missing controllers, if the controllers could be asked."""
        running = self._running
        for node in self.nodes.values() if self._managers else ():
            if running is not None and node.kind in running.controllers.values():
                continue
            node.complaints = [self._unmanaged(node, c) if c.tier is Tier.UNRECONCILED else c for c in node.complaints]
        for node in self.nodes.values() if running is not None else ():
            assert running is not None
            made = node.object.metadata.creation_timestamp if node.object is not None and not node.object.at("status") else None
            if made is not None and running.why_idle(node.kind) and not node.complaints:
                node.complaints = [Complaint(Tier.UNRECONCILED, "nothing reconciles it", f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")]
            node.complaints = [_reasoned(running, node, c) if c.tier is Tier.UNRECONCILED else c for c in node.complaints]

    def _unmanaged(self, node: Node, complaint: Complaint) -> Complaint:
        """Return the complaint that no controller reconciles an object, with the reason that the controller's Deployment shows."""
        definition = self._definitions.get((node.object.gvk.group, node.kind)) if node.object is not None else None
        provider = definition.metadata.labels.get(PROVIDER_LABEL, "") if definition is not None else ""
        why = why_idle(node.kind, provider, self._managers, TOPOLOGY_GATE if complaint.about == TOPOLOGY else "")
        return replace(complaint, text=f"{complaint.text}: {why}", about=IDLE, raw=why) if why else complaint

    def _look_at_preflights(self) -> None:
        """Complain about failed preflight checks. Waiting for the control plane is not an error; a wrong version is, and is named."""
        for node in [n for n in self.nodes.values() if n.kind in {"MachineSet", "MachineDeployment"} and not n.deleting]:
            told: list[Complaint] = []
            for complaint in node.complaints:
                failed = list(failures(complaint.text))
                told += [self._of_preflight(node, complaint, failure) for failure in failed] or [complaint]
            node.complaints = told

    def _of_preflight(self, node: Node, complaint: Complaint, failure: Failure) -> Complaint:
        text = f"makes no Machines: {failure.what} (preflight check {failure.check})"
        about = f"{ABOUT}{failure.check}"
        if not failure.rule.is_wait:
            return replace(complaint, tier=Tier.ERROR, text=text, about=about, path=VERSION, raw=failure.raw)
        carriers = (
            [self.nodes[name] for name in self._control_plane() if name in self.nodes] if self.cluster and self.cluster.object else []
        )
        named = [n for n in carriers if not failure.name or n.name == failure.name]
        for carrier in named:
            if carrier.complaints:
                node.because_of[carrier.id] = f"its preflight check {failure.check} asks for it"
        is_moving = any(c.tier is Tier.PROGRESS for n in named for c in n.complaints)
        return replace(complaint, tier=Tier.PROGRESS if is_moving else Tier.WAITING, text=text, about=about, raw=failure.raw)

    def _look_for_contracts(self) -> None:
        """Complain about CRDs of referenced provider kinds without a contract, and about objects that break theirs."""
        for node in [n for n in self.nodes.values() if n.object is not None and n.complaints and "#" not in n.id]:
            assert node.object is not None
            for reference in references(node.object.at("spec"), home=node.namespace):
                # a clone is not in a better state than its definition
                for kind in dict.fromkeys((reference.kind, reference.kind.removesuffix("Template"))):
                    self._look_at_definition(node, reference, kind)

    def _look_at_definition(self, node: Node, reference: Reference, kind: str) -> None:
        definition = self._definitions.get((reference.group, kind))
        if definition is None:
            return
        complaint = without_contract(definition) or breach_of_definition(definition)
        if complaint is None:
            self._look_for_breach(node, reference, definition)
            return
        name = node_id(definition.kind, "", definition.metadata.name)
        found = self.nodes.setdefault(name, Node(name, definition.kind, "", definition.metadata.name, definition, [complaint]))
        node.because_of[found.id] = f"refers to a {kind} in {reference.path}"

    def _look_for_breach(self, node: Node, reference: Reference, definition: Unstructured) -> None:
        """Complain about a provider's object that breaks the contract of its role for the object that names it."""
        role, target = ROLES.get((node.kind, reference.path)), self.nodes.get(node_id(reference.kind, node.namespace, reference.name))
        if role is None or target is None or target.object is None or target.deleting or target.tier is Tier.PAUSED:
            return
        try:
            version = contract_of({"name": definition.metadata.name, "labels": definition.metadata.labels}, target.object.gvk.version)
        except NoContract:
            return
        complaint = breach(role, target.object, version, self._now, self._heard(target))
        if complaint is None and node.kind == "Cluster" and reference.path == "spec.infrastructureRef" and node.object is not None:
            complaint = without_endpoint(target.object, node.object, version)
        if complaint is not None and not any(c.tier is complaint.tier for c in target.complaints):
            target.complaints.append(complaint)

    def _look_for_quorum(self) -> None:
        """Check the quorum of a control plane with etcd members on its Machines."""
        if self.cluster is None or self.cluster.object is None or self.cluster.deleting:
            return
        for name in self._control_plane():
            node = self.nodes.get(name)
            if node is None or node.object is None or node.kind == "Machine" or node.deleting:
                continue
            below = [self.nodes[c] for c in self._children.get(name, ()) if c in self.nodes and c.startswith("Machine/")]
            seats = [Seat(n.object, self._conditions(n), self._behind(n)) for n in below if n.object is not None]
            complaint = lost_quorum(seats, reachable=self._shared("connection") is None and not self._unreachable)
            if complaint is not None:
                node.complaints = [complaint]

    def _look_for_boots(self) -> None:
        """Complain about the first machines of a control plane that has not come up, if no other object complains."""
        if self._shared("initialization") is None or self.cluster is None or self.cluster.deleting:
            return
        for node in list(self.nodes.values()):
            if node.kind != "Machine" or node.object is None or node.deleting or CONTROL_PLANE_LABEL not in node.object.metadata.labels:
                continue
            named = [
                self.nodes.get(node_id(r.kind, node.namespace, r.name)) for r in references(node.object.at("spec"), home=node.namespace)
            ]
            complaint = booting_in_vain(node.object, self._conditions(node), self._now)
            if complaint is not None and all(n is not None and not n.complaints for n in named):
                node.complaints = [complaint]

    def _behind(self, machine: Node) -> Complaint | None:
        """Return the complaint of a once provisioned infrastructure machine that explains why the Machine's etcd member does not run."""
        assert machine.object is not None
        kind, name = (machine.object.at("spec", "infrastructureRef", part) for part in ("kind", "name"))
        found = self.nodes.get(node_id(str(kind), machine.namespace, str(name)))
        if found is None or found.object is None or not has_delivered(found.object):
            return None
        told = [c for c in found.complaints if c.tier in {Tier.ERROR, Tier.UNHEALTHY} and is_of_a_halt(c)]
        return min(told, key=lambda c: c.since, default=None)

    def _control_plane(self) -> list[str]:
        """Return the control-plane object, or the Machines that stand for it."""
        assert self.cluster is not None
        assert self.cluster.object is not None
        reference = self.cluster.object.at("spec", "controlPlaneRef")
        if isinstance(reference, Mapping) and reference.get("name"):
            return [node_id(str(reference.get("kind")), self.cluster.namespace, str(reference["name"]))]
        machines = [n for n in self.nodes.values() if n.kind == "Machine" and n.object is not None]
        return [n.id for n in machines if n.object is not None and CONTROL_PLANE_LABEL in n.object.metadata.labels]


def _reasoned(running: Running, node: Node, complaint: Complaint) -> Complaint:
    """Return the complaint that no controller reconciles an object, with the reason if the controllers report one."""
    idle = running.idle.get("topology/cluster") if complaint.about == TOPOLOGY else None
    if why := idle.why if idle is not None else running.why_idle(node.kind):
        return replace(complaint, text=f"{complaint.text}: {why}", about=IDLE, raw=why)
    if right := next(iter(running.rights), ""):
        return replace(complaint, text=f"{complaint.text}: its controllers may not {right}", about=RIGHTS, raw=right)
    return complaint
