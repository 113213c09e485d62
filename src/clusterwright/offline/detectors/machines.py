"""Find needs of a Machine that its controller cannot meet: a Node, a network, a readiness gate, a vote, a replacement."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, PAUSED_ANNOTATION, SKIP_REMEDIATION_ANNOTATION
from clusterwright.offline.complaints import Complaint, Tier, condition_path, since, with_cause
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import resources, selects

_NETWORK: Final = ("NetworkPluginNotReady", "cni plugin not initialized", "cni config uninitialized")
"""Messages of kubelets whose container runtime has no network."""
_STARTING: Final = timedelta(seconds=90)
"""How long a new Node may be without network before that is an error: a DaemonSet has to bring the plugin to it."""
_SETTLING: Final = "WaitingForMinReadySeconds"
_LOST: Final = "no Node matches the providerID"
_UNHEALTHY: Final = ("HealthCheckSucceeded", "NodeHealthy", "NodeReady")


def machines(known: Known) -> Iterator[Found]:
    """Yield Machines in trouble with the cause that has a remedy."""
    for name, machine in known.of_kind("Machine"):
        if machine.metadata.deletion_timestamp is not None or not known.complaints.get(name):
            continue
        found = next(filter(None, (rule(known, name, machine) for rule in _RULES)), None)
        if found is not None:
            yield Found(object=name, complaint=found, is_all=True)


def _facts(known: Known, machine: Unstructured) -> dict[str, str]:
    return {
        "machine": machine.key.name,
        "namespace": machine.key.namespace,
        "node": str(machine.at("status", "nodeRef", "name") or machine.key.name),
        "cluster": known.cluster.key.name if known.cluster is not None else "",
    }


def _network(known: Known, name: str, machine: Unstructured) -> Complaint | None:
    for complaint in known.complaints[name]:
        if any(words in complaint.raw for words in _NETWORK):
            stuck = _stuck(known, machine)
            facts = {**_facts(known, machine), "step": stuck or f"install a network plugin (CNI) in the workload cluster{_hint(known)}"}
            is_young = known.now is not None and bool(complaint.since) and known.now - datetime.fromisoformat(complaint.since) < _STARTING
            return with_cause(complaint, "node.network", facts, tier=Tier.WAITING if is_young and not stuck else Tier.ERROR)
    return None


def _stuck(known: Known, machine: Unstructured) -> str:
    """Return what keeps the network plugin that is there from running: a Pod on the Node, or an add-on that fails."""
    for name, add_on in known.objects.items():
        if add_on.gvk.group == "addons.cluster.x-k8s.io" and (told := known.complaints.get(name)) and told[0].tier <= Tier.UNHEALTHY:
            return f"correct {add_on.kind} {add_on.key.name}, which fails: {told[0].text.partition(chr(10))[0]}"
    node = machine.at("status", "nodeRef", "name")
    for pod in (o for o in known.workload.values() if o.kind == "Pod" and o.at("spec", "nodeName") == node):
        for status in pod.at("status", "containerStatuses") or ():
            waits = (status.get("state") or {}).get("waiting") or {}
            if waits.get("reason") not in {None, "ContainerCreating", "PodInitializing"}:
                said = f"{waits['reason']}: {waits.get('message') or ''}".rstrip(": ")
                return f"let Pod {pod.key} run, which may be the network plugin (CNI): {said}"
    return ""


def _hint(known: Known) -> str:
    """Return a hint at a ClusterResourceSet that may be meant for the cluster, with its selector."""
    cluster = known.cluster
    for _, obj in known.of_kind("ClusterResourceSet"):
        labels = obj.at("spec", "clusterSelector", "matchLabels")
        if (
            cluster is None
            or not isinstance(labels, dict)
            or not any(resources(obj))
            or selects(obj.at("spec", "clusterSelector"), cluster)
        ):
            continue
        own = cluster.metadata.labels
        if near := [k for k, v in labels.items() if k in own and str(v).lower() == own[k].lower()]:
            return f"; ClusterResourceSet {obj.key.name} selects {near[0]}={labels[near[0]]}, the Cluster has {near[0]}={own[near[0]]}"
    return ""


def _node_deleted(known: Known, name: str, machine: Unstructured) -> Complaint | None:
    lost = [c for c in known.complaints[name] if _LOST in (c.raw or c.text)]
    node = str(machine.at("status", "nodeRef", "name") or "")
    there = {o.key.name for o in known.workload.values() if o.kind == "Node"}
    if not node or known.named(machine, "spec.infrastructureRef") not in known.objects or not (lost or (there and node not in there)):
        return None
    said = known.said(name, "NodeHealthy")
    text = f"its Node {node} does not exist any more"
    return Complaint(
        Tier.ERROR, text, since(said), "NodeHealthy", text, path="status.nodeRef", cause="node.deleted", facts=_facts(known, machine)
    )


def _gate(known: Known, name: str, machine: Unstructured) -> Complaint | None:
    gates = machine.at("spec", "readinessGates")
    for gate in gates if isinstance(gates, list) else ():
        type_ = str(gate.get("conditionType") if isinstance(gate, dict) else "")
        said = known.said(name, type_)
        if type_ and said is None:
            ready = known.said(name, "Ready")
            text = f"waits for the condition {type_}, a readiness gate that nobody has reported"
            facts = {**_facts(known, machine), "gate": type_}
            return Complaint(Tier.WAITING, text, since(ready), "Ready", text, path="spec.readinessGates", cause="machine.gate", facts=facts)
    return None


def _learner(known: Known, name: str, machine: Unstructured) -> Complaint | None:
    said = known.said(name, "EtcdMemberHealthy")
    if said is None or said.status == "True" or "learner" not in said.message:
        return None
    text = f"its etcd member is still a learner: {said.message}"
    path = condition_path("EtcdMemberHealthy")
    return Complaint(
        Tier.WAITING, text, since(said), "EtcdMemberHealthy", text, path=path, cause="etcd.learner", facts=_facts(known, machine)
    )


def _unhealthy(known: Known, name: str, machine: Unstructured) -> Complaint | None:
    """Return the Machine's complaint with the reason why nothing replaces it, if a health check looks after it."""
    told = [c for c in known.complaints[name] if c.about in _UNHEALTHY and c.tier <= Tier.UNHEALTHY]
    if not told:
        return None
    first = min(told, key=lambda c: (c.tier, c.since or "9"))
    checks = [o for _, o in known.of_kind("MachineHealthCheck") if selects(o.at("spec", "selector"), machine)]
    facts = _facts(known, machine)
    if checks and CONTROL_PLANE_LABEL in machine.metadata.labels:
        owner = known.owner(machine, "KubeadmControlPlane")
        if owner is not None and owner.at("spec", "replicas") == 1:
            facts["control_plane"] = f"KubeadmControlPlane {owner.key.name}"
            return with_cause(first, "check.single", facts)
    for check in checks:
        if why := _refusal(known, check, machine):
            return with_cause(first, "check.refuses", {**facts, "check": check.key.name, "why": why})
    return None


