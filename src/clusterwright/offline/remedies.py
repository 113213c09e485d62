"""Remedies by cause: the person, the next step and a command. `{facts}` are those of the complaint. Data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.offline.complaints import Complaint


@dataclass(frozen=True, slots=True)
class Remedy:
    """The person who must act, the step, and a command that takes it or shows more."""

    who: str
    next: str
    command: str = ""


_WORKLOAD: Final = "clusterwright get kubeconfig {cluster} > kubeconfig; kubectl --kubeconfig kubeconfig"

_ANEW: Final = "then delete Secret {cluster}-kubeconfig and the Machine of the control plane: they were made with the old one"

REMEDIES: Final[dict[str, Remedy]] = {
    # drains
    "drain.budget": Remedy(
        "the owner of PodDisruptionBudget {budget} in the workload cluster",
        "let Pod {pod} go: give its workload another ready replica, or relax the budget",
        f"{_WORKLOAD} -n {{namespace}} get pdb,pods",
    ),
    "drain.budgets": Remedy(
        "the owners of the PodDisruptionBudgets {budgets} in the workload cluster",
        "have only one budget select Pod {pod}: with several of them no Pod is ever evicted",
        f"{_WORKLOAD} -n {{namespace}} get pdb,pods",
    ),
    "drain.finalizer": Remedy(
        "whoever set the finalizer {finalizers} on Pod {pod} in the workload cluster",
        "finish what the finalizer stands for, then take it away",
        f"{_WORKLOAD} -n {{namespace}} get pod {{name}} -o yaml",
    ),
    "drain.completion": Remedy(
        "the owner of Pod {pod} in the workload cluster",
        "let it complete, or delete it; {rule} waits for it",
        f"{_WORKLOAD} -n {{namespace}} get pod {{name}}",
    ),
    "drain.termination": Remedy(
        "the owner of Pod {pod} in the workload cluster",
        "find out why the Pod does not end; its kubelet may be gone: then delete it with --force",
        f"{_WORKLOAD} -n {{namespace}} describe pod {{name}}",
    ),
    "drain.eviction": Remedy(
        "whoever refuses the eviction of Pod {pod} in the workload cluster",
        "let the Pod be evicted",
        f"{_WORKLOAD} -n {{namespace}} describe pod {{name}}",
    ),
    "drain.volume": Remedy(
        "whoever runs the CSI driver {driver} of volume {volume} in the workload cluster",
        "have the volume detached from Node {node}",
        f"{_WORKLOAD} get volumeattachments",
    ),
    # credentials and bootstrap data
    "authority.keys": Remedy(
        "the author of Secret {name}",
        "rename the keys of its data: tls.crt and tls.key are wanted, {found} are there",
        "kubectl -n {namespace} edit secret/{name}",
    ),
    "authority.mismatch": Remedy(
        "the author of Secret {name}",
        f"put a pair into it: tls.key must belong to tls.crt; {_ANEW}",
        "kubectl -n {namespace} edit secret/{name}",
    ),
    "authority.expired": Remedy(
        "the author of Secret {name}",
        f"put a certificate into it that is still valid, with its key; {_ANEW}",
        "kubectl -n {namespace} edit secret/{name}",
    ),
    "certificate.expired": Remedy(
        "whoever runs the machines of the control plane, behind Machine {machine}",
        "renew them there (kubeadm certs renew all, then restart the static Pods); spec.rollout.before does it in time",
        "kubectl -n {namespace} describe machines.cluster.x-k8s.io/{machine}",
    ),
    "lock.unreadable": Remedy(
        "whoever runs the management cluster", "delete the ConfigMap; it is made again", "kubectl -n {namespace} delete configmap/{name}"
    ),
    "data.format": Remedy(
        "the author of Secret {secret}", "correct its data.format: {wanted}", "kubectl -n {namespace} edit secret/{secret}"
    ),
    "data.key": Remedy(
        "the author of Secret {secret}",
        "put the bootstrap data under the key value, then make Machine {machine} again: its machine has read the Secret",
        "kubectl -n {namespace} edit secret/{secret}",
    ),
    "data.hashes": Remedy(
        "the author of {template}",
        "leave joinConfiguration.discovery.bootstrapToken.caCertHashes out: it is filled in; then delete Machine {machine}",
        "kubectl -n {namespace} edit {resource}",
    ),
    "machine.unbootable": Remedy(
        "the owner of Machine {machine}",
        "delete Machine {machine}: what it boots with is made again for a new one",
        "kubectl -n {namespace} delete machines.cluster.x-k8s.io/{machine}",
    ),
    "credentials.external": Remedy(
        "whoever runs the control plane {control_plane}",
        "have it bring Secret {name}, as the contract of control planes asks for, or create it from the cluster's own",
        "kubectl -n {namespace} get secrets",
    ),
    # providers
    "provider.duplicate": Remedy(
        "the infrastructure provider that reconciles {kind}",
        "have each machine report a providerID of its own; delete the Machine that has no Node of its own",
        "kubectl -n {namespace} get {resource} -o yaml",
    ),
    "provider.other-node": Remedy(
        "the infrastructure provider that reconciles {kind}, or whoever sets the kubelet's --provider-id",
        "have the machine and its Node agree on the providerID",
        f"{_WORKLOAD} get node {{node}} -o yaml",
    ),
    "provider.shape": Remedy(
        "the authors of the provider of {kind}",
        "have it set {path} as the contract asks for",
        "kubectl -n {namespace} get {resource} -o yaml",
    ),
    "provider.deletion": Remedy(
        "the {provider}",
        "correct what it reports: {said}; it then finishes its clean-up and takes its finalizer away",
        "kubectl -n {namespace} describe {resource}",
    ),
    "provider.reports": Remedy(
        "the {provider}",
        "correct what it reports: {said}; the provider then goes on by itself",
        "kubectl -n {namespace} describe {resource}",
    ),
    "provider.waits": Remedy(
        "the {provider}",
        "bring about what {object} waits for ({said}); for a machine that never comes up, delete its Machine, and a new one is made",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.rate": Remedy(
        "the owner of the account that the {provider} uses",
        "raise its rate limit, or have fewer clients use it; the provider tries again by itself",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.certificate": Remedy(
        "whoever runs the {provider}, and the endpoint that it asks",
        "correct the certificate that {object} reports, or the clock of one of the two",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.credentials": Remedy(
        "whoever gave the {provider} its credentials",
        "correct the credentials, or what they allow: {said}; the provider then goes on by itself",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.unreachable": Remedy(
        "whoever runs the {provider}, and the network between it and what it asks",
        "have the provider reach it again: {said}",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.capacity": Remedy(
        "the owner of the account or the hosts that the {provider} uses",
        "correct what is used up: {said}; free some, raise the limit, or ask for less; the provider then goes on by itself",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.boot": Remedy(
        "whoever can look at the console of the machine behind {object}, a machine of the {provider}",
        "read there why it failed, correct that in the bootstrap configuration, then delete the Machine {machine}: it does not try again",
        "kubectl -n {namespace} describe {resource}",
    ),
    "cloud.name": Remedy(
        "the author of {object} or of its template, and the {provider}",
        "correct the name that it reports, or create what it names: {said}",
        "kubectl -n {namespace} describe {resource}",
    ),
    # workers and nodes
    "replicas.two-writers": Remedy(
        "the owner of Cluster {cluster}, and whoever runs {writer}",
        "take replicas out of spec.topology.workers if {writer} is to set them, or leave them to the topology",
        "kubectl -n {namespace} edit clusters.cluster.x-k8s.io/{cluster}",
    ),
    "node.uninitialized": Remedy(
        "whoever runs the workload cluster {cluster}: its cloud controller manager",
        "install the cloud controller manager, which gives Nodes their providerID, or set the kubelet's --provider-id",
        f"{_WORKLOAD} get node {{node}} -o yaml",
    ),
    "machine.replaced-again": Remedy(
        "whoever runs the infrastructure provider that reconciles {kind}, and its machines",
        "read on the console of the machine behind Machine {machine} why its kubelet does not join{limit}",
        "kubectl -n {namespace} describe machines.cluster.x-k8s.io/{machine}",
    ),
    "node.network": Remedy(
        "whoever runs the workload cluster {cluster}: its network plugin",
        "{step}",
        f"{_WORKLOAD} -n kube-system get daemonsets,pods -o wide",
    ),
    "node.deleted": Remedy(
        "whoever deleted Node {node}, or the owner of Machine {machine}",
        "delete the Machine: something makes a new one",
        "kubectl -n {namespace} delete machines.cluster.x-k8s.io/{machine}",
    ),
    "machine.gate": Remedy(
        "whoever runs what sets the condition {gate} of Machines",
        "have it report {gate}, or take the readiness gate out of the spec",
        "kubectl -n {namespace} get machines.cluster.x-k8s.io/{machine} -o yaml",
    ),
    "machine.settling": Remedy(
        "nobody: the controller of Machine waits for {seconds} s",
        "nothing: it goes on by itself; spec.template.spec.minReadySeconds of its MachineDeployment says for how long",
        "kubectl -n {namespace} describe machines.cluster.x-k8s.io/{machine}",
    ),
    "etcd.learner": Remedy(
        "whoever runs the etcd of Machine {machine}",
        "promote the member, or replace it: delete its Machine",
        "etcdctl member list && etcdctl member promote",
    ),
    "check.refuses": Remedy(
        "whoever runs the machine behind Machine {machine}, and the owner of MachineHealthCheck {check}",
        "repair it, or delete the Machine: MachineHealthCheck {check} does not, {why}",
        "kubectl -n {namespace} describe machinehealthchecks.cluster.x-k8s.io/{check}",
    ),
    "check.single": Remedy(
        "whoever runs the machine behind Machine {machine}",
        "repair it, or scale up {control_plane}: a control plane of one is not replaced by itself",
        "kubectl -n {namespace} describe machines.cluster.x-k8s.io/{machine}",
    ),
    # the workload cluster's own objects
    "workload.missing": Remedy(
        "whoever runs the workload cluster {cluster}",
        "restore {what} in namespace {namespace} of the workload cluster",
        f"{_WORKLOAD} -n {{namespace}} get {{resource}}",
    ),
    "workload.dns": Remedy(
        "the owner of Deployment kube-system/coredns in the workload cluster",
        "give its image a tag that is a version, or annotate the control plane with controlplane.cluster.x-k8s.io/skip-coredns",
        f"{_WORKLOAD} -n kube-system edit deployment/coredns",
    ),
    # addons
    "addon.type": Remedy(
        "the author of Secret {name}",
        "make it again with the type addons.cluster.x-k8s.io/resource-set: a type cannot be changed",
        "kubectl -n {namespace} get secret/{name} -o yaml",
    ),
    "addon.kind": Remedy(
        "the author of {source}",
        "install the definition of {kind} in the workload cluster first, or take the object out of {source}",
        "kubectl -n {namespace} get {resource} -o yaml",
    ),
    "address.exhausted": Remedy(
        "the owner of {pool}", "enlarge the pool, or free addresses of it", "kubectl -n {namespace} get {resource} -o yaml"
    ),
    # control planes
    "etcd.quorum": Remedy(
        "whoever runs the machines of the control plane of {name}",
        "start the members that are down; without them nothing here can help",
        "kubectl -n {namespace} get machines.cluster.x-k8s.io -l cluster.x-k8s.io/control-plane -o wide",
    ),
    "machine.silent": Remedy(
        "whoever can look at the console of the machine behind Machine {machine}",
        "read there how cloud-init and kubeadm went (/var/log/cloud-init-output.log); if they failed, delete the Machine for a new one",
        "kubectl -n {namespace} get machines.cluster.x-k8s.io/{machine} -o yaml",
    ),
    "cluster.gate": Remedy(
        "whoever runs what sets the condition {gate} of Clusters",
        "have it report {gate}, or take the gate out of spec.availabilityGates",
        "kubectl -n {namespace} get clusters.cluster.x-k8s.io/{cluster} -o yaml",
    ),
    "endpoint.name": Remedy(
        "whoever keeps the DNS name {host}, the endpoint of Cluster {cluster}",
        "have the name {host} resolve where the controllers run: {said}",
        "kubectl -n {namespace} get clusters.cluster.x-k8s.io/{cluster} -o yaml",
    ),
    # the API server's refusals
    "webhook.down": Remedy(
        "whoever runs the webhook {webhook}", "bring it back: nothing is written without it that it has to see", "{look}"
    ),
    "webhook.certificate": Remedy(
        "whoever runs the webhook {webhook}",
        "renew its certificate, or the caBundle of its configuration: nothing is written without it that it has to see",
        "{look}",
    ),
    "admission.denied": Remedy(
        "whoever made the admission {rule}, and the owner of {object}",
        "do what its answer asks for, or have the rule changed",
        "kubectl -n {namespace} describe {resource}",
    ),
    "rights.lacking": Remedy(
        "whoever grants rights to {user}",
        "grant it the right to {verb} {what}",
        "kubectl auth can-i {verb} {asked} -n {namespace} --as={user}",
    ),
    "gate.off": Remedy(
        "whoever runs the management cluster, and the author of {object}",
        "switch on the feature gate {gate}, or do without what needs it",
        "kubectl -n {namespace} get {resource} -o yaml",
    ),
    "quota.spent": Remedy(
        "the owner of ResourceQuota {name}", "raise the quota, or free what it counts", "kubectl -n {namespace} edit resourcequota/{name}"
    ),
    # controllers that do not run
    "controller.gate": Remedy(
        "whoever runs the management cluster: the controller of {kind} does not run",
        "switch on the feature gate {gate} (--feature-gates {gate}=true)",
        "{where}",
    ),
    "controller.down": Remedy("whoever runs the management cluster: the controller of {kind} does not run", "let it run: {why}", "{where}"),
    "controller.process": Remedy(
        "whoever runs the provider {process}, whose process does not run",
        "correct what its last output says: it is started again by itself",
        "clusterwright provider logs {process} --tail 50",
    ),
    "controller.filter": Remedy(
        "whoever runs the management cluster, and the owner of {object}",
        "label {object} with {label}, and what belongs to it, or start the controllers without the filter",
        "kubectl -n {namespace} label {resource} {label}",
    ),
    "controller.rights": Remedy(
        "whoever runs the management cluster, and grants its controllers rights: the controller of {kind} waits",
        "grant them {right}",
        "kubectl auth can-i {asked}",
    ),
    "contract.label": Remedy(
        "whoever installed the provider of {name}", "label the CRD with {label}", "kubectl label crd {name} {label}={versions}"
    ),
    "contract.definition": Remedy("the authors of the provider of {name}", "correct the CRD", "kubectl get crd {name} -o yaml"),
    # preflight checks of MachineSets
    "preflight.stable": Remedy(
        "nobody: the controller of {kind} goes on when the check passes",
        "bring the control plane to rest: Machines are made when it is neither made nor upgraded",
        "kubectl -n {namespace} describe {resource}",
    ),
    "preflight.topology": Remedy(
        "nobody: the controller of {kind} goes on when the check passes",
        "nothing: the topology gives workers the version of the control plane, {theirs}",
        "kubectl -n {namespace} describe {resource}",
    ),
    "preflight.unknown": Remedy(
        "the owner of {source}", "bring about what the check asks for", "kubectl -n {namespace} describe {resource}"
    ),
    "preflight.kubernetes": Remedy(
        "the owner of {source}",
        "set spec.template.spec.version to {theirs} or at most three minor versions below it, or upgrade the control plane first",
        "kubectl -n {namespace} edit {resource}",
    ),
    "preflight.kubeadm": Remedy(
        "the owner of {source}",
        "set spec.template.spec.version to one with the minor version of the control plane, {theirs}, or upgrade the control plane first; "
        "if the machines get the kubeadm of the control plane otherwise, skip the check (docs/topology.md, pinned workers)",
        "kubectl -n {namespace} edit {resource}",
    ),
    "preflight.managed": Remedy(
        "the owner of {source}",
        "let spec.topology.version decide: workers get the version of the control plane, {theirs}",
        "kubectl -n {namespace} edit {resource}",
    ),
    # runtime extensions, and holds
    "extension.fails": Remedy(
        "whoever runs {extension}",
        "correct what its handler answers: {said}; it is asked again by itself",
        "kubectl get extensionconfigs {name} -o yaml",
    ),
    "extension.certificate": Remedy(
        "whoever runs {extension}",
        "renew its certificate, or correct spec.clientConfig.caBundle of ExtensionConfig {name}",
        "kubectl get extensionconfigs {name} -o yaml",
    ),
    "extension.holds": Remedy(
        "whoever runs {extension}",
        "let it have what it waits for; it is asked again all the while",
        "kubectl get extensionconfigs {name} -o yaml",
    ),
    "extension.undiscovered": Remedy(
        "whoever runs the management cluster: the controller of ExtensionConfig does not run",
        "switch on the feature gate RuntimeSDK",
        "kubectl get extensionconfigs {name} -o yaml",
    ),
    "extension.missing": Remedy(
        "the author of {author}",
        "create ExtensionConfig {name}, or correct the reference{where}",
        "kubectl -n {namespace} edit {resource}",
    ),
    "extension.update": Remedy(
        "whoever runs the runtime extension that updates Machine {machine} in place",
        "correct what the extension reports: {said}; or delete Machine {machine}, and a new one is made",
        "kubectl -n {namespace} describe machines.cluster.x-k8s.io/{machine}",
    ),
    "hold.annotation": Remedy(
        "whoever set the annotation {names}",
        "take it away when the Cluster may be upgraded",
        "kubectl -n {namespace} annotate clusters.cluster.x-k8s.io/{cluster} {flags}",
    ),
    "hold.deferred": Remedy(
        "whoever set an annotation ({annotations}) on {workers} in spec.topology.workers",
        "take it away when these workers may be upgraded",
        "kubectl -n {namespace} edit clusters.cluster.x-k8s.io/{cluster}",
    ),
    # passes and queues
    "pass.fails": Remedy(
        "the author of {object}, or whoever runs the controller {controller}",
        "correct what the error names; the controller then succeeds with its next pass",
        "kubectl -n {namespace} edit {resource}",
    ),
    "queue.waits": Remedy("nobody: the controller {controller} is busy", "nothing: it goes on by itself"),
    # references, classes, the API server
    "reference.template": Remedy(
        "the author of {object}", "name a template in {path}: its kind ends in Template", "kubectl -n {namespace} edit {resource}"
    ),
    "secret.key": Remedy(
        "the author of {source}", "put the key {key} into {source}, or correct {path} of {object}", "kubectl -n {namespace} edit {resource}"
    ),
    "reference.group": Remedy(
        "the author of {object}", "set {path} to {group}, which has {kind}", "kubectl -n {namespace} edit {resource}"
    ),
    "conversion.down": Remedy(
        "whoever runs the conversion webhook of {kind}",
        "bring it back: until then nobody can read a {kind}",
        "kubectl get crd {name} -o yaml",
    ),
    "class.patch": Remedy(
        "the author of ClusterClass {name}",
        "correct the patch {patch}: admission refuses what it makes of {kind}",
        "kubectl -n {namespace} edit clusterclasses.cluster.x-k8s.io/{name}",
    ),
    "reference.taken": Remedy(
        "the author of {object}", "correct {path}: it names {what}, which is {owner}'s", "kubectl -n {namespace} edit {resource}"
    ),
    "class.variable": Remedy(
        "the author of Cluster {cluster}, or of its ClusterClass",
        "correct spec.topology.variables of Cluster {cluster}: {said}",
        "kubectl -n {namespace} edit clusters.cluster.x-k8s.io/{cluster}",
    ),
    "cluster.bare": Remedy(
        "the author of Cluster {cluster}",
        "name its infrastructure in spec.infrastructureRef, or set spec.controlPlaneEndpoint",
        "kubectl -n {namespace} edit clusters.cluster.x-k8s.io/{cluster}",
    ),
    "class.value": Remedy(
        "the author of ClusterClass {name}, or of Cluster {cluster}",
        "correct the patch {patch}, or set what it takes its values from: {said}",
        "kubectl -n {namespace} edit clusterclasses.cluster.x-k8s.io/{name}",
    ),
    "cluster.headless": Remedy(
        "the author of Cluster {cluster}",
        "name a control plane in spec.controlPlaneRef, or make Machines of a control plane",
        "kubectl -n {namespace} edit clusters.cluster.x-k8s.io/{cluster}",
    ),
    "addon.refused": Remedy("the author of {source}", "correct {source}: {said}", "kubectl -n {namespace} edit {resource}"),
    "cluster.missing": Remedy(
        "the author of {object}",
        "create Cluster {cluster}, or correct spec.clusterName",
        "kubectl -n {namespace} get clusters.cluster.x-k8s.io",
    ),
}


def remedy_of(complaint: Complaint) -> Remedy | None:
    """Return the remedy of a complaint with its facts filled in, or None if its cause has none."""
    found = REMEDIES.get(complaint.cause)
    if found is None:
        return None
    return Remedy(*(part.format_map(complaint.facts) for part in (found.who, found.next, found.command)))
