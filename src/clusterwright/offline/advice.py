"""Advice for each class of cause: the person who must act, the step, and a command. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    KCP_PRE_TERMINATE_HOOK,
    PAUSED_ANNOTATION,
    TOPOLOGY_OWNED_LABEL,
)
from clusterwright.offline.causes import Investigation
from clusterwright.offline.complaints import HOOKS, OWN_FINALIZER, SPEC_PAUSED, Complaint, Tier
from clusterwright.offline.credentials import KEYS
from clusterwright.offline.nodes import Node
from clusterwright.offline.ownership import selects
from clusterwright.offline.refusals import Refusal, refusal
from clusterwright.offline.remedies import remedy_of


@dataclass(frozen=True, slots=True)
class Advice:
    """The person who must act, the step, and a command that takes it or shows more."""

    who: str
    next: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A cause that needs advice."""

    investigation: Investigation
    node: Node
    complaint: Complaint

    @property
    def name(self) -> str:
        """Kind and name."""
        return f"{self.node.kind} {self.node.name}"

    def kubectl(self, words: str, node: Node | None = None) -> str:
        """Return a kubectl command about an object; `{}` stands for it."""
        node = node or self.node
        group = node.object.gvk.group if node.object is not None else ""
        resource = crd_name(group, node.kind).partition(".")[0] if group else node.kind.lower()
        where = f" -n {node.namespace}" if node.namespace else ""
        return f"kubectl{where} {words.replace('{}', f'{resource}/{node.name}')}"