def _refusal(known: Known, check: Unstructured, machine: Unstructured) -> str:
    """Return why a MachineHealthCheck does not replace a Machine; empty if it does."""
    if SKIP_REMEDIATION_ANNOTATION in machine.metadata.annotations:
        return f"the Machine has the annotation {SKIP_REMEDIATION_ANNOTATION}"
    if PAUSED_ANNOTATION in check.metadata.annotations:
        return f"it is paused by the annotation {PAUSED_ANNOTATION}"
    said = known.said(f"{check.kind}/{check.key}", "RemediationAllowed")
    return said.message if said is not None and said.status == "False" else ""


def _settling(known: Known, name: str, machine: Unstructured) -> Complaint | None:
    seconds = machine.at("spec", "minReadySeconds")
    told = [c for c in known.complaints[name] if c.about == "Available" and _SETTLING in c.raw]
    if not told or len(known.complaints[name]) > 1:
        return None
    text = f"is ready, and becomes available when it has been so for {seconds} s (minReadySeconds)"
    facts = {**_facts(known, machine), "seconds": str(seconds)}
    return with_cause(told[0], "machine.settling", facts, text=text, path="spec.minReadySeconds")


_RULES: Final = (_node_deleted, _network, _learner, _unhealthy, _gate, _settling)
