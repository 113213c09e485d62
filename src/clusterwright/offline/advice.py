"""Advice for each class of cause: the person who must act, the step, and a command. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    KCP_PRE_TERMINATE_HOOK,
    PAUSED_ANNOTATION,
    PRE_DRAIN_HOOK_PREFIX,
    PRE_TERMINATE_HOOK_PREFIX,
    TOPOLOGY_OWNED_LABEL,
)
from clusterwright.offline.causes import Investigation
from clusterwright.offline.complaints import OWN_FINALIZER, SPEC_PAUSED, TEMPLATE, Complaint, Tier
from clusterwright.offline.contract_breaches import BREACH
from clusterwright.offline.credentials import KEYS
from clusterwright.offline.nodes import Node
from clusterwright.offline.ownership import selects
from clusterwright.offline.preflights import ABOUT, failures
from clusterwright.offline.refusals import refusal
from clusterwright.offline.remedies import remedy_of
from clusterwright.offline.unreconciled import BOOT, CONTRACT, IDLE, QUORUM, RIGHTS
from clusterwright.offline.webhooks_and_extensions import ANNOTATION, DEFERRED, DOWN, EXTENSION, HANDLER, config_of


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


_DENIED: Final = re.compile(
    r'failed calling webhook "(?P<down>[^"]+)"'
    r'|admission webhook "(?P<webhook>[^"]+)" denied'
    r"|ValidatingAdmissionPolicy '(?P<policy>[^']+)'"
)
_FORBIDDEN: Final = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)
_GATE: Final = re.compile(r"if (?:the )?(\w+) feature (?:flag|gate) is (?:disabled|not enabled)")
_HOOKS: Final = (PRE_DRAIN_HOOK_PREFIX, PRE_TERMINATE_HOOK_PREFIX)
_PROVIDERS: Final = {"infrastructure.": "infrastructure", "bootstrap.": "bootstrap", "controlplane.": "control plane"}
_NODE: Final = frozenset({"NodeHealthy", "NodeReady", "HealthCheckSucceeded", "NodeKubeadmLabelsAndTaintsSet"})
_COMPONENTS: Final = frozenset(
    {"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "ControlPlaneComponentsHealthy"}
)


def advise(investigation: Investigation, node: Node, complaint: Complaint) -> Advice:
    """Return the advice of the first class of causes that this one belongs to."""
    if (remedy := remedy_of(complaint)) is not None:
        return Advice(remedy.who, remedy.next, remedy.command)
    case = Case(investigation, node, complaint)
    return next(give(case) for applies, give in _CLASSES if applies(case))


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
    return Advice(f"the author of {by}", f"create {case.name}, or correct the reference{path}", command)


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
    if hooks := {k: v for k, v in metadata.annotations.items() if k.startswith(_HOOKS) and k != KCP_PRE_TERMINATE_HOOK}:
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


def _idle(case: Case) -> Advice:
    gate = re.search(r"feature gate (\w+)", case.complaint.raw)
    step = f"switch on the feature gate {gate[1]} (--feature-gates {gate[1]}=true)" if gate else f"let it run: {case.complaint.raw}"
    provider = re.match(r"Provider [^/ ]+/(\S+) is ", case.complaint.raw)
    if provider:
        step = "correct what its last output says: it is started again by itself"
        command = f"clusterwright provider logs {provider[1]} --tail 50"
        return Advice(f"whoever runs the provider {provider[1]}, whose process does not run", step, command)
    deployment = re.search(r"Deployment ([^/ ]+)/(\S+)", case.complaint.raw)
    command = f"kubectl -n {deployment[1]} describe deployment {deployment[2]}" if deployment else case.kubectl("get {} -o yaml")
    return Advice(f"whoever runs the management cluster: {_controller(case)} does not run", step, command)


def _lacking_rights(case: Case) -> Advice:
    right = case.complaint.raw.partition(" (")[0]
    command = f"kubectl auth can-i {right.partition(' in namespace')[0]}"
    return Advice(
        f"whoever runs the management cluster, and grants its controllers rights: {_controller(case)} waits", f"grant them {right}", command
    )


def _contract(case: Case) -> Advice:
    label = case.complaint.path.removeprefix("metadata.labels[").removesuffix("]")
    served = [str(v.get("name")) for v in (case.node.object.at("spec", "versions") or () if case.node.object else ()) if v.get("served")]
    command = f"kubectl label crd {case.node.name} {label}={'_'.join(served)}"
    return Advice(f"whoever installed the provider of {case.node.name}", f"label the CRD with {label}", command)


def _breach(case: Case) -> Advice:
    if case.node.kind == "CustomResourceDefinition":
        return Advice(f"the authors of the provider of {case.node.name}", "correct the CRD", f"kubectl get crd {case.node.name} -o yaml")
    who = f"the authors of {_controller(case)}"
    return Advice(who, f"have it set {case.complaint.path}: until then everybody waits for it", case.kubectl("get {} -o yaml"))


def _quorum(case: Case) -> Advice:
    who = f"whoever runs the machines of the control plane of {case.node.name}"
    command = case.kubectl(f"get machines.cluster.x-k8s.io -l {CONTROL_PLANE_LABEL} -o wide")
    return Advice(who, "start the members that are down; without them nothing here can help", command)


def _boot(case: Case) -> Advice:
    who = f"whoever can look at the console of the machine behind {case.name}"
    step = "read there how cloud-init and kubeadm went (/var/log/cloud-init-output.log); if they failed, delete the Machine for a new one"
    return Advice(who, step, case.kubectl("get {} -o yaml"))


def _unreachable(case: Case) -> Advice:
    host, port = (case.node.object.at("spec", "controlPlaneEndpoint", part) if case.node.object else None for part in ("host", "port"))
    where = f" at {host}:{port}" if host else ""
    who = f"whoever runs the API server of {case.node.name}{where}, or the network between here and there"
    command = f"{_kubeconfig(case.node.name)} get --raw /readyz?verbose"
    step = "see whether it runs and answers from here; nothing on this side tells more"
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


def _denied(case: Case) -> Advice:
    found = _DENIED.search(case.complaint.text)
    assert found is not None
    words, name = found.lastgroup or "", found[found.lastgroup or 0]
    if words == "down":
        command = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
        return Advice(f"whoever runs the webhook {name}", "bring it back: nothing is written without it that it has to see", command)
    if rule := refusal(case.complaint.text):
        is_topology = case.node.kind == "Cluster" and case.complaint.about == "TopologyReconciled"
        field = rule.in_topology if is_topology else rule.field
        return Advice(f"the author of {_source(case)}", f"correct {field}: {rule.kind} {rule.reason}", case.kubectl("edit {}"))
    who = f"whoever made the admission {words} {name}, and the owner of {case.name}"
    return Advice(who, "do what its answer asks for, or have the rule changed", case.kubectl("describe {}"))


def _webhook(case: Case) -> Advice:
    hooks = case.node.object.at("webhooks") if case.node.object else None
    down = [h for h in hooks if f"webhook {h.get('name')} " in case.complaint.text] if isinstance(hooks, list) else []
    service = down[0].get("clientConfig", {}).get("service") if down else None
    who = f"whoever runs the webhook {down[0].get('name') if down else case.node.name}"
    if service:
        where = f"kubectl -n {service.get('namespace')} get endpointslices,pods -l kubernetes.io/service-name={service.get('name')}"
        return Advice(f"{who} (Service {service.get('namespace')}/{service.get('name')})", "bring it back", where)
    return Advice(who, "bring it back", f"kubectl get {case.node.kind.lower()} {case.node.name} -o yaml")


def _forbidden(case: Case) -> Advice:
    found = _FORBIDDEN.search(case.complaint.text)
    assert found is not None
    plural, _, subresource = found["resource"].partition("/")
    resource = f"{plural}.{found['group']}" if found["group"] else plural
    what = f"{found['verb']} {resource}" + (f"/{subresource}" if subresource else "")
    below = f" --subresource={subresource}" if subresource else ""
    command = f"kubectl auth can-i {found['verb']} {resource}{below} -n {case.node.namespace} --as={found['user']}"
    return Advice(f"whoever grants rights to {found['user']}", f"grant it the right to {what}", command)


def _gate(case: Case) -> Advice:
    found = _GATE.search(case.complaint.text)
    assert found is not None
    who = f"whoever runs the management cluster, and the author of {case.name}"
    return Advice(who, f"switch on the feature gate {found[1]}, or do without what needs it", case.kubectl("get {} -o yaml"))


def _extension(case: Case) -> Advice:
    """Return the advice about a runtime extension, or about the annotation that holds an upgrade."""
    if annotated := ANNOTATION.search(case.complaint.text):
        names = [name.strip() for name in annotated[1].split(",")]
        who = f"whoever set the annotation {', '.join(names)}"
        return Advice(
            who, "take it away when the Cluster may be upgraded", case.kubectl(f"annotate {{}} {' '.join(f'{n}-' for n in names)}")
        )
    if deferred := DEFERRED.search(case.complaint.text):
        who = f"whoever set an annotation ({deferred[2]}) on {deferred[1]} in spec.topology.workers"
        return Advice(who, "take it away when these workers may be upgraded", case.kubectl("edit {}"))
    if case.complaint.tier is Tier.UNRECONCILED:
        who = "whoever runs the management cluster: the controller of ExtensionConfig does not run"
        return Advice(who, "switch on the feature gate RuntimeSDK", case.kubectl("get {} -o yaml"))
    named = [config_of(name) for name, _ in HANDLER.findall(f"{case.complaint.text} {case.complaint.raw}")]
    name = case.node.name if case.node.kind == "ExtensionConfig" else ", ".join(dict.fromkeys(filter(None, named)))
    who = f"whoever runs the runtime extension {name}" if name else "whoever runs the runtime extensions that handle this hook"
    command = "kubectl get extensionconfigs -o yaml" if not name else f"kubectl get extensionconfigs {name} -o yaml"
    if case.complaint.tier is Tier.HELD:
        return Advice(who, "let it have what it waits for; it is asked again all the while", command)
    return Advice(who, "see that it is reached, and read in its log why it fails", command)


def _preflight(case: Case) -> Advice:
    failed = next(failures(case.complaint.raw))
    source, cluster = _source(case), case.investigation.cluster
    if failed.rule.is_wait:
        who = f"nobody: {_controller(case)} goes on when the check passes"
        return Advice(who, failed.rule.next.format(theirs=failed.theirs), case.kubectl(failed.rule.command))
    if source != case.name and cluster is not None:
        step = f"let spec.topology.version decide: workers get the version of the control plane, {failed.theirs}"
        return Advice(f"the owner of {source}", step, case.kubectl(failed.rule.command, cluster))
    return Advice(f"the owner of {source}", failed.rule.next.format(theirs=failed.theirs), case.kubectl(failed.rule.command))


def _quota(case: Case) -> Advice:
    return Advice(f"the owner of ResourceQuota {case.node.name}", "raise the quota, or free what it counts", case.kubectl("edit {}"))


def _provider(case: Case) -> Advice:
    who = f"the {_provider_word(case)} provider that reconciles {case.node.kind}"
    return Advice(who, f"look at {case.name} and at what it stands for", case.kubectl("describe {}"))


def _content(case: Case) -> Advice:
    return Advice(f"the author of {case.name}", f"correct {case.name}", case.kubectl("edit {}"))


def _core(case: Case) -> Advice:
    if case.complaint.tier in {Tier.WAITING, Tier.SILENT, Tier.UNKNOWN, Tier.PROGRESS}:
        return Advice(_controller(case), "wait; it goes on when what it waits for changes", case.kubectl("describe {}"))
    source = _source(case)
    return Advice(f"the owner of {source}", f"correct the spec of {source}, or what it depends on", case.kubectl("describe {}"))


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
    word = _provider_word(case)
    return f"the {word} provider that reconciles {case.node.kind}" if word else f"the controller of {case.node.kind}"


_CLASSES: Final[tuple[tuple[Callable[[Case], bool], Callable[[Case], Advice]], ...]] = (
    (_is_credential, _credential),
    (lambda c: c.complaint.tier is Tier.MISSING, _missing),
    (lambda c: c.complaint.tier is Tier.PAUSED, _paused),
    (_is_deletion, _deleting),
    (lambda c: c.complaint.about == EXTENSION or bool(HANDLER.search(c.complaint.text)), _extension),
    (lambda c: c.complaint.about == IDLE, _idle),
    (lambda c: c.complaint.about == RIGHTS, _lacking_rights),
    (lambda c: c.complaint.tier is Tier.UNRECONCILED, _unreconciled),
    (lambda c: c.complaint.about == CONTRACT, _contract),
    (lambda c: c.complaint.about == BREACH, _breach),
    (lambda c: c.complaint.about.startswith(ABOUT), _preflight),
    (lambda c: c.complaint.about == DOWN, _webhook),
    (lambda c: c.complaint.about == QUORUM, _quorum),
    (lambda c: c.complaint.about == BOOT, _boot),
    (lambda c: c.complaint.about == "RemoteConnectionProbe", _unreachable),
    (lambda c: "alarm" in c.complaint.text.lower(), _alarm),
    (lambda c: c.node.kind == "ResourceQuota", _quota),
    (lambda c: bool(_DENIED.search(c.complaint.text)), _denied),
    (lambda c: bool(_GATE.search(c.complaint.text)), _gate),
    (lambda c: bool(_FORBIDDEN.search(c.complaint.text)), _forbidden),
    (lambda c: c.node.kind == "Machine" and c.complaint.about in _NODE | _COMPONENTS, _machine_of_node),
    (lambda c: c.node.kind in {"Secret", "ConfigMap"} or c.complaint.about == TEMPLATE, _content),
    (lambda c: bool(_provider_word(c)), _provider),
    (lambda c: True, _core),
)