_PROVIDERS: Final = {"infrastructure.": "infrastructure", "bootstrap.": "bootstrap", "controlplane.": "control plane"}
_NODE: Final = frozenset({"NodeHealthy", "NodeReady", "HealthCheckSucceeded", "NodeKubeadmLabelsAndTaintsSet"})
_COMPONENTS: Final = frozenset(
    {"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "ControlPlaneComponentsHealthy"}
)


def advise(investigation: Investigation, node: Node, complaint: Complaint) -> Advice:
    """Return the advice of the first class of causes that this one belongs to."""
    case = Case(investigation, node, complaint)
    if (rule := refusal(complaint.raw or complaint.text)) is not None:
        return _ruled_out(case, rule)
    if (remedy := remedy_of(complaint)) is not None:
        return Advice(remedy.who, remedy.next, remedy.command)
    return next(give(case) for applies, give in _CLASSES if applies(case))


def _ruled_out(case: Case, rule: Refusal) -> Advice:
    is_topology = case.node.kind == "Cluster" and case.complaint.about == "TopologyReconciled"
    field = rule.in_topology if is_topology else rule.field
    return Advice(f"the author of {_source(case)}", f"correct {field}: {rule.kind} {rule.reason}", case.kubectl("edit {}"))


# ------------------------------------------------------------------------------------------------------ absences


def _is_credential(case: Case) -> bool:
    cluster = case.investigation.cluster
    return case.node.kind == "Secret" and cluster is not None and case.node.name in {f"{cluster.name}-{p}" for p in KEYS}


def _credential(case: Case) -> Advice:
    is_gone = case.node.object is None
    if case.node.name.endswith("-kubeconfig"):
        who = f"whoever {'deleted' if is_gone else 'changed'} Secret {case.node.name}"
        return Advice(
            who, "delete it, if it is there: it is made again from the cluster's CA", case.kubectl("delete {} --ignore-not-found")
        )
    who = f"whoever keeps the backups of the management cluster, and whoever {'deleted' if is_gone else 'changed'} Secret {case.node.name}"
    return Advice(who, "restore it from a backup: a new one would not fit what is in use", case.kubectl("get {} -o yaml"))


def _missing(case: Case) -> Advice:
    referrers = list(dict.fromkeys(case.node.referrers))
    first = case.investigation.nodes.get(referrers[0]) if referrers else None
    is_remade = first is not None and first.object is not None and any(r.kind != "Cluster" for r in first.object.metadata.owner_references)
    is_lost = case.complaint.path.endswith("infrastructureRef") or (is_remade and case.complaint.path.startswith("spec.bootstrap."))
    is_own = first is not None and first.object is not None and not first.object.at("spec", "bootstrap", "configRef", "name")
    if is_own and case.complaint.path == "spec.bootstrap.dataSecretName":
        is_lost = False  # only the author of the Machine creates it
    if first is not None and first.kind == "Machine" and first.object is not None and is_lost:
        remade = "its owner makes a new one" if first.object.metadata.owner_references else "then make it again"
        who = f"whoever deleted {case.name}, or the owner of Machine {first.name}"
        return Advice(who, f"delete Machine {first.name}; {remade}", case.kubectl("delete {}", first))
    by = ", ".join(r.replace("/", " ", 1) for r in referrers) or "whoever names it"
    path = f" in {case.complaint.path}" if case.complaint.path.startswith("spec") else ""
    command = case.kubectl("edit {}", first) if first is not None and first.object is not None else ""
    where = "install its provider, " if "its provider is not installed" in case.complaint.text else ""
    return Advice(f"the author of {by}", f"{where}create {case.name}, or correct the reference{path}", command)


# ----------------------------------------------------------------------------------------------- pauses, deletions


def _paused(case: Case) -> Advice:
    if case.complaint.path == SPEC_PAUSED:
        command = case.kubectl("""patch {} --type=merge -p '{"spec":{"paused":false}}'""")
    else:
        command = case.kubectl(f"annotate {{}} {PAUSED_ANNOTATION}-")
    return Advice(f"whoever paused {case.name}", f"take {case.complaint.path} away when it may go on", command)


def _is_deletion(case: Case) -> bool:
    is_held = case.complaint.tier is Tier.HELD  # by a party that reports it
    return case.complaint.tier is Tier.DELETING or (case.node.deleting and case.node.object is not None and not is_held)


def _deleting(case: Case) -> Advice:
    assert case.node.object is not None
    metadata = case.node.object.metadata
    if foreign := [f for f in metadata.finalizers if OWN_FINALIZER not in f]:
        named = ", ".join(foreign)
        who = f"whoever set the finalizer {named}"
        return Advice(who, f"finish the clean-up that {named} stands for; it is then taken away", case.kubectl("get {} -o yaml"))
    if hooks := {k: v for k, v in metadata.annotations.items() if k.startswith(HOOKS) and k != KCP_PRE_TERMINATE_HOOK}:
        hook, owner = next(iter(hooks.items()))
        who = f"the owner of the deletion hook {hook}" + (f" ({owner})" if owner else "")
        return Advice(who, "finish what the hook is for, then take its annotation away", case.kubectl(f"annotate {{}} {hook}-"))
    whole = case.investigation.cluster
    if "WaitingForWorkersDeletion" in case.complaint.raw and whole is not None and not whole.deleting:
        step = f"delete the workers, too, or all of Cluster {whole.name}: a control plane goes last"
        return Advice(
            f"whoever deleted {case.name}", step, case.kubectl(f"get machines.cluster.x-k8s.io -l {CLUSTER_NAME_LABEL}={whole.name}")
        )
    if "Drain" in case.complaint.raw:
        cluster = case.investigation.cluster.name if case.investigation.cluster else ""
        who = "whoever runs the Pods that may not be evicted, and their PodDisruptionBudgets"
        return Advice(who, "let them be evicted, or scale them down", f"{_kubeconfig(cluster)} get pdb,pods -A")
    step = "see that it runs: it then finishes its clean-up and takes its finalizer away"
    return Advice(f"{_controller(case)}, which has not finished its clean-up", step, case.kubectl("describe {}"))


# --------------------------------------------------------------------------------------------------- what is wrong


def _unreconciled(case: Case) -> Advice:
    who = f"whoever runs the management cluster: {_controller(case)} does not run, or does not see it"
    step = "see that it runs: install or start it, switch on its feature gate, or correct the watch filter"
    return Advice(who, step, case.kubectl("get {} -o yaml"))


def _unreachable(case: Case) -> Advice:
    host, port = (case.node.object.at("spec", "controlPlaneEndpoint", part) if case.node.object else None for part in ("host", "port"))
    where = f" at {host}:{port}" if host else ""
    who = f"whoever runs the API server of {case.node.name}{where}, or the network between here and there"
    command = f"{_kubeconfig(case.node.name)} get --raw /readyz?verbose"
    step = "bring the API server back, or the way to it, until it answers from here; which of them fails, nothing on this side tells"
    replicas = case.node.object.at("status", "controlPlane", "desiredReplicas") if case.node.object else None
    if isinstance(replicas, int) and replicas > 1:
        step += f". An etcd that has lost its quorum looks like this, too: {replicas // 2 + 1} of {replicas} members are needed"
    return Advice(who, step, command)


def _alarm(case: Case) -> Advice:
    who = f"whoever runs the etcd of {case.name}"
    if "NOSPACE" in case.complaint.text:
        return Advice(who, "free space, defragment, then disarm the alarm", "etcdctl defrag --cluster && etcdctl alarm disarm")
    return Advice(who, "replace the member: delete its Machine, if the others are healthy", "etcdctl alarm list")


def _machine_of_node(case: Case) -> Advice:
    node = str(case.node.object.at("status", "nodeRef", "name") or "") if case.node.object else ""
    checks = [n for n in case.investigation.nodes.values() if n.kind == "MachineHealthCheck" and _is_checked(case.node, n)]
    who = f"whoever runs the machine behind {case.name}" + (f" (Node {node})" if node else "")
    if checks:
        return Advice(who, f"repair it, or let MachineHealthCheck {checks[0].name} have it replaced", case.kubectl("describe {}"))
    return Advice(who, "repair it, or delete the Machine if something makes a new one", case.kubectl("describe {}"))


def _is_checked(machine: Node, check: Node) -> bool:
    """Return whether a MachineHealthCheck selects a Machine."""
    return check.object is not None and machine.object is not None and selects(check.object.at("spec", "selector"), machine.object)


def _content(case: Case) -> Advice:
    return Advice(f"the author of {case.name}", f"correct {case.name}", case.kubectl("edit {}"))


def _core(case: Case) -> Advice:
    source, said = _source(case), (case.complaint.text or case.complaint.raw).partition("\n")[0].rstrip(" .:")
    if case.complaint.tier in {Tier.WAITING, Tier.SILENT, Tier.UNKNOWN, Tier.PROGRESS}:
        return Advice(_controller(case), f"bring about what {case.name} waits for ({said})", case.kubectl("describe {}"))
    step = f"correct the spec of {source}, or what it depends on: {said}"
    return Advice(f"the owner of {source}", step, case.kubectl("describe {}"))


def _source(case: Case) -> str:
    """Return the object whose spec people write: the Cluster for objects that a topology manages, else the object itself."""
    cluster = case.investigation.cluster
    is_managed = case.node.object is not None and TOPOLOGY_OWNED_LABEL in case.node.object.metadata.labels
    return f"Cluster {cluster.name}" if is_managed and cluster is not None else case.name


def _provider_word(case: Case) -> str:
    group = case.node.object.gvk.group if case.node.object else ""
    return next((word for prefix, word in _PROVIDERS.items() if group.startswith(prefix)), "")


def _kubeconfig(cluster: str) -> str:
    return f"clusterwright get kubeconfig {cluster} > kubeconfig; kubectl --kubeconfig kubeconfig"


def _controller(case: Case) -> str:
    if case.node.kind == "IPAddressClaim" and case.node.object is not None:
        return f"the IPAM provider that keeps {case.node.object.at('spec', 'poolRef', 'kind')}"
    word = _provider_word(case)
    return f"the {word} provider that reconciles {case.node.kind}" if word else f"the controller of {case.node.kind}"


_CLASSES: Final[tuple[tuple[Callable[[Case], bool], Callable[[Case], Advice]], ...]] = (
    (_is_credential, _credential),
    (lambda c: c.complaint.tier is Tier.MISSING, _missing),
    (lambda c: c.complaint.tier is Tier.PAUSED, _paused),
    (_is_deletion, _deleting),
    (lambda c: c.complaint.tier is Tier.UNRECONCILED, _unreconciled),
    (lambda c: c.complaint.about == "RemoteConnectionProbe", _unreachable),
    (lambda c: "alarm" in c.complaint.text.lower(), _alarm),
    (lambda c: c.node.kind == "Machine" and c.complaint.about in _NODE | _COMPONENTS, _machine_of_node),
    (lambda c: c.node.kind in {"Secret", "ConfigMap"}, _content),
    (lambda c: True, _core),
)
